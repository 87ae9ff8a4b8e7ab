#!/usr/bin/env python3
"""Runs the operator tests with every call once more as a static kernel.

    tests/operator_static_kernels.py build/ci [PATTERN]

Runs every operator test (ops_*_test; or programs like PATTERN) with NPUMESH_TEST_STATIC_KERNELS, see
tests/unit/static_calls.cc. Exit code 0: every static kernel gives what the operator's own kernel gives; 1:
one does not, or no call had a static kernel.
"""
import os
import pathlib
import re
import subprocess
import sys


def calls_of(program):
    """How many calls ran as static kernels, 0 where nobody listens; None after a failure, which is printed."""
    environment = dict(os.environ, NPUMESH_TEST_STATIC_KERNELS="1")
    run = subprocess.run([program], env=environment, text=True, check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    found = re.search(r"^static kernels: (\d+) calls$", run.stdout, re.MULTILINE)
    if run.returncode == 0:
        return int(found[1]) if found else 0
    print(f"{program}: exit code {run.returncode}\n{run.stdout[-8000:]}")
    return None


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    pattern = sys.argv[2] if len(sys.argv) == 3 else "ops_*_test"
    programs = [path for path in pathlib.Path(sys.argv[1], "tests").rglob(pattern)
                if path.is_file() and os.access(path, os.X_OK)]
    counts = {program: calls_of(program) for program in sorted(programs)}
    for program, count in counts.items():
        if count:
            print(f"{count:6} {program.name}")
    total = sum(count or 0 for count in counts.values())
    print(f"{total} calls as static kernels in {len(counts)} programs")
    sys.exit(1 if total == 0 or None in counts.values() else 0)


main()
