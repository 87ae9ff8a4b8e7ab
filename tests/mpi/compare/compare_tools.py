#!/usr/bin/env python3
"""Plants one wrong element on one rank of a running job and checks who names it.

  compare_tools.py NPUMESH WRITE_DECODER PLANTS BOUND

Each plant is one `npumesh run --inject corrupt:...` of four ranks with a dump of mode all; operator, rank
and element are drawn. `--golden`, `dump compare`, `dump laws` and `replay` must each name operator and
rank: PLANTS times for any operator, of which laws find those that a law binds, and BOUND times for one
that a law binds, which all four find. A clean run must be blamed by none of them. The other kinds of faults are
tried once.
"""

import os
import random
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from launcher import MPIRUN as LAUNCHER

RANKS = 4
MPIRUN = LAUNCHER + ["-n", str(RANKS)]


def call(words, expected, env=None):
    done = subprocess.run(words, capture_output=True, text=True, timeout=1200, check=False,
                          env={**os.environ, **(env or {})})
    if done.returncode != expected:
        sys.exit(f"{' '.join(words)}\nended with {done.returncode}, expected {expected}\n"
                 f"{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def verdict(text, start):
    for line in text.splitlines():
        if line.startswith(start):
            return line
    sys.exit(f"no line starts with {start!r}:\n{text}")


def expect(line, *words):
    for word in words:
        if word not in line:
            sys.exit(f"expected {word!r} in: {line}")


class Job:
    def __init__(self, npumesh, folder):
        self.npumesh, self.folder, self.mpirun = npumesh, folder, MPIRUN
        self.models, self.whole = f"{folder}/mp", f"{folder}/whole.air"

    def run(self, name, faults, expected, more=()):
        dump = f"{self.folder}/{name}"
        os.mkdir(dump)
        words = [self.npumesh, "run", self.models, "--dump", "all", "--dump-path", dump, *more]
        for fault in faults:
            words += ["--inject", fault]
        return dump, call(self.mpirun + words, expected)

    def tool(self, *words, expected):
        return call([self.npumesh, *words], expected)


def laws_of(job, dump):
    """Operators whose output 0 must be equal on all ranks."""
    text = job.tool("dump", "laws", dump, "--model", job.models, "--list", expected=0)
    bound = re.findall(r"^(\S+):0 \((\w+)\)\s+equal on ranks 0-3$", text, re.MULTILINE)
    return {name for name, kind in bound if kind != "Data"}


def operators_of(job, dump):
    first = next(name for name in os.listdir(dump) if name.endswith("_global_rank0"))
    text = job.tool("dump", "ls", "-l", f"{dump}/{first}", expected=0)
    return [name for kind, name in re.findall(r"^  (\w+) +(\S+) +task", text, re.MULTILINE)
            if kind != "Data"]


def plant(job, number, op, rank, bound, clean):
    fault = f"corrupt:rank={rank},op={op}"
    more = ["--golden", job.whole, "--seed", "7"]
    dump, text = job.run(f"plant{number}", [fault], 1, more)
    expect(verdict(text, "golden: rank"), f"golden: rank {rank} ", f" {op} (")
    text = call(MPIRUN + [job.npumesh, "run", job.models, "--golden", "float64", "--seed", "7",
                          "--inject", fault], 1)
    expect(verdict(text, "golden: rank"), f"golden: rank {rank} ", f" {op} (")
    report = f"{job.folder}/report{number}"
    text = job.tool("dump", "compare", dump, clean, "--model", job.models, "-o", report, expected=1)
    expect(verdict(text, "verdict:"), f"verdict: rank {rank} ", f": {op} (")
    names = os.listdir(report)
    if len([name for name in names if name.endswith(".csv")]) != 3 * RANKS:
        sys.exit(f"CSV files: {names}")
    if len([name for name in names if name.endswith(".html")]) != 1:
        sys.exit(f"page: {names}")
    text = job.tool("replay", dump, "--model", job.models, expected=1)
    blamed = re.findall(r"^rank (\d) step 0: (\S+) \(", text, re.MULTILINE)
    if blamed != [(str(rank), op)]:
        sys.exit(f"replay blames {blamed}, planted {op} on rank {rank}\n{text}")
    text = job.tool("dump", "laws", dump, "--model", job.models, expected=1 if op in bound else 0)
    if op in bound:
        expect(verdict(text, "verdict: rank"), f"verdict: rank {rank} breaks", f" {op} (")


def other_faults(job):
    start = time.monotonic()
    job.run("delayed", ["delay:rank=1,op=RmsNorm,ms=700"], 0)
    if time.monotonic() - start < 0.7:
        sys.exit("delay: came too early")
    words = [job.npumesh, "run", job.models]
    done = subprocess.run(MPIRUN + words + ["--inject", "exit:rank=2,op=MatMul_1,code=9"],
                          capture_output=True, text=True, timeout=1200, check=False)
    if done.returncode == 0:
        sys.exit("exit: nobody noticed")
    done = subprocess.run(MPIRUN + words + ["--inject", "kill:rank=3"], capture_output=True,
                          text=True, timeout=1200, check=False)
    if done.returncode == 0:
        sys.exit("kill: nobody noticed")
    call(MPIRUN + words + ["--inject", "corrupt:rank=9,op=MatMul"], 3)
    call(MPIRUN + words + ["--inject", "corrupt:rank=1"], 2)
    text = call(MPIRUN + words + ["--inject", "kill:rank=1,op=Nobody"], 3)
    expect(text, 'rank 1 runs no operator "Nobody"')


def main():
    npumesh, write_decoder = sys.argv[1:3]
    plants, by_all = int(sys.argv[3]), int(sys.argv[4])
    with tempfile.TemporaryDirectory() as folder:
        call([write_decoder, folder, str(RANKS)], 0)
        job = Job(npumesh, folder)
        clean, text = job.run("clean", [], 0, ["--golden", job.whole, "--seed", "7"])
        expect(text, "golden: no operator differs")
        text = call(MPIRUN + [npumesh, "run", job.models, "--golden", "float64"], 0)
        expect(text, "golden: no operator differs")
        again, _ = job.run("again", [], 0, ["--seed", "7"])
        text = job.tool("dump", "compare", clean, again, "-o", f"{folder}/same", expected=0)
        expect(text, "verdict: no operator differs")
        job.tool("replay", clean, "--model", job.models, expected=0)
        bound = laws_of(job, clean)
        operators = operators_of(job, clean)
        bound &= set(operators)
        if len(bound) < 8 or len(operators) < 40:
            sys.exit(f"{len(bound)} laws, {len(operators)} operators")
        chance = random.Random(11)
        for number in range(plants):
            plant(job, number, chance.choice(operators), chance.randrange(RANKS), bound, clean)
        for number in range(plants, plants + by_all):
            plant(job, number, chance.choice(sorted(bound)), chance.randrange(RANKS), bound, clean)
        other_faults(job)
    print(f"compare_tools: {by_all} of {by_all} plants named by compare, laws, golden and replay, "
          f"{plants} of {plants} by those that can see them")


if __name__ == "__main__":
    main()
