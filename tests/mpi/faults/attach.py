#!/usr/bin/env python3
"""Looks at a living job with `npumesh ps` and `npumesh attach`.

  attach.py NPUMESH PROGRAM

The commands name the ranks of the job by their processes, say who waits for a rank that is stopped, and
leave the job as it is: it goes on after them. A job that has ended is one line and exit code 3. Prints how
long a look took.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from flight_record import Job, RANKS
from kill_rank import alive, until, wait_until

LOOKS = 20


def command(npumesh, *words):
    return subprocess.run([npumesh, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)


def answer(npumesh, *words):
    return json.loads(command(npumesh, *words, "--json").stdout)


def expect(holds, what):
    if not holds:
        raise AssertionError(what)


def goes_on(job):
    """Every rank makes a call after this moment."""
    before = [job.calls(rank) for rank in range(RANKS)]
    wait_until(lambda: all(job.calls(rank) > before[rank] for rank in range(RANKS)), "a further call of all ranks")


def look_at_living(npumesh, job):
    processes = job.processes()
    jobs = [one for one in answer(npumesh, "ps")["jobs"] if one["job"] == job.mpirun.pid]
    expect(len(jobs) == 1 and jobs[0]["ranks"] == list(range(RANKS)), f"ps: {jobs}")
    expect(job.program in jobs[0]["command"] or os.path.basename(job.program) in jobs[0]["command"], f"ps: {jobs}")
    names = [str(job.mpirun.pid), str(processes[0]), str(processes[RANKS - 1]), job.records]
    took = []
    for number in range(LOOKS):
        begin = time.monotonic()
        seen = answer(npumesh, "attach", names[number % len(names)])
        took.append(time.monotonic() - begin)
        expect({one["rank"]: one["process"] for one in seen["ranks"]} == processes, f"attach: {seen}")
        expect(seen["job"] == job.mpirun.pid and seen["world_size"] == RANKS, f"attach: {seen}")
    goes_on(job)
    print(f"attach: {LOOKS} looks at {RANKS} ranks, the quickest in {min(took):.3f} s, the slowest in {max(took):.3f} s")


def look_at_stopped(npumesh, job, victim):
    process = job.processes()[victim]
    os.kill(process, signal.SIGSTOP)
    wait_until(lambda: answer(npumesh, "attach", str(process))["look_first_at"]["ranks"] == [victim],
               "the look at a stopped rank")
    seen = command(npumesh, "attach", str(job.mpirun.pid))
    expect(seen.returncode == 1, f"exit code {seen.returncode}")
    expect(f"look first at rank {victim}\n" in seen.stdout, seen.stdout)
    expect(f"its process {process} is stopped" in seen.stdout, seen.stdout)
    expect(f"npumesh attach {job.mpirun.pid} --stack {victim}" in seen.stdout, seen.stdout)
    ranks = {one["rank"]: one for one in answer(npumesh, "attach", str(process))["ranks"]}
    expect(ranks[victim]["state"] == "stopped", f"{ranks[victim]}")
    waits = [one for one in ranks.values() if one["call"] and victim in one["call"]["waits_for"]]
    expect(waits and all(one["call"]["seconds"] > 0 for one in waits), f"{ranks}")
    listed = command(npumesh, "ps").stdout
    expect(any(str(job.mpirun.pid) in line and f"look first at rank {victim}" in line
               for line in listed.splitlines()), listed)
    os.kill(process, signal.SIGCONT)
    goes_on(job)


def look_at_stack(npumesh, job, rank):
    seen = command(npumesh, "attach", str(job.mpirun.pid), "--stack", str(rank))
    if shutil.which("gdb") is None or "not permitted" in seen.stderr:
        print("no stack: gdb is not there, or may not attach")
    else:
        expect(f"threads of rank {rank}:" in seen.stdout and "#0" in seen.stdout, seen.stdout + seen.stderr)
    absent = command(npumesh, "attach", str(job.mpirun.pid), "--stack", str(RANKS))
    expect(absent.returncode == 3 and "no such rank" in absent.stderr, absent.stderr)
    goes_on(job)


def look_at_ended(npumesh, job):
    process = job.processes()[0]
    job.end()
    until(lambda: not alive(process))
    for name in (str(job.mpirun.pid), str(process), job.records):
        seen = command(npumesh, "attach", name)
        expect(seen.returncode == 3 and seen.stderr.count("\n") == 1 and "has ended" in seen.stderr, seen.stderr)
        expect(not seen.stdout, seen.stdout)
    expect(all(one["job"] != job.mpirun.pid for one in answer(npumesh, "ps")["jobs"]), "an ended job is listed")


def main():
    npumesh, program = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        job = Job(program, folder)
        try:
            job.wait_for_records()
            look_at_living(npumesh, job)
            look_at_stopped(npumesh, job, random.randrange(RANKS))
            look_at_stack(npumesh, job, random.randrange(RANKS))
            look_at_ended(npumesh, job)
        finally:
            job.end()
    print("attach: all as it should be")


if __name__ == "__main__":
    main()
