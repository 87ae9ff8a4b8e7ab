#!/usr/bin/env python3
"""A certain deadlock ends within seconds, and what only seems to be one does not.

  standstill.py PROGRAM CASE [TRIALS [SEED]]

CASE: circle, host, message, batch, ended, the first and the last also with "-own-mpi", where the program
      starts MPI: all ranks must fail long before HCCL_EXEC_TIMEOUT (1836 s), and say that the wait can
      never end; with NPUMESH_DEADLOCK=wait they must go on waiting. Prints how soon: 4 s on an idle
      machine.
      seeming: TRIALS random programs, of which ranks are stopped and continued at random; none may
      fail.
"""

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid

from kill_rank import HANG_SECONDS, MPIRUN, RECOVERY, exports, processes_of, until

RANKS = 3
OWN_MPI = "-own-mpi"


def start(program, *words, out=subprocess.PIPE, before=(), **variables):
    """The running job, each rank of it started by the words of `before`, and the tag of its processes."""
    tag = uuid.uuid4().hex
    environment = {"NPUMESH_TEST_TAG": tag, "NPUMESH_HBM_SIZE": "4M", **variables}
    job = subprocess.Popen(
        MPIRUN + RECOVERY + ["-n", str(RANKS)] + exports(environment) + [*before, program, *words],
        stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, text=True)
    return job, tag


def end(job, program, tag):
    """Kills what is left of the job; everything it said."""
    for pid in processes_of(program, tag).values():
        for number in (signal.SIGKILL, signal.SIGCONT):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
    return job.communicate(timeout=1200)[0]


def deadlock(program, case):
    """Seconds until the job had failed."""
    begin = time.monotonic()
    words = [case.removesuffix(OWN_MPI)] + (["own-mpi"] if case.endswith(OWN_MPI) else [])
    job, tag = start(program, *words)
    try:
        said = job.communicate(timeout=HANG_SECONDS)[0]
    except subprocess.TimeoutExpired:
        sys.exit(f"standstill: {case}: the job did not end:\n{end(job, program, tag)}")
    took = time.monotonic() - begin
    failed = len(re.findall(r"^ended with 5$|aclrtSynchronizeStream -> acl", said, re.MULTILINE))
    if "this can never end" not in said or failed == 0:
        sys.exit(f"standstill: {case}: nobody says that the wait never ends:\n{said}")
    if words[0] == "ended" and "rank 1, which has ended its work after call" not in said:
        sys.exit(f"standstill: {case}: rank 1 is not named:\n{said}")
    if not re.search(r"\[ERROR\].*Hccl\w+: .*this can never end", said):
        sys.exit(f"standstill: {case}: the log does not have the full text:\n{said}")
    print(f"standstill: {case}: ended after {took:.1f} s")
    return took


def goes_on(program, case, seconds):
    """With NPUMESH_DEADLOCK=wait the job runs on, well past the time after which it fails otherwise."""
    with tempfile.TemporaryFile("w+") as log:
        job, tag = start(program, case, out=log, NPUMESH_DEADLOCK="wait", NPUMESH_SOFT_TIMEOUT="1")

        def said():
            log.seek(0)
            return log.read()

        until(lambda: job.poll() is not None or len(re.findall("gives up at", said())) >= RANKS)
        until(lambda: job.poll() is not None, 2 * seconds)
        running = job.poll() is None
        end(job, program, tag)
        if not running or "this can never end" in said():
            sys.exit(f"standstill: {case}: NPUMESH_DEADLOCK=wait does not wait:\n{said()}")
        if "gives up at" not in said():
            sys.exit(f"standstill: {case}: no rank says when it gives up:\n{said()}")


def disturb(program, tag, job):
    """Stops and continues random ranks until the job ends."""
    deadline = time.monotonic() + 240
    while job.poll() is None and time.monotonic() < deadline:
        ranks = list(processes_of(program, tag).values())
        if not ranks:
            time.sleep(0.1)
            continue
        victim = random.choice(ranks)
        try:
            os.kill(victim, signal.SIGSTOP)
            time.sleep(random.uniform(0.05, 4))
            os.kill(victim, signal.SIGCONT)
        except ProcessLookupError:
            pass
        time.sleep(random.uniform(0, 2))


def seeming(program, seed):
    job, tag = start(program, "seeming", str(seed))
    if random.random() < 0.7:
        disturb(program, tag, job)
    try:
        said = job.communicate(timeout=1200)[0]
    except subprocess.TimeoutExpired:
        said = "it did not end\n" + end(job, program, tag)
    if len(re.findall(r"ended with 0", said)) != RANKS:
        sys.exit(f"standstill: seeming {seed}: a job without a deadlock failed:\n{said}")


def main():
    program, case = sys.argv[1:3]
    trials = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 30)
    random.seed(seed)
    if case == "seeming":
        for trial in range(trials):
            seeming(program, seed + trial)
        print(f"standstill: seeming: {trials} jobs from seed {seed} on ended well")
        return
    seconds = max(deadlock(program, case) for _ in range(trials))
    if case == "circle":
        goes_on(program, case, seconds)


if __name__ == "__main__":
    main()
