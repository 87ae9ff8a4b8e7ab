#!/usr/bin/env python3
"""The comparing tools on graphs as TorchAir writes them, MatMul(x, Transpose(w)), as text and JSON.

  torchair_tools.py NPUMESH WRITE_PREFILL DTYPE PLANTS [SAMPLES]

A clean run of four ranks is replayed whole and blamed by no tool, --golden included. PLANTS wrong elements
of a MatMul are each named, with the rank, by replay and --golden. In float32 a changed weight of one rank
is named by `dump compare` and --golden, and four ranks against one are said to be sharded. With SAMPLES, a folder with
float32_tp2 of another tool chain, each of its products is planted once; it is passed over when absent.
"""

import json
import os
import random
import re
import shutil
import sys
import tempfile

from compare_tools import LAUNCHER, MPIRUN, RANKS, Job, call, expect, operators_of, verdict

INPUTS = ["--dim", "hidden_states.1=6", "--dim", "position_ids.1=6", "--seed", "7"]
PACKAGE_INPUTS = [*INPUTS, "--dim", "hidden_states.2=32"]  # a dynamic export opens it, too
TOLERANCE = ["--reorder"]
KEYS = {"command", "verdict", "exit_code", "error", "findings"}


def as_json(npumesh, *words, code, verdict):
    report = json.loads(call([npumesh, *words, "--json"], code))
    if not KEYS <= set(report) or report["exit_code"] != code or report["verdict"] != verdict:
        sys.exit(f"{' '.join(words)} --json: {report}")
    for finding in report["findings"]:
        if finding["severity"] not in ("info", "advice", "warning", "error") or not finding["text"]:
            sys.exit(f"{' '.join(words)} --json: {finding}")
    return report


def check_replayed(job, dump, model):
    """Everything that ran was replayed, and nothing differs."""
    text = job.tool("replay", dump, "--model", model, expected=0)
    counts = re.findall(r"(\d+) of (\d+) operators replayed, 0 differ", text)
    if not counts or any(done != ran for done, ran in counts) or "not replayed" in text:
        sys.exit(f"not all was replayed:\n{text}")
    report = as_json(job.npumesh, "replay", dump, "--model", model, code=0, verdict="same")
    if [str(step["ran"]) for step in report["steps"]] != [ran for _, ran in counts]:
        sys.exit(f"JSON and text disagree:\n{text}{report['steps']}")


def plant(job, name, op, rank, words, whole):
    fault = f"corrupt:rank={rank},op={op}"
    dump, text = job.run(name, [fault], 1, [*words, "--golden", whole])
    expect(verdict(text, "golden: rank"), f"golden: rank {rank} ", f" {op} (")
    report = as_json(job.npumesh, "replay", dump, "--model", job.models, code=1, verdict="differ")
    blamed = [(each["rank"], each["operator"]) for each in report["findings"]]
    if blamed != [(rank, op)]:
        sys.exit(f"replay blames {blamed}, planted {op} on rank {rank}")
    shutil.rmtree(dump)


def products_of(job, dump):
    return [op for op in operators_of(job, dump) if re.fullmatch(r"MatMul(_\d+)?", op)]


def change_weight(package):
    """Changes one element of a weight of rank 2; returns the name of the file."""
    folder = f"{package}/rank_2"
    name = max((each for each in os.listdir(folder) if not each.endswith("pbtxt")),
               key=lambda each: os.path.getsize(f"{folder}/{each}"))
    with open(f"{folder}/{name}", "r+b") as file:
        file.seek(67)  # the exponent of element 16
        byte = file.read(1)
        file.seek(67)
        file.write(bytes([byte[0] ^ 0x02]))
    return name


def weights(job, folder):
    call(MPIRUN + [job.npumesh, "export", job.models, "--path", "good", "--dynamic",
                   "--weight-limit", "0"], 0)
    shutil.copytree(f"{folder}/good", f"{folder}/bad")
    name = change_weight(f"{folder}/bad")
    os.rename(f"{folder}/good", f"{folder}/elsewhere")
    job.models = f"{folder}/elsewhere"
    good, _ = job.run("good_weights", [], 0, PACKAGE_INPUTS)
    job.models = f"{folder}/bad"
    bad, text = job.run("bad_weights", [], 1, [*PACKAGE_INPUTS, "--golden", job.whole])
    line = verdict(text, "golden: its weight")
    expect(line, f"(rank_2/{name})", "the shard of rank 2 is not ", "of the whole weight ",
           ": 1 of ")
    compared = ["dump", "compare", bad, good, "--model", job.models, "-o", f"{folder}/weights"]
    text = job.tool(*compared, expected=1)
    expect(verdict(text, "verdict:"), "verdict: rank 2 ")
    expect(verdict(text, "  its weight"), f"(rank_2/{name}) differs in 1 of ")
    report = as_json(job.npumesh, *compared, code=1, verdict="differ")
    cause = report["findings"][0]["cause"]
    if (cause["kind"], cause["file"], cause["differing"]) != ("weight", f"rank_2/{name}", 1):
        sys.exit(f"cause: {cause}")
    job.models = f"{folder}/mp"
    return good


def sharded(job, folder, dump):
    os.mkdir(f"{folder}/one")
    call([job.npumesh, "run", job.whole, "--dump", "all", "--dump-path", f"{folder}/one", *INPUTS],
         0)
    compared = ["dump", "compare", dump, f"{folder}/one", "--model", job.models, *TOLERANCE, "-o",
                f"{folder}/sharded"]
    expect(job.tool(*compared, expected=1), "sharded along axis", "use npumesh run --golden")
    as_json(job.npumesh, *compared, code=1, verdict="sharded")


def sample(npumesh, samples, folder):
    models = f"{samples}/float32_tp2"
    if not os.path.isdir(models):
        print("torchair_tools: the sample float32_tp2 is absent and passed over")
        return
    two = LAUNCHER + ["-n", "2"]
    job = Job(npumesh, folder)
    job.models, job.mpirun = models, two
    words = ["--inputs", f"{models}/inputs"]
    clean, _ = job.run("sample", [], 0, words)
    check_replayed(job, clean, models)
    for number, op in enumerate(products_of(job, clean)):
        plant(job, f"sample{number}", op, number % 2, words,
              f"{samples}/float32_tp1/llama.air")


def main():
    npumesh, write_prefill, dtype = sys.argv[1:4]
    plants = int(sys.argv[4])
    chance = random.Random(5)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        call([write_prefill, folder, str(RANKS), dtype], 0)
        job = Job(npumesh, folder)
        clean, text = job.run("clean", [], 0, [*INPUTS, "--golden", job.whole])
        expect(text, "golden: no operator differs")
        check_replayed(job, clean, job.models)
        products = products_of(job, clean)
        if len(products) != 14:
            sys.exit(f"products: {products}")
        for number in range(plants):
            plant(job, f"plant{number}", chance.choice(products), chance.randrange(RANKS), INPUTS,
                  job.whole)
        laws = as_json(npumesh, "dump", "laws", clean, "--model", job.models, code=0,
                       verdict="hold")
        if laws["steps"][0]["checked"] < 8:
            sys.exit(f"laws: {laws['steps']}")
        if dtype == "float32":
            sharded(job, folder, weights(job, folder))
        if len(sys.argv) > 5:
            sample(npumesh, sys.argv[5], folder)
    print(f"torchair_tools: {dtype}: everything that ran was replayed, {plants} of {plants} wrong "
          "products were named")


if __name__ == "__main__":
    main()
