#!/usr/bin/env python3
"""Models of a folder beside ONNX Runtime: numbers, time, memory, import.

    run_models.py NPUMESH FOLDER [--json FILE] [--steps N] [--dim NAME=N]... [--only PART] [--threads N]

Each .onnx file below FOLDER is run with random inputs by ONNX Runtime and by `npumesh run`, on one thread unless
--threads says otherwise. Open dimensions have the size of --dim, by the name that the model gives them or as
input.axis, or 1. A file beside the model may say them, and values of inputs: `model.json` with
{"dims": {"batch": 1, "x.2": 320}, "values": {"sr": 16000}}. Values of inputs that are sizes or lengths have to be said,
because random ones have no meaning there.

Numbers are the same where they differ by at most 1e-4 plus a thousandth of what ONNX Runtime gives. Times are the least
of several processes, in turns, of the median step in each; memory is the largest of a process. Exit code 1 where a model
fails or differs, 77 (skipped) without onnxruntime or without a model.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from in_venv import run_in_venv

try:
    import numpy
    import onnxruntime
except ImportError as missing:
    run_in_venv()
    print(f"skipped: {missing}; launch/install_deps --torch installs what is needed")
    sys.exit(77)

RTOL, ATOL = 1e-3, 1e-4
TYPES = {"tensor(float)": "float32", "tensor(double)": "float64", "tensor(float16)": "float16", "tensor(bool)": "bool",
         **{f"tensor({sign}int{bits})": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}}


class Failed(Exception):
    """Why a model does not run."""


def settings(path, dims):
    """The sizes and values that are said of a model."""
    beside = os.path.splitext(path)[0] + ".json"
    said = {"dims": {}, "values": {}}
    if os.path.exists(beside):
        with open(beside, encoding="utf-8") as file:
            said.update(json.load(file))
    said["dims"] = {**said["dims"], **dims}
    return said


def inputs_of(session, said, rng):
    """Random inputs, by name in the order of the model."""
    inputs = {}
    for info in session.get_inputs():
        if info.type not in TYPES:
            raise Failed(f"input {info.name} is {info.type}")
        dtype, shape = TYPES[info.type], []
        for axis, dim in enumerate(info.shape):
            known = said["dims"].get(f"{info.name}.{axis}", said["dims"].get(dim) if isinstance(dim, str) else None)
            shape.append(dim if isinstance(dim, int) else known or 1)
        if info.name in said["values"]:
            value = numpy.asarray(said["values"][info.name], dtype)
            inputs[info.name] = value if value.ndim == len(shape) else numpy.broadcast_to(value, shape).copy()
        elif dtype.startswith("float"):
            inputs[info.name] = rng.uniform(-1, 1, shape).astype(dtype)
        else:
            inputs[info.name] = rng.integers(0, 2, shape).astype(dtype)
    return inputs


# A process counts what the one that made it had in memory, so a small one stands between.
BETWEEN = """
import os, subprocess, sys, time
began = time.monotonic()
child = subprocess.Popen(sys.argv[1:], stderr=subprocess.STDOUT)
_, status, usage = os.wait4(child.pid, 0)
print(time.monotonic() - began, usage.ru_maxrss, flush=True)
sys.exit(os.waitstatus_to_exitcode(status) and 1)
"""


def run_child(words):
    """Seconds, peak KiB and output of a process. Raises Failed with what it says."""
    done = subprocess.run([sys.executable, "-c", BETWEEN, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    lines = done.stdout.strip().splitlines() or ["0 0"]
    if done.returncode:
        raise Failed(lines[-2] if len(lines) > 1 else "ended without a word")
    seconds, peak = lines[-1].split()
    return float(seconds), int(peak), "\n".join(lines[:-1])


BESIDE = """
import json, sys, time, numpy, onnxruntime
path, folder, names, steps, threads = sys.argv[1], sys.argv[2], sys.argv[3].split("\\n"), int(sys.argv[4]), int(sys.argv[5])
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
options.intra_op_num_threads = threads
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
feeds = {name: numpy.load(f"{folder}/{i}.npy") for i, name in enumerate(names)}
times = []
for _ in range(steps):
    began = time.perf_counter()
    session.run(None, feeds)
    times.append(time.perf_counter() - began)
print(json.dumps(sorted(times)[len(times) // 2]))
"""


def differences(seen, right):
    """How many elements are too far, the largest difference, and what is wrong besides."""
    far, most = 0, 0.0
    if len(seen) != len(right):
        return 1, 0.0, f"{len(seen)} outputs for {len(right)}"
    for number, (a, b) in enumerate(zip(seen, right)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return 1, most, f"output {number} is {a.dtype}{list(a.shape)} for {b.dtype}{list(b.shape)}"
        x, y = a.astype(numpy.float64), b.astype(numpy.float64)
        with numpy.errstate(all="ignore"):
            off = abs(x - y)
            same = (off <= ATOL + RTOL * abs(y)) | (x == y) | (numpy.isnan(x) & numpy.isnan(y))
        far += int((~same).sum())
        if off.size:
            most = max(most, float(numpy.nan_to_num(off).max()))
    return far, most, ""


def measure(npumesh, path, said, steps, threads):
    """A row of the table."""
    row = {}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs = inputs_of(session, said, numpy.random.default_rng(1))
    right = session.run(None, inputs)
    with tempfile.TemporaryDirectory() as folder:
        files = os.path.join(folder, "in")
        os.mkdir(files)
        for number, array in enumerate(inputs.values()):
            numpy.save(f"{files}/{number}.npy", array)
        row["import_seconds"], row["import_kib"], _ = run_child([npumesh, "import", path, "-o", f"{folder}/model.air"])
        base = [npumesh, "run", path, "--inputs", files, "--threads", str(threads)]
        _, _, _ = run_child([*base, "--outputs", f"{folder}/out"])
        seen = [numpy.load(f"{folder}/out/rank_0/{i}.npy") for i in range(len(right))]
        row["far"], row["largest"], row["wrong"] = differences(seen, [numpy.asarray(array) for array in right])
        row["elements"] = sum(int(numpy.size(array)) for array in right)
        words = [sys.executable, "-c", BESIDE, path, files, "\n".join(inputs), str(steps), str(threads)]
        mine, other = [], []
        for _ in range(3):
            _, row["kib"], _ = run_child([*base, "--steps", str(steps), "--report", f"{folder}/report.json"])
            with open(f"{folder}/report.json", encoding="utf-8") as file:
                mine.append(median_of(json.load(file)))
            _, row["runtime_kib"], text = run_child(words)
            other.append(json.loads(text.splitlines()[-1]))
        row["seconds"], row["runtime_seconds"] = min(mine), min(other)
        row["ratio"] = row["seconds"] / row["runtime_seconds"]
    return row


def median_of(report):
    """The median step of rank 0 in a report, wherever its ranks stand."""
    if isinstance(report, dict):
        if "median_seconds" in report:
            return report["median_seconds"]
        report = list(report.values())
    for part in report if isinstance(report, list) else ():
        found = median_of(part)
        if found is not None:
            return found
    return None


def table(rows):
    """The rows as text."""
    lines = [f"{'model':44} {'numbers':>12} {'ms':>9} {'ORT ms':>9} {'ratio':>6} {'MiB':>6} {'ORT MiB':>7} {'import s':>8}"]
    for row in rows:
        name = row["model"][-44:]
        if "error" in row:
            lines.append(f"{name:44} FAILS: {row['error']}")
            continue
        numbers = f"{row['largest']:.1e}" if not row["far"] else f"{row['far']} far"
        lines.append(f"{name:44} {numbers:>12} {row['seconds'] * 1e3:9.3f} {row['runtime_seconds'] * 1e3:9.3f} "
                     f"{row['ratio']:6.2f} {row['kib'] / 1024:6.0f} {row['runtime_kib'] / 1024:7.0f} "
                     f"{row['import_seconds']:8.2f}{'  ' + row['wrong'] if row['wrong'] else ''}")
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if ratios:
        lines.append(f"geometric mean of {len(ratios)} ratios: {numpy.exp(numpy.log(ratios).mean()):.2f}")
    return "\n".join(lines)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("npumesh")
    words.add_argument("folder")
    words.add_argument("--json")
    words.add_argument("--steps", type=int, default=20)
    words.add_argument("--dim", action="append", default=[])
    words.add_argument("--only", default="", help="models whose path has this part")
    words.add_argument("--threads", type=int, default=1)
    given = words.parse_args()
    dims = {name: int(size) for name, size in (dim.rsplit("=", 1) for dim in given.dim)}
    paths = sorted(os.path.join(where, name) for where, _, names in os.walk(given.folder) for name in names
                   if name.endswith(".onnx"))
    paths = [path for path in paths if given.only in path]
    if not paths:
        print(f"skipped: no .onnx file in {given.folder}")
        return 77
    rows = []
    for path in paths:
        row = {"model": os.path.relpath(path, given.folder), "bytes": os.path.getsize(path)}
        try:
            row.update(measure(given.npumesh, path, settings(path, dims), given.steps, given.threads))
        except (Failed, onnxruntime.capi.onnxruntime_pybind11_state.Fail, ValueError, RuntimeError) as why:
            row["error"] = " ".join(str(why).split())
        except Exception as why:  # whatever ONNX Runtime raises: the other models are still of interest
            row["error"] = f"{type(why).__name__}: " + " ".join(str(why).split())
        rows.append(row)
        print(f"{len(rows)} of {len(paths)}: {row['model']}: {row.get('error', 'runs')}", file=sys.stderr, flush=True)
    print(table(rows))
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump({"rows": rows, "onnxruntime": onnxruntime.__version__, "threads": given.threads}, file, indent=1)
    return 1 if any("error" in row or row["far"] or row["wrong"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
