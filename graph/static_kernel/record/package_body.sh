# Static kernels of npumesh: this script, and after it a tar archive. Try --help.
set -eu

architecture='@ARCHITECTURE@'
instructions='@INSTRUCTIONS@'
flags='@FLAGS@'
archive_bytes='@ARCHIVE_BYTES@'
archive_sha256='@ARCHIVE_SHA256@'
script_lines='@SCRIPT_LINES@'
work=

# <key> <SHA-256 of its object> <title>
kernels() {
  cat <<'END_OF_KERNELS'
@KERNELS@
END_OF_KERNELS
}

usage() {
  cat <<'END_OF_USAGE'
Usage: sh static_kernel_<datetime>.run --install|--uninstall [--target DIR]
       sh static_kernel_<datetime>.run --list|--verify|--help

Carries compiled static kernels of npumesh to another machine of the same kind.

  --install     put the kernels into the store, after all checks of --verify
  --uninstall   remove the kernels of this package from the store, and their objects when no
                other kernel needs them
  --target DIR  the store; default: $NPUMESH_KERNEL_STORE, else $XDG_CACHE_HOME/npumesh/kernels,
                else ~/.cache/npumesh/kernels
  --list        say which kernels these are, and for which processors
  --verify      check that the package is whole
  --help        this text

Exit codes: 0; 2 usage; 3 damaged package or wrong machine; 4 the store cannot be written.
END_OF_USAGE
}

# fail <exit code> <text>
fail() {
  printf '%s: %s\n' "$self" "$2" >&2
  [ -n "$work" ] || trap - EXIT
  exit "$1"
}

# attempt <what it does> <command...>: a failure says the first line that the command says.
attempt() {
  what=$1
  shift
  said=$("$@" 2>&1 >/dev/null) || fail 4 "cannot $what: $(printf '%s\n' "$said" | sed 1q)"
}

archive() {
  tail -n "+$((script_lines + 1))" "$self"
}

sha256() {
  sha256sum | cut -d ' ' -f 1
}

check_tools() {
  for tool in cat cmp cut find grep head id mkdir mktemp mv rm sed sha256sum sort tail tar tr \
    uname wc; do
    command -v "$tool" >/dev/null || fail 3 "wrong machine: the program $tool is missing"
  done
}

check_package() {
  [ -r "$self" ] || fail 3 "cannot read the package; name its path: sh DIR/NAME.run"
  seal=$(tail -n "+$((script_lines - 1))" "$self" | head -n 1 | tr -d '\000')
  seen=$(head -n "$((script_lines - 2))" "$self" | sha256)
  [ "$seal" = "# SHA-256 of the lines above: $seen" ] ||
    fail 3 "damaged: the script has SHA-256 $seen, which is not what its seal says; copy it again"
  seen=$(archive | wc -c)
  [ "$((seen))" = "$archive_bytes" ] ||
    fail 3 "damaged: the archive has $((seen)) bytes, expected $archive_bytes; copy it again"
  seen=$(archive | sha256)
  [ "$seen" = "$archive_sha256" ] ||
    fail 3 "damaged: the archive has SHA-256 $seen, expected $archive_sha256; copy it again"
}

check_machine() {
  here=$(uname -m)
  [ "$here" = "$architecture" ] ||
    fail 3 "wrong machine: the kernels are for $architecture, this is $here; compile them here"
  [ -n "$flags" ] || return 0
  has=$(sed -n '/^flags[^:]*:/{s/^[^:]*://p;q;}' /proc/cpuinfo)
  lacks=
  for flag in $flags; do
    case " $has " in
      *" $flag "*) ;;
      *) lacks="$lacks $flag" ;;
    esac
  done
  [ -z "$lacks" ] ||
    fail 3 "wrong machine: the kernels are for $instructions, this processor lacks$lacks; \
compile them here"
}

find_root() {
  if [ -n "$target" ]; then
    root=$target
  elif [ -n "${NPUMESH_KERNEL_STORE:-}" ]; then
    root=$NPUMESH_KERNEL_STORE
  elif [ -n "${XDG_CACHE_HOME:-}" ]; then
    root=$XDG_CACHE_HOME/npumesh/kernels
  elif [ -n "${HOME:-}" ]; then
    root=$HOME/.cache/npumesh/kernels
  else
    fail 2 'NPUMESH_KERNEL_STORE, XDG_CACHE_HOME and HOME are not set; name the store by --target'
  fi
  case $root in
    /*) ;;
    *) root=./$root ;;
  esac
  root=${root%/}
}

# The store's objects are run, so no other user may have written them.
check_root() {
  [ ! -h "$root" ] || fail 4 "the store $root is a symbolic link; name its target by --target"
  [ -d "$root" ] || fail 4 "the store $root is no folder; name another by --target"
  foreign=$(find "$root" -prune \( ! -user "$(id -u)" -o -perm -0020 -o -perm -0002 \))
  [ -z "$foreign" ] ||
    fail 4 "the store $root belongs to another user or may be written by others; chmod 700 it"
}

make_root() {
  umask 077
  attempt "make the store $root" mkdir -p "$root"
  check_root
  for folder in manifests objects sources work; do
    [ ! -h "$root/$folder" ] || fail 4 "$root/$folder is a symbolic link; remove it"
    attempt "make the folder $root/$folder" mkdir -p "$root/$folder"
  done
}

# Unpacks the archive into the new folder $work and checks each part.
unpack() {
  trap 'rm -rf "$work"' EXIT
  trap 'exit 4' HUP INT TERM
  said=$( (archive | (cd "$work" && tar -xmof -)) 2>&1) ||
    fail 4 "cannot unpack into $work: $(printf '%s\n' "$said" | sed 1q)"
  (cd "$work" && sha256sum -c parts.sha256 >/dev/null 2>&1) ||
    fail 4 "what was unpacked into $work is not whole; is the disk full?"
}

# publish <folder>: moves the parts of one folder into that of the store.
publish() {
  for part in "$work/$1"/*; do
    [ -f "$part" ] || continue
    to=$root/$1/${part##*/}
    if cmp -s "$part" "$to" 2>/dev/null; then continue; fi
    [ ! -d "$to" ] || fail 4 "cannot write $to: it is a folder; remove it"
    attempt "write $to" mv -f "$part" "$to"
  done
  sync "$root/$1" 2>/dev/null || :
}

# Objects of the package that the store does not have.
lost_objects() {
  kernels | cut -d ' ' -f 2 | sort -u | while read -r object; do
    [ -f "$root/objects/$object.so" ] || echo "$object"
  done
}

# Objects come before the manifests that name them, so a reader never meets a manifest without its
# object, whenever this process is killed. The work folder is named as those of other builders, so
# that they remove what a killed process leaves.
install_kernels() {
  check_machine
  make_root
  started=$(sed 's/.*) //' "/proc/$$/stat" | cut -d ' ' -f 20)
  boot=$(cat /proc/sys/kernel/random/boot_id)
  space=$(readlink "/proc/$$/ns/pid" | tr -cd 0-9)
  works=$root/work
  work=$works/$(uname -n).$boot.$$.$started.$space.$$-0
  attempt "make the folder $work" mkdir "$work"
  unpack
  find "$work" -type f -exec sync {} + 2>/dev/null || :
  for folder in objects sources manifests; do publish "$folder"; done
  if [ -n "$(lost_objects)" ]; then
    remove_kernels
    fail 4 "another process cleaned $root meanwhile; install again"
  fi
  echo "installed $(kernels | wc -l | tr -d ' ') kernels into $root"
}

# Manifests go first. One that names another object is not of this package and stays.
remove_manifests() {
  kernels | while read -r key object title; do
    if grep -qs "$object" "$root/manifests/$key.json"; then
      rm -f "$root/manifests/$key.json" "$root/sources/$key.cc" "$root/sources/$key.json" || exit 4
    fi
  done
}

remove_objects() {
  kernels | cut -d ' ' -f 2 | sort -u | while read -r object; do
    named=$(find "$root/manifests" -name '*.json' -exec grep -ls "$object" {} + || :)
    [ -n "$named" ] || rm -f "$root/objects/$object.so" || exit 4
  done
}

remove_kernels() {
  attempt "remove kernels from $root" remove_manifests
  attempt "remove objects from $root" remove_objects
}

uninstall_kernels() {
  if [ -d "$root/manifests" ]; then
    check_root
    remove_kernels
  fi
  echo "removed $(kernels | wc -l | tr -d ' ') kernels from $root"
}

list_kernels() {
  echo "for $instructions on $architecture:"
  kernels | while read -r key object title; do printf '%s  %s\n' "$key" "$title"; done
}

verify_parts() {
  work=$(mktemp -d 2>/dev/null) || fail 4 "cannot make a folder in ${TMPDIR:-/tmp}"
  unpack
  echo "whole: $(kernels | wc -l | tr -d ' ') kernels, $(wc -l <"$work/parts.sha256" | tr -d ' ') parts"
}

# choose <action>
choose() {
  [ -z "$action" ] || fail 2 "--$action and --$1 exclude each other; try --help"
  action=$1
}

main() {
  case $0 in
    */*) self=$0 ;;
    *) self=./$0 ;;
  esac
  action=
  target=
  while [ $# -gt 0 ]; do
    case $1 in
      --install | --uninstall | --list | --verify | --help) choose "${1#--}" ;;
      --target)
        [ -n "${2:-}" ] || fail 2 'to --target belongs a folder; try --help'
        target=$2
        shift
        ;;
      *) fail 2 "unknown option \"$1\"; try --help" ;;
    esac
    shift
  done
  [ -n "$action" ] || fail 2 'say what to do, for example --install; try --help'
  case $action in
    install | uninstall) find_root ;;
    *) [ -z "$target" ] || fail 2 "--$action takes no --target; try --help" ;;
  esac
  if [ "$action" = help ]; then
    usage
    trap - EXIT
    return 0
  fi
  check_tools
  check_package
  trap - EXIT
  case $action in
    install) install_kernels ;;
    uninstall) uninstall_kernels ;;
    list) list_kernels ;;
    verify) verify_parts ;;
  esac
}

{ main "$@"; exit; }
