#!/usr/bin/env python3
"""The flags of `npumesh atc`: what they make of a model, and one line with the vendor's code for what is wrong.

    atc_flags.py NPUMESH EXECUTE_OM LIBRARY

The model is npumesh's sample "onnx": x is float32[-1,16].
"""

import json
import os
import subprocess
import sys
import tempfile

NPUMESH, EXECUTE_OM, LIBRARY = sys.argv[1:4]
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

# Flags, exit code, words of the one line.
WRONG = [
    (["--input_shape", "x:4"], 3, ['E10002 --input_shape gives "x" 1 dimensions; the graph has']),
    (["--input_shape", "x:4,17"], 3, ["E10002", "on axis 1; the graph has 16 there"]),
    (["--input_shape", "z:4,16"], 3, ['E10016 --input_shape names "z"; the graph has the inputs x']),
    (["--input_shape", "4,16"], 3, ["E10002", "expected NAME:DIM,DIM"]),
    (["--input_shape", "x:4.5,16"], 3, ['E10002 --input_shape has the dimension "4.5"']),
    (["--input_shape_range", "x:5~2,16"], 3, ["E10002", "LOW~HIGH"]),
    (["--dynamic_batch_size", "1,2", "--dynamic_dims", "1;2"], 3, ["E10009 --dynamic_batch_size excludes --dynamic_dims"]),
    (["--dynamic_batch_size", "4"], 3, ["E10035", "has 1 choices; expected at least 2"]),
    (["--dynamic_batch_size", ",".join(map(str, range(1, 102)))], 3, ["E10036", "at most 100"]),
    (["--dynamic_batch_size", "1,x"], 3, ["E10038"]),
    (["--dynamic_batch_size", "1,0"], 3, ["E10038"]),
    (["--dynamic_batch_size", "2,2"], 3, ["E10039", "has 2 twice"]),
    (["--dynamic_batch_size", "1,2", "--input_shape", "x:4,16"], 3, ["E10031"]),
    (["--dynamic_image_size", "1,2;3,4"], 3, ["E10019"]),
    (["--dynamic_image_size", "1;2"], 3, ["E10045", "expected HEIGHT,WIDTH"]),
    (["--dynamic_dims", "1,2;3,4"], 3, ["E10045", "the inputs have 1 open dimensions"]),
    (["--dynamic_dims", "1,2;3"], 3, ["E10037"]),
    (["--framework", "0"], 3, ["E10003 --framework is 0, Caffe"]),
    (["--framework", "3"], 3, ["E10003 --framework is 3, TensorFlow"]),
    (["--framework", "7"], 3, ["E10003 --framework is 7; expected 1 (AIR) or 5 (ONNX)"]),
    (["--framework", "1"], 3, ["model.onnx"]),
    (["--out_nodes", "nothing:0"], 3, ['E10016 --out_nodes names "nothing:0"']),
    (["--out_nodes", "x"], 3, ["E10003 --out_nodes", "expected NODE:PORT"]),
    (["--input_fp16_nodes", "nothing"], 3, ['E10016 --input_fp16_nodes names "nothing"']),
    (["--output_type", "FP17"], 3, ['E10003 --output_type has "FP17"']),
    (["--output_type", "x:0:FP16"], 3, ['E10016 --output_type names "x:0", which is no output']),
    (["--precision_mode", "exact"], 3, ["precision_mode"]),
    (["--precision_mode_v2", "exact"], 3, ["E10003 --precision_mode_v2"]),
    (["--precision_mode", "force_fp16", "--precision_mode_v2", "fp16"], 3, ["E10009 --precision_mode excludes"]),
    (["--external_weight", "7"], 3, ["E10003 --external_weight"]),
    (["--insert_op_conf", "a.cfg"], 2, ["E10003 --insert_op_conf", "AIPP"]),
    (["--weight", "a"], 2, ["E10003 --weight", "Caffe"]),
    (["--singleop", "a.json"], 3, ["E10009 --singleop excludes --model"]),
    (["--input_format", "NCWH"], 2, ["--input_format"]),
    (["--precision_mod", "x"], 2, ["unknown option --precision_mod; did you mean --precision_mode?"]),
    (["--mode", "9"], 3, ["E10003 --mode is 9"]),
    (["--mode", "1"], 3, ["E10007 --om is required"]),
]


def run(*words):
    return subprocess.run([NPUMESH, *words], capture_output=True, text=True)


def made(model, output, *flags):
    ran = run("atc", "--model", model, "--output", output, *flags)
    assert ran.returncode == 0, (flags, ran.stderr)
    assert ran.stdout.splitlines()[0] == f"{output}.om: for npumesh only; it has no kernels, and no NPU takes it"
    assert "ATC run success" in ran.stdout.splitlines(), ran.stdout
    return ran


def facts_of(file):
    ran = run("atc", "--mode=6", "--om", file, "--report-json")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def check_refusals(model, folder):
    for flags, code, words in WRONG:
        output = os.path.join(folder, "wrong")
        ran = run("atc", "--model", model, "--output", output, *flags)
        assert ran.returncode == code, (flags, ran.returncode, ran.stderr)
        assert len(ran.stderr.splitlines()) == 1, (flags, ran.stderr)
        for word in words:
            assert word in ran.stderr, (flags, word, ran.stderr)
        assert not os.path.exists(output + ".om"), flags
    for words, text in ((["--output", "o"], "E10007 --model is required"), (["--model", model], "E10007 --output")):
        ran = run("atc", *words)
        assert ran.returncode == 3 and text in ran.stderr, ran.stderr
    ran = run("atc", "--model", model, "--output", os.path.join(folder, "absent", "sub", "x"))
    assert ran.returncode == 0, "folders that are missing are made"


def check_models(model, folder):
    at = lambda name: os.path.join(folder, name)  # noqa: E731
    ran = made(model, at("plain"), "--soc_version=Ascend910B1", "--buffer_optimize=off_optimize", "--log=error")
    assert "without effect, because no kernels are compiled: --buffer_optimize, --log" in ran.stdout, ran.stdout
    assert facts_of(at("plain.om"))["soc_version"] == "Ascend910B1"
    made(model, at("static"), "--input_shape", "x:4,16")
    assert facts_of(at("static.om"))["outputs"][0][0]["dims"][0] == 4
    made(model, at("range"), "--input_shape_range", "x:1~8,16")
    assert facts_of(at("range.om"))["outputs"] == []
    made(model, at("gears"), "--dynamic_batch_size", "1,3")
    assert [types[0]["dims"][0] for types in facts_of(at("gears.om"))["outputs"]] == [1, 3]
    made(model, at("half"), "--input_fp16_nodes", "x", "--output_type", "FP16", "--input_shape", "x:4,16")
    assert facts_of(at("half.om"))["outputs"][0][0]["dtype"] == 1
    shown = run("graph", at("half.om")).stdout
    assert "float16[4,16]" in shown, shown
    made(model, at("precise"), "--precision_mode_v2=fp16", "--input_shape", "x:4,16")
    assert "Cast" in run("graph", at("precise.om")).stdout
    check_kept_types(model, folder)
    made(model, at("beside"), "--external_weight=1", "--input_shape", "x:4,16")
    seen = [run("run", file, "--seed", "3").stdout.splitlines()[1] for file in (at("static.om"), at("beside.om"))]
    assert seen[0] == seen[1] and "output 0" in seen[0], seen
    ran = run("atc", "--mode=1", "--om", at("static.om"), "--json", at("static.json"))
    assert ran.returncode == 0, ran.stderr
    with open(at("static.json"), encoding="utf-8") as file:
        assert json.load(file)["graph"][0]["op"]
    ran = subprocess.run([EXECUTE_OM, at("static.om")], capture_output=True, text=True)
    elements = 1
    for dim in facts_of(at("static.om"))["outputs"][0][0]["dims"]:
        elements *= dim
    assert ran.returncode == 0 and f": {elements} numbers, the first is " in ran.stdout, ran.stdout + ran.stderr
    example = os.path.join(SOURCE, "examples", "execute_om.py")
    environment = {**os.environ, "PYTHONPATH": os.path.join(SOURCE, "python"), "NPUMESH_ACL_LIBRARY": LIBRARY}
    in_python = subprocess.run([sys.executable, example, at("static.om")], capture_output=True, text=True,
                               env=environment)
    assert in_python.returncode == 0 and in_python.stdout == ran.stdout, in_python.stdout + in_python.stderr
    in_python = subprocess.run([sys.executable, example, at("absent.om")], capture_output=True, text=True,
                               env=environment)
    assert in_python.returncode == 1 and "absent.om" in in_python.stderr, in_python.stderr
    # By the name that scripts call.
    os.symlink(NPUMESH, at("atc"))
    ran = subprocess.run([at("atc"), "--framework=5", f"--model={model}", f"--output={at('linked')}"],
                         capture_output=True, text=True)
    assert ran.returncode == 0 and os.path.exists(at("linked.om")), ran.stderr


def check_kept_types(model, folder):
    """--keep_dtype: all nodes by name, or all of their types, leave nothing to cast; one leaves less than none."""
    at = lambda name: os.path.join(folder, name)  # noqa: E731

    def casts(name, lines):
        with open(at("keep.txt"), "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))
        made(model, at(name), "--precision_mode=force_fp16", "--input_shape", "x:4,16", "--keep_dtype", at("keep.txt"))
        assert run("atc", "--mode=1", "--om", at(name + ".om"), "--json", at("kept.json")).returncode == 0
        with open(at("kept.json"), encoding="utf-8") as file:
            ops = json.load(file)["graph"][0]["op"]
        return [op for op in ops if op["type"] == "Cast"], ops

    made(model, at("none"), "--input_shape", "x:4,16")
    assert run("atc", "--mode=1", "--om", at("none.om"), "--json", at("kept.json")).returncode == 0
    with open(at("kept.json"), encoding="utf-8") as file:
        nodes = [op for op in json.load(file)["graph"][0]["op"] if op["type"] not in ("Data", "Const", "NetOutput")]
    lowered, _ = casts("lowered", [])
    assert lowered, "force_fp16 casts something"
    assert casts("by_name", [op["name"] for op in nodes])[0] == []
    assert casts("by_type", [f"OpType::{op['type']}" for op in nodes])[0] == []
    one = next(op for op in nodes if "MatMul" in op["type"])
    _, ops = casts("one", [one["name"]])
    fed = next(op for op in ops if op["name"] == one["name"])["input"]
    assert not any("/cast_" in name and name.startswith(one["name"]) for name in fed), fed
    with open(at("keep.txt"), "w", encoding="utf-8") as file:
        file.write("no_such_node\n")
    ran = run("atc", "--model", model, "--output", at("kept"), "--precision_mode=force_fp16", "--keep_dtype",
              at("keep.txt"))
    assert ran.returncode == 3 and 'E10016 --keep_dtype has the node "no_such_node"' in ran.stderr, ran.stderr


def check_operators(folder):
    """--singleop; what its file may say is in launch_commands_test."""
    at = lambda name: os.path.join(folder, name)  # noqa: E731

    def compile(*entries):
        with open(at("ops.json"), "w", encoding="utf-8") as file:
            json.dump(entries, file)
        return run("atc", "--singleop", at("ops.json"), "--output", at("ops"), "--soc_version=Ascend910B1")

    x = {"format": "ND", "shape": [2, 3], "type": "float16"}
    add = {"op": "Add", "input_desc": [x, x], "output_desc": [x]}
    ran = compile(add, {**add, "name": "again"})
    assert ran.returncode == 0, ran.stderr
    first = "0_Add_1_2_2_3_1_2_2_3_1_2_2_3.om"
    assert ran.stdout.splitlines() == [
        f"{at('ops')}/{first}, {at('ops')}/again.om: for npumesh only; it has no kernels, and no NPU takes it",
        "ATC run success"], ran.stdout
    assert facts_of(os.path.join(at("ops"), first))["single_operator"] is True
    assert run("run", os.path.join(at("ops"), "again.om")).returncode == 0
    for entries, words in (([{**add, "op": "Addd"}], 'operator "Addd" is not there'),
                           ([add, {**add, "input_desc": [x]}], 'input "x2" is not connected'),
                           ([{**add, "output_desc": [{**x, "shape": [3]}]}], "is declared, float16[2,3] is inferred"),
                           ([7], "E10026"), ([], "E10025")):
        for name in os.listdir(at("ops")):
            os.remove(os.path.join(at("ops"), name))
        ran = compile(*entries)
        assert ran.returncode == 3 and words in ran.stderr and "ops.json" in ran.stderr, ran.stderr
        assert os.listdir(at("ops")) == [], "nothing is written after an error"
    ran = run("atc", "--singleop", at("ops.json"))
    assert ran.returncode == 3 and "E10007 --output is required: the folder" in ran.stderr, ran.stderr


def main():
    with tempfile.TemporaryDirectory() as folder:
        assert run("samples", "onnx", "--write", os.path.join(folder, "s")).returncode == 0
        models = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names
                  if name.endswith(".onnx")]
        assert len(models) == 1, models
        check_refusals(models[0], folder)
        check_models(models[0], folder)
        check_operators(folder)
    print(f"{len(WRONG)} wrong flags are one line each; the others make the models that they say")


if __name__ == "__main__":
    main()
