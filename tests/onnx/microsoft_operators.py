#!/usr/bin/env python3
"""Operators of com.microsoft in random models of one node, against ONNX Runtime.

    microsoft_operators.py ONNX_CASES [--first N] [--count N] [--only OPERATOR] [--show N]

A seed gives a node: its sizes, which of its operands there are, its attributes. Operands are inputs with their shapes
or with open batch and length, and initialisers where the operator likes constants. ONNX_CASES --serve runs the model;
what comes out must be what ONNX Runtime gives. What ONNX Runtime refuses is drawn again, and counted. An error of the
import is a failure. Exit code 77 (skipped) without onnxruntime.
"""

import argparse
import collections
import random
import sys

from operator_sweep import Server, attempt, by_runtime, difference  # which skips without onnxruntime

import numpy
import onnx
from onnx import helper, numpy_helper

DOMAIN = "com.microsoft"
TABLE = {}


class Call:
    """A node that is drawn: operands (None: left out), which of them are constants, which sizes are open."""

    def __init__(self, op, operands, outputs=1, loose=40, steps=0, fixed=(), domain=DOMAIN, **attributes):
        self.op, self.operands, self.outputs, self.domain = op, operands, outputs, domain
        self.loose, self.steps, self.fixed, self.attributes = loose, steps, fixed, attributes


def operator(draw):
    TABLE[draw.__name__] = draw
    return draw


class Dice:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numbers = numpy.random.default_rng(seed)

    def size(self, most=5):
        return self.random.randint(1, most)

    def maybe(self, value, chance=0.5):
        return value if self.random.random() < chance else None

    def pick(self, *values):
        return self.random.choice(values)

    def floats(self, *shape, scale=1.0):
        return (self.numbers.standard_normal(shape) * scale).astype(numpy.float32)

    def ints(self, least, most, *shape, dtype=numpy.int32):
        return self.numbers.integers(least, most, shape, endpoint=True).astype(dtype)

    def bytes(self, *shape, dtype=numpy.uint8):
        info = numpy.iinfo(dtype)
        return self.ints(info.min, info.max, *shape, dtype=dtype)

    def scale(self, *shape):
        return self.numbers.uniform(0.01, 0.1, shape).astype(numpy.float32)


# ---- norms, activations, products ----


@operator
def SkipLayerNormalization(d):
    b, s, h = d.size(3), d.size(), d.size(9) + 1
    operands = [d.floats(b, s, h), d.floats(b, s, h), d.floats(h), d.maybe(d.floats(h)), d.maybe(d.floats(h))]
    return Call("SkipLayerNormalization", operands, outputs=d.pick(1, (0, 3)), epsilon=d.pick(1e-5, 1e-12))


@operator
def SkipSimplifiedLayerNormalization(d):
    b, s, h = d.size(3), d.size(), d.size(9) + 1
    operands = [d.floats(b, s, h), d.floats(b, s, h), d.floats(h), d.maybe(d.floats(h))]
    return Call("SkipSimplifiedLayerNormalization", operands, outputs=d.pick(1, (0, 3)), epsilon=1e-6)


@operator
def SimplifiedLayerNormalization(d):
    b, s, h = d.size(3), d.size(), d.size(9) + 1
    return Call("SimplifiedLayerNormalization", [d.floats(b, s, h), d.floats(h)], domain="", axis=-1, epsilon=1e-5,
                stash_type=1)


@operator
def BiasGelu(d):
    h = d.size(9)
    return Call("BiasGelu", [d.floats(d.size(), d.size(), h), d.floats(h)], loose=400)


@operator
def FastGelu(d):
    h = d.size(9)
    return Call("FastGelu", [d.floats(d.size(), h), d.maybe(d.floats(h))], loose=400)


@operator
def QuickGelu(d):
    return Call("QuickGelu", [d.floats(d.size(), d.size())], alpha=d.pick(1.702, 1.0), loose=400)


@operator
def Gelu(d):
    return Call("Gelu", [d.floats(d.size(), d.size())], loose=400)


@operator
def FusedMatMul(d):
    rank = d.pick(2, 3, 4)
    batch = [d.size(3) for _ in range(rank - 2)]
    m, k, n = d.size(), d.size(), d.size()
    flags = {name: d.pick(0, 1) for name in ("transA", "transB", "transBatchA", "transBatchB")}

    def stored(rows, columns, matrix, turned):
        a = d.floats(*batch, *((columns, rows) if matrix else (rows, columns)))
        return numpy.ascontiguousarray(numpy.moveaxis(a, -2, 0)) if turned else a
    a = stored(m, k, flags["transA"], flags["transBatchA"])
    b = stored(k, n, flags["transB"], flags["transBatchB"])
    return Call("FusedMatMul", [a, b], alpha=d.pick(1.0, 0.5), **flags)


@operator
def EmbedLayerNormalization(d):
    b, s, h, words = d.size(3), d.size(), d.size(9) + 1, 7
    segments = d.maybe(d.ints(0, 1, b, s))
    mask = None
    if d.maybe(True):
        mask = (numpy.arange(s)[None] < d.ints(1, s, b, 1)).astype(numpy.int32)
    places = d.maybe(d.ints(0, s - 1, b, s), 0.3)
    operands = [d.ints(0, words - 1, b, s), segments, d.floats(words, h), d.floats(s, h),
                d.floats(2, h) if segments is not None else None, d.floats(h), d.floats(h), mask, places]
    return Call("EmbedLayerNormalization", operands, outputs=d.pick(2, 3), fixed=(2, 3, 4, 5, 6), epsilon=1e-12)


# ---- attention ----


@operator
def Attention(d):
    b, s, heads, size = d.size(3), d.size(), d.size(3), d.size(3)
    inner, width = d.size(6), heads * size
    past = d.maybe(d.size(3), 0.3)
    keys = s + (past or 0)
    each = d.ints(0, 1, b, s, keys)
    each[:, :, 0] = 1  # of a row whose keys are all hidden, what is left of -10000 in float32 decides
    masks = [None, (numpy.arange(keys)[None] < d.ints(1, keys, b, 1)).astype(numpy.int32), each]
    if past is None:
        ends = d.ints(1, keys, b)
        masks += [ends, numpy.concatenate([ends, numpy.minimum(d.ints(0, 1, b), ends - 1)])]
    flags = {"unidirectional": 1} if d.maybe(True, 0.4) else {}
    if d.maybe(True, 0.3):
        flags["scale"] = 0.3
    sizes, value = {}, size
    if past is None and d.maybe(True, 0.3):
        value = d.size(3)
        sizes["qkv_hidden_sizes"] = [width, width, heads * value]
    columns = 2 * width + heads * value
    operands = [d.floats(b, s, inner), d.floats(inner, columns), d.floats(columns), d.pick(*masks),
                d.floats(2, b, heads, past, size) if past else None,
                d.maybe(d.floats(d.pick(1, b), d.pick(1, heads), s, keys), 0.3)]
    return Call("Attention", operands, outputs=2 if past else 1, fixed=(1, 2), num_heads=heads, **flags, **sizes)


@operator
def MultiHeadAttention(d):
    b, s, heads, size = d.size(3), d.size(), d.size(3), d.size(3)
    width, form = heads * size, d.pick("three", "three", "packed", "keys", "heads")
    keys = s if form == "packed" else d.size()
    value = d.size(3) if form == "three" else size
    bias = past = None
    if form == "packed":
        first = [d.floats(b, s, heads, 3, size), None, None]
    elif form == "keys":
        first = [d.floats(b, s, width), d.floats(b, keys, heads, 2, size), None]
    elif form == "heads":
        first = [d.floats(b, s, width), d.floats(b, heads, keys, size), d.floats(b, heads, keys, size)]
    else:
        first = [d.floats(b, s, width), d.floats(b, keys, width), d.floats(b, keys, heads * value)]
        bias = d.maybe(d.floats(2 * width + heads * value))
        if value == size and d.maybe(True, 0.3):
            past = d.size(3)
    count = keys + (past or 0)
    masks = [None, (numpy.arange(count)[None] < d.ints(1, count, b, 1)).astype(numpy.int32)]
    if past is None:
        masks.append(d.ints(1, count, b))
    # Of other keys than those of the queries ONNX Runtime hides none from the last query; here each query sees those up
    # to its place counted from the end.
    flags = {"unidirectional": 1} if d.maybe(True, 0.3) and keys == s else {}
    caches = [d.floats(b, heads, past, size), d.floats(b, heads, past, size)] if past else [None, None]
    operands = first + [bias, d.pick(*masks), d.maybe(d.floats(d.pick(1, b), d.pick(1, heads), s, count), 0.3)] + caches
    return Call("MultiHeadAttention", operands, outputs=3 if past else 1, fixed=(3,), num_heads=heads, **flags)


@operator
def GroupQueryAttention(d):
    b, groups, each, size = d.size(2), d.size(2), d.size(3), 8 * d.size(2)
    heads = groups * each
    prompt = d.maybe(True)
    s = d.size() if prompt else 1
    past = 0 if prompt else d.size(4)
    total = past + s
    room = total if d.maybe(True) else total + d.size(3)  # of a shared cache, which is as long as all will be
    cache = None
    if not prompt:
        cache = room if room > total else past
    elif room > total:
        cache = room
    packed = d.maybe(True, 0.3)
    q = d.floats(b, s, heads * size)
    k, v = d.floats(b, s, groups * size), d.floats(b, s, groups * size)
    if packed:
        q, k, v = numpy.concatenate([q, k, v], 2), None, None
    flags, tables = {}, [None, None]
    if d.maybe(True):
        flags = {"do_rotary": 1, "rotary_interleaved": d.pick(0, 1)}
        tables = [d.floats(total + 4, size // 2), d.floats(total + 4, size // 2)]
    if d.maybe(True, 0.2):
        flags["softcap"] = 5.0
    if d.maybe(True, 0.2):
        flags["local_window_size"] = d.size(4)
    if d.maybe(True, 0.2):
        flags["scale"] = 0.4
    caches = [d.floats(b, groups, cache, size) for _ in range(2)] if cache is not None else [None, None]
    lengths = numpy.full(b, total - 1, numpy.int32)
    operands = [q, k, v, *caches, lengths, numpy.int32([total]).reshape(()), *tables]
    call = Call("GroupQueryAttention", operands, outputs=3, num_heads=heads, kv_num_heads=groups, **flags)
    # What lies beyond the positions so far is of no meaning.
    call.trim = lambda arrays: [arrays[0]] + [a[:, :, :total] for a in arrays[1:]]
    return call


@operator
def RotaryEmbedding(d):
    b, s, heads, size, most = d.size(3), d.size(), d.size(3), 2 * d.size(3), 9
    plain = d.maybe(True)
    x = d.floats(b, s, heads * size) if plain else d.floats(b, heads, s, size)
    places = d.ints(0, most - 1, b, s, dtype=numpy.int64) if d.maybe(True) else d.ints(0, most - s, 1, dtype=numpy.int64)
    flags, half = {"interleaved": d.pick(0, 1)}, size // 2
    if half > 1 and d.maybe(True, 0.3):
        half -= 1
        flags.update(rotary_embedding_dim=2 * half, num_heads=heads)
    return Call("RotaryEmbedding", [x, places, d.floats(most, half), d.floats(most, half)], fixed=(2, 3), **flags)


# ---- bytes ----


def byte_types(d):
    return d.pick((numpy.uint8, numpy.int8), (numpy.uint8, numpy.uint8), (numpy.int8, numpy.int8))


@operator
def MatMulIntegerToFloat(d):
    one, other = byte_types(d)
    m, k, n = d.size(), d.size(9), d.size()
    columns = d.pick((1,), (n,))
    a_zero = d.maybe(d.bytes(1, dtype=one).reshape(()))
    b_zero = d.maybe(d.bytes(*columns, dtype=other))
    operands = [d.bytes(d.size(2), m, k, dtype=one), d.bytes(k, n, dtype=other), d.scale(1).reshape(()),
                d.scale(*columns), a_zero, b_zero, d.maybe(d.floats(n))]
    return Call("MatMulIntegerToFloat", operands, fixed=(1, 2, 3, 4, 5, 6))


@operator
def DynamicQuantizeMatMul(d):
    other = d.pick(numpy.uint8, numpy.int8)
    m, k, n = d.size(), d.size(9), d.size()
    columns = d.pick((1,), (n,))
    operands = [d.floats(d.size(2), m, k), d.bytes(k, n, dtype=other), d.scale(*columns),
                d.maybe(d.bytes(*columns, dtype=other)), d.maybe(d.floats(n))]
    return Call("DynamicQuantizeMatMul", operands, fixed=(1, 2, 3, 4), loose=400)


@operator
def MatMulNBits(d):
    bits, block = d.pick(4, 4, 8), d.pick(16, 32)
    k, n = d.size(3) * block - d.pick(0, 0, 3), d.size(6)
    blocks = -(-k // block)
    zeros = d.maybe(d.bytes(n, blocks * bits // 8 + (blocks * bits % 8 > 0)))
    if bits == 8 and zeros is not None:
        zeros = zeros[:, :blocks]
    operands = [d.floats(d.size(2), d.size(), k), d.bytes(n, blocks, block * bits // 8), d.scale(n, blocks), zeros, None,
                d.maybe(d.floats(n), 0.3)]
    return Call("MatMulNBits", operands, fixed=(1, 2, 3, 5), K=k, N=n, bits=bits, block_size=block, loose=400)


@operator
def GatherBlockQuantized(d):
    bits, block, rows = d.pick(4, 8), 16, d.size(6)
    k = d.size(3) * block
    zeros = None
    if d.maybe(True):
        blocks = k // block
        zeros = d.bytes(rows, -(-blocks // 2) if bits == 4 else blocks)
    operands = [d.bytes(rows, k * bits // 8), d.ints(0, rows - 1, d.size(), d.size(), dtype=numpy.int64),
                d.scale(rows, k // block), zeros]
    return Call("GatherBlockQuantized", operands, fixed=(0, 2, 3), gather_axis=0, quantize_axis=1, block_size=block,
                bits=bits)


def quantised(d, dtype, *shape):
    """A tensor with its scale and zero."""
    return [d.bytes(*shape, dtype=dtype), d.scale(1).reshape(()), d.bytes(1, dtype=dtype).reshape(())]


def grid(d, dtype):
    return [d.scale(1).reshape(()), d.bytes(1, dtype=dtype).reshape(())]


def binary(name):
    def draw(d):
        dtype = d.pick(numpy.uint8, numpy.int8)
        shape = [d.size(4) for _ in range(d.pick(1, 2, 3))]
        other = [d.pick(1, size) for size in shape]
        operands = quantised(d, dtype, *shape) + quantised(d, dtype, *other) + grid(d, dtype)
        return Call(name, operands, steps=1, fixed=(1, 2, 4, 5, 6, 7))
    TABLE[name] = draw


binary("QLinearAdd")
binary("QLinearMul")


@operator
def QGemm(d):
    m, k, n, turned = d.size(), d.size(40), d.size(20), d.pick(0, 1)
    left, right = d.pick(numpy.uint8, numpy.int8), numpy.int8
    each = d.pick((), (n,))
    operands = quantised(d, left, m, k) + [d.bytes(*((n, k) if turned else (k, n)), dtype=right), d.scale(*each),
                                           numpy.zeros(each, right), d.maybe(d.ints(-9999, 9999, n))]
    operands += grid(d, left) if d.pick(True, False) else []
    return Call("QGemm", operands, steps=1, fixed=range(1, 9), transB=turned)


def unary(name, attributes):
    def draw(d):
        dtype = d.pick(numpy.uint8, numpy.int8)
        shape = [d.size(5) for _ in range(d.pick(2, 3))]
        return Call(name, quantised(d, dtype, *shape) + grid(d, dtype), steps=1, fixed=(1, 2, 3, 4), **attributes(d))
    TABLE[name] = draw


unary("QLinearSigmoid", lambda d: {})
unary("QLinearLeakyRelu", lambda d: {"alpha": d.pick(0.01, 0.3)})
unary("QLinearSoftmax", lambda d: {"axis": -1, "opset": d.pick(12, 13)})


@operator
def QLinearConcat(d):
    dtype, axis = d.pick(numpy.uint8, numpy.int8), d.pick(0, 1)
    shape, operands = [d.size(), d.size()], grid(d, dtype)
    for _ in range(d.size(3)):
        shape[axis] = d.size()
        operands += quantised(d, dtype, *shape)
    fixed = [i for i in range(len(operands)) if i < 2 or i % 3 != 2]
    return Call("QLinearConcat", operands, steps=1, fixed=fixed, axis=axis)


@operator
def QLinearAveragePool(d):
    dtype, last = d.pick(numpy.uint8, numpy.int8), d.pick(0, 1)
    image = [d.size(5) + 2, d.size(5) + 2]
    shape = [d.size(2), *image, d.size(3)] if last else [d.size(2), d.size(3), *image]
    kernel = [d.size(3), d.size(3)]
    pads = [d.random.randrange(kernel[i % 2]) for i in range(4)]
    return Call("QLinearAveragePool", quantised(d, dtype, *shape) + grid(d, dtype), steps=1, fixed=(1, 2, 3, 4),
                channels_last=last, kernel_shape=kernel, pads=pads, strides=[d.size(2), d.size(2)],
                count_include_pad=d.pick(0, 1))


@operator
def QLinearGlobalAveragePool(d):
    dtype, last = d.pick(numpy.uint8, numpy.int8), d.pick(0, 1)
    return Call("QLinearGlobalAveragePool",
                quantised(d, dtype, d.size(2), d.size(4), d.size(4), d.size(4)) + grid(d, dtype), steps=1,
                fixed=(1, 2, 3, 4), channels_last=last)


@operator
def NhwcMaxPool(d):
    dtype = d.pick(numpy.uint8, numpy.int8)
    kernel = [d.size(3), d.size(3)]
    pads = [d.random.randrange(kernel[i % 2]) for i in range(4)]
    return Call("NhwcMaxPool", [d.bytes(d.size(2), d.size(5) + 2, d.size(5) + 2, d.size(3), dtype=dtype)],
                kernel_shape=kernel, pads=pads, strides=[d.size(2), d.size(2)])


@operator
def QAttention(d):
    b, s, heads, size, inner = d.size(3), d.size(), d.size(3), d.size(3), d.size(6)
    width = heads * size
    one, other = numpy.uint8, d.pick(numpy.uint8, numpy.int8)
    mask = d.maybe((numpy.arange(s)[None] < d.ints(1, s, b, 1)).astype(numpy.int32))
    operands = [d.bytes(b, s, inner, dtype=one), d.bytes(inner, 3 * width, dtype=other), d.floats(3 * width),
                d.scale(1).reshape(()), d.scale(1).reshape(()), mask, d.maybe(d.bytes(1, dtype=one).reshape(())),
                d.maybe(d.bytes(1, dtype=other).reshape(()))]
    flags = {"unidirectional": 1} if d.maybe(True, 0.3) else {}
    return Call("QAttention", operands, fixed=(1, 2, 3, 4, 6, 7), num_heads=heads, loose=400, **flags)


# ---- the models ----


def model_of(call, rng):
    """A model of the call, and the arrays of its inputs."""
    names, infos, initialisers, given = [], [], [], {}
    for number, array in enumerate(call.operands):
        if array is None:
            names.append("")
            continue
        names.append(f"x{number}")
        array = numpy.asarray(array)
        if number in call.fixed and rng.random() < 0.8:
            initialisers.append(numpy_helper.from_array(array, names[-1]))
            continue
        # Batch and length may be open, and how many numbers a mask has; the rest says how the operator is meant.
        open_axes = 2 if number == 0 and array.ndim == 3 else 1 if array.dtype == numpy.int32 and array.ndim == 1 else 0
        shape = [None if axis < open_axes and call.op in OPEN and rng.random() < 0.3 else size
                 for axis, size in enumerate(array.shape)]
        infos.append(helper.make_tensor_value_info(names[-1], helper.np_dtype_to_tensor_dtype(array.dtype), shape))
        given[names[-1]] = array
    while names and not names[-1]:
        names.pop()
    asked = range(call.outputs) if isinstance(call.outputs, int) else call.outputs
    outputs = [f"y{i}" if i in asked else "" for i in range(max(asked) + 1)]
    node = helper.make_node(call.op, names, outputs, name="node", domain=call.domain, **call.attributes)
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name=y) for y in outputs if y], initialisers)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)])
    proto.ir_version = 8
    return proto, given


OPEN = {"SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "SimplifiedLayerNormalization", "BiasGelu",
        "Attention", "MultiHeadAttention", "RotaryEmbedding", "DynamicQuantizeMatMul", "MatMulIntegerToFloat"}


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("onnx_cases")
    words.add_argument("--first", type=int, default=0)
    words.add_argument("--count", type=int, default=20, help="of each operator")
    words.add_argument("--only")
    words.add_argument("--show", type=int, default=3, help="failures of each operator")
    given = words.parse_args()
    server = Server(given.onnx_cases)
    counts, failures = collections.defaultdict(collections.Counter), collections.defaultdict(list)
    for name, draw in TABLE.items():
        if given.only not in (None, name):
            continue
        seed = given.first
        while counts[name]["same"] + len(failures[name]) < given.count and seed < given.first + 5 * given.count:
            call = draw(Dice(seed))
            proto, arrays = model_of(call, random.Random(seed))
            seed += 1
            right, why = attempt(by_runtime, proto, arrays)
            if right is None:
                counts[name]["refused by ONNX Runtime"] += 1
                last = why
                continue
            tensors = [numpy_helper.from_array(array).SerializeToString() for array in arrays.values()]
            try:
                seen, why = server.ask(b"run", proto.SerializeToString(), *tensors)
            except EOFError as ended:
                seen, why = None, str(ended)
            if seen is not None:
                seen = [numpy_helper.to_array(onnx.TensorProto.FromString(part)) for part in seen]
                trim = getattr(call, "trim", lambda arrays: arrays)
                why = difference(call, trim(seen), trim(right)) or (None if len(seen) == len(right) else "outputs")
            if why:
                operands = [None if a is None else f"{a.dtype}{list(a.shape)}" for a in call.operands]
                failures[name].append(f"{name}, seed {seed - 1}: {why}\n    {operands} {call.attributes}")
            else:
                counts[name]["same"] += 1
        if counts[name]["same"] + len(failures[name]) == 0:
            failures[name].append(f"{name}: ONNX Runtime refuses every call: {last}")
    server.close()
    for texts in failures.values():
        for text in texts[:given.show]:
            print(text)
    for name, count in counts.items():
        print(f"{name}: " + ", ".join(f"{number} {kind}" for kind, number in sorted(count.items())) +
              (f", {len(failures[name])} FAIL" if failures[name] else ""))
    return 1 if any(failures.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
