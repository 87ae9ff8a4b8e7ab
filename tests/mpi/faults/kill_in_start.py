#!/usr/bin/env python3
"""A rank is killed while a program that starts MPI itself is in MPI_Init; the others do not wait on.

  kill_in_start.py PROGRAM [TRIALS [SEED]]

The launcher leaves the survivors alone. They must end, and one must say for which rank it waited.
"""

import os
import pathlib
import random
import re
import shutil
import signal
import sys
import tempfile

from kill_rank import RANK, processes_of, until
from standstill import RANKS, end, start

SCRIPT = os.path.realpath(shutil.which("sleep"))  # what a rank does before its program, half the time
LAUNCHER_SECONDS = 10.0  # what mpirun gets to notice that all ranks have ended


def kill_one(program, dice, folder, in_script):
    # PMIx's server in mpirun may lock itself up for good when a rank dies while it connects ("PMIX
    # ERROR: UNREACHABLE"), with the ranks' words in its pipes: each rank writes into its own file.
    victim = dice.randrange(RANKS)
    script = f'exec "$@" > "{folder}/${RANK}" 2>&1'
    if in_script:
        script = f'[ "${RANK}" = {victim} ] && exec {SCRIPT} 10000; {script}'
    job, tag = start(program, "loop", "own-mpi", before=["sh", "-c", script, "own_file"])

    def ranks():
        return {**processes_of(program, tag), **processes_of(SCRIPT, tag)}

    until(lambda: len(ranks()) == RANKS or job.poll() is not None)
    if len(ranks()) != RANKS:
        sys.exit(f"kill_in_start: the ranks were not there:\n{end(job, program, tag)}")
    os.kill(ranks()[victim], signal.SIGKILL)
    ended = until(lambda: not processes_of(program, tag)) is not None
    if until(lambda: job.poll() is not None, LAUNCHER_SECONDS) is None:
        job.kill()
    launcher_said = end(job, program, tag)
    said = "".join(file.read_text() for file in sorted(folder.iterdir()))
    if not ended:
        sys.exit(f"kill_in_start: the ranks did not end:\n{said}{launcher_said}")
    if not re.search(rf"\brank {victim}\b", said):
        sys.exit(f"kill_in_start: rank {victim} is not named:\n{said}{launcher_said}")


def main():
    program = sys.argv[1]
    trials = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    dice = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    for trial in range(trials):
        with tempfile.TemporaryDirectory() as folder:
            kill_one(program, dice, pathlib.Path(folder), trial % 2 == 1)
    print(f"kill_in_start: {trials} jobs ended")


if __name__ == "__main__":
    main()
