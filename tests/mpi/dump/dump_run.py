#!/usr/bin/env python3
"""Dumps the decoder example on several ranks and reads every file with an independent reader.

  dump_run.py NPUMESH DECODER full|stats|bound|watch|config|eager|disk|kill|usage
"""

import array
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from launcher import MPIRUN
import dump_reader

RANKS = 4
SKIPPED = 77


def run(words, ranks=RANKS, code=0):
    job = subprocess.run(MPIRUN + ["-n", str(ranks)] + words, capture_output=True, text=True,
                         stdin=subprocess.DEVNULL, timeout=1200)
    assert job.returncode == code, f"{words}: exit {job.returncode}\n{job.stdout}{job.stderr}"
    return job


class Bench:
    """A folder with the decoder's graphs and room for dumps."""

    def __init__(self, npumesh, decoder, folder):
        self.npumesh = npumesh
        self.models = os.path.join(folder, "models")
        self.dump = os.path.join(folder, "dump")
        os.mkdir(self.models)
        os.mkdir(self.dump)
        run([decoder, "--out", self.models])

    def run(self, *words, code=0, steps=2):
        return run([self.npumesh, "run", self.models, "--steps", str(steps), *words], code=code)

    def rank_folders(self):
        """rank -> its time folder; the time is the same on all ranks."""
        folders = {}
        times = set()
        for rank in range(RANKS):
            top = os.path.join(self.dump, f"worldsize{RANKS}_global_rank{rank}")
            (moment,) = os.listdir(top)
            assert re.fullmatch(r"[0-9]{14}", moment), moment
            times.add(moment)
            folders[rank] = os.path.join(top, moment)
        assert len(times) == 1, f"the ranks do not agree on the time: {times}"
        return folders

    def steps(self, rank):
        """The step folders of a rank, by data index."""
        (device,) = [entry for entry in os.scandir(self.rank_folders()[rank]) if entry.is_dir()]
        assert device.name == str(rank)
        (model,) = os.scandir(device.path)
        (model_id,) = os.scandir(model.path)
        assert model_id.name == "1"
        return {int(entry.name): entry.path for entry in os.scandir(model_id.path)}

    def files(self):
        return [str(path) for path in pathlib.Path(self.dump).rglob("*") if path.is_file()]


def dump_files(folder):
    names = [name for name in os.listdir(folder) if not name.endswith(".csv")]
    for name in names:
        assert dump_reader.OFFLINE_NAME.match(name), name
        assert re.fullmatch(r"[0-9]{16}", name.split(".")[4]), name
    return {name: dump_reader.read(os.path.join(folder, name)) for name in names}


def full(bench):
    job = bench.run("--dump", "all", "--dump-path", bench.dump)
    assert job.stdout.count(" dump: ") == RANKS, job.stdout
    for rank in range(RANKS):
        steps = bench.steps(rank)
        assert sorted(steps) == [0, 1]
        records = dump_files(steps[0])
        with open(os.path.join(bench.rank_folders()[rank], "manifest.json")) as file:
            manifest = json.load(file)
        assert manifest["rank"] == rank and manifest["error"] is None
        assert manifest["written"]["files"] == sum(len(os.listdir(step)) for step in steps.values())
        types = {name.split(".")[0] for name in records}
        assert "Data" in types and "HcomAllReduce" in types, types
        check_flow(records)
    # What allreduce gave is the same everywhere.
    sums = []
    for rank in range(RANKS):
        records = dump_files(bench.steps(rank)[0])
        sums.append(sorted((record["op_name"], record["output"][0]["payload"])
                           for name, record in records.items() if name.startswith("HcomAllReduce")))
    assert sums[0] and all(each == sums[0] for each in sums)
    check_modes(bench)


def check_flow(records):
    """Every tensor that was read had been written by an operator, given, or is a constant."""
    produced = {output["payload"] for record in records.values() for output in record["output"]}
    for name, record in records.items():
        if name.startswith("Data."):
            continue
        assert record["output"] and any(t["payload"] in produced for t in record["input"]), name
        assert record["op_name"].decode() and record["dump_time"] > 10 ** 15
        if name.startswith("HcomAllReduce"):
            # Every rank adds up RANKS tensors of the shape it gives, flat as moved.
            assert record["input"][0]["size"] == record["output"][0]["size"]
            assert len(record["output"][0]["shape"]) == 1


def check_modes(bench):
    for path in bench.files():
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600, path
        assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) & 0o027 == 0, path


def floats(tensor):
    return array.array("f", tensor["payload"])


def stats(bench):
    bench.run("--dump", "all", "--dump-path", bench.dump, "--dump-step", "1")
    shutil.move(bench.dump, bench.dump + "_tensors")
    os.mkdir(bench.dump)
    tensors = Bench.__new__(Bench)
    tensors.dump = bench.dump + "_tensors"
    bench.run("--dump", "all", "--dump-path", bench.dump, "--dump-step", "1", "--dump-data",
              "stats")
    for rank in range(RANKS):
        assert sorted(bench.steps(rank)) == [1]  # data_index is the step
        records = {name.rsplit(".", 1)[0]: record
                   for name, record in dump_files(tensors.steps(rank)[1]).items()}
        names = os.listdir(bench.steps(rank)[1])
        assert len(names) == len(records)
        for name in names:
            rows = dump_reader.read_csv(os.path.join(bench.steps(rank)[1], name))
            check_rows(rows, records[name.removesuffix(".csv").rsplit(".", 1)[0]])


def check_rows(rows, record):
    sides = [("Input", each) for each in record["input"]]
    sides += [("Output", each) for each in record["output"]]
    assert len(rows) == len(sides)
    for row, (side, tensor) in zip(rows, sides):
        assert row["Input/Output"] == side and int(row["Data Size"]) == tensor["size"]
        assert row["Shape"] == ("x".join(map(str, tensor["shape"])) or "-")
        if row["Data Type"] != "DT_FLOAT":
            continue
        values = floats(tensor)
        assert int(row["Count"]) == len(values)
        assert row["Max Value"] == f"{max(values):g}" and row["Min Value"] == f"{min(values):g}"
        mean = sum(values) / len(values)
        assert abs(float(row["Avg Value"]) - mean) <= 1e-5 * abs(mean) + 1e-12


def bound(bench):
    job = bench.run("--dump", "all", "--dump-path", bench.dump, "--dump-max-bytes", "200K")
    assert "statistics in place of tensors" in job.stdout, job.stdout
    for folder in bench.rank_folders().values():
        with open(os.path.join(folder, "manifest.json")) as file:
            manifest = json.load(file)
        files = [path for path in pathlib.Path(folder).rglob("*.*.*.*") if path.is_file()]
        tensors = [path for path in files if path.suffix != ".csv"]
        assert manifest["written"]["files"] == len(tensors) > 0
        assert manifest["degraded_to_statistics"]["files"] == len(files) - len(tensors) > 0
        payload = sum(t["size"] for path in tensors
                      for t in (lambda r: r["input"] + r["output"])(dump_reader.read(path)))
        assert payload <= 200 * 1024


def config_file(bench, dump):
    path = bench.dump + ".json"
    with open(path, "w") as file:
        json.dump({"dump": {"dump_path": bench.dump, **dump}}, file)
    return path


def watch(bench):
    bench.run("--dump", "output", "--dump-path", bench.dump, steps=1)
    records = dump_files(bench.steps(0)[0])
    operators = [(name.split("."), record["op_name"].decode()) for name, record in records.items()]
    matmuls = [name for parts, name in operators if parts[0].startswith("MatMul")]
    reduces = [name for parts, name in operators if parts[0] == "HcomAllReduce"]
    shutil.rmtree(bench.dump)
    os.mkdir(bench.dump)
    path = config_file(bench, {"dump_scene": "watcher", "dump_list": [
        {"layer": [matmuls[1], reduces[0]], "watcher_nodes": [matmuls[0]]}]})
    bench.run("--dump-config", path, steps=1)
    names = [parts[1] for parts in (name.split(".") for name in dump_files(bench.steps(0)[0]))]
    table = str.maketrans(" ./\\", "____")
    # A collective in `layer` adds no file.
    assert sorted(names) == sorted([matmuls[0].translate(table),
                                    f"{matmuls[1]}_To_{matmuls[0]}".translate(table)]), names


def config(bench):
    path = config_file(bench, {"dump_list": [], "dump_mode": "output", "dump_step": "0-0"})
    bench.run("--dump-config", path)
    assert sorted(bench.steps(3)) == [0]
    dump_files(bench.steps(3)[0])
    before = len(bench.files())
    # Nothing overflows: no operator is written.
    shutil.rmtree(bench.dump)
    os.mkdir(bench.dump)
    bench.run("--dump-config", config_file(bench, {"dump_debug": "on"}))
    assert before > len(bench.files()) == RANKS  # the manifests
    bad = config_file(bench, {"dump_debug": "on", "dump_op_switch": "on"})
    job = bench.run("--dump-config", bad, code=3)
    assert "dump_debug" in job.stderr and "dump_op_switch" in job.stderr, job.stderr


def eager(bench):
    """debug.data_dump and debug.fx_summary, by -o."""
    job = bench.run("-o", "debug.data_dump.type=npy", "-o", f"debug.data_dump.path={bench.dump}")
    assert job.stdout.count(" dump: ") == RANKS, job.stdout
    sums = []
    for rank in range(RANKS):
        top = os.path.join(bench.dump, f"worldsize{RANKS}_global_rank{rank}")
        (graph,) = os.listdir(top)
        assert sorted(os.listdir(os.path.join(top, graph))) == ["0", "1"]
        folder = os.path.join(top, graph, "1")
        names = sorted(os.listdir(folder))
        assert all(re.fullmatch(r".+-\w+\.(INPUT|OUTPUT)\.\d+\.\d{20}\.npy", name)
                   for name in names), names
        assert f" {2 * len(names)} tensor files" in job.stdout.splitlines()[-RANKS + rank]
        reduced = [name for name in names if "-HcomAllReduce.OUTPUT.0." in name]
        sums.append([pathlib.Path(folder, name).read_bytes() for name in reduced])
    assert sums[0] and all(each == sums[0] for each in sums)
    check_modes(bench)
    before = os.getcwd()
    os.chdir(bench.dump)
    bench.run("-o", "debug.fx_summary.type=csv", "-o", "debug.fx_summary.skip_compile=false")
    os.chdir(before)
    found = [name for name in os.listdir(bench.dump) if name.startswith("summary_rank_")]
    assert len(found) == RANKS, found
    assert "HcomAllReduce" in pathlib.Path(bench.dump, found[0]).read_text(encoding="utf-8-sig")


def kill(bench):
    """SIGKILL in the middle: what has its name is whole."""
    for delay in (0.05, 0.1, 0.2):
        job = subprocess.Popen(MPIRUN + ["-n", str(RANKS), bench.npumesh, "run", bench.models,
                                         "--steps", "100000", "--dump", "all", "--dump-path",
                                         bench.dump],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
        limit = time.monotonic() + 60
        while len(bench.files()) < 50 and time.monotonic() < limit:
            time.sleep(0.01)
        time.sleep(delay)
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        wait_for_quiet(bench)
        files = [path for path in bench.files() if not path.endswith((".tmp", ".json"))]
        assert len(files) >= 50
        for path in files:
            dump_reader.read(path)
        shutil.rmtree(bench.dump)
        os.mkdir(bench.dump)


def disk(bench):
    """A real file system of 2 MiB, in a mount namespace that only this test sees."""
    words = ["unshare", "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    tried = subprocess.run(words + ["mount", "-t", "tmpfs", "none", bench.dump],
                           capture_output=True, text=True)
    if tried.returncode != 0:
        print(f"skipped: no mount namespace here: {tried.stderr.strip()}")
        sys.exit(SKIPPED)
    for more, code in ([], 0), (["--dump-on-error", "stop"], 4):
        inside = [sys.executable, __file__, bench.npumesh, bench.models, "full_disk", bench.dump,
                  str(code), *more]
        job = subprocess.run(words + inside, capture_output=True, text=True, timeout=1200)
        assert job.returncode == 0, job.stdout + job.stderr


def full_disk(npumesh, models, folder, code, *more):
    """Within the namespace of `disk`."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", folder], check=True)
    job = run([npumesh, "run", models, "--steps", "20", "--dump", "all", "--dump-path", folder,
               *more], code=int(code))
    said = job.stdout + job.stderr
    assert "No space left on device" in said, said
    if not more:
        assert said.count("files lost") == RANKS and said.count("stopped: ") == RANKS, said
    files = [path for path in pathlib.Path(folder).rglob("*") if path.is_file()]
    assert not [path for path in files if path.suffix == ".tmp"], files
    tensors = [path for path in files if path.suffix != ".json"]
    assert len(tensors) > 10, files
    for path in tensors:
        dump_reader.read(str(path))


def wait_for_quiet(bench):
    """mpirun is dead; its ranks notice and end."""
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        running = subprocess.run(["pgrep", "-f", f"dump-path {bench.dump}"], capture_output=True)
        if running.returncode != 0:
            return
        for pid in running.stdout.split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.05)
    raise AssertionError("ranks are still running")


def usage(bench):
    for words, says in ((["--dump", "both"], "both"), (["--dump-step", "1"], "--dump"),
                        (["--dump", "all", "--dump-max-bytes", "x"], "--dump-max-bytes"),
                        (["--dump", "all", "--dump-on-error", "x"], "--dump-on-error")):
        job = bench.run(*words, code=2)
        assert says in job.stderr, job.stderr
    for words, says in ((["--dump-path", bench.dump + "/absent"], "dump_path"),
                        (["--dump-path", bench.dump, "--dump-step", "5-3"], "dump_step"),
                        (["--dump-path", bench.dump, "--dump-layer", "a-b"], "dump_layer")):
        job = bench.run("--dump", "all", *words, code=3)
        assert says in job.stderr, job.stderr
    assert not bench.files()


def main():
    npumesh, decoder, what = sys.argv[1:4]
    os.umask(0o027)
    if what == "full_disk":
        full_disk(npumesh, decoder, *sys.argv[4:])
        return
    with tempfile.TemporaryDirectory(prefix="npumesh_dump_") as folder:
        globals()[what](Bench(npumesh, decoder, folder))
    print(f"{what}: ok")


if __name__ == "__main__":
    main()
