#!/usr/bin/env python3
"""Counts the operator types that the operator tests compare with float64.

    tests/operator_float64.py build/ci [LEAST]

Runs every operator test (ops_*_test) with NPUMESH_TEST_FLOAT64, see tests/unit/float64_calls.cc, and prints the types
with the number of their calls. Exit code 1: a test failed, or there are fewer types than LEAST (default: 380).
"""
import collections
import os
import pathlib
import re
import subprocess
import sys


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    least = int(sys.argv[2]) if len(sys.argv) == 3 else 380
    calls = collections.Counter()
    for program in sorted(pathlib.Path(sys.argv[1], "tests").rglob("ops_*_test")):
        if not (program.is_file() and os.access(program, os.X_OK)):
            continue
        run = subprocess.run([program], env=dict(os.environ, NPUMESH_TEST_FLOAT64="report"), text=True, check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if run.returncode != 0:
            sys.exit(f"{program}: exit code {run.returncode}\n{run.stdout[-8000:]}")
        calls.update(re.findall(r"^float64: (\w+)$", run.stdout, re.MULTILINE))
    for name, count in sorted(calls.items()):
        print(f"{count:6} {name}")
    print(f"{sum(calls.values())} calls of {len(calls)} operator types compared with float64")
    sys.exit(len(calls) < least)


main()
