# What quickstart and run_tests share: stages with times, packages, configure, build, verdict.
# Sourced, not run.

me=$(basename "$0") # in messages
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
stage_lines=()
notes=() # further lines for the summary

fail() {
  echo "$me: $*" >&2
  exit 1
}

# option_value <option> <value...>: the value of an option, or an error without one.
option_value() {
  if [ $# -lt 2 ] || [ -z "$2" ]; then fail "$1 needs a value; see $me --help"; fi
  printf '%s' "$2"
}

require_count() {
  [[ $2 =~ ^[1-9][0-9]{0,3}$ ]] || fail "$1 is \"$2\"; expected a number from 1 to 9999"
}

# stage <name> <command...>: runs the command between two headlines and remembers its time. A
# failing command ends the script with its exit code, after the verdict.
stage() {
  local name=$1 start=$EPOCHREALTIME code=0
  shift
  printf '\n== %s\n' "$name"
  "$@" || code=$?
  local tenths=$(((${EPOCHREALTIME/[.,]/} - ${start/[.,]/}) / 100000))
  local result=done
  if [ "$code" -ne 0 ]; then result="failed (exit $code)"; fi
  stage_lines+=("$(printf '%-24s %7s s  %s' "$name" "$((tenths / 10)).$((tenths % 10))" "$result")")
  if [ "$code" -ne 0 ]; then
    verdict "FAILED in stage \"$name\""
    exit "$code"
  fi
}

# verdict <text...>: the table of stages, the notes, then the last line.
verdict() {
  printf '\n== summary\n'
  printf '%s\n' "${stage_lines[@]}" "${notes[@]}"
  printf '%s: %s\n' "$me" "$*"
}

# prepare_environment: what every build and every mpirun below needs, also as root in a container.
prepare_environment() {
  exec </dev/null
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  # Ranks outnumber cores: a waiting rank gives its core away.
  export OMPI_MCA_mpi_yield_when_idle=${OMPI_MCA_mpi_yield_when_idle:-1}
  export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root}
  # What ccache asks for before it caches files that use a precompiled header.
  export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}
}

# configure <preset> [cmake options...]
configure() {
  local preset=$1 launcher=()
  shift
  if command -v ccache >/dev/null; then
    launcher=(-D CMAKE_C_COMPILER_LAUNCHER=ccache
      -D "CMAKE_CXX_COMPILER_LAUNCHER=$root/launch/scripts/compile")
  fi
  (cd "$root" && cmake --preset "$preset" "${launcher[@]}" "$@")
}

# build <preset> <jobs> [targets...]
build() {
  local preset=$1 jobs=$2
  shift 2
  local targets=()
  if [ $# -gt 0 ]; then targets=(--target "$@"); fi
  (cd "$root" && cmake --build --preset "$preset" --parallel "$jobs" "${targets[@]}")
}
