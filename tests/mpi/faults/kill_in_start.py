#!/usr/bin/env python3
"""A rank is killed while a program that starts MPI itself is in MPI_Init; the others do not wait on.

  kill_in_start.py PROGRAM [TRIALS [SEED]]

The launcher leaves the survivors alone. They must end, and one must say for which rank it waited.
"""

import os
import random
import re
import signal
import subprocess
import sys

from kill_rank import HANG_SECONDS, processes_of, until
from standstill import RANKS, end, start


def kill_one(program, dice):
    job, tag = start(program, "loop", "own-mpi")
    until(lambda: len(processes_of(program, tag)) == RANKS or job.poll() is not None)
    ranks = processes_of(program, tag)
    if len(ranks) != RANKS:
        sys.exit(f"kill_in_start: the ranks were not there:\n{end(job, program, tag)}")
    victim = dice.randrange(RANKS)
    os.kill(ranks[victim], signal.SIGKILL)
    try:
        said = job.communicate(timeout=HANG_SECONDS)[0]
    except subprocess.TimeoutExpired:
        sys.exit(f"kill_in_start: the job did not end:\n{end(job, program, tag)}")
    if not re.search(rf"\brank {victim}\b", said):
        sys.exit(f"kill_in_start: rank {victim} is not named:\n{said}")


def main():
    program = sys.argv[1]
    trials = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    dice = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    for _ in range(trials):
        kill_one(program, dice)
    print(f"kill_in_start: {trials} jobs ended")


if __name__ == "__main__":
    main()
