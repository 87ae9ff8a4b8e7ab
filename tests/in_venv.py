"""The Python that `launch/install_deps --torch` makes, for tests that need more than Debian's packages."""

import os
import sys

_FOLDER = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "venv"))


def run_in_venv():
    """Starts the script again with build/venv's Python, for what this one lacks; nothing where there is
    no such venv, or this is it."""
    python = os.path.join(_FOLDER, "bin", "python")
    if os.path.exists(python) and os.path.realpath(sys.prefix) != _FOLDER:
        sys.stdout.flush()
        os.execv(python, [python, *sys.argv])
