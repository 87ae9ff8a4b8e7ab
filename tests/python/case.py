"""What the tests of the Python packages share."""

import os
import sys
import unittest

SKIPPED = 77  # tests/python/CMakeLists.txt

try:
    import numpy
except ImportError:
    numpy = None

# The Python that `launch/install_deps --torch` makes.
VENV_PYTHON = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "venv", "bin",
                           "python")


def run_in_venv():
    """Starts the script again with build/venv's Python, for what this one lacks; nothing where there is
    no such venv, or this is it."""
    of_venv = os.path.dirname(os.path.dirname(VENV_PYTHON))
    if os.path.exists(VENV_PYTHON) and os.path.realpath(sys.prefix) != os.path.realpath(of_venv):
        sys.stdout.flush()
        os.execv(VENV_PYTHON, [VENV_PYTHON, *sys.argv])


SMALL = {"NPUMESH_HBM_SIZE": "64M"}


def main():
    """Runs the tests of the script. Ends with 77, and says why, where numpy is missing."""
    if numpy is None:
        print("SKIPPED: numpy is not installed (python3-numpy)")
        sys.exit(SKIPPED)
    unittest.main()


def mpirun():
    """The words that start ranks. An empty list: the build has no tests with mpirun."""
    return os.environ.get("NPUMESH_MPIRUN_WORDS", "").split()


def plain_environment(**more):
    """The environment without what makes a process a rank."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("OMPI_", "PMIX_", "PMI_"))}
    return {**kept, **more}
