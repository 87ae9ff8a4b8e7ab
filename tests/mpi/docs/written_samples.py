#!/usr/bin/env python3
"""Writes all samples of `npumesh samples`, types what their README says, and plants a fault in each.

  written_samples.py NPUMESH LIBRARY

LIBRARY has the operator Polynomial.

Every sample is run and checked by the commands of its README.md. With one wrong element in the middle of the
graph of the last rank the same check must end with 1 and name the rank. Every package is valid, and writing
again gives the same bytes.
"""

import filecmp
import os
import re
import shutil
import subprocess
import sys
import tempfile

import typed_commands

# A node whose wrong element reaches an output of its rank.
FAULTS = {
    "one_card": "sum",
    "dynamic": "layer1.product",
    "decoder": "MatMul_3",
    "decoder_2": "MatMul_3",
    "decoder_4": "RmsNorm_1",
    "experts": "weighted",
    "training": "error",
    "onnx": "block1.down",
    "offline": "sum",
    "own_operator": "polynomial",
}


class Reader:
    def __init__(self, npumesh, home):
        self.home = home
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("OMPI_", "NPUMESH_", "PMIX_"))}
        self.environment["PATH"] = f"{os.path.dirname(npumesh)}:{os.environ['PATH']}"
        self.problems = []

    def type(self, command, folder, code=0, said=""):
        """A command has to end with `code` and print what the expression `said` finds."""
        done = subprocess.run(["bash", "-c", command], cwd=os.path.join(self.home, folder),
                              env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=1200, check=False)
        good = done.returncode == code and re.search(said, done.stdout)
        print(f"{'ok  ' if good else 'FAIL'}  {folder}: {command}", flush=True)
        if not good:
            self.problems.append(f"{folder}: {command}\n  ended with {done.returncode}, not {code}, or did "
                                 f"not say \"{said}\":\n{done.stdout}")
        return done.stdout


def listed(reader):
    """name -> ranks"""
    lines = reader.type("npumesh samples", ".").splitlines()
    return {line.split()[0]: int(line.split()[1]) for line in lines}


def check_sample(reader, name, ranks):
    folder = f"s/{name}"
    with open(os.path.join(reader.home, folder, "README.md"), encoding="utf-8") as file:
        commands = [command.text for command in typed_commands.commands_in(file.read(), folder)]
    check = commands[0]
    if "--op-library" in check:
        shutil.copy(sys.argv[2], os.path.join(reader.home, folder, "libpolynomial_operator.so"))
    reader.type(check, folder, said=r"\ncheck: OK, .* match\n$")
    for command in commands[1:]:
        reader.type(command, folder, said=r"\S")
    if os.path.isdir(os.path.join(reader.home, folder, "package")):
        reader.type("npumesh validate package/", folder, said=r": valid\nnext: npumesh .*run package/\n$")
    fault = f" --inject corrupt:rank={ranks - 1},op={FAULTS[name]}"
    reader.type(check + fault, folder, code=1, said=rf"\nrank {ranks - 1} output .* DIFFERS")


def differing(left, right):
    """Files that are not the same in both folders."""
    def look(compared, path):
        yield from (f"{path}/{name}" for name in
                    compared.left_only + compared.right_only + compared.funny_files)
        _, different, failed = filecmp.cmpfiles(compared.left, compared.right, compared.common_files, False)
        yield from (f"{path}/{name}" for name in different + failed)
        for name, below in compared.subdirs.items():
            yield from look(below, f"{path}/{name}")
    return list(look(filecmp.dircmp(left, right), ""))


def main():
    npumesh = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="npumesh-samples-") as home:
        reader = Reader(npumesh, home)
        samples = listed(reader)
        reader.type("npumesh samples --write s", ".")
        reader.type("npumesh samples --write again", ".")
        for folder in ("s", "again"):
            reader.type(f"npumesh samples own_operator --write {folder}", ".", said="--op-library")
        unequal = differing(f"{home}/s", f"{home}/again")
        if unequal:
            reader.problems.append(f"written twice, and not the same: {unequal}")
        if set(samples) != set(FAULTS):
            reader.problems.append(f"listed are {sorted(samples)}, and faults known for {sorted(FAULTS)}")
        for name, ranks in samples.items():
            check_sample(reader, name, ranks)
        reader.type("npumesh samples --write s", ".", 3, "s/one_card exists; remove it")
        reader.type("npumesh samples decoder_3", ".", 3, "no sample \"decoder_3\" .similar: decoder_")
        reader.type("npumesh samples onnx --write /proc/none", ".", 4, "/proc/none")
    for problem in reader.problems:
        print(problem)
    return 1 if reader.problems else 0


if __name__ == "__main__":
    sys.exit(main())
