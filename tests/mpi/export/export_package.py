#!/usr/bin/env python3
"""Exports, checks and runs packages as a user does, and reads them with a separate reader.

  export_package.py NPUMESH DECODER RANKS
"""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from launcher import MPIRUN, exports
from air_wire import read_air, read_pbtxt


def run(words, code=0, cwd=None):
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd, timeout=1200)
    if done.returncode != code:
        said = done.stdout + done.stderr
        sys.exit(f"{' '.join(words)}: code {done.returncode}, expected {code}\n{said}")
    return done.stdout + done.stderr


def expect(condition, what):
    if not condition:
        sys.exit(f"export_package: {what}")


def check_graph(package, rank):
    """The .air says what its text says, and has what a loader of GE needs."""
    air = read_air(f"{package}/decoder_rank{rank}.air")
    text = read_pbtxt(f"{package}/rank_{rank}/dynamo.pbtxt")
    seen = []
    for op in air["ops"]:
        data = op["type"] in ("Data", "RefData")
        inputs = [re_control(name) for name in op["inputs"] if not (data and name == "")]
        seen.append((op["name"], op["type"], inputs))
    expect(seen == text, f"rank {rank}: the nodes of .air and dynamo.pbtxt differ")
    expect(air["inputs"] == ["hidden_states:0"], f"inputs {air['inputs']}")
    expect(air["attrs"]["target_type"] == ("s", b"MINI"), "target_type")
    expect(sum(op["type"] == "NetOutput" for op in air["ops"]) == 1, "one NetOutput")
    return air


def re_control(name):
    return "^" + name[: -len(":-1")] if name.endswith(":-1") else name


def check_weights(package, rank, inside, outside):
    """What was inside in one package lies in files in the other, byte for byte."""
    values = {op["name"]: op for op in inside["ops"] if op["type"] == "Const"}
    files = [op for op in outside["ops"] if op["type"] == "FileConstant"]
    expect(len(files) > 10, f"{len(files)} weights in files")
    for op in files:
        value = values[op["name"]]["attrs"]["value"][1]
        path = op["attrs"]["file_path"][1].decode()
        expect(
            path == f"{package}/rank_{rank}/{op['name'].replace('.', '_')}", f"file_path {path}"
        )
        with open(path, "rb") as file:
            expect(file.read() == value["data"], f"{path} differs from the value inside")
        expect(op["attrs"]["shape"][1]["i"] == value["desc"]["dims"], f"shape of {op['name']}")
        expect(op["attrs"]["dtype"] == ("dt", 0), f"dtype of {op['name']}")
        expect(op["attrs"]["file_id"] == ("s", b""), f"file_id of {op['name']}")


def check_json(package):
    for name in ("model_relation_config.json", "numa_config.json"):
        with open(f"{package}/{name}", encoding="utf-8") as file:
            text = file.read()
        expect(text == json.dumps(json.loads(text), indent=4, ensure_ascii=False), name)


def main():
    npumesh, decoder, ranks = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with tempfile.TemporaryDirectory() as folder:
        inside, outside, again = (f"{folder}/{name}" for name in ("inside", "outside", "again"))
        mpirun = MPIRUN + ["-n", str(ranks)]
        run(mpirun + [decoder, "--out", inside])
        words = ["--name", "decoder_rank", "--auto-atc-config"]
        run(mpirun + [npumesh, "export", inside, "--path", outside, "--weight-limit", "0"] + words)
        run([npumesh, "export", outside, "--path", again, "--template"] + words)
        for package in (inside, outside, again):
            expect("valid" in run([npumesh, "validate", package]), f"validate {package}")
            check_json(package)
        for rank in range(ranks):
            graphs = [check_graph(package, rank) for package in (inside, outside, again)]
            check_weights(outside, rank, graphs[0], graphs[1])
            with open(f"{inside}/decoder_rank{rank}.air", "rb") as one:
                with open(f"{again}/decoder_rank{rank}.air", "rb") as two:
                    expect(one.read() == two.read(), "inside -> outside -> inside changes bytes")
        configured(npumesh, mpirun, folder, outside, ranks)
        # Absolute paths hold from any working folder; both forms give the same numbers.
        run(mpirun + [npumesh, "run", inside, "--seed", "3", "--outputs", f"{folder}/out"])
        compare = ["--seed", "3", "--check", f"{folder}/out", "--rtol", "0", "--atol", "0"]
        run(mpirun + [npumesh, "run", outside] + compare, cwd="/")
        refusals(npumesh, mpirun, folder, outside)


def configured(npumesh, mpirun, folder, package, ranks):
    """`export.*` of a config says what options of the command say, which win over it."""
    config = {
        "export": {
            "export_path_dir": f"{folder}/configured",
            "export_name": "other",
            "experimental": {"auto_atc_config_generated": True},
        },
        "debug": {"run_eagerly": True},
    }
    with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
        json.dump(config, file)
    words = mpirun + exports({"TNG_LOG_LEVEL": "2"}) + [npumesh, "export", package]
    words += ["--config", f"{folder}/config.json"]
    said = run(words + ["--name", "typed"])
    line = "debug.run_eagerly has no effect on an export"
    expect(said.count(line) == ranks, f"one warning a rank:\n{said}")
    check_json(f"{folder}/configured")
    for rank in range(ranks):
        with open(f"{folder}/inside/decoder_rank{rank}.air", "rb") as one:
            with open(f"{folder}/configured/typed{rank}.air", "rb") as two:
                expect(one.read() == two.read(), "the name changes the graph")
    said = run(words + ["-o", "export.export_name=a/"], code=3)
    expect("export_name \"\" is no file name" in said, said)


def refusals(npumesh, mpirun, folder, package):
    os.symlink(f"{folder}/inside", f"{folder}/link")
    words = run(mpirun + [npumesh, "export", package, "--path", f"{folder}/link"], code=3)
    expect(words.count("npumesh export: rank 0 of") == 1, f"one line for all ranks:\n{words}")
    expect("should not be a symbolic link" in words, words)
    run([npumesh, "export", f"{folder}/absent"], code=3)
    run([npumesh, "export", package, "--weight-limit", "much"], code=2)
    run([npumesh, "validate", f"{folder}/absent"], code=3)
    os.truncate(f"{package}/rank_1/layer0_wq", 10)
    words = run([npumesh, "validate", package], code=1)
    expect("rank_1/layer0_wq" in words, words)
    words = run(mpirun + [npumesh, "run", package], code=3)
    expect("rank_1/layer0_wq" in words, words)


if __name__ == "__main__":
    main()
