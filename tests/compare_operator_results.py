#!/usr/bin/env python3
"""Compares the bits that two builds' operator tests compute.

    tests/compare_operator_results.py build/before build/after [PATTERN]

Runs every operator test (ops_*_test, unit_ops_*; or programs like PATTERN) of both builds and compares a
hash of the outputs of each call. A call is known by its test and its operator, so that tests may move
between files and programs. Exit code 0: the same bits; 1: a test computes other ones, or has other calls.
"""
import collections
import os
import pathlib
import subprocess
import sys
import tempfile


def programs(build, patterns):
    found = [path for pattern in patterns for path in pathlib.Path(build, "tests").rglob(pattern)]
    return sorted(path for path in found if path.is_file() and os.access(path, os.X_OK))


def results(program):
    """Lines "Suite.Test <tab> operator <tab> hash"."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, NPUMESH_OPERATOR_RESULTS=folder)
        subprocess.run([program], env=environment, stdout=subprocess.DEVNULL, check=False)
        file = pathlib.Path(folder, program.name)
        lines = file.read_text().splitlines() if file.exists() else []
        return [line.split(" ", 1)[1] for line in lines]


def all_results(build, patterns):
    calls = collections.Counter()
    for program in programs(build, patterns):
        calls.update(results(program))
    return calls


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    patterns = sys.argv[3:] or ["ops_*_test", "unit_ops_*"]
    before, after = (all_results(build, patterns) for build in sys.argv[1:3])
    lost, new = before - after, after - before
    for mark, lines in (("-", lost), ("+", new)):
        for line in sorted(lines)[:40]:
            print(f"{mark} {line}")
    print(f"{sum(before.values())} calls before, {sum(after.values())} after; "
          f"{sum(lost.values())} only before, {sum(new.values())} only after")
    sys.exit(1 if lost or new or not before else 0)


main()
