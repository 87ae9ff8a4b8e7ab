#!/usr/bin/env python3
"""Does something to one rank of a running job and checks who is blamed for it.

  flight_record.py NPUMESH PROGRAM kill|stop|wake|early|late|count|circle|create [TRIALS]

kill:   SIGKILL at a random moment. The others must end and name the rank.
stop:   SIGSTOP at a random moment. With a soft limit of 1 s the others must say whom they wait for,
        and that its process is stopped.
wake:   SIGSTOP at a random moment, and SIGCONT after the others have said so. The job ends well, and the
        record must not call it good.
early:  the rank ends its work before the others. They must say so.
late:   SIGSTOP at a random moment, and SIGCONT after the others have given up and left.
count:  the rank reduces half as many elements.
circle: the rank calls two collectives in the other order.
create: the rank stops before it creates a group. The record must say that the creation waits for it.

Each time `npumesh record` must say to look at that rank first; in the circle, at it and one more.
Prints how often all this happened and how long the words of the others took: on an idle machine less
than 2 s plus the soft limit.
"""

import os
import random
import re
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import uuid

from kill_rank import MPIRUN, RECOVERY, alive, exports, processes_of, until, wait_until

RANKS = 4
GROUPS = 2  # of each rank; creating one is a call
SOFT_SECONDS = 1


class Job:
    """The program on RANKS ranks, with records in a folder and its words in a file."""

    def __init__(self, program, folder, *words):
        self.program = program
        self.tag = uuid.uuid4().hex
        self.records = f"{folder}/records"
        self.log = f"{folder}/log"
        environment = {"NPUMESH_TEST_TAG": self.tag, "NPUMESH_RECORD": self.records,
                       "NPUMESH_SOFT_TIMEOUT": str(SOFT_SECONDS), "HCCL_EXEC_TIMEOUT": "15",
                       "NPUMESH_HBM_SIZE": "4M"}
        with open(self.log, "w") as log:
            self.mpirun = subprocess.Popen(
                MPIRUN + RECOVERY + ["-n", str(RANKS)] + exports(environment) + [program, *words],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def processes(self):
        return processes_of(self.program, self.tag)

    def wait_for_records(self):
        wait_until(lambda: all(self.calls(rank) > GROUPS for rank in range(RANKS)),
                   "the first calls of all ranks")

    def calls(self, rank):
        """How many a rank has recorded (docs/formats/flight_record.md)."""
        try:
            with open(f"{self.records}/rank_{rank}.npr", "rb") as file:
                return struct.unpack_from("<Q", file.read(96), 88)[0]
        except FileNotFoundError:
            return 0

    def said(self):
        with open(self.log, errors="replace") as log:
            return log.read()

    def end(self):
        for pid in self.processes().values():
            for signal_number in (signal.SIGKILL, signal.SIGCONT):
                try:
                    os.kill(pid, signal_number)
                except ProcessLookupError:
                    pass
        self.mpirun.wait(timeout=1200)


def first_suspect(npumesh, records):
    """What `npumesh record` says to look at first."""
    joined = subprocess.run([npumesh, "record", records], capture_output=True, text=True)
    match = re.search(r"^look first at (ranks? [\d,-]+): ", joined.stdout, re.MULTILINE)
    found = match.group(1) if joined.returncode == 1 and match else "nobody"
    return found, joined.stdout + joined.stderr


def kill(npumesh, program, folder, victim):
    job = Job(program, folder)
    job.wait_for_records()
    time.sleep(random.uniform(0.02, 0.5))
    ranks = job.processes()
    os.kill(ranks[victim], signal.SIGKILL)
    others = [pid for rank, pid in ranks.items() if rank != victim]
    took = until(lambda: not any(alive(pid) for pid in others))
    job.end()
    suspect, text = first_suspect(npumesh, job.records)
    named = re.search(rf"PEER_LOST: .*rank {victim}\b", job.said())
    return took, suspect == f"rank {victim}" and named, job.said() + text


def stop(npumesh, program, folder, victim):
    job = Job(program, folder)
    job.wait_for_records()
    time.sleep(random.uniform(0.02, 0.5))
    os.kill(job.processes()[victim], signal.SIGSTOP)
    words = rf"has waited 1 s in .* for (rank \d, .*)?rank {victim}, which .*process \d+ is stopped"
    words += rf"|has waited 1 s in .*; rank {victim} .*process \d+ is stopped"
    took = until(lambda: re.search(words, job.said()))
    job.end()
    suspect, text = first_suspect(npumesh, job.records)
    return took, suspect == f"rank {victim}", job.said() + text


def wake(npumesh, program, folder, victim):
    job = Job(program, folder, "4000")
    job.wait_for_records()
    process = job.processes()[victim]
    os.kill(process, signal.SIGSTOP)
    took = until(lambda: re.search(r"has waited 1 s in .*process \d+ is stopped", job.said()))
    os.kill(process, signal.SIGCONT)
    well = job.mpirun.wait() == 0
    suspect, text = first_suspect(npumesh, job.records)
    named = f"rank {victim}: its process was stopped while others waited for it" in text
    return took, well and named and suspect == f"rank {victim}", job.said() + text


def late(npumesh, program, folder, victim):
    job = Job(program, folder)
    job.wait_for_records()
    time.sleep(random.uniform(0.02, 0.5))
    ranks = job.processes()
    os.kill(ranks[victim], signal.SIGSTOP)
    others = [pid for rank, pid in ranks.items() if rank != victim]
    took = until(lambda: not any(alive(pid) for pid in others))
    time.sleep(random.uniform(0.0, 0.5))
    os.kill(ranks[victim], signal.SIGCONT)
    until(lambda: not alive(ranks[victim]))
    job.end()
    suspect, text = first_suspect(npumesh, job.records)
    return took, suspect == f"rank {victim}", job.said() + text


def different(npumesh, program, folder, victim, fault):
    """The rank does something else in the middle; all end by themselves."""
    job = Job(program, folder, "1000000", fault, str(victim))
    job.wait_for_records()
    ranks = job.processes()
    took = until(lambda: not any(alive(pid) for pid in ranks.values()))
    job.end()
    suspect, text = first_suspect(npumesh, job.records)
    return took, suspect, job.said() + text


def count(npumesh, program, folder, victim):
    took, suspect, text = different(npumesh, program, folder, victim, "count")
    return took, suspect == f"rank {victim}", text


def circle(npumesh, program, folder, victim):
    took, suspect, text = different(npumesh, program, folder, victim, "circle")
    low = victim % 2
    return took, suspect == f"ranks {low},{low + 2}", text


def create(npumesh, program, folder, victim):
    job = Job(program, folder, "1000000", "create", str(victim))
    words = rf"has waited 1 s in .* for rank {victim}, which .*process \d+ is stopped"
    took = until(lambda: re.search(words, job.said()))
    job.end()
    suspect, text = first_suspect(npumesh, job.records)
    named = f"group half: its creation waits for rank {victim}, which has not begun it" in text
    return took, suspect == f"rank {victim}" and named, job.said() + text


def early(npumesh, program, folder, victim):
    job = Job(program, folder, "1000000", "early", str(victim))
    job.wait_for_records()
    words = rf"has waited 1 s in .* for rank {victim}, which has ended its work after call \d+"
    took = until(lambda: re.search(words, job.said()))
    others = [pid for rank, pid in job.processes().items() if rank != victim]
    until(lambda: not any(alive(pid) for pid in others))
    job.end()
    suspect, text = first_suspect(npumesh, job.records)
    return took, suspect == f"rank {victim}", job.said() + text


def main():
    npumesh, program, what = sys.argv[1:4]
    trials = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    trial = {"kill": kill, "stop": stop, "wake": wake, "early": early, "late": late, "count": count,
             "circle": circle, "create": create}[what]
    times = []
    for number in range(trials):
        victim = random.randrange(RANKS)
        with tempfile.TemporaryDirectory() as folder:
            took, right, text = trial(npumesh, program, folder, victim)
        if took is not None and right:
            times.append(took)
        else:
            print(f"flight_record: {what} {number}: rank {victim} was not named in time "
                  f"(took {took}, right {bool(right)}):\n{text}")
    summary = f"flight_record: {what}: the right rank in {len(times)} of {trials} trials"
    if times:
        summary += f", after {statistics.median(times):.2f} s (median), {max(times):.2f} s (most)"
    print(summary)
    sys.exit(0 if len(times) == trials else 1)


if __name__ == "__main__":
    main()
