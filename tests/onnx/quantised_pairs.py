#!/usr/bin/env python3
"""Operators between DequantizeLinear and QuantizeLinear, in random models, against ONNX Runtime's floats.

    quantised_pairs.py ONNX_CASES [--first N] [--count N] [--only OPERATOR] [--show N]

A seed gives an operator, its sizes, bytes with or without a sign, scales for all or for each channel, zeros that are
there or not. ONNX_CASES --serve runs the model. What hangs on single bytes must be what ONNX Runtime gives without its
optimisations, bit for bit; sums of products may be one step away, as exact sums are from those of floats. Exit code 77
(skipped) without onnxruntime.
"""

import argparse
import collections
import random
import sys

from operator_sweep import Server, attempt  # which skips without onnxruntime

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

TYPES = {"u8": (numpy.uint8, TensorProto.UINT8), "s8": (numpy.int8, TensorProto.INT8)}
EXACT = {"Add", "Mul", "Concat", "Sigmoid", "HardSwish", "LeakyRelu", "MaxPool", "Transpose", "Requantise"}


class Drawn:
    """Nodes, initialisers and inputs of one model."""

    def __init__(self, seed):
        self.random, self.numbers = random.Random(seed), numpy.random.default_rng(seed)
        self.nodes, self.constants, self.inputs, self.feeds = [], [], [], {}
        self.kind = self.random.choice(["u8", "s8"])

    def pick(self, *values):
        return self.random.choice(values)

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(numpy.asarray(array), name))
        return name

    def bytes(self, kind, *shape):
        info = numpy.iinfo(TYPES[kind][0])
        return self.numbers.integers(info.min, info.max, shape, endpoint=True).astype(TYPES[kind][0])

    def grid(self, name, kind, scale, channels=None, zero=True):
        """The names of a scale and, perhaps, a zero."""
        count = () if channels is None else (channels,)
        values = (self.numbers.uniform(0.5, 1.5, count) * scale).astype(numpy.float32)
        names = [self.constant(name + "_scale", values)]
        if zero:
            names.append(self.constant(name + "_zero", self.bytes(kind, *count)))
        return names

    def floats(self, name, kind, shape, scale, known=False, channels=None, axis=None, zero=True):
        """The name of floats that are made of bytes."""
        if known:
            self.constant(name, self.bytes(kind, *shape))
        else:
            self.inputs.append(helper.make_tensor_value_info(name, TYPES[kind][1], shape))
            self.feeds[name] = self.bytes(kind, *shape)
        attributes = {} if axis is None else {"axis": axis}
        grid = self.grid(name, kind, scale, channels, zero or kind == "s8")
        if kind == "s8" and not zero:  # what weights have
            self.constants[-1].CopyFrom(numpy_helper.from_array(
                numpy.zeros(() if channels is None else (channels,), numpy.int8), name + "_zero"))
        self.nodes.append(helper.make_node("DequantizeLinear", [name, *grid], [name + "_f"], **attributes))
        return name + "_f"

    def bias(self, name, sums, channels):
        """The name of floats made of int32 with the scales of sums."""
        scales = numpy.float32(1)
        for of in sums:
            scales = scales * numpy_helper.to_array(next(c for c in self.constants if c.name == of + "_scale"))
        self.constant(name, self.numbers.integers(-3000, 3000, channels).astype(numpy.int32))
        self.constant(name + "_scale", scales.astype(numpy.float32))
        self.constant(name + "_zero", numpy.zeros(scales.shape, numpy.int32))
        self.nodes.append(helper.make_node("DequantizeLinear", [name, name + "_scale", name + "_zero"], [name + "_f"],
                                           **({"axis": 0} if scales.ndim else {})))
        return name + "_f"

    def finish(self, floats, scale):
        grid = self.grid("y", self.kind, scale)
        self.nodes.append(helper.make_node("QuantizeLinear", [floats, *grid], ["y"]))
        output = helper.make_tensor_value_info("y", TYPES[self.kind][1], None)
        graph = helper.make_graph(self.nodes, "pairs", self.inputs, [output], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        return model


def convolution(d):
    groups = d.pick(1, 1, 2, 5)
    inputs, outputs = groups * d.pick(1, 3), groups * d.pick(1, 4)
    each = d.pick(None, outputs)
    x = d.floats("x", d.kind, [d.pick(1, 2), inputs, 7, 6], 0.02, zero=d.pick(True, False))
    w = d.floats("w", "s8", [outputs, inputs // groups, d.pick(1, 3), d.pick(1, 2)], 0.01, known=True, channels=each,
                 axis=None if each is None else 0, zero=False)
    operands = [x, w] + ([d.bias("b", ["x", "w"], outputs)] if d.pick(True, False) else [])
    d.nodes.append(helper.make_node("Conv", operands, ["c"], group=groups, pads=[d.pick(0, 1) for _ in range(4)],
                                    strides=[d.pick(1, 2), d.pick(1, 2)]))
    out = "c"
    if d.pick(True, False):
        d.nodes.append(helper.make_node("Relu", ["c"], ["r"]))
        out = "r"
    return d.finish(out, 0.05)


def product(d):
    k, n = d.pick(3, 40), d.pick(1, 17)
    a = d.floats("x", d.kind, [2, d.pick(1, 5), k], 0.02)
    known = d.pick(True, False)
    b = d.floats("w", d.pick("u8", "s8"), [k, n] if known else [2, k, n], 0.01, known=known)
    d.nodes.append(helper.make_node("MatMul", [a, b], ["c"]))
    return d.finish("c", 0.1)


def gemm(d):
    k, n, turned = d.pick(3, 40), d.pick(1, 17), d.pick(0, 1)
    each = d.pick(None, n)
    a = d.floats("x", d.kind, [d.pick(1, 5), k], 0.02)
    b = d.floats("w", "s8", [n, k] if turned else [k, n], 0.01, known=True, channels=each,
                 axis=None if each is None else 1 - turned, zero=False)
    operands = [a, b] + ([d.bias("b", ["x", "w"], n)] if d.pick(True, False) else [])
    d.nodes.append(helper.make_node("Gemm", operands, ["c"], transB=turned))
    return d.finish("c", 0.1)


def pair(op):
    def draw(d):
        shape = [d.pick(1, 3), d.pick(1, 40)]
        a, b = d.floats("a", d.kind, shape, 0.03), d.floats("b", d.kind, shape, 0.03)
        d.nodes.append(helper.make_node(op, [a, b], ["c"]))
        return d.finish("c", 0.05)
    return draw


def concat(d):
    axis, parts = d.pick(0, 1), []
    for number in range(d.pick(1, 2, 3)):
        shape = [2, 3, 4]
        shape[axis] = d.pick(1, 5)
        parts.append(d.floats(f"x{number}", d.kind, shape, 0.03))
    d.nodes.append(helper.make_node("Concat", parts, ["c"], axis=axis))
    return d.finish("c", 0.03)


def unary(op, **attributes):
    def draw(d):
        x = d.floats("x", d.kind, [2, 3, 5, 4], 0.05)
        if op != "Requantise":
            d.nodes.append(helper.make_node(op, [x], ["c"], **attributes))
        return d.finish(x if op == "Requantise" else "c", 0.02)
    return draw


TABLE = {"Conv": convolution, "MatMul": product, "Gemm": gemm, "Add": pair("Add"), "Mul": pair("Mul"),
         "Concat": concat, "Sigmoid": unary("Sigmoid"), "HardSwish": unary("HardSwish"),
         "LeakyRelu": unary("LeakyRelu", alpha=0.2), "Requantise": unary("Requantise"),
         "MaxPool": unary("MaxPool", kernel_shape=[2, 2], strides=[2, 1]),
         "Transpose": unary("Transpose", perm=[0, 2, 3, 1])}


def as_written(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                        providers=["CPUExecutionProvider"]).run(None, feeds)


def wrong(op, seen, right):
    if seen.dtype != right.dtype or seen.shape != right.shape:
        return f"{seen.dtype}{list(seen.shape)} for {right.dtype}{list(right.shape)}"
    off = abs(seen.astype(int) - right.astype(int))
    most = 0 if op in EXACT else 1
    if off.max(initial=0) > most:
        place = tuple(int(i) for i in numpy.argwhere(off > most)[0])
        return f"{seen[place]} for {right[place]} at {list(place)}"
    return f"{int((off > 0).sum())} of {off.size} are a step away" if (off > 0).mean() > 0.05 else ""


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("onnx_cases")
    words.add_argument("--first", type=int, default=0)
    words.add_argument("--count", type=int, default=25, help="of each operator")
    words.add_argument("--only")
    words.add_argument("--show", type=int, default=3, help="failures of each operator")
    given = words.parse_args()
    server, counts, failures = Server(given.onnx_cases), collections.Counter(), collections.defaultdict(list)
    for op, draw in TABLE.items():
        if given.only not in (None, op):
            continue
        for seed in range(given.first, given.first + given.count):
            drawn = Drawn(seed)
            model = draw(drawn)
            right, why = attempt(as_written, model, drawn.feeds)
            if right is None:
                counts[f"{op} refused by ONNX Runtime"] += 1
                continue
            tensors = [numpy_helper.from_array(array).SerializeToString() for array in drawn.feeds.values()]
            try:
                seen, why = server.ask(b"run", model.SerializeToString(), *tensors)
            except EOFError as ended:
                seen, why = None, str(ended)
            if seen is not None:
                why = wrong(op, numpy_helper.to_array(onnx.TensorProto.FromString(seen[0])), right[0])
            if why:
                failures[op].append(f"{op}, seed {seed}: {why}")
            else:
                counts[f"{op} same"] += 1
        if not counts[f"{op} same"] and not failures[op]:
            failures[op].append(f"{op}: ONNX Runtime refuses every model")
    server.close()
    for texts in failures.values():
        for text in texts[:given.show]:
            print(text)
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return 1 if any(failures.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
