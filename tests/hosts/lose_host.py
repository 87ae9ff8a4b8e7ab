#!/usr/bin/env python3
"""Loses host 1 in the middle of a run; driven by on_hosts.

  on_hosts 2,2 --drive lose_host.py HOW NPUMESH DECODER

  kill   ends all processes of the host, the launcher's included
  cut    takes its cable away; the launcher asks each second whether the host is still there
  alone  takes its cable away; the launcher notices nothing, the ranks are alone with HCCL_EXEC_TIMEOUT

The ranks of host 0 must end, and mpirun after them, with an exit code other than 0, and a message must name what was
lost: the launcher's the host, the ranks' own also the collective and the ranks.
"""

import glob
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

EXEC_TIMEOUT = 15
HANG_SECONDS = 600.0  # after this a wait has failed, however busy the machine is
# Prints the exit code of the program that a rank runs.
TELL = ["sh", "-c", '"$@"; code=$?; echo "rank $OMPI_COMM_WORLD_RANK ended with code $code"; exit $code', "tell"]
HOSTS = os.environ["ON_HOSTS"]


def namespace_of(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return None


def processes_on(host):
    """Every process of a host, its holder included."""
    with open(f"{HOSTS}/{host}") as file:
        wanted = namespace_of(file.read().strip())
    return [int(entry) for entry in os.listdir("/proc")
            if entry.isdigit() and namespace_of(entry) == wanted]


def ranks_of(program, host):
    found = []
    for pid in processes_on(host):
        try:
            if os.path.samefile(f"/proc/{pid}/exe", program):
                found.append(pid)
        except OSError:
            pass
    return found


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until(condition):
    end = time.monotonic() + HANG_SECONDS
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def lose(how):
    if how != "kill":
        subprocess.run(["ip", "link", "set", "link1", "down"], check=True)
        return
    for pid in processes_on("host1"):
        os.kill(pid, signal.SIGKILL)


def start_run(how, npumesh, model, said):
    watch = ["time", "3", "intvl", "1", "probes", "3"] if how == "cut" else []
    words = [f"{HOSTS}/mpirun", "-x", f"HCCL_EXEC_TIMEOUT={EXEC_TIMEOUT}"]
    for name, value in zip(watch[::2], watch[1::2]):
        words += [os.environ["ON_HOSTS_OPTION"], f"oob_tcp_keepalive_{name}", value]
    dump = f"{model}/dump"
    os.mkdir(dump)
    job = subprocess.Popen(words + TELL + [npumesh, "run", model, "--steps", "1000000",
                                           "--dump", "output", "--dump-path", dump, "--dump-step", "2"],
                           stdout=said, stderr=subprocess.STDOUT)
    return job, dump


def ranks_in_steps(dump):
    """How many ranks have come to step 2: worldsize4_global_rankR/TIME/DEVICE/MODEL/ID/2."""
    return len(glob.glob(f"{dump}/*/*/*/*/*/2"))


def run_and_lose(how, npumesh, model, said):
    """Seconds until the ranks of host0 had ended and until mpirun had; None: not within the limit."""
    job, dump = start_run(how, npumesh, model, said)
    if not wait_until(lambda: ranks_in_steps(dump) == 4 or job.poll() is not None):
        sys.exit("lose_host: the ranks did not start")
    survivors = ranks_of(npumesh, "host0")
    lose(how)
    start = time.monotonic()
    took = [None, None]
    if wait_until(lambda: not any(alive(pid) for pid in survivors)):
        took[0] = time.monotonic() - start
    if how != "alone" and wait_until(lambda: job.poll() is not None):
        took[1] = time.monotonic() - start
    time.sleep(0.2)  # the last words of the ranks pass through mpirun
    job.kill()
    return took[0], took[1], job.wait()


def main():
    how, npumesh, decoder = sys.argv[1:4]
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/model"
        subprocess.run([f"{HOSTS}/mpirun", decoder, "--out", model], check=True,
                       stdout=subprocess.DEVNULL)
        with open(f"{folder}/said", "w+") as said:
            ranks_took, mpirun_took, code = run_and_lose(how, npumesh, model, said)
            said.seek(0)
            output = said.read()

    def check(condition, what):
        if not condition:
            sys.exit(f"lose_host {how}: {what}; the job said:\n{output}")

    check(ranks_took is not None, f"ranks of host0 still run {HANG_SECONDS} s later")
    if how == "alone":
        codes = re.findall(r"rank [01] ended with code (\d+)", output)
        check(codes and all(code in "45" for code in codes), "exit codes other than 4 and 5")
        # Between two steps the ranks agree to go on; the cable may be cut just then.
        check(re.search(r"npumesh run: rank [01] of 4: .*(allreduce|agreeing) .*from rank [23](, 3)? on host1",
                        output),
              "no rank says what waited for whom")
        print(f"lose_host alone: the ranks of host0 ended after {ranks_took:.1f} s")
        return
    check(mpirun_took is not None, f"mpirun still runs {HANG_SECONDS} s later")
    # Open MPI 5 ends with 0 where its daemon has lost the other; npumesh launch makes a 5 of it.
    check(code != 0 or "PRTE has lost communication" in output, "mpirun's exit code is 0")
    check(re.search(r"to host1 closed|[Nn]ode:? +host1|on (node )?host1", output), "no message names the host")
    print(f"lose_host {how}: the ranks of host0 ended after {ranks_took:.1f} s, mpirun after {mpirun_took:.1f} s")


if __name__ == "__main__":
    main()
