#!/usr/bin/env python3
"""Compares the bits that two builds' operator tests compute.

    tests/compare_operator_results.py build/before build/after [NAME]

Runs every program whose name begins with ops_, or the one NAME, in both builds, and compares a hash of
each call's outputs. Exit code 0: the same bits; 1: a test computes other ones, or has other calls.
"""
import collections
import os
import pathlib
import subprocess
import sys
import tempfile


def programs(build, name):
    found = pathlib.Path(build, "tests").rglob(name or "ops_*_test")
    files = [path for path in found if path.is_file() and os.access(path, os.X_OK)]
    return {path.name: path for path in sorted(files)}


def results(program):
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, NPUMESH_OPERATOR_RESULTS=folder)
        subprocess.run([program], env=environment, stdout=subprocess.DEVNULL, check=False)
        file = pathlib.Path(folder, program.name)
        return collections.Counter(file.read_text().splitlines()) if file.exists() else None


def differences(name, before, after):
    lost, new = before - after, after - before
    for mark, lines in (("-", lost), ("+", new)):
        for line in sorted(lines)[:10]:
            print(f"{name}: {mark} {line}")
    return sum(lost.values()) + sum(new.values())


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    name = sys.argv[3] if len(sys.argv) == 4 else None
    before, after = programs(sys.argv[1], name), programs(sys.argv[2], name)
    wrong = calls = 0
    for program in sorted(before.keys() | after.keys()):
        if program not in before or program not in after:
            print(f"{program}: only in one of the builds")
            wrong += 1
            continue
        old, new = results(before[program]), results(after[program])
        if not old and not new:
            print(f"{program}: runs no operator to its end")
            continue
        old, new = old or collections.Counter(), new or collections.Counter()
        calls += sum(old.values())
        wrong += differences(program, old, new)
    print(f"{calls} calls, {wrong} differences")
    sys.exit(1 if wrong or not calls else 0)


main()
