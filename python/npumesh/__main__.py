"""python3 -m npumesh: the version, and where the library was found."""

from __future__ import annotations

import sys

from . import NpumeshError, library_path, version


def main() -> int:
    try:
        print(f"npumesh {version()}: {library_path()}")
    except NpumeshError as error:
        print(f"npumesh: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
