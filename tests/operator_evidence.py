#!/usr/bin/env python3
"""How each operator was tested, as a page.

  tests/operator_evidence.py BUILD

Runs the operator tests of the build folder and prints, for each operator that one of them ran: the
dtypes of its inputs, how its results were compared, and the files of the tests. What the tests leave
behind: tests/unit/op_evidence.h.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HEAD = """# How each operator is tested

Made by `tests/operator_evidence.py` from a run of the operator tests. The references are written in the
tests, apart from the kernels, in double precision or in integers.

*dtypes*: of the inputs with which tests ran the operator. *compared*: `==` when every test compares the
bytes, or values that are exact in the dtype; else the most by which a result may differ from the
reference, over max(1, |reference|), whatever the dtype of that test was (16-bit types mostly bind it).

| operator | dtypes | compared | tests |
|---|---|---|---|
"""


def programs(build):
    for path in sorted(pathlib.Path(build, "tests").rglob("ops_*_test")) + sorted(
            pathlib.Path(build, "tests").rglob("rank_*_test")):
        if re.match(r"ops_\w+_test$|rank_\w+_test$", path.name) and path.is_file() and os.access(path, os.X_OK):
            yield path


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    dtypes = collections.defaultdict(set)
    near = collections.defaultdict(float)
    files = collections.defaultdict(set)
    with tempfile.TemporaryDirectory() as folder:
        for program in programs(sys.argv[1]):
            done = subprocess.run([program], env={**os.environ, "NPUMESH_OPERATOR_EVIDENCE": folder},
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if done.returncode != 0:
                sys.exit(f"operator_evidence: {program} failed; run it to see why")
        for left in sorted(os.listdir(folder)):
            for line in pathlib.Path(folder, left).read_text().splitlines():
                operator, test, error, types = line.split("\t")
                dtypes[operator] |= set(types.split())
                near[operator] = max(near[operator], float(error))
                files[operator].add(test.split()[0])
    print(HEAD, end="")
    for operator in sorted(files, key=str.lower):
        compared = "`==`" if near[operator] == 0 else f"within {near[operator]:.1e}"
        print(f"| {operator} | {' '.join(sorted(dtypes[operator]))} | {compared} | "
              f"{', '.join(sorted(files[operator]))} |")
    page = subprocess.run([f"{sys.argv[1]}/launch/npumesh", "ops", "--markdown"], check=True,
                          capture_output=True, text=True).stdout
    others = [name for name in re.findall(r"^- `(\w+)\(", page, re.M)
              if name not in files]
    print("\nNot run alone, but in graphs, by tests of the engine, of sessions and of models, or checked for their "
          f"types only: {', '.join(others)}.")


main()
