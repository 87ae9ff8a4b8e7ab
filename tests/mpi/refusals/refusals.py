#!/usr/bin/env python3
"""What the system refuses ends in a sentence: no abort, no crash, no stack trace.

  refusals.py NPUMESH PROGRAM REFUSING_LIBRARY thread|memory|file|alarm [SEEDS [FIRST]]

thread: every start of a thread fails in its turn, alone and with all after it; of the commands and
        of PROGRAM, which calls the C interface.
memory: allocations of C++ fail, SEEDS of them for each command, drawn with seed FIRST; of PROGRAM
        also on the last of two ranks.
file:   the same with what files and shared memory need.
alarm:  nothing fails, but signals interrupt system calls all the time: what a command prints and
        saves is what it prints and saves without them.
"""

import fcntl
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import launcher

INPUT, RUN_TIME = 3, 4
# How a process may end that was refused something: well, or with the code of a run-time error; with
# that of an input where it could not open a file.
GOOD = {"thread": (0, RUN_TIME), "memory": (0, RUN_TIME), "file": (0, INPUT, RUN_TIME)}
HANG_SECONDS = 600  # after this a command hangs, however busy the machine is


# Of two ranks the last one is refused something.
LAST_RANK = f'test "${launcher.RANK}" = 1 && export LD_PRELOAD="$0"; exec "$@"'


class Scene:
    """The commands, in a folder with a small graph."""

    def __init__(self, npumesh, program, library, what, folder):
        self.library = library
        self.folder = folder
        made = subprocess.run([npumesh, "samples", "one_card", "--write", "s"], cwd=folder,
                              capture_output=True, text=True)
        if made.returncode != 0:
            sys.exit(f"refusals: the sample cannot be made: {made.stderr}")
        package = os.path.join(folder, "s", "one_card", "package")
        graph = os.path.join(package, "export.air")
        run = [npumesh, "run", package]
        os.mkdir(os.path.join(folder, "dump"))
        self.commands = {
            "run": run,
            "dump": run + ["--dump", "all", "--dump-path", "dump"],
            "profile": run + ["--profile", "profile"],
            "threads": run + ["--threads", "4"],
            "timeout": run + ["--timeout", "90"],
            "graph": [npumesh, "graph", graph],
        }
        self.commands["program"] = [program]
        if what != "thread":
            self.commands["ranks"] = [*launcher.MPIRUN, "-n", "2", "sh", "-c", LAST_RANK, library,
                                      program, "rank"]

    def play(self, name, what, at, rest=False):
        """How a command ends when its request number `at` is refused: code, words, requests."""
        count = os.path.join(self.folder, "count")
        environment = dict(os.environ, REFUSE=what, REFUSE_AT=str(at), REFUSE_COUNT=count,
                           NPUMESH_HBM_SIZE="64M", OMP_NUM_THREADS="1")
        if name != "ranks":
            environment["LD_PRELOAD"] = self.library
        if rest:
            environment["REFUSE_REST"] = "1"
        if os.path.exists(count):
            os.remove(count)
        done = subprocess.run(self.commands[name], cwd=self.folder, env=environment,
                              capture_output=True, text=True, errors="replace", timeout=HANG_SECONDS)
        requests = 0
        if os.path.exists(count):
            with open(count, encoding="utf-8") as file:
                requests = int(file.read())
        return done.returncode, done.stderr, requests

    def check(self, name, what, at, rest=False):
        code, words, _ = self.play(name, what, at, rest)
        where = f"{name}: {what} {at}{' and all after it' if rest else ''} refused"
        if code not in GOOD[what]:
            return f"{where}: ended with {code}: {words}"
        if code != 0 and not words.strip():
            return f"{where}: ended with {code} without a word"
        if "terminate called" in words or "(no reason)" in words:
            return f"{where}: {words}"
        return ""


def read_slowly(command, folder, environment):
    """The code and what a command prints through a pipe that is full nearly all the time."""
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, bufsize=0) as process:
        fcntl.fcntl(process.stdout.fileno(), fcntl.F_SETPIPE_SZ, 4096)
        text = b""
        while piece := process.stdout.read(256):
            text += piece
    return process.returncode, text


def saved_in(folder):
    """The bytes of the arrays below a folder, by file."""
    arrays = {}
    for place, _, files in os.walk(folder):
        for file in files:
            path = os.path.join(place, file)
            with open(path, "rb") as array:
                arrays[os.path.relpath(path, folder)] = array.read()
    return arrays


def interrupted(npumesh, library):
    """What goes wrong when system calls are interrupted all the time."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([npumesh, "samples", "one_card", "--write", "s"], cwd=folder,
                              capture_output=True, text=True)
        if made.returncode != 0:
            sys.exit(f"refusals: the sample cannot be made: {made.stderr}")
        package = os.path.join("s", "one_card", "package")
        graph = os.path.join(package, "export.air")
        # A timer outlives exec, its handler does not: with the variable `run` does not start again.
        plain = dict(os.environ, OMP_NUM_THREADS="1", NPUMESH_HBM_SIZE="64M", GOMP_SPINCOUNT="1000")
        alarm = dict(plain, LD_PRELOAD=library, REFUSE="alarm")
        for command in ([npumesh, "ops", "--json"], [npumesh, "graph", graph],
                        [npumesh, "help"], [npumesh, "doctor", "--env"]):
            expected, seen = (read_slowly(command, folder, env) for env in (plain, alarm))
            if expected != seen:
                wrong.append(f"{command[1:]}: {expected[0]}, {len(expected[1])} bytes; with "
                             f"signals {seen[0]}, {len(seen[1])} bytes: {seen[1][-300:]}")
        saved = {}
        for name, environment in (("plain", plain), ("alarm", alarm)):
            os.mkdir(os.path.join(folder, f"dump_{name}"))
            done = subprocess.run([npumesh, "run", package, "--outputs", name, "--dump", "all",
                                   "--dump-path", f"dump_{name}"], cwd=folder, env=environment,
                                  capture_output=True, text=True)
            if done.returncode != 0:
                wrong.append(f"run: {done.returncode}: {done.stderr}")
            saved[name] = saved_in(os.path.join(folder, name))
        if not saved["plain"] or saved["plain"] != saved["alarm"]:
            wrong.append("run: saves something else with signals")
    return wrong


def main():
    npumesh, program, library, what = sys.argv[1:5]
    if what == "alarm":
        if wrong := interrupted(npumesh, library):
            sys.exit("refusals: " + "\n".join(wrong))
        print("refusals: signals changed nothing")
        return
    seeds = int(sys.argv[5]) if len(sys.argv) > 5 else 12
    dice = random.Random(int(sys.argv[6]) if len(sys.argv) > 6 else 1)
    wrong = []
    tried = 0
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(npumesh, program, library, what, folder)
        for name in scene.commands:
            code, words, requests = scene.play(name, what, 0)
            if code != 0:
                sys.exit(f"refusals: {name} fails though nothing is refused: {code}: {words}")
            if what != "thread":
                places = sorted(dice.sample(range(1, requests + 1), min(seeds, requests)))
            else:
                places = range(1, requests + 1)
            for at in places:
                wrong.append(scene.check(name, what, at))
                tried += 1
                if what == "thread":
                    wrong.append(scene.check(name, what, at, rest=True))
                    tried += 1
    wrong = [text for text in wrong if text]
    if wrong:
        sys.exit("refusals: " + "\n".join(wrong))
    print(f"refusals: {tried} refused requests ended in a sentence")


if __name__ == "__main__":
    main()
