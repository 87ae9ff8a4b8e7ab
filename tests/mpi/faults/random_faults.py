#!/usr/bin/env python3
"""Kills and stops random ranks of every kind of job at random moments.

  random_faults.py NPUMESH DECODER PROGRAM [--kills N] [--stops N] [--kinds run,dump,...] [--seed S]

PROGRAM is standstill_program. Kinds: run, dump (a run that dumps everything), bench, export, hccl.
The moment is chosen over the whole life of the job, its start included. After each fault
  kill: the others must end within 2 s, or 10 s when the job was still starting, and a line must name
        the rank that was killed;
  stop: within the soft limit + 2 s a line must name the rank that was stopped;
and nothing of the job may stay behind: no process, no folder of segments. Prints one line for each kind
and fault, and fails when one trial failed.
"""

import argparse
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

from kill_rank import MPIRUN, RECOVERY, alive, processes_of

RANKS = 4
SOFT_SECONDS = 1
KILL_SECONDS = 2.0
START_SECONDS = 10.0
STOP_SECONDS = SOFT_SECONDS + 2.0


class Kind:
    """One kind of job: its program, its words, the seconds over which faults are spread, and what it
    says when its work is done."""

    def __init__(self, program, words, seconds, done=None):
        self.program, self.words, self.seconds, self.done = program, words, seconds, done


def kinds(npumesh, decoder, program, model, folder):
    os.mkdir(f"{folder}/dump")
    return {
        "run": Kind(npumesh, ["run", model, "--steps", "1000000"], 3.0),
        "dump": Kind(npumesh, ["run", model, "--steps", "1000000", "--dump", "all", "--dump-path",
                               f"{folder}/dump"], 3.0),
        "bench": Kind(npumesh, ["bench", "all", "-b", "64", "-e", "1M", "-f", "4", "-n", "2000"], 4.0),
        "export": Kind(npumesh, ["export", model, "--path", f"{folder}/package"], 1.0,
                       done="4 ranks"),
        "hccl": Kind(program, ["loop"], 3.0),
    }


def segments_of(processes):
    """Folders below /dev/shm that the environment of these processes names."""
    found = set()
    for pid in processes:
        try:
            with open(f"/proc/{pid}/environ", errors="replace") as file:
                found.update(re.findall(r"/dev/shm/npumesh-job\.\w+", file.read()))
        except OSError:
            pass
    return found


class Job:
    def __init__(self, npumesh, kind, log, scale):
        self.program = kind.program
        self.tag = uuid.uuid4().hex
        self.log = log
        environment = {"NPUMESH_TEST_TAG": self.tag, "NPUMESH_SOFT_TIMEOUT": str(SOFT_SECONDS),
                       "NPUMESH_HBM_SIZE": "16M"}
        with open(log, "w") as out:
            # The launcher leaves the survivors alone, so that they have to notice by themselves.
            self.mpirun = subprocess.Popen(
                [npumesh, "launch", "-n", str(RANKS), f"--mpi-arg={RECOVERY[0]}", "--",
                 kind.program, *kind.words], stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, env={**os.environ, **environment})
        self.scale = scale
        self.segments = set()

    def processes(self):
        return processes_of(self.program, self.tag)

    def wait_for_all(self):
        """The process of each rank; None when the job is over before they are all there."""
        end = time.monotonic() + 30 * self.scale
        while time.monotonic() < end:
            found = self.processes()
            if len(found) == RANKS:
                self.segments = segments_of(found.values())
                return found
            if self.mpirun.poll() is not None:
                return None
            time.sleep(0.01)
        return None

    def said(self):
        with open(self.log, errors="replace") as file:
            return file.read()

    def end(self):
        for pid in self.processes().values():
            for number in (signal.SIGKILL, signal.SIGCONT):
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
        try:
            self.mpirun.wait(timeout=30 * self.scale)
        except subprocess.TimeoutExpired:
            # Open MPI's mpirun sometimes misses the end of a job that lost a rank in MPI_Init.
            print("random_faults: mpirun did not end by itself", flush=True)
            self.mpirun.terminate()
            self.mpirun.wait(timeout=1200)
        time.sleep(0.1)
        left = [f"process {pid}" for pid in self.processes().values()]
        return left


def members(text):
    """The ranks of "1-2,5"."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def until(condition, seconds):
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > seconds:
            return None
        time.sleep(0.02)
    return time.monotonic() - begin


def kill(job, ranks, victim):
    os.kill(ranks[victim], signal.SIGKILL)
    others = [pid for rank, pid in ranks.items() if rank != victim]
    took = until(lambda: not any(alive(pid) for pid in others), START_SECONDS * job.scale)
    said = job.said()
    started = "in the start of all ranks" not in said and "MPI_Init" not in said
    named = re.search(rf"rank {victim}\b[^\n;]*\b(has ended|was not there)|process {ranks[victim]}\)? has ended", said)
    named = named or any(victim in members(text)
                         for text in re.findall(r"\branks ([\d,-]+) have ended", said))
    # MPI_Init may notice by itself, and aborts with other words.
    aborted = not started or "unable to reach each other for" in said
    named = named or (aborted and "MPI communications" in said)
    limit = (KILL_SECONDS if started else START_SECONDS) * job.scale
    return took, took is not None and took <= limit and bool(named)


def stop(job, ranks, victim):
    os.kill(ranks[victim], signal.SIGSTOP)
    words = re.compile(rf"rank {victim}\b[^\n]*process {ranks[victim]} is stopped")
    took = until(lambda: words.search(job.said()), STOP_SECONDS * job.scale)
    return took, took is not None


def trial(npumesh, kind, what, folder, scale):
    """Seconds until the rank was named and whether all was right; None when the job was over."""
    job = Job(npumesh, kind, f"{folder}/log", scale)
    ranks = job.wait_for_all()
    if ranks is None:
        job.end()
        return None
    time.sleep(random.uniform(0, kind.seconds))
    victim = random.randrange(RANKS)
    if not all(alive(pid) for pid in ranks.values()):
        job.end()
        return None
    took, right = {"kill": kill, "stop": stop}[what](job, ranks, victim)
    # The job was done before the fault mattered, also when it was told so just before the fault.
    over = not right and job.mpirun.poll() == 0 and "has ended" not in job.said()
    others = [pid for rank, pid in ranks.items() if rank != victim]
    done = kind.done is not None and kind.done in job.said()
    over = over or (not right and done and not any(map(alive, others)))
    left = job.end()
    left += [path for path in job.segments if os.path.exists(path)]
    if over:
        return None
    if left or not right:
        print(f"random_faults: {what} of rank {victim} ({' '.join(kind.words)}): "
              f"took {took}, left {left}:\n{job.said()[-4000:]}", flush=True)
    return took if took is not None else float("inf"), right and not left


def series(npumesh, name, what, trials, make, scale):
    times, right, tried = [], 0, 0
    while tried < trials:
        with tempfile.TemporaryDirectory() as folder:
            result = trial(npumesh, make(folder)[name], what, folder, scale)
        if result is None:
            continue
        tried += 1
        right += result[1]
        times.append(result[0])
    print(f"random_faults: {name}: {what}: right in {right} of {tried}, after "
          f"{statistics.median(times):.2f} s (median), {max(times):.2f} s (most)", flush=True)
    return right == tried


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("npumesh")
    parser.add_argument("decoder")
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=1)
    parser.add_argument("--stops", type=int, default=1)
    parser.add_argument("--kinds", default="run,dump,bench,export,hccl")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--scale", type=float, default=1.0,
                        help="multiplies all limits, for machines that are loaded")
    words = parser.parse_args()
    random.seed(words.seed)
    print(f"random_faults: seed {words.seed}, limits times {words.scale}", flush=True)
    model = tempfile.mkdtemp()
    try:
        subprocess.run(MPIRUN + ["-n", str(RANKS), words.decoder, "--out", model], check=True,
                       stdout=subprocess.DEVNULL)

        def make(folder):
            return kinds(words.npumesh, words.decoder, words.program, model, folder)

        good = True
        for name in words.kinds.split(","):
            for what, trials in (("kill", words.kills), ("stop", words.stops)):
                if trials > 0:
                    good = series(words.npumesh, name, what, trials, make, words.scale) and good
    finally:
        shutil.rmtree(model)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
