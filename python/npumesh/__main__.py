"""python3 -m npumesh: the version, and where the library was found; with --prefix the installed folder,
for `. $(python3 -m npumesh --prefix)/set_env.sh`."""

from __future__ import annotations

import sys

from . import NpumeshError, library_path, prefix, version


def main() -> int:
    try:
        if sys.argv[1:] == ["--prefix"]:
            print(prefix())
        elif sys.argv[1:]:
            print("npumesh: expected no words, or --prefix", file=sys.stderr)
            return 2
        else:
            print(f"npumesh {version()}: {library_path()}")
    except NpumeshError as error:
        print(f"npumesh: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
