#!/usr/bin/env python3
"""Kills one rank of a running job with SIGKILL and checks what the others do.

  kill_rank.py NPUMESH DECODER [--recovery]

All others must end long before HCCL_EXEC_TIMEOUT (1836 s), with an exit code other than 0, and a message
that names the rank; nothing may be left in /dev/shm that no process uses: other jobs may run beside.
Prints how soon: 2 s on an idle machine. With --recovery the launcher leaves the survivors alone, so they
have to notice by themselves; mpirun itself then reports 0, so the ranks' own exit codes count.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from launcher import MPIRUN, RANK, RECOVERY, exports

RANKS = 4
VICTIM = 2
HANG_SECONDS = 600.0  # after this a wait has failed, however busy the machine is
LEFT_SECONDS = 60.0
# Prints the exit code of the program that a rank runs. MPICH's mpiexec sends SIGUSR1 to what is left.
TELL = ["sh", "-c", f'trap : USR1; "$@"; echo "rank ${RANK} ended with code $?"', "tell"]


def processes_of(program, tag):
    """World rank -> process id of `program` in the job whose environment carries `tag`."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            if not os.path.samefile(f"/proc/{entry}/exe", program):
                continue
            with open(f"/proc/{entry}/environ", "rb") as file:
                variables = file.read().split(b"\0")
        except OSError:
            continue
        if f"NPUMESH_TEST_TAG={tag}".encode() not in variables:
            continue
        for variable in variables:
            match = re.fullmatch(rf"{RANK}=(\d+)".encode(), variable)
            if match:
                found[int(match.group(1))] = int(entry)
    return found


def until(condition, seconds=HANG_SECONDS):
    """Seconds until the condition holds; None when it does not within the limit."""
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > seconds:
            return None
        time.sleep(0.02)
    return time.monotonic() - begin


def calls(npumesh, records):
    """How many collectives all ranks of a living job have done, by its flight records."""
    told = subprocess.run([npumesh, "record", records, "--json"], capture_output=True, text=True)
    try:
        return min(rank["calls"] for rank in json.loads(told.stdout)["ranks"])
    except (ValueError, KeyError):
        return 0  # no record yet


def in_use():
    """Names in /dev/shm that a living process maps, or that its environment names as a folder."""
    found = set()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        for text in ("maps", "environ"):
            try:
                with open(f"/proc/{entry}/{text}", "rb") as file:
                    found.update(re.findall(rb"/dev/shm/([^/\s\0:]+)", file.read()))
            except OSError:
                continue
    return {os.fsdecode(name) for name in found}


def left_since(before):
    """What came into /dev/shm and stays there although no process uses it. A job beside this one makes a
    file some time before it maps it."""
    def left():
        return set(os.listdir("/dev/shm")) - before - in_use()
    until(lambda: not left(), LEFT_SECONDS)
    return left()


def wait_until(condition, what):
    if until(condition) is None:
        sys.exit(f"kill_rank: {what} did not happen within {HANG_SECONDS} s")


def main():
    npumesh, decoder = sys.argv[1], sys.argv[2]
    recovery = "--recovery" in sys.argv[3:]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(MPIRUN + ["-n", str(RANKS), decoder, "--out", f"{folder}/model"],
                       check=True, stdout=subprocess.DEVNULL)
        tag = uuid.uuid4().hex
        before = set(os.listdir("/dev/shm"))
        extra = RECOVERY if recovery else []
        job = subprocess.Popen(
            MPIRUN + extra + ["-n", str(RANKS)] +
            exports({"NPUMESH_TEST_TAG": tag, "NPUMESH_RECORD": f"{folder}/records"}) +
            (TELL if recovery else []) + [npumesh, "run", f"{folder}/model", "--steps", "1000000"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        wait_until(lambda: len(processes_of(npumesh, tag)) == RANKS, "the start of all ranks")
        wait_until(lambda: calls(npumesh, f"{folder}/records") > 100, "the hundredth call of all ranks")
        victims = processes_of(npumesh, tag)
        os.kill(victims[VICTIM], signal.SIGKILL)
        killed = time.monotonic()
        others = [pid for rank, pid in victims.items() if rank != VICTIM]
        wait_until(lambda: not any(alive(pid) for pid in others), "the end of the other ranks")
        took = time.monotonic() - killed
        output = job.communicate(timeout=1200)[0]
        left = left_since(before)
    check(re.search(rf"rank {VICTIM}\b", output), f"no message names rank {VICTIM}", output)
    if not recovery:
        check(job.returncode != 0, "mpirun's exit code is 0", output)
    else:
        codes = dict(re.findall(r"rank (\d+) ended with code (\d+)", output))
        for rank in set(range(RANKS)) - {VICTIM}:
            check(codes.get(str(rank)) == "5", f"rank {rank} did not end with code 5", output)
        check(re.search(rf"npumesh run: rank \d.*rank {VICTIM} |rank \d ends in .*rank {VICTIM},", output),
              "no survivor says which rank was lost", output)
    check(not left, f"left in /dev/shm: {sorted(left)}", output)
    print(f"kill_rank: the others ended {took:.2f} s after rank {VICTIM} was killed")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def check(condition, what, output):
    if not condition:
        sys.exit(f"kill_rank: {what}; the job said:\n{output}")


if __name__ == "__main__":
    main()
