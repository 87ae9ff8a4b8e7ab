#!/usr/bin/env python3
"""Memory of 64 ranks on one machine: `memory_of_64.py NPUMESH`.

Runs every collective on 64 ranks, each element checked, and looks at the processes meanwhile. The proportional
set size counts a page that n processes share as 1/n in each, so 64 of them add up to what the machine
gives; shared libraries, the window and MPI's segments count once. It must stay below 30 MB a rank beside
the tensors, which are 64 KiB.
"""

import os
import re
import subprocess
import sys
import time
import uuid

RANKS = 64
LIMIT_MB = 30


def ranks_of(tag):
    """Numbers of the processes that carry `tag` in their environment, without launchers."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                environment = file.read()
            if tag.encode() in environment and b"OMPI_COMM_WORLD_RANK=" in environment:
                found.append(int(name))
        except OSError:
            continue  # ended, or of another user
    return found


def proportional_megabytes(process):
    try:
        with open(f"/proc/{process}/smaps_rollup", encoding="ascii") as file:
            return int(re.search(r"^Pss:\s+(\d+) kB", file.read(), re.MULTILINE).group(1)) / 1024
    except (OSError, AttributeError):
        return 0.0


def main():
    npumesh = sys.argv[1]
    tag = f"NPUMESH_MEMORY_TEST={uuid.uuid4().hex}"
    environment = dict(os.environ, NPUMESH_HBM_SIZE="16M", OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    environment.update([tag.split("=")])
    job = subprocess.Popen(
        [npumesh, "launch", "-n", str(RANKS), "--", "bench", "all", "-b", "64K", "-e", "64K", "-n", "20", "-w", "2"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    worst, seen = 0.0, 0
    while job.poll() is None:
        ranks = ranks_of(tag)
        seen = max(seen, len(ranks))
        worst = max([worst] + [proportional_megabytes(process) for process in ranks])
        time.sleep(0.5)
    words = job.stdout.read()
    print(f"{seen} ranks seen, at most {worst:.1f} MB each (limit {LIMIT_MB})")
    if job.returncode != 0 or "failed" in words or words.count("success") < 5:
        sys.exit(f"bench ended with {job.returncode}:\n{words}")
    if seen < RANKS or not 0 < worst < LIMIT_MB:
        sys.exit("too few ranks were seen, or they are too large")


if __name__ == "__main__":
    main()
