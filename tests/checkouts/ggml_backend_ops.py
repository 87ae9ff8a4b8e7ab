#!/usr/bin/env python3
"""ggml's own test-backend-ops for its CANN back end, on npumesh.

    ggml_backend_ops.py CHECKOUT INSTALLED [--build FOLDER] [--only OPERATOR]...

Builds the program from a checkout of ggml against an installation of npumesh, asks it what the back end claims to
support, and runs the cases of each operator in a separate process. Prints a line for each operator that is not right, and
a sum; ends with 1 when one is not. Nothing of ggml is part of npumesh.

Not run: SET_ROWS with rows of half, which the back end claims to support and reads as floats.
"""

import argparse
import collections
import os
import re
import subprocess
import sys

OWN_FAULTS = {"SET_ROWS": "^((?!type_src=f16).)*$"}  # what is run instead of all
LONGEST = 1800  # seconds of an operator


def build(checkout, installed, folder):
    words = ["-S", checkout, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DGGML_CANN=ON",
             "-DSOC_TYPE=Ascend910B3", "-DGGML_BUILD_TESTS=ON", "-DGGML_BUILD_EXAMPLES=OFF",
             f"-DCANN_INSTALL_DIR={installed}"]
    environment = {**os.environ, "LD_LIBRARY_PATH": os.path.join(installed, "lib64")}
    for command in (["cmake", *words], ["ninja", "-C", folder, "test-backend-ops"]):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"ggml_backend_ops: {' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return os.path.join(folder, "bin", "test-backend-ops")


class Program:
    def __init__(self, path, installed):
        self.path = path
        self.environment = {**os.environ, "LD_LIBRARY_PATH": os.path.join(installed, "lib64"),
                            "NPUMESH_DEVICE_COUNT": "1", "OMP_NUM_THREADS": "1", "GGML_NO_BACKTRACE": "1"}

    def run(self, *words):
        try:
            done = subprocess.run([self.path, *words, "-b", "CANN0"], env=self.environment, capture_output=True,
                                  text=True, errors="replace", timeout=LONGEST)
        except subprocess.TimeoutExpired:
            return "no end", ""
        return done.returncode, re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)

    def supported(self):
        """How many cases of each operator."""
        _, said = self.run("support")
        return collections.Counter(re.findall(r"^\s*(\w+)\(.*\): SUPPORTED", said, re.M))

    def check(self, operator):
        """How many cases are right, and what is wrong."""
        words = ["test", "-o", operator]
        if operator in OWN_FAULTS:
            words += ["-p", OWN_FAULTS[operator]]
        code, said = self.run(*words)
        right = len(re.findall(r"\): OK$", said, re.M))
        wrong = sorted(set(re.findall(r"^.*\): FAIL$", said, re.M)))
        if code != 0 and not wrong:
            wrong = re.findall(r"CANN error: .*", said)[:1] or [f"ended with {code}"]
        return right, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout")
    parser.add_argument("installed")
    parser.add_argument("--build", default="build-npumesh", help="a folder for what is compiled")
    parser.add_argument("--only", action="append", default=[])
    given = parser.parse_args()
    program = Program(build(given.checkout, os.path.abspath(given.installed), os.path.abspath(given.build)),
                      os.path.abspath(given.installed))
    supported = program.supported()
    if not supported:
        sys.exit("ggml_backend_ops: the back end supports nothing, or did not start")
    rights, claimed, bad = 0, 0, 0
    for operator in given.only or sorted(supported):
        right, wrong = program.check(operator)
        rights, claimed, bad = rights + right, claimed + supported[operator], bad + bool(wrong)
        for line in wrong[:3]:
            print(f"{operator}: {line.strip()}", flush=True)
    print(f"{rights} cases are right, of {claimed} that the back end supports, in "
          f"{len(given.only or supported)} operators; {bad} operators have others")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
