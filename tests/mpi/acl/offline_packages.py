#!/usr/bin/env python3
"""Packages of several ranks as offline models: `npumesh atc`, then a program over aclmdl on every rank.

    offline_packages.py NPUMESH EXECUTE_MODEL

Each rank computes the bytes that `npumesh run` computes, of the graphs and of the offline models; a rank that loads
the file of another, or of a package for more ranks, is refused by name. `npumesh atc` killed at any time leaves the
whole package or none.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

from offline_models import call, payload

NPUMESH, EXECUTE = sys.argv[1:3]


def launch(ranks, *words, expect=0):
    return call(NPUMESH, "launch", "-n", str(ranks), "--", *words, expect=expect)


def outputs_of(folder, ranks, end):
    found = []
    for rank in range(ranks):
        place = os.path.join(folder, f"rank_{rank}")
        count = sum(name.endswith(end) for name in os.listdir(place))
        files = [os.path.join(place, f"{i}{end}") for i in range(count)]
        found.append([payload(file) if end == ".npy" else open(file, "rb").read() for file in files])
    return found


def check(sample, ranks, folder):
    package = os.path.join(folder, sample, "package")
    inputs = os.path.join(folder, sample, "inputs")
    offline = os.path.join(folder, sample + "_om")
    call(NPUMESH, "atc", "--model", package, "--output", offline)
    files = sorted(name for name in os.listdir(offline) if name.endswith(".om"))
    assert len(files) == ranks, files
    call(NPUMESH, "validate", offline)
    for model, place in ((package, "graphs"), (offline, "offline")):
        launch(ranks, NPUMESH, "run", model, "--inputs", inputs, "--outputs", os.path.join(folder, sample + place))
    expected = outputs_of(os.path.join(folder, sample + "graphs"), ranks, ".npy")
    assert all(expected), "there are no outputs"
    assert outputs_of(os.path.join(folder, sample + "offline"), ranks, ".npy") == expected
    executed = os.path.join(folder, sample + "executed")
    for rank in range(ranks):
        os.makedirs(os.path.join(executed, f"rank_{rank}"))
    stem = files[0][:-len("0.om")]
    words = [EXECUTE, os.path.join(offline, f"{stem}@.om"), os.path.join(inputs, "rank_@"),
             os.path.join(executed, "rank_@")]
    for way in ([], ["--async"]):
        launch(ranks, *words, *way)
        assert outputs_of(executed, ranks, ".bin") == expected, f"{sample} {way}"
    return offline, stem, words


def check_refusals(offline, stem, words):
    wrong = [words[0], os.path.join(offline, f"{stem}0.om"), *words[2:]]
    ran = subprocess.run([NPUMESH, "launch", "-n", "2", "--", *wrong], capture_output=True, text=True)
    assert ran.returncode != 0
    assert "the model is that of rank 0 of 2; this process is rank 1 of 2" in ran.stderr, ran.stderr
    ran = subprocess.run([EXECUTE, os.path.join(offline, f"{stem}0.om"), *words[2:]], capture_output=True, text=True)
    assert ran.returncode == 1, ran.stderr
    assert "the model is that of rank 0 of 2; this process is rank 0 of 1" in ran.stderr, ran.stderr
    ran = subprocess.run([NPUMESH, "launch", "-n", "1", "--", NPUMESH, "run", offline], capture_output=True, text=True)
    assert ran.returncode == 3, ran.stderr


def content(folder):
    return {name: open(os.path.join(folder, name), "rb").read() for name in sorted(os.listdir(folder))}


def check_kills(package, folder, kills):
    """Kills spread over the time that a run takes."""
    place = os.path.join(folder, "kills")
    words = [NPUMESH, "atc", "--model", package, "--output", os.path.join(place, "om")]
    os.mkdir(place)
    before = time.monotonic()
    subprocess.run(words, check=True, capture_output=True)
    whole = time.monotonic() - before
    expected = content(os.path.join(place, "om"))
    whole_runs = 0
    for kill in range(kills):
        shutil.rmtree(os.path.join(place, "om"), ignore_errors=True)
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as atc:
            try:
                atc.wait(whole * (kill + 0.5) / kills)
            except subprocess.TimeoutExpired:
                atc.kill()
        if os.path.exists(os.path.join(place, "om")):
            whole_runs += 1
            assert content(os.path.join(place, "om")) == expected, f"half a package after kill {kill}"
    shutil.rmtree(os.path.join(place, "om"), ignore_errors=True)
    subprocess.run(words, check=True, capture_output=True)
    assert content(os.path.join(place, "om")) == expected
    assert os.listdir(place) == ["om"], f"left behind: {os.listdir(place)}"
    return whole_runs


def main():
    with tempfile.TemporaryDirectory() as folder:
        call(NPUMESH, "samples", "decoder_2", "experts", "training", "--write", folder)
        offline, stem, words = check("decoder_2", 2, folder)
        check_refusals(offline, stem, words)
        kept = check_kills(os.path.join(folder, "decoder_2", "package"), folder, kills=12)
        print(f"12 kills of atc left {kept} whole packages and no half one")
        check("experts", 2, folder)
        print("packages of 2 ranks are the same as offline models")


if __name__ == "__main__":
    main()
