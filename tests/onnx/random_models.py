#!/usr/bin/env python3
"""Random ONNX models against an oracle in numpy, and damaged ones.

    random_models.py ONNX_CASES [--first N] [--seeds N] [--mutations N] [--npumesh FILE] [--keep FOLDER]

A seed gives a graph of 3 to 20 nodes in one of the operator sets 7 to 18, with open dimensions, broadcasts, absent
operands, initialisers, Constant nodes, If, Loop and local functions. The program of onnx_cases.cc imports and
runs it; a second set of inputs has other sizes where dimensions are open. What each node computes is written
by hand in random_operators.py; nothing of onnx is asked.

--mutations N: so many damaged models (nodes dropped, doubled, renamed and led elsewhere, wrong types, missing
inputs, cycles) have to end in a run or in an error of one line. With --npumesh some are also given to the
command, which must end with 0 or 3.

Exit code 77 (skipped) without Debian's python3-onnx.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnx
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing} (Debian: python3-onnx)")
    sys.exit(77)

from random_operators import grow
from random_scope import KINDS, Scope, Unfit, Value, rounded, stored

OPERATOR_SETS = range(7, 19)
FORMATS = {7: 3, 8: 3, 9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8}
ATOL, RTOL = 1e-4, 1e-3  # onnx_cases is given the first; the second is its own


class RandomModel:
    """A model, and sets of inputs with the outputs that belong to them."""

    def __init__(self, seed):
        for attempt in range(100):
            self.random = random.Random(f"{seed}.{attempt}")
            try:
                self._make()
                return
            except Unfit:
                continue
            except onnx.checker.ValidationError as invalid:
                raise SystemExit(f"seed {seed}: the generator wrote no valid model: {invalid}") from invalid
        raise SystemExit(f"seed {seed}: no model in a hundred attempts")

    def _make(self):
        self.opset = self.random.choice(OPERATOR_SETS)
        self.scope = Scope(self.random, self.opset)
        self._make_inputs()
        nodes = self.random.randrange(3, 21)
        grow(self.scope, nodes)
        self._choose_outputs()
        self._choose_sizes()
        self.sets = [self._evaluate(self.given)]
        self._check_condition()
        if self.open:
            self._add_other_sizes()
        self._write()

    def _make_inputs(self):
        self.given, self.inputs, self.defaults = {}, [], []
        for number in range(self.random.randrange(1, 4)):
            dtype = self.random.choices(["float32", "int64", "int32", "bool"], [6, 1, 1, 1])[0]
            if number == 0:
                dtype = "float32"
            shape = [self.random.choice([1, 2, 3, 4, 4, 6]) for _ in range(self.random.choice([0, 1, 2, 2, 3, 4]))]
            array = rounded(self.scope.numbers(shape, dtype), dtype)
            value = Value(self.scope.name("input"), array, dtype, exact=True)
            self.scope.values.append(value)
            self.inputs.append(value)
            self.given[value.name] = array
            if number > 0 and self.random.random() < 0.15:
                self.defaults.append(numpy_helper.from_array(stored(array, dtype), value.name))

    def _choose_outputs(self):
        read = {name for step in self.scope.steps for name in step.operands}
        made = [v for v in self.scope.values if not v.constant and v not in self.inputs]
        ends = [v for v in made if v.name not in read]
        if not ends:
            raise Unfit
        extra = self.random.sample(made, min(len(made), self.random.randrange(2)))
        self.outputs = list(dict.fromkeys(self.random.sample(ends, min(len(ends), 5)) + extra))

    def _choose_sizes(self):
        """Which dimensions of inputs are open, and how they are written."""
        self.open, self.written = set(), {}
        fixed = {tensor.name for tensor in self.defaults}
        loose = self.random.random() < 0.6
        for value in self.inputs:
            dims = list(value.shape)
            for axis in range(len(dims)):
                if loose and value.name not in fixed and self.random.random() < 0.5:
                    self.open.add((value.name, axis))
                    dims[axis] = self.random.choice([None, f"{value.name}_{axis}"])
            self.written[value.name] = dims

    def _evaluate(self, given, noise=None):
        env = dict(given)
        with numpy.errstate(all="ignore"):
            self.scope.run(env, noise)
        expected = {value.name: env[value.name] for value in self.outputs}
        for value in self.outputs:
            if value.dtype == "float32" and not numpy.isfinite(expected[value.name]).all():
                raise Unfit
        return given, expected

    def _check_condition(self):
        """Last bits must not matter: the model with other roundings gives nearly the same."""
        noise = numpy.random.RandomState(1)
        for _ in range(2):
            other = self._evaluate(self.given, noise)[1]
            for name, array in self.sets[0][1].items():
                seen = other[name]
                if seen.shape != array.shape:
                    raise Unfit
                if array.dtype == float and (abs(seen - array) > 0.1 * (ATOL + RTOL * abs(array))).any():
                    raise Unfit
                if array.dtype != float and (seen != array).any():
                    raise Unfit

    def _add_other_sizes(self):
        """Inputs whose open dimensions have another size, if the graph takes them."""
        sizes = {}
        given = {}
        for value in self.inputs:
            shape = [sizes.setdefault(size, self.random.randrange(1, 7)) if (value.name, axis) in self.open else size
                     for axis, size in enumerate(value.shape)]
            given[value.name] = rounded(self.scope.numbers(shape, value.dtype), value.dtype)
        given.update({tensor.name: self.given[tensor.name] for tensor in self.defaults})
        if all(given[name].shape == self.given[name].shape for name in given):
            return
        try:
            inexact = [step for step in self.scope.steps if step.exact]
            for step in inexact:
                step.exact = True
            self.sets.append(self._evaluate(given))
        except (Unfit, ValueError, IndexError, TypeError, numpy.linalg.LinAlgError):
            return

    def _write(self):
        outputs = [self.scope.info(value, [None] * value.rank) for value in self.outputs]
        inputs = [self.scope.info(value, self.written[value.name]) for value in self.inputs]
        initialisers = self.scope.initialisers + self.defaults
        if FORMATS[self.opset] < 4:  # then every initialiser is an input as well
            inputs += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in self.scope.initialisers]
        graph = helper.make_graph(self.scope.nodes, "random", inputs, outputs, initialisers)
        imports = [helper.make_opsetid("", self.opset)]
        if self.scope.functions:
            imports.append(helper.make_opsetid("local", 1))
        self.model = helper.make_model(graph, opset_imports=imports, functions=self.scope.functions)
        self.model.ir_version = max(FORMATS[self.opset], 8 if self.scope.functions else 0)
        if self.opset <= onnx.defs.onnx_opset_version():
            onnx.checker.check_model(self.model)

    def save(self, folder, model=None):
        os.makedirs(folder)
        with open(os.path.join(folder, "model.onnx"), "wb") as file:
            file.write((model or self.model).SerializeToString())
        fixed = {tensor.name for tensor in self.defaults}
        for number, (given, expected) in enumerate(self.sets):
            place = os.path.join(folder, f"test_data_set_{number}")
            os.makedirs(place)
            for index, value in enumerate(self.inputs):
                if value.name not in fixed:
                    write_tensor(f"{place}/input_{index}.pb", given[value.name], value.dtype)
            for index, value in enumerate(self.outputs):
                write_tensor(f"{place}/output_{index}.pb", expected[value.name], value.dtype)


def write_tensor(path, array, dtype):
    with open(path, "wb") as file:
        file.write(numpy_helper.from_array(stored(array, dtype)).SerializeToString())


# ---- damage ----

def all_graphs(graph):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from all_graphs(attribute.g)


def damage(model, rng):
    """A copy of a model with one to three things wrong."""
    broken = onnx.ModelProto()
    broken.CopyFrom(model)
    for _ in range(rng.randrange(1, 4)):
        graph = rng.choice(list(all_graphs(broken.graph)))
        if graph.node:
            rng.choice(DAMAGES)(broken, graph, rng.choice(graph.node), rng)
    return broken


def endless(model):
    """A loop that is told to run for years is right to do so."""
    counts = {node.input[0] for graph in all_graphs(model.graph) for node in graph.node
              if node.op_type == "Loop" and node.input}
    for graph in all_graphs(model.graph):
        for tensor in graph.initializer:
            if tensor.name in counts and tensor.data_type == onnx.TensorProto.INT64:
                try:
                    values = numpy_helper.to_array(tensor)
                except (ValueError, TypeError):  # a damaged tensor
                    continue
                if (values > 1000).any():
                    return True
    return False


def drop(_, graph, node, __):
    graph.node.remove(node)


def double(_, graph, node, rng):
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    graph.node.insert(rng.randrange(len(graph.node) + 1), copy)


def move(_, graph, node, rng):
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    graph.node.remove(node)
    graph.node.insert(rng.randrange(len(graph.node) + 1), copy)


def rename(model, graph, node, rng):
    kinds = sorted({n.op_type for g in all_graphs(model.graph) for n in g.node})
    node.op_type = rng.choice(kinds + ["NoSuchOperator", "", "Softmax", "Loop", "If", "Scan"])


def retarget(_, graph, node, rng):
    """An operand leads elsewhere, also to what comes later: cycles."""
    names = [name for n in graph.node for name in n.output] + [v.name for v in graph.input] + ["", "nothing"]
    if node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(names)


def lose_operand(_, __, node, rng):
    if node.input:
        del node.input[rng.randrange(len(node.input))]


def add_operand(_, graph, node, rng):
    names = [name for n in graph.node for name in n.output] + [""]
    node.input.append(rng.choice(names))


def rename_result(_, graph, node, rng):
    if node.output:
        node.output[rng.randrange(len(node.output))] = rng.choice(["", "other", graph.node[0].output[0]
                                                                  if graph.node[0].output else "x"])


def wrong_type(_, graph, __, rng):
    infos = [info for info in list(graph.input) + list(graph.output)]
    if infos:
        rng.choice(infos).type.tensor_type.elem_type = rng.randrange(-1, 25)


def wrong_shape(_, graph, __, rng):
    if graph.input:
        shape = rng.choice(graph.input).type.tensor_type.shape
        if shape.dim:
            rng.choice(shape.dim).dim_value = rng.choice([-5, 0, 1, 7, 2**40, 2**62])


def wrong_attribute(_, __, node, rng):
    if not node.attribute:
        return
    attribute = rng.choice(node.attribute)
    way = rng.randrange(6)
    if way == 0:
        node.attribute.remove(attribute)
    elif way == 1:
        attribute.type = rng.randrange(0, 15)
    elif way == 2:
        attribute.i = rng.choice([-2**63, -7, -1, 0, 3, 100, 2**31, 2**63 - 1])
    elif way == 3 and attribute.ints:
        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice([-2**63, -3, -1, 0, 9, 2**40, 2**63 - 1])
    elif way == 4 and attribute.ints:
        attribute.ints.append(rng.choice([-1, 0, 1]))
    else:
        attribute.name = rng.choice(["axis", "axes", "to", "perm", "body", "nothing", ""])


def wrong_constant(_, graph, __, rng):
    if not graph.initializer:
        return
    tensor = rng.choice(graph.initializer)
    way = rng.randrange(5)
    if way == 0:
        graph.initializer.remove(tensor)
    elif way == 1:
        tensor.data_type = rng.randrange(-1, 25)
    elif way == 2:
        tensor.dims.append(rng.choice([-1, 0, 2, 2**40]))
    elif way == 3 and tensor.raw_data:
        tensor.raw_data = tensor.raw_data[:rng.randrange(len(tensor.raw_data))]
    elif tensor.raw_data:  # other values: axes, shapes, indices
        size = len(tensor.raw_data)
        values = rng.choice([b"\xff" * size, b"\x00" * size, bytes(rng.randrange(256) for _ in range(size))])
        tensor.raw_data = values


def lose_input(_, graph, __, rng):
    if graph.input:
        graph.input.remove(rng.choice(graph.input))


def lose_output(_, graph, __, rng):
    if graph.output:
        way = rng.randrange(3)
        if way == 0:
            graph.output.remove(rng.choice(graph.output))
        elif way == 1:
            graph.output.append(rng.choice(graph.output))
        else:
            rng.choice(graph.output).name = rng.choice(["nothing", "", graph.input[0].name if graph.input else "x"])


def own_version(model, _, __, rng):
    if model.opset_import:
        rng.choice(model.opset_import).version = rng.choice([-1, 0, 1, 5, 7, 13, 17, 99, 2**40])


def recursive_function(model, _, node, __):
    """A function that calls itself."""
    if model.functions:
        copy = model.functions[0].node.add()
        copy.op_type, copy.domain = model.functions[0].name, model.functions[0].domain
        copy.input.extend(["x", "y"])
        copy.output.append("again")
    else:
        node.domain = "local"


DAMAGES = [drop, double, move, rename, retarget, retarget, lose_operand, add_operand, rename_result, wrong_type,
           wrong_shape, wrong_attribute, wrong_attribute, wrong_constant, wrong_constant, lose_input, lose_output,
           own_version, recursive_function]


# ---- running ----

def verdicts(program, folder, *words):
    """Why cases fail, by name; and how many there are."""
    done = subprocess.run([program, folder, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=True)
    failed, count = {}, 0
    for line in done.stdout.splitlines():
        verdict, _, rest = line.partition(" ")
        if verdict == "FAIL":
            name, _, why = rest.partition(": ")
            failed[name] = why
        count += verdict in ("FAIL", "pass")
    return failed, count


def try_models(options, folder):
    kinds, sets, opsets = {}, 0, set()
    for seed in range(options.first, options.first + options.seeds):
        model = RandomModel(seed)
        model.save(os.path.join(folder, f"{seed:06}"))
        opsets.add(model.opset)
        sets += len(model.sets)
        for kind in model.scope.kinds:
            kinds[kind] = kinds.get(kind, 0) + 1
    failed, count = verdicts(options.program, folder, "--atol", str(ATOL))
    print(f"{count} models of operator sets {min(opsets)} to {max(opsets)} with {sum(kinds.values())} nodes of "
          f"{len(kinds)} kinds, {sets} sets of inputs: {len(failed)} fail")
    for name, why in failed.items():
        print(f"FAIL seed {int(name)}: {why}")
    missing = options.seeds - count
    if missing:
        print(f"FAIL {missing} models were not tried")
    return len(failed) + missing


def try_damaged(options, folder):
    rng = random.Random(options.first)
    wrong = 0
    models = [RandomModel(options.first + i) for i in range(max(1, min(100, options.mutations // 10)))]
    for number in range(options.mutations):
        model = models[number % len(models)]
        damaged = damage(model.model, rng)
        while endless(damaged):
            damaged = damage(model.model, rng)
        model.save(os.path.join(folder, f"{number:06}"), damaged)
    failed, count = verdicts(options.program, folder, "--damaged")
    print(f"{count} damaged models: {len(failed)} end in no run and no error of one line each")
    for name, why in failed.items():
        print(f"FAIL damaged {int(name)}: {why}")
    wrong += len(failed) + options.mutations - count
    for number in range(0, options.mutations if options.npumesh else 0, 50):
        path = os.path.join(folder, f"{number:06}", "model.onnx")
        done = subprocess.run([options.npumesh, "run", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=1200, check=False)
        lines = sum(": warning: " not in line for line in done.stderr.splitlines())
        if done.returncode not in (0, 3) or (done.returncode == 3 and lines != 1):
            print(f"FAIL npumesh run {path} ended with {done.returncode}: {done.stderr}")
            wrong += 1
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--mutations", type=int, default=0)
    parser.add_argument("--npumesh")
    parser.add_argument("--keep", help="folder for the models, which must not exist")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="npumesh-onnx-") as scratch:
        folder = options.keep or scratch
        wrong = 0
        if options.seeds:
            os.makedirs(os.path.join(folder, "whole"))
            wrong += try_models(options, os.path.join(folder, "whole"))
        if options.mutations:
            os.makedirs(os.path.join(folder, "damaged"))
            wrong += try_damaged(options, os.path.join(folder, "damaged"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
