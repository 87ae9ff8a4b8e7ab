"""What the tests of the Python packages share."""

import argparse
import os
import sys
import unittest

SKIPPED = 77  # tests/python/CMakeLists.txt

try:
    import numpy
except ImportError:
    numpy = None

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from in_venv import run_in_venv  # noqa: F401

SMALL = {"NPUMESH_HBM_SIZE": "64M"}


def numbers(doc, **defaults):
    """What the command line says of each number, as --NAME; the words that are left are unittest's."""
    parser = argparse.ArgumentParser(description=doc)
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    given, sys.argv[1:] = parser.parse_known_args()
    return tuple(getattr(given, name) for name in defaults)


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
