#!/usr/bin/env python3
"""A profile of the vendor's torch_npu on npumesh, read by the vendor's own tools.

    npumesh python --vendor torch_npu_profile.py [--tools FOLDER] [--folder FOLDER]

Two ranks train a small model with DDP under torch_npu.profiler. Then the wheel's own analysis
(torch_npu.profiler.profiler.analyse) must write the step times, the kernels of each step, the operators with the time
of their kernels, and a timeline whose arrows lead from calls to kernels; msprof-analyze must tell of the ranks.
`msprof` must be in PATH (set_env.sh). --tools: where msprof-analyze and what it needs were installed
(`pip install --target FOLDER`); without it the profile is read by the wheel only. Prints what was found; ends with 1
when something is missing.
"""

import argparse
import csv
import glob
import json
import os
import subprocess
import sys
import tempfile

RANKS, STEPS = 2, 3


def train(folder):
    """One rank: a profile of STEPS steps."""
    import torch
    import torch.distributed as dist
    import torch_npu
    from torch_npu import profiler
    rank = int(os.environ["RANK"])
    torch.npu.set_device(rank)
    dist.init_process_group("hccl")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.LayerNorm(64),
                                torch.nn.Linear(64, 8))
    trained = torch.nn.parallel.DistributedDataParallel(model.npu(), device_ids=[rank])
    optimizer = torch.optim.AdamW(trained.parameters())
    options = profiler._ExperimentalConfig(profiler_level=profiler.ProfilerLevel.Level1)
    with profiler.profile(
            activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU], experimental_config=options,
            record_shapes=True, schedule=profiler.schedule(wait=0, warmup=1, active=STEPS, repeat=1),
            on_trace_ready=profiler.tensorboard_trace_handler(folder, analyse_flag=False)) as profile:
        for _ in range(STEPS + 1):
            optimizer.zero_grad()
            trained(torch.randn(32, 64).npu()).square().mean().backward()
            optimizer.step()
            torch.npu.synchronize()
            profile.step()
    dist.barrier()
    dist.destroy_process_group()


def analyse(folder):
    from torch_npu.profiler.profiler import analyse as of_the_wheel
    of_the_wheel(folder, max_process_number=1)


class Findings:
    def __init__(self):
        self.wrong = 0

    def say(self, good, text):
        self.wrong += not good
        print(f"{'ok   ' if good else 'wrong'} {text}", flush=True)


def run(words, launcher=(), **more):
    return subprocess.run([*launcher, sys.executable, os.path.abspath(__file__), *words], env={**os.environ, **more},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")


def rows(folder, name):
    path = os.path.join(folder, "ASCEND_PROFILER_OUTPUT", name)
    if not os.path.isfile(path):
        return []
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def number(text):
    return float(text.strip() or 0)


def check_profile(findings, folder):
    """What the wheel's analysis wrote of one rank."""
    name = os.path.basename(folder)
    steps = rows(folder, "step_trace_time.csv")
    findings.say([row["Step"] for row in steps] == [str(1 + step) for step in range(STEPS)]
                 and all(number(row["Computing"]) > 0 for row in steps),
                 f"{name}: step_trace_time.csv: steps {[row['Step'] for row in steps]}")
    kernels = rows(folder, "kernel_details.csv")
    in_steps = sum(row.get("Step Id", "").strip() not in ("", "N/A") for row in kernels)
    findings.say(len(kernels) > 20 * STEPS and in_steps > len(kernels) // 2,
                 f"{name}: kernel_details.csv: {len(kernels)} kernels, {in_steps} of them in steps")
    operators = rows(folder, "operator_details.csv")
    timed = sum(number(row["Device Total Duration(us)"]) > 0 for row in operators)
    findings.say(timed > 20 * STEPS, f"{name}: operator_details.csv: {len(operators)} operators, {timed} with kernels")
    communication = os.path.join(folder, "ASCEND_PROFILER_OUTPUT", "communication.json")
    calls = 0
    if os.path.isfile(communication):
        with open(communication, encoding="utf-8") as file:
            calls = sum(len(kind) for step in json.load(file).values() for kind in step.values())
    findings.say(calls > STEPS, f"{name}: communication.json: {calls} calls")
    with open(os.path.join(folder, "ASCEND_PROFILER_OUTPUT", "trace_view.json"), encoding="utf-8") as file:
        events = json.load(file)
    arrows = sum(event.get("cat") == "HostToDevice" and event.get("ph") == "f" for event in events)
    linked = sum(event.get("cat") == "async_npu" and event.get("ph") == "f" for event in events)
    findings.say(arrows > 20 * STEPS and linked > 20 * STEPS,
                 f"{name}: trace_view.json: {arrows} arrows from calls to kernels, {linked} from operators of torch")


def check_cluster(findings, folder):
    words = ["-c", "import sys; from msprof_analyze.cli.entrance import msprof_analyze_cli as run; run()",
             "cluster", "-d", folder, "-m", "all"]
    done = subprocess.run([sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = os.path.join(folder, "cluster_analysis_output")
    with_ranks = []
    table = os.path.join(output, "cluster_step_trace_time.csv")
    if os.path.isfile(table):
        with open(table, encoding="utf-8") as file:
            with_ranks = [(row["Type"], row["Index"], row["Step"]) for row in csv.DictReader(file)]
    findings.say({index for kind, index, _ in with_ranks if kind == "rank"} == {str(r) for r in range(RANKS)},
                 f"msprof-analyze cluster: {len(with_ranks)} rows of ranks and steps")
    for name in ("cluster_communication.json", "cluster_communication_matrix.json"):
        findings.say(os.path.isfile(os.path.join(output, name)), f"msprof-analyze cluster: {name}")
    if findings.wrong:
        print(done.stdout[-2000:])


def main():
    if sys.argv[1:2] == ["train"]:
        train(sys.argv[2])
        return 0
    if sys.argv[1:2] == ["analyse"]:
        analyse(sys.argv[2])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", metavar="FOLDER")
    parser.add_argument("--folder", metavar="FOLDER", help="where the profile stays")
    given = parser.parse_args()
    if given.tools:
        os.environ["PYTHONPATH"] = os.pathsep.join([os.environ.get("PYTHONPATH", ""), os.path.abspath(given.tools)])
    findings = Findings()
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.abspath(given.folder) if given.folder else os.path.join(scratch, "profile")
        os.makedirs(folder, mode=0o750, exist_ok=True)
        trained = run(["train", folder], launcher=(sys.executable, "-m", "torch.distributed.run", "--standalone",
                                                   "--nproc_per_node", str(RANKS), "--no-python"))
        profiles = sorted(glob.glob(os.path.join(folder, "*_ascend_pt")))
        findings.say(len(profiles) == RANKS, f"{len(profiles)} folders of profiles")
        if len(profiles) != RANKS:
            print(trained.stdout[-2000:])
            return 1
        done = run(["analyse", folder])
        for line in done.stdout.splitlines():
            if "[ERROR]" in line:
                findings.say(False, line.strip())
        for each in profiles:
            check_profile(findings, each)
        if given.tools:
            check_cluster(findings, folder)
    return 1 if findings.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
