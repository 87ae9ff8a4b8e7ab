#!/usr/bin/env python3
"""Architectures of timm and torchvision with random weights, written by torch's exporter, beside ONNX Runtime.

    architectures.py [--count N] [--seed S] [--only PART] [--packages FOLDER] [--seconds N] [--json FILE]

Each runs in a separate process, on one thread, with a small image, through npumesh's Python package (PYTHONPATH and
NPUMESH_LIBRARY as for every Python test). Batch norms take their statistics from a random batch and parameters that
start as nothing become random, so that every layer counts in the result. Of each family of a module the two smallest
architectures are drawn from; --count 0 takes them all. --packages is where pip has put timm and torchvision
(`pip install --target`), if not beside torch.

What is said of one:
  same      within 1e-4 plus a thousandth of what ONNX Runtime gives
  noisy     differs by less than four times what ONNX Runtime differs from itself without its optimisations
  differs   by more; fails: import, compilation or run end in an error; ends: the process ends or takes too long
  no model  torch's exporter or ONNX Runtime refuses the architecture: it is not counted

Exit code 1 where one differs, fails or ends; 77 (skipped) without torch, timm, torchvision or onnxruntime.
"""

import argparse
import collections
import json
import logging
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import warnings

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from in_venv import run_in_venv

RTOL, ATOL = 1e-3, 1e-4
SMALL = ["atto", "femto", "pico", "nano", "xxs", "xx_small", "xs", "tiny", "x_small", "small", "micro", "mini", "_t",
         "_s", "050", "b0", "18", "26", "_b", "base"]
BIG = re.compile("huge|giant|gigantic|xlarge|large|_h_|_l_|_g_|enormous|so400m|152|269|200|101")
# What torchvision has beside classifiers of images, and what is too large for a test.
OTHERS = re.compile("quantized|rcnn|retina|ssd|fcos|raft|_l_|h_14|l_16|l_32|large_|128gf|32gf|16gf|b[567]|vgg1[369]|152|"
                    "wide_resnet101|swin_b|swin_v2_b|mvit|r3d|s3d|mc3|r2plus|swin3d|fcn|deeplab|lraspp")


def import_torchvision():
    """torchvision, also beside a torch that it was not built for: operators that it lacks then are only declared."""
    import torch
    declared = torch.library.Library("torchvision", "FRAGMENT")
    while True:
        try:
            import torchvision
            torchvision.kept_for_it = declared
            return torchvision
        except RuntimeError as why:
            missing = re.search(r"operator torchvision::(\w+) does not exist", str(why))
            if missing is None:
                raise
            declared.define(missing[1] + "(Tensor a) -> Tensor")
            for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
                del sys.modules[name]


def names_of_timm():
    """Of each family of a module the two smallest."""
    from timm.models import list_models, list_modules
    chosen = []
    for module in list_modules():
        families = collections.defaultdict(list)
        order = lambda name: (next((i for i, part in enumerate(SMALL) if part in name), len(SMALL)), len(name), name)
        for name in sorted(list_models(module=module), key=order):
            family = re.sub(r"\d.*|_(tiny|small|base|large|nano|atto|femto|pico|xs|xxs|t|s|b|l).*", "", name)
            if not BIG.search(name):
                families[family].append(name)
        chosen += [name for names in families.values() for name in names[:2]]
    return chosen


def names_of_torchvision():
    return ["torchvision:" + name for name in import_torchvision().models.list_models() if not OTHERS.search(name)]


def make(name):
    """The module and the sizes of image to try, smallest first."""
    torchvision = import_torchvision()
    if name.startswith("torchvision:"):
        whole = 224 if re.search("vit|swin|maxvit", name) else 128
        return torchvision.models.get_model(name.split(":")[1], weights=None), [96, whole, 224]
    import timm
    module = timm.create_model(name, pretrained=False)
    fixed, size = module.pretrained_cfg.get("fixed_input_size"), module.pretrained_cfg["input_size"][-1]
    return module, [size] if fixed else [96, 128, size]


def enliven(module, image):
    """Statistics of a random batch for the batch norms, and numbers for parameters that start as nothing."""
    import torch
    norms = [part for part in module.modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)]
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.abs().max() < 1e-3:
                parameter.normal_(0, 0.05)
        if norms:
            for norm in norms:
                norm.momentum = 1.0
            module.train()
            module(torch.rand(4, *image.shape[1:]))
    return module.eval()


def export(name, path):
    """Writes the model; the image that it takes."""
    import torch
    torch.manual_seed(1)
    module, sizes = make(name)
    for number, size in enumerate(sizes):
        image = torch.rand(1, 3, size, size)
        try:
            torch.onnx.export(enliven(module, image), (image,), path, opset_version=17, dynamo=False, input_names=["x"])
            return image.numpy()
        except Exception:
            if number + 1 == len(sizes):
                raise


def beside(path, image, level=None):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if level is not None:
        options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session, session.run(None, {"x": image})


def furthest(seen, right):
    """The largest difference, and whether all are near enough."""
    import numpy
    most, near = 0.0, len(seen) == len(right)
    for a, b in zip(seen, right):
        a = numpy.asarray(a)
        if a.shape != b.shape:
            return numpy.inf, False
        off = abs(a.astype(numpy.float64) - b)
        most = max(most, float(off.max(initial=0)))
        near = near and bool((off <= ATOL + RTOL * abs(b)).all())
    return most, near


def best_of(function, turns=3):
    times = []
    for _ in range(turns):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times)


def try_one(name):
    """What is said of one architecture, as a dictionary."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    import onnxruntime
    import torch
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        try:
            image = export(name, path)
            session, right = beside(path, image)
        except Exception as why:
            return {"said": "no model", "why": str(why).split("\n", maxsplit=1)[0][:200]}
        import npumesh
        try:
            graph = npumesh.World().load(path, threads=1)
            seen = graph.run({"x": image})
        except Exception as why:
            return {"said": "fails", "why": " ".join(str(why).split())}
        most, near = furthest(seen, right)
        row = {"said": "same" if near else "differs", "difference": most, "size": image.shape[-1],
               "scale": max(float(abs(array).max()) for array in right)}
        if not near:
            _, other = beside(path, image, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
            row["noise"] = furthest(other, right)[0]
            row["said"] = "noisy" if most < 4 * row["noise"] else "differs"
        row["ratio"] = best_of(lambda: graph.run({"x": image})) / best_of(lambda: session.run(None, {"x": image}))
        return row


def run_apart(script, case, packages, seconds, more=()):
    """What `script` says of one case in a separate process."""
    words = [sys.executable, os.path.abspath(script), "--one", case, "--packages", packages, *more]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"said": "ends", "why": f"not done after {seconds} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        return {"said": "ends", "why": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]}
    return json.loads(lines[-1])


def report(what, cases, run_one, path):
    """Prints what is said of each case, and how many of each; into the JSON file `path`, if any. The exit code."""
    rows = {}
    for case in cases:
        rows[case] = row = run_one(case)
        print(f"{case}: " + ", ".join(f"{key} {value:.3g}" if isinstance(value, float) else str(value)
                                      for key, value in row.items()), flush=True)
        if path:
            with open(path, "w", encoding="utf-8") as file:
                json.dump(rows, file, indent=1)
    counts = collections.Counter(row["said"] for row in rows.values())
    print(f"{len(rows)} {what}: " + ", ".join(f"{count} {said}" for said, count in counts.most_common()))
    return 1 if counts["differs"] or counts["fails"] or counts["ends"] else 0


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--count", type=int, default=300)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--only", default="", help="architectures whose name has this part")
    words.add_argument("--packages", default="")
    words.add_argument("--seconds", type=int, default=300)
    words.add_argument("--json")
    words.add_argument("--one", help=argparse.SUPPRESS)
    given = words.parse_args()
    if given.packages:
        sys.path.insert(0, given.packages)
    try:
        import onnxruntime  # noqa: F401
        import_torchvision()
        import timm  # noqa: F401
    except ImportError as missing:
        print(f"skipped: {missing}; launch/install_deps --torch, then pip install timm torchvision")
        return 77
    if given.one:
        print(json.dumps(try_one(given.one)))
        return 0
    names = [name for name in names_of_torchvision() + names_of_timm() if given.only in name]
    random.Random(given.seed).shuffle(names)
    return report("architectures", names[:given.count or None],
                  lambda name: run_apart(__file__, name, given.packages, given.seconds), given.json)


if __name__ == "__main__":
    run_in_venv()
    sys.exit(main())
