#!/usr/bin/env python3
"""A small llama of random weights on ggml's CANN back end over npumesh, beside ggml's CPU.

    ggml_llama.py CHECKOUT INSTALLED [--build FOLDER] [--seeds N]

Builds ggml_llama.cc over a checkout of ggml and generates 48 tokens for each seed and type. With matrices of float32 the
tokens are the same. With halves and eight bits the back ends round differently (the CANN back end gives products as halves;
ggml's CPU also makes the other side of a product eight bits), so the first other token must be one that led by less than
this rounding. Ends with 1 when a token differs otherwise. Nothing of ggml is part of npumesh.
"""

import argparse
import os
import subprocess
import sys

import ggml_backend_ops

LEADS = {"f32": 0.0, "f16": 0.03, "q8_0": 0.3}  # of a token that may turn over


def compiled(checkout, installed, folder):
    ggml_backend_ops.build(checkout, installed, folder)
    program = os.path.join(folder, "ggml_llama")
    places = [os.path.join(folder, "src"), os.path.join(folder, "src", "ggml-cann")]
    subprocess.run(
        ["g++", "-std=c++20", "-O1", f"-I{checkout}/include",
         os.path.join(os.path.dirname(os.path.abspath(__file__)), "ggml_llama.cc"), "-o", program,
         *(f"-L{place}" for place in places), "-Wl,-rpath," + ":".join(places), "-lggml", "-lggml-base", "-lggml-cpu",
         "-lggml-cann", f"-Wl,-rpath-link,{installed}/lib64"], check=True)
    return program


def tokens(program, installed, *words):
    """The tokens, and by how much each won."""
    environment = {**os.environ, "LD_LIBRARY_PATH": os.path.join(installed, "lib64"), "NPUMESH_DEVICE_COUNT": "1",
                   "OMP_NUM_THREADS": "1"}
    done = subprocess.run([program, *words], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"ggml_llama: {' '.join(words)} ends with {done.returncode}:\n{done.stdout[-500:]}{done.stderr[-1500:]}")
    found, leads = done.stdout.splitlines()[-2:]
    return [int(token) for token in found.split()], [float(lead) for lead in leads.split()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout")
    parser.add_argument("installed")
    parser.add_argument("--build", default="build-npumesh", help="a folder for what is compiled")
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    installed = os.path.abspath(given.installed)
    program = compiled(os.path.abspath(given.checkout), installed, os.path.abspath(given.build))
    bad = 0
    for kind, least in LEADS.items():
        same = 0
        for seed in range(1, given.seeds + 1):
            expected, leads = tokens(program, installed, "CPU", kind, str(seed))
            found, _ = tokens(program, installed, "CANN0", kind, str(seed))
            first = next((i for i, (a, b) in enumerate(zip(expected, found)) if a != b), None)
            same += first is None
            if first is not None and leads[first] >= least:
                bad += 1
                print(f"{kind}, seed {seed}: token {first} is {found[first]}, on the CPU {expected[first]}, "
                      f"which led by {leads[first]} deviations")
        print(f"{kind}: {same} of {given.seeds} with the same 48 tokens", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
