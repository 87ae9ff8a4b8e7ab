# Sourced: `. <prefix>/bin/setenv.bash`, where the vendor's scripts look for it. The same as set_env.sh.
. "$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/set_env.sh"
