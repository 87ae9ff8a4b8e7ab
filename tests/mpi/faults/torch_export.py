#!/usr/bin/env python3
"""torch's own analyser reads what `npumesh record --export-torch` writes, to the same verdict.

  torch_export.py NPUMESH PROGRAM

Jobs that go well, and jobs in which a rank hands in another count, ends early, or calls two groups in the
other order. Skipped (77) where torch, or its analyser, is missing.
"""

import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from in_venv import run_in_venv

run_in_venv()

from flight_record import Job, RANKS, first_suspect
from kill_rank import alive, until

SKIPPED = 77
STEPS = "30"  # the fault strikes in step 20


def analyse(folder):
    """What the analyser says."""
    told = subprocess.run([sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", folder, "-p",
                           "npumesh_trace_rank_"], capture_output=True, text=True)
    if told.returncode != 0:
        sys.exit(f"torch_export: the analyser ends with {told.returncode}:\n{told.stdout}{told.stderr}")
    return told.stdout + told.stderr


def records_of(npumesh, program, folder, fault, victim):
    job = Job(program, folder, STEPS, *([fault, str(victim)] if fault else []))
    try:
        until(lambda: job.mpirun.poll() is not None)
    finally:
        job.end()
    exported = f"{folder}/torch"
    suspect, text = first_suspect(npumesh, job.records)
    made = subprocess.run([npumesh, "record", job.records, "--export-torch", exported], capture_output=True, text=True)
    if not os.path.isdir(exported) or len(os.listdir(exported)) != RANKS:
        sys.exit(f"torch_export: nothing was exported: {made.stdout}{made.stderr}")
    return exported, suspect, text


def main():
    try:
        import torch.distributed.flight_recorder.fr_trace  # noqa: F401
    except ImportError as error:
        print(f"skipped: {error}")
        return SKIPPED
    npumesh, program = sys.argv[1:]
    wrong = []
    for fault in ("", "count", "early", "circle"):
        victim = random.randrange(RANKS)
        with tempfile.TemporaryDirectory() as folder:
            exported, suspect, text = records_of(npumesh, program, folder, fault, victim)
            said = analyse(exported)
        ours = {int(rank) for rank in re.findall(r"\d+", suspect)}
        theirs = {int(rank) for ranks in re.findall(r"missing ranks: \{([\d, ]+)\}", said) for rank in ranks.split(",")}
        theirs |= {int(rank) for rank in re.findall(r"Culprit rank (\d+)", said)}
        print(f"{fault or 'no fault'}, rank {victim}: npumesh names {sorted(ours)}, torch {sorted(theirs)}")
        # Of different sizes it expects that of the rank which called first, and names the others.
        same = ours == theirs or (fault == "count" and ours == set(range(RANKS)) - theirs)
        if not same or bool(fault) != (victim in ours):
            print(f"torch says:\n{said}\nnpumesh says:\n{text}")
            wrong.append(fault)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
