#!/usr/bin/env python3
"""Random graphs, compiled by `npumesh atc` and executed by a program over aclmdl, against `npumesh run`.

    offline_models.py NPUMESH EXECUTE_MODEL FUZZ_ENGINE ONNX_TESTS [--first N] [--air N] [--onnx N] [--gears N] [--damage N]

The outputs are the same bytes: synchronous, on a stream, and loaded from memory. --damage N: so many damaged
offline models have to be refused with one line and exit code 3, and by the program with a code.

Exit code 77 (skipped) without numpy.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile

try:
    import numpy
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def call(*words, expect=0, environment=None):
    ran = subprocess.run(words, capture_output=True, text=True, errors="replace",
                         env={**os.environ, **(environment or {})})
    if ran.returncode != expect:
        raise SystemExit(f"{' '.join(map(str, words))}: {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran


def payload(path):
    """The bytes of an array, behind its header."""
    content = open(path, "rb").read()
    return content[10 + int.from_bytes(content[8:10], "little"):]


class Case:
    def __init__(self, tools, folder, graph):
        self.tools, self.folder, self.graph = tools, folder, graph
        self.model = os.path.join(folder, "case")
        self.inputs = os.path.join(folder, "inputs")
        os.makedirs(self.inputs, exist_ok=True)

    def compile(self, *flags):
        call(self.tools.npumesh, "atc", "--model", self.graph, "--output", self.model, *flags)

    def expected(self):
        """By output; None: `run` refuses the case, too."""
        outputs = os.path.join(self.folder, "run")
        ran = subprocess.run([self.tools.npumesh, "run", self.graph, "--inputs", self.inputs, "--outputs", outputs],
                             capture_output=True, text=True)
        if ran.returncode != 0:
            return None
        folder = os.path.join(outputs, "rank_0")
        count = len(os.listdir(folder)) if os.path.isdir(folder) else 0
        return [payload(os.path.join(folder, f"{i}.npy")) for i in range(count)]

    def executed(self, *flags):
        outputs = os.path.join(self.folder, "executed" + "".join(flags))
        os.makedirs(outputs)
        call(self.tools.execute, self.model + ".om", self.inputs, outputs, *flags)
        return [open(os.path.join(outputs, f"{i}.bin"), "rb").read() for i in range(len(os.listdir(outputs)) // 2)]

    def check(self, name, ways, compile_flags=()):
        expected = self.expected()
        if expected is None:
            return False
        self.compile(*compile_flags)
        for flags in ways:
            seen = self.executed(*flags)
            if seen != expected:
                which = [i for i, (a, b) in enumerate(zip(expected, seen)) if a != b] or "their number"
                raise SystemExit(f"{name} {' '.join(flags)}: outputs {which} differ; kept in {keep(self.folder)}")
        return True


def keep(folder):
    kept = tempfile.mkdtemp(prefix="npumesh_offline_")
    subprocess.run(["cp", "-r", folder, kept], check=True)
    return kept


WAYS = [(), ("--async",), ("--memory",)]


def air_cases(tools, folder):
    call(tools.fuzz_engine, f"--first={tools.first}", f"--seeds={tools.air}", f"--write={folder}",
         "--gtest_filter=*WritesItsCases*")
    for seed in range(tools.first, tools.first + tools.air):
        case = Case(tools, os.path.join(folder, f"seed{seed}"), os.path.join(folder, f"seed{seed}", "case.air"))
        position = 0
        while os.path.exists(fed := os.path.join(case.folder, f"step0_input{position}.npy")):
            os.rename(fed, os.path.join(case.inputs, f"{position}.npy"))
            position += 1
        yield f"AIR seed {seed}", case


def onnx_cases(tools, folder):
    sys.path.insert(0, tools.onnx_tests)
    try:
        import onnx
        from random_models import RandomModel
        from random_scope import stored
    except ImportError as missing:
        print(f"without ONNX: {missing}")
        return
    except SystemExit:
        print("without ONNX: Debian's python3-onnx is missing")
        return
    for seed in range(tools.first, tools.first + tools.onnx):
        drawn = RandomModel(seed)
        case = Case(tools, os.path.join(folder, f"onnx{seed}"), os.path.join(folder, f"onnx{seed}", "case.onnx"))
        onnx.save(drawn.model, case.graph)
        fixed = {tensor.name for tensor in drawn.defaults}
        fed = [value for value in drawn.inputs if value.name not in fixed]
        for i, value in enumerate(fed):
            array = stored(drawn.sets[-1][0][value.name], value.dtype)
            numpy.save(os.path.join(case.inputs, f"{i}.npy"), array)
        yield f"ONNX seed {seed}", case


def dims_gears(drawn, fed):
    """--dynamic_dims of a drawn model with open dimensions, of its two sets of sizes; None: it has one."""
    if len(drawn.sets) < 2 or not drawn.open:
        return None
    gears = [[str(given[value.name].shape[axis]) for value in fed for axis in range(value.rank)
              if (value.name, axis) in drawn.open] for given, _ in drawn.sets]
    if gears[0] == gears[1] or any(size == "0" for gear in gears for size in gear):
        return None
    return ";".join(",".join(gear) for gear in gears)


def network(dice, folder, gears, image):
    """A small network of images, open in its batch or in height and width; fed with one of the gears."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    numbers = numpy.random.RandomState(dice.randrange(1 << 30))
    channels, filters, classes = dice.randrange(1, 5), dice.randrange(1, 9), dice.randrange(1, 7)
    sizes = [dice.randrange(4, 12), dice.randrange(4, 12)]
    shape = [1, channels, None, None] if image else [None, channels, *sizes]
    weights = [numpy_helper.from_array(numbers.standard_normal(size).astype("float32"), name) for name, size in
               (("filter", (filters, channels, 3, 3)), ("matrix", (filters, classes)), ("bias", (classes,)))]
    nodes = [helper.make_node("Conv", ["x", "filter"], ["c"], pads=[1, 1, 1, 1]),
             helper.make_node(dice.choice(["Relu", "Sigmoid", "Tanh"]), ["c"], ["r"]),
             helper.make_node("GlobalAveragePool", ["r"], ["g"]), helper.make_node("Flatten", ["g"], ["f"]),
             helper.make_node("MatMul", ["f", "matrix"], ["m"]), helper.make_node("Add", ["m", "bias"], ["y"])]
    graph = helper.make_graph(nodes, "network", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "r")],
                              weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 7
    os.makedirs(folder)
    onnx.save(model, os.path.join(folder, "case.onnx"))
    chosen = dice.choice(gears)
    fed = [1, channels, *chosen] if image else [chosen[0], channels, *sizes]
    return [str(size) for size in chosen], numbers.standard_normal(fed).astype("float32")


def gear_cases(tools, folder):
    """Models with gears, the flags that compile them, and those that choose one."""
    sys.path.insert(0, tools.onnx_tests)
    try:
        import onnx
        from random_models import RandomModel
        from random_scope import stored
    except (ImportError, SystemExit):
        return
    dice = random.Random(tools.first)
    seed, made = 500000 + tools.first, 0
    while made < tools.gears:
        seed += 1
        place = os.path.join(folder, f"gears{seed}")
        if made % 3 == 0:
            drawn = RandomModel(seed)
            fixed = {tensor.name for tensor in drawn.defaults}
            fed = [value for value in drawn.inputs if value.name not in fixed]
            gears = dims_gears(drawn, fed)
            if gears is None:
                continue
            os.makedirs(place)
            onnx.save(drawn.model, os.path.join(place, "case.onnx"))
            given = dice.choice(drawn.sets)[0]
            arrays = [stored(given[value.name], value.dtype) for value in fed]
            flags, choice = ["--dynamic_dims", gears], ["--dims"]
        else:
            image = made % 3 == 2
            count = dice.randrange(2, 5)
            gears = [[size, dice.randrange(3, 20)] if image else [size] for size in dice.sample(range(1, 9), count)]
            chosen, array = network(dice, place, gears, image)
            arrays = [array]
            text = ";".join(",".join(map(str, gear)) for gear in gears)
            flags = ["--dynamic_image_size", text] if image else ["--dynamic_batch_size", text.replace(";", ",")]
            choice = ["--image" if image else "--batch", *chosen]
        made += 1
        case = Case(tools, place, os.path.join(place, "case.onnx"))
        for i, array in enumerate(arrays):
            numpy.save(os.path.join(case.inputs, f"{i}.npy"), array)
        yield f"gears, seed {seed}", case, flags, choice


def damage(tools, folder, models):
    """One bit, some bytes, a cut, or more bytes: each an error of one line."""
    dice = random.Random(tools.first)
    damaged = os.path.join(folder, "damaged.om")
    for number in range(tools.damage):
        content = bytearray(open(dice.choice(models), "rb").read())
        kind = dice.randrange(4)
        at = dice.randrange(len(content))
        if kind == 0:
            content[at] ^= 1 << dice.randrange(8)
        elif kind == 1:
            before = bytes(content[at:at + 8])
            content[at:at + 8] = bytes(dice.randrange(256) for _ in before)
            if bytes(content[at:at + 8]) == before:
                continue
        elif kind == 2:
            del content[at:]
        else:
            content += bytes(dice.randrange(1, 100))
        open(damaged, "wb").write(content)
        ran = subprocess.run([tools.npumesh, "atc", "--mode=6", "--om", damaged] if number % 2 else
                             [tools.npumesh, "run", damaged], capture_output=True, text=True, errors="replace")
        harmless = number % 2 and ran.returncode == 0  # --mode=6 does not read the weights
        if not harmless and (ran.returncode != 3 or len(ran.stderr.splitlines()) != 1):
            raise SystemExit(f"damage {number} of kind {kind} at {at}: {ran.returncode}\n{ran.stderr}; kept in {keep(folder)}")
        if number % 10 == 0:
            ran = subprocess.run([tools.execute, damaged, folder, folder], capture_output=True, text=True,
                                 errors="replace")
            if ran.returncode != 1:
                raise SystemExit(f"damage {number} of kind {kind} at {at}: the program ends with {ran.returncode}")


def main():
    parser = argparse.ArgumentParser()
    for name in ("npumesh", "execute", "fuzz_engine", "onnx_tests"):
        parser.add_argument(name)
    for name, default in (("first", 1), ("air", 12), ("onnx", 8), ("gears", 6), ("damage", 40)):
        parser.add_argument(f"--{name}", type=int, default=default)
    tools = parser.parse_args()
    compared, models = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for source in (air_cases, onnx_cases):
            for number, (name, case) in enumerate(source(tools, folder)):
                if not case.check(name, WAYS[:1] + [WAYS[1 + number % 2]]):
                    continue
                compared += 1
                models.append(case.model + ".om")
        for number, (name, case, flags, choice) in enumerate(gear_cases(tools, folder)):
            way = [*choice, "--async"] if number % 2 else choice
            compared += case.check(name, [tuple(way)], flags)
        if compared == 0:
            raise SystemExit("nothing was compared")
        damage(tools, folder, models)
    print(f"{compared} graphs have the same outputs; {tools.damage} damaged models are refused")


if __name__ == "__main__":
    main()
