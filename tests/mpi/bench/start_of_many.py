#!/usr/bin/env python3
"""Time from the command to the end of a small graph on 16, 32 and 64 ranks: `start_of_many.py NPUMESH MEETING`.

MEETING is a program that starts MPI, meets the others and ends: what is below it is not ours. Both take turns,
the least of three counts. On two idle cores a run takes less than 2, 4 and 8 s. On a machine that has other work
it may take longer, but not more than twice as long as the meeting.
"""

import os
import subprocess
import sys
import tempfile
import time

LIMITS = {16: 2.0, 32: 4.0, 64: 8.0}
TURNS = 3
MOST_OF_A_MEETING = 2.0


def seconds_of(command, environment):
    start = time.monotonic()
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=1200, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return time.monotonic() - start


def main():
    npumesh, meeting = sys.argv[1:]
    environment = dict(os.environ, NPUMESH_HBM_SIZE="16M")
    slow = []
    with tempfile.TemporaryDirectory() as folder:
        samples = os.path.join(folder, "samples")
        seconds_of([npumesh, "samples", "--write", samples], environment)
        graph = os.path.join(samples, "one_card/package/export.air")
        for ranks, limit in LIMITS.items():
            launch = [npumesh, "launch", "-n", str(ranks), "--"]
            met, ran = [], []
            for _ in range(TURNS):
                met.append(seconds_of(launch + [meeting], environment))
                ran.append(seconds_of(launch + ["run", graph], environment))
            ratio = min(ran) / min(met)
            print(f"{ranks} ranks: a meeting {min(met):.2f} s, a run {min(ran):.2f} s ({ratio:.2f} times)", flush=True)
            if min(ran) > limit and ratio > MOST_OF_A_MEETING:
                slow.append(f"{ranks} ranks: more than {limit} s and {MOST_OF_A_MEETING} times a meeting")
    if slow:
        sys.exit("\n".join(slow))


if __name__ == "__main__":
    main()
