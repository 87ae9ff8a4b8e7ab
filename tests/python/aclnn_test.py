"""Functions of aclnn against numpy and torch: random shapes, types, strides, empty tensors, tensors without dimensions, in
place.

  aclnn_test.py [--first SEED] [--calls N] [--wrong N] [--only NAME]

A call is drawn from its seed alone; a failure names it. Types of results and how operands are promoted are written down
here once more, after PyTorch's documentation.
"""

import argparse
import ctypes as C
import sys
import unittest

import case
from case import numpy as np

if np is None:
    case.main()
try:
    import torch
except ImportError:
    case.run_in_venv()
    torch = None
else:
    torch.set_num_threads(1)  # tensors are small, and other tests run beside

import acl
import aclnn_client as client
import coverage_page

FIRST, CALLS, WRONG, ONLY, MOST = 1, 1500, 3000, None, 8  # MOST: disagreements that are shown
KINDS = {"b": 0, "i": 1, "u": 1, "f": 2}
TOLERANCES = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-12}


# ---- Drawing ----

class Draw:
    """What a call is made of, from its seed."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def pick(self, values):
        return values[int(self.random.integers(len(values)))]

    def shape(self, ranks=(0, 1, 2, 3, 4), most=5):
        rank = self.pick(ranks)
        smallest = 0 if self.random.random() < 0.1 else 1
        return tuple(int(n) for n in self.random.integers(smallest, most + 1, rank))

    def against(self, shape):
        """A shape that broadcasts with `shape`."""
        kept = shape[int(self.random.integers(len(shape) + 1)):]
        return tuple(1 if self.random.random() < 0.25 else n for n in kept)

    def strided(self, array, repeats=True):
        """The same values with other strides."""
        way = self.random.random()
        if array.ndim == 0 or way < 0.5:
            return array
        if way < 0.7:
            order = self.random.permutation(array.ndim)
            return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))
        steps = self.random.integers(1, 3, array.ndim)
        base = np.zeros([n * s for n, s in zip(array.shape, steps)], array.dtype)
        view = base[tuple(slice(None, None, int(s)) for s in steps)]
        view[...] = array
        return view

    def array(self, dtype, shape, low=-3, high=3):
        if dtype == "bool":
            values = self.random.random(shape) < 0.5
        elif np.dtype(dtype).kind in "iu":
            low = max(low, np.iinfo(dtype).min)
            values = self.random.integers(low, high + 1, shape)
        else:
            values = self.random.uniform(low, high, shape)
        return self.strided(np.asarray(values).astype(dtype))

    def out(self, dtype, shape):
        return self.strided(np.zeros(shape, dtype))

    def scalar(self, dtypes=("int64", "float32"), low=-3, high=3):
        if self.pick(dtypes) == "float32":
            return float(np.float32(self.random.uniform(low, high)))
        return int(self.random.integers(low, high + 1))


# ---- What is expected ----

def promoted(*operands):
    """The type of an operation: arrays before arrays without dimensions before numbers, within bool, integer, real."""
    result = None
    for rank in ("array", "none", "number"):
        here = None
        for operand in operands:
            number = not isinstance(operand, np.ndarray)
            where = "number" if number else "none" if operand.ndim == 0 else "array"
            if where != rank:
                continue
            dtype = np.dtype({bool: "bool", int: "int64", float: "float32"}[type(operand)]) if number else operand.dtype
            here = dtype if here is None else common(here, dtype)
        if here is not None and (result is None or KINDS[here.kind] > KINDS[result.kind]):
            result = here
    return result


def common(a, b):
    if KINDS[a.kind] != KINDS[b.kind]:
        return a if KINDS[a.kind] > KINDS[b.kind] else b
    return np.promote_types(a, b)


def real(dtype):
    return dtype if np.dtype(dtype).kind == "f" else np.dtype("float32")


def compute(function, dtype, *operands):
    """The function on operands of a type, float16 through float32."""
    wide = np.dtype("float64") if np.dtype(dtype).kind == "f" else np.dtype(dtype)
    with np.errstate(all="ignore"):
        return np.asarray(function(*[np.asarray(operand).astype(dtype).astype(wide) for operand in operands]))


# ---- Families: what a row of the table is called with, and what it gives ----

REALS = ("float32", "float16", "float64")
NUMBERS = REALS + ("int32", "int64", "int8", "uint8", "int16")


def unary(function, low=-3, high=3, dtypes=NUMBERS + ("bool",), keep=False):
    def draw(d, inplace):
        dtype = d.pick(REALS if inplace and not keep else dtypes)
        x = d.array(dtype, d.shape(), low, high)
        result = x.dtype if keep else real(x.dtype)
        expected = compute(function, result, x).astype(result)
        return ([x] if inplace else [x, d.out(result, x.shape)]), [expected]
    return draw


def binary(function, dtypes=NUMBERS, result=None, alpha=False, scalar=None, low=-3, high=3, nonzero=False):
    """`scalar`: which operand is a number. `result`: the type of the result from that of the operation."""
    def draw(d, inplace):
        shape = d.shape()
        x = d.array(d.pick(dtypes), shape, low, high)
        y = d.scalar(low=low, high=high) if scalar else d.array(d.pick(dtypes), d.against(shape), low, high)
        if nonzero:
            y = (y or 1) if scalar else np.where(y == 0, np.ones((), y.dtype), y)
        if scalar == "first":
            x, y = y, x
        dtype = promoted(x, y)
        factor = (d.pick([1, 2, 3]) if dtype.kind != "f" else d.pick([1, 0.5, 2.0])) if alpha else None
        if inplace and (not isinstance(x, np.ndarray) or KINDS[x.dtype.kind] < KINDS[dtype.kind]):
            return None
        arguments = (x, y) if factor is None else (x, y, factor)
        expected = compute(function, dtype, *arguments)
        expected = expected.astype(result(dtype) if result else dtype)
        expected = np.broadcast_to(expected, np.broadcast_shapes(np.shape(x), np.shape(y)))
        if inplace:
            expected = expected.astype(x.dtype)
        values = [x, y] + ([factor] if alpha else [])
        return (values if inplace else values + [d.out(expected.dtype, expected.shape)]), [expected]
    return draw


def dims_of(d, rank):
    count = int(d.random.integers(rank + 1))
    dims = [int(a) for a in d.random.permutation(rank)[:count]]
    return [a - rank if d.random.random() < 0.3 else a for a in dims]


def reduction(function, dtypes=("float32", "float64", "int32"), dtype_word=False, empty=True, truth=False):
    def draw(d, inplace):
        x = d.array(d.pick(dtypes), d.shape())
        dims, keep = dims_of(d, x.ndim), bool(d.random.random() < 0.5)
        over = tuple(dims) if dims else tuple(range(x.ndim))
        if not empty and 0 in x.shape:
            return None
        wide = x.astype(bool) if truth else x.astype("float64") if x.dtype.kind == "f" else x
        expected = np.asarray(function(wide, axis=over, keepdims=keep)).astype("bool" if truth else x.dtype)
        words = [x.dtype.name] if dtype_word else []
        return [x, dims, keep] + words + [d.out(expected.dtype, expected.shape)], [expected]
    return draw


def matrices(name):
    def draw(d, inplace):
        m, k, n, b = (int(v) for v in d.random.integers(1, 7, 4))
        dtype = d.pick(("float32", "float16"))
        array = lambda *shape: d.array(dtype, shape, -1, 1)  # noqa: E731
        wide = lambda a: a.astype("float64")  # noqa: E731
        if name == "Mm":
            x, y = array(m, k), array(k, n)
            values, result = [x, y], wide(x) @ wide(y)
        elif name == "Matmul":
            shapes = d.pick([((m, k), (k, n)), ((k,), (k, n)), ((m, k), (k,)), ((k,), (k,)), ((b, m, k), (b, k, n)),
                             ((b, m, k), (k, n)), ((m, k), (b, k, n)), ((2, 1, m, k), (b, k, n))])
            x, y = array(*shapes[0]), array(*shapes[1])
            values, result = [x, y], wide(x) @ wide(y)
        elif name == "BatchMatMul":
            x, y = array(b, m, k), array(b, k, n)
            values, result = [x, y], wide(x) @ wide(y)
        elif name == "Mv":
            x, y = array(m, k), array(k)
            values, result = [x, y], wide(x) @ wide(y)
        elif name == "Dot":
            x, y = array(k), array(k)
            return [x, y, d.out(dtype, ())], [np.asarray(wide(x) @ wide(y)).astype(dtype)]
        elif name == "Ger":
            x, y = array(m), array(n)
            result = np.outer(wide(x), wide(y)).astype(dtype)
            return [x, y, d.out(dtype, result.shape)], [result]
        else:
            beta, alpha = d.pick([1, 0.5, 2]), d.pick([1, 0.5, 3])
            c, x, y = {"Addmm": lambda: (array(*d.pick([(m, n), (n,), (1, n)])), array(m, k), array(k, n)),
                       "Baddbmm": lambda: (array(b, m, n), array(b, m, k), array(b, k, n)),
                       "Addmv": lambda: (array(m), array(m, k), array(k))}[name]()
            words = [alpha, beta] if name == "Addmv" else [beta, alpha]
            result = alpha * (wide(x) @ wide(y)) + beta * wide(c)
            values = [c, x, y] + words
        result = np.asarray(result).astype(dtype)
        return values + [d.out(dtype, result.shape), 1], [result]
    return draw


def axis_of(d, rank):
    return int(d.random.integers(-rank, rank))


def with_axis(function):
    """`function(d, x, axis)`: the values in front of the result, and what is expected."""
    def draw(d, inplace):
        x = d.array(d.pick(("float32", "int32", "float16")), d.shape((1, 2, 3), 4))
        if 0 in x.shape:
            return None
        made = function(d, x, axis_of(d, x.ndim))
        if made is None:
            return None
        values, expected = made
        return values + [d.out(e.dtype, e.shape) for e in expected], expected
    return draw


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def rows(function):
    def draw(d, inplace):
        x = d.array(d.pick(("float32", "float16")), d.shape((1, 2, 3), 6))
        if 0 in x.shape:
            return None
        axis = axis_of(d, x.ndim)
        expected = function(x.astype("float64"), axis).astype(x.dtype)
        return [x, axis, d.out(x.dtype, x.shape)], [expected]
    return draw


def erf(x):
    import math
    return np.vectorize(math.erf, otypes=["float64"])(x) if x.size else x


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def index_select(d, x, axis):
    index = d.array(d.pick(("int32", "int64")), (int(d.random.integers(1, 5)),), 0, x.shape[axis] - 1)
    return [x, axis, index], [np.take(x, index, axis)]


def gather(d, x, axis):
    shape = list(x.shape)
    shape[axis] = int(d.random.integers(1, 5))
    index = d.array("int64", shape, 0, x.shape[axis] - 1)
    return [x, axis, index], [np.take_along_axis(x, index, axis)]


def cumulative(function):
    def draw(d, x, axis):
        if x.dtype == np.float16:
            return None
        wide = x.astype("float64") if x.dtype.kind == "f" else x
        return [x, axis, x.dtype.name], [function(wide, axis).astype(x.dtype)]
    return draw


def slice_one(d, x, axis):
    n = x.shape[axis]
    start, end = sorted(int(v) for v in d.random.integers(0, n + 1, 2))
    step = int(d.random.integers(1, 3))
    if start == end:
        return None
    where = [slice(None)] * x.ndim
    where[axis] = slice(start, end, step)
    return [x, axis, start, end, step], [x[tuple(where)]]


def sort(d, x, axis):
    down = bool(d.random.random() < 0.5)
    order = np.argsort(-x if down else x, axis, kind="stable")
    return [x, True, axis, down], [np.take_along_axis(x, order, axis), order.astype("int64")]


def extreme(function, where):
    def draw(d, x, axis):
        values = np.unique(x)
        if len(values) < x.size:  # only one place may hold the result
            return None
        keep = bool(d.random.random() < 0.5)
        place = np.expand_dims(where(x, axis), axis)
        pair = [np.take_along_axis(x, place, axis), place.astype("int64")]
        pair = pair if keep else [np.squeeze(p, axis) for p in pair]
        return [x, axis, keep], pair
    return draw


def layer_norm(d, inplace):
    x = d.array(d.pick(("float32", "float16")), d.shape((1, 2, 3), 6))
    if 0 in x.shape:
        return None
    count = int(d.random.integers(1, x.ndim + 1))
    over, tail = tuple(range(x.ndim - count, x.ndim)), x.shape[x.ndim - count:]
    weight = d.array(x.dtype.name, tail) if d.random.random() < 0.7 else None
    bias = d.array(x.dtype.name, tail) if d.random.random() < 0.7 else None
    wide = x.astype("float64")
    mean, var = wide.mean(over, keepdims=True), wide.var(over, keepdims=True)
    result = (wide - mean) / np.sqrt(var + 1e-2)
    result = result * (1 if weight is None else weight.astype("float64"))
    result = result + (0 if bias is None else bias.astype("float64"))
    return [x, list(tail), weight, bias, 1e-2, d.out(x.dtype, x.shape), None, None], [result.astype(x.dtype)]


def concat(d, inplace):
    shape = list(d.shape((1, 2, 3), 4))
    if 0 in shape:
        return None
    axis, dtype = axis_of(d, len(shape)), d.pick(("float32", "int32", "float16"))
    parts = []
    for _ in range(int(d.random.integers(1, 4))):
        part = list(shape)
        part[axis] = int(d.random.integers(1, 4))
        parts.append(d.array(dtype, part))
    expected = np.concatenate(parts, axis)
    return [parts, axis, d.out(dtype, expected.shape)], [expected]


def stack(d, inplace):
    shape, dtype = d.shape((1, 2, 3), 4), d.pick(("float32", "int32"))
    if 0 in shape:
        return None
    parts = [d.array(dtype, shape) for _ in range(int(d.random.integers(1, 4)))]
    axis = int(d.random.integers(-len(shape) - 1, len(shape) + 1))
    expected = np.stack(parts, axis)
    return [parts, axis, d.out(dtype, expected.shape)], [expected]


def permute(d, inplace):
    x = d.array(d.pick(NUMBERS), d.shape((1, 2, 3, 4)))
    order = [int(a) for a in d.random.permutation(x.ndim)]
    expected = x.transpose(order)
    return [x, order, d.out(x.dtype, expected.shape)], [expected]


def expand(d, inplace):
    shape = d.shape((1, 2, 3))
    x = d.array(d.pick(NUMBERS), d.against(shape))
    return [x, list(shape), d.out(x.dtype, shape)], [np.broadcast_to(x, shape)]


def copy(d, inplace):
    shape = d.shape()
    x, to = d.array(d.pick(NUMBERS), d.against(shape), 0, 3), d.out(d.pick(NUMBERS), shape)
    return [to, x], [np.broadcast_to(x, shape).astype(to.dtype)]


def fill(number):
    def draw(d, inplace):
        x = d.array(d.pick(NUMBERS), d.shape())
        value = d.pick([0, 1, 3]) if number is None else number
        return ([x, value] if number is None else [x]), [np.full(x.shape, value, x.dtype)]
    return draw


def clamp(d, inplace):
    x = d.array(d.pick(("float32", "int32", "float16")), d.shape())
    low, high = sorted((d.scalar(("int64",)), d.scalar(("int64",))))
    limits = d.pick([[low, high], [low, None], [None, high]])
    return [x, *limits, d.out(x.dtype, x.shape)], [np.clip(x, *limits)]


def where(d, inplace):
    shape = d.shape()
    condition = d.array("bool", d.against(shape))
    x, y = d.array(d.pick(NUMBERS), shape), d.array(d.pick(NUMBERS), d.against(shape))
    dtype = promoted(x, y)
    expected = np.where(condition, x.astype(dtype), y.astype(dtype))
    return [condition, x, y, d.out(dtype, expected.shape)], [expected]


def bits(name):
    function = {"And": np.bitwise_and, "Or": np.bitwise_or, "Xor": np.bitwise_xor}[name]
    return {f"aclnnBitwise{name}Tensor": binary(function, ("int32", "int64", "uint8", "int16", "int8", "bool")),
            f"aclnnInplaceBitwise{name}Tensor": binary(function, ("int32", "int64", "bool"))}


CASES = {
    "aclnnAdd": binary(lambda x, y, a: x + a * y, alpha=True),
    "aclnnInplaceAdd": binary(lambda x, y, a: x + a * y, alpha=True),
    "aclnnAdds": binary(lambda x, y, a: x + a * y, alpha=True, scalar="second"),
    "aclnnInplaceAdds": binary(lambda x, y, a: x + a * y, alpha=True, scalar="second"),
    "aclnnSub": binary(lambda x, y, a: x - a * y, alpha=True),
    "aclnnInplaceSub": binary(lambda x, y, a: x - a * y, alpha=True),
    "aclnnSubs": binary(lambda x, y, a: x - a * y, alpha=True, scalar="second"),
    "aclnnRsub": binary(lambda x, y, a: y - a * x, alpha=True),
    "aclnnRsubs": binary(lambda x, y, a: y - a * x, alpha=True, scalar="second"),
    "aclnnMul": binary(np.multiply), "aclnnInplaceMul": binary(np.multiply),
    "aclnnMuls": binary(np.multiply, scalar="second"), "aclnnInplaceMuls": binary(np.multiply, scalar="second"),
    "aclnnDiv": binary(np.true_divide, result=real, nonzero=True),
    "aclnnDivs": binary(np.true_divide, result=real, scalar="second", nonzero=True),
    "aclnnInplaceDiv": binary(np.true_divide, REALS, nonzero=True),
    "aclnnFloorDivide": binary(np.floor_divide, ("int32", "int64", "int8"), nonzero=True),
    "aclnnFmodTensor": binary(np.fmod, ("int32", "int64"), nonzero=True),
    "aclnnRemainderTensorTensor": binary(np.mod, ("int32", "int64"), nonzero=True),
    "aclnnMaximum": binary(np.maximum), "aclnnMinimum": binary(np.minimum),
    "aclnnPowTensorTensor": binary(np.power, ("float32", "float64"), low=0.5, high=2),
    "aclnnPowTensorScalar": binary(np.power, ("float32", "float64"), low=1, high=3, scalar="second"),
    "aclnnPowScalarTensor": binary(np.power, ("float32", "float64"), low=1, high=3, scalar="first"),
    "aclnnAtan2": binary(np.arctan2, ("float32", "float64")),
    "aclnnLogicalAnd": binary(np.logical_and, NUMBERS + ("bool",), result=lambda t: "bool"),
    "aclnnLogicalOr": binary(np.logical_or, NUMBERS + ("bool",), result=lambda t: "bool"),
    "aclnnLogicalXor": binary(np.logical_xor, NUMBERS + ("bool",), result=lambda t: "bool"),
    **bits("And"), **bits("Or"), **bits("Xor"),
    **{f"aclnn{name}{kind}": binary(function, result=lambda t: "bool", scalar=scalar)
       for name, function in (("Eq", np.equal), ("Ne", np.not_equal), ("Ge", np.greater_equal), ("Gt", np.greater),
                              ("Le", np.less_equal), ("Lt", np.less))
       for kind, scalar in (("Tensor", None), ("Scalar", "second"))},
    "aclnnAbs": unary(np.abs, keep=True, dtypes=NUMBERS), "aclnnNeg": unary(np.negative, keep=True, dtypes=NUMBERS[:-1]),
    "aclnnSign": unary(np.sign, keep=True, dtypes=REALS + ("int32", "int64")),
    "aclnnSquare": unary(np.square, keep=True, dtypes=REALS + ("int32",)),
    "aclnnCeil": unary(np.ceil, keep=True, dtypes=REALS), "aclnnFloor": unary(np.floor, keep=True, dtypes=REALS),
    "aclnnTrunc": unary(np.trunc, keep=True, dtypes=REALS), "aclnnRound": unary(np.round, keep=True, dtypes=REALS),
    "aclnnFrac": unary(lambda x: x - np.trunc(x), keep=True, dtypes=("float32", "float64")),
    "aclnnInplaceFloor": unary(np.floor, keep=True, dtypes=REALS),
    **{f"aclnn{name}": unary(function, low, high) for name, function, low, high in (
        ("Acos", np.arccos, -1, 1), ("Asin", np.arcsin, -1, 1), ("Atan", np.arctan, -3, 3), ("Cos", np.cos, -3, 3),
        ("Cosh", np.cosh, -3, 3), ("Sin", np.sin, -3, 3), ("Sinh", np.sinh, -3, 3), ("Tanh", np.tanh, -3, 3),
        ("Exp", np.exp, -3, 3), ("Expm1", np.expm1, -3, 3), ("Log", np.log, 1, 4), ("Log2", np.log2, 1, 4),
        ("Log10", np.log10, 1, 4), ("Log1p", np.log1p, 0, 4), ("Sqrt", np.sqrt, 0, 4), ("Erf", erf, -3, 3),
        ("Rsqrt", lambda x: 1 / np.sqrt(x), 1, 4), ("Reciprocal", np.reciprocal, 1, 4), ("Sigmoid", sigmoid, -3, 3),
        ("Asinh", np.arcsinh, -3, 3), ("Acosh", np.arccosh, 1, 4), ("Exp2", np.exp2, -3, 3))},
    **{f"aclnnInplace{name}": unary(function, low, high) for name, function, low, high in (
        ("Cos", np.cos, -3, 3), ("Exp", np.exp, -3, 3), ("Sqrt", np.sqrt, 0, 4), ("Tanh", np.tanh, -3, 3),
        ("Sigmoid", sigmoid, -3, 3), ("Log", np.log, 1, 4))},
    "aclnnRelu": unary(lambda x: np.maximum(x, 0), keep=True, dtypes=REALS[:2] + ("int32",)),
    "aclnnInplaceRelu": unary(lambda x: np.maximum(x, 0), keep=True, dtypes=REALS[:2]),
    "aclnnSilu": unary(lambda x: x * sigmoid(x), dtypes=REALS[:2]),
    "aclnnGelu": unary(lambda x: x * 0.5 * (1 + erf(x / np.sqrt(2))), dtypes=REALS[:2]),
    "aclnnMish": unary(lambda x: x * np.tanh(np.log1p(np.exp(x))), dtypes=REALS[:2]),
    "aclnnHardswish": unary(lambda x: x * np.clip(x + 3, 0, 6) / 6, dtypes=REALS[:2]),
    "aclnnHardsigmoid": unary(lambda x: np.clip(x / 6 + 0.5, 0, 1), dtypes=REALS[:2]),
    "aclnnSelu": unary(lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
                       dtypes=REALS[:2]),
    "aclnnReduceSum": reduction(np.sum, dtype_word=True), "aclnnAmax": reduction(np.max, empty=False),
    "aclnnAmin": reduction(np.min, empty=False),
    "aclnnMean": reduction(np.mean, ("float32", "float64"), dtype_word=True, empty=False),
    "aclnnAll": reduction(np.all, ("bool", "uint8"), truth=True),
    "aclnnAny": reduction(np.any, ("bool", "uint8"), truth=True),
    **{f"aclnn{name}": matrices(name)
       for name in ("Mm", "Matmul", "BatchMatMul", "Mv", "Dot", "Ger", "Addmm", "Baddbmm", "Addmv")},
    "aclnnSoftmax": rows(softmax), "aclnnLogSoftmax": rows(lambda x, axis: np.log(softmax(x, axis))),
    "aclnnLayerNorm": layer_norm, "aclnnCat": concat, "aclnnStack": stack, "aclnnPermute": permute,
    "aclnnExpand": expand, "aclnnInplaceCopy": copy, "aclnnInplaceFillScalar": fill(None),
    "aclnnInplaceZero": fill(0), "aclnnInplaceOne": fill(1), "aclnnClamp": clamp, "aclnnSWhere": where,
    "aclnnIndexSelect": with_axis(index_select), "aclnnGather": with_axis(gather),
    "aclnnCumsum": with_axis(cumulative(np.cumsum)), "aclnnCumprod": with_axis(cumulative(np.cumprod)),
    "aclnnSlice": with_axis(slice_one), "aclnnSort": with_axis(sort),
    "aclnnMaxDim": with_axis(extreme(np.max, np.argmax)), "aclnnMinDim": with_axis(extreme(np.min, np.argmin)),
}


# ---- Wrong calls ----

class Fuzzer:
    """Calls in any order with objects that may be null, destroyed or of another kind, memory that was freed, workspaces
    that are too small, executors that have run. What must not happen is that the process ends."""

    DESTROY = {"T": "Tensor", "S": "Scalar", "IA": "IntArray", "FA": "FloatArray", "BA": "BoolArray", "TL": "TensorList",
               "SL": "ScalarList"}

    def __init__(self, session, rows, seed):
        self.session, self.rows, self.names = session, rows, sorted(rows)
        self.random = np.random.default_rng(seed)
        self.objects = {kind: [] for kind in self.DESTROY}  # live ones and, later, destroyed ones
        self.destroyed = []
        self.blocks, self.executors = [], []
        self.ran = self.refused = 0

    def pick(self, values):
        return values[int(self.random.integers(len(values)))]

    def step(self):
        self.pick((self.create, self.create, self.call, self.call, self.call, self.call, self.run, self.run, self.destroy,
                   self.free))()

    def create(self):
        C, library = client.C, client.LIBRARY
        kind, made = self.pick(sorted(self.DESTROY)), None
        numbers = (C.c_int64 * 4)(*[int(v) for v in self.random.integers(-1, 4, 4)])
        if kind == "T":
            if not self.blocks or self.random.random() < 0.3:
                self.blocks.append(client.acl.rt.malloc(int(self.random.integers(1, 2048)), 0)[0])
            rank = int(self.random.integers(0, 5))
            strides = None if self.random.random() < 0.5 else (C.c_int64 * 4)(*[int(v) for v in self.random.integers(0, 9, 4)])
            made = library.aclCreateTensor(numbers, C.c_uint64(rank), self.pick(list(client.DTYPES.values())), strides,
                                           C.c_int64(int(self.random.integers(-1, 3))), self.pick([2, 2, 2, 0, 29]),
                                           numbers, C.c_uint64(rank), C.c_void_p(self.pick(self.blocks + [None])))
        elif kind == "S":
            made = library.aclCreateScalar(numbers, self.pick(list(client.DTYPES.values())))
        elif kind in ("TL", "SL"):
            parts = [self.any(kind[0]) for _ in range(int(self.random.integers(0, 4)))]
            create = library.aclCreateTensorList if kind == "TL" else library.aclCreateScalarList
            made = create((C.c_void_p * 4)(*parts), C.c_uint64(len(parts)))
        else:
            create = {"IA": library.aclCreateIntArray, "FA": library.aclCreateFloatArray,
                      "BA": library.aclCreateBoolArray}[kind]
            made = create(numbers, C.c_uint64(int(self.random.integers(0, 4))))
        if made:
            self.objects[kind].append(made)

    def any(self, kind):
        """An object of the kind; now and then null, one of another kind, or a destroyed one."""
        way = self.random.random()
        if way < 0.03:
            return None
        if way < 0.06:
            kind = self.pick(sorted(self.DESTROY))
        if way < 0.09 and self.destroyed:
            return self.pick(self.destroyed)
        return self.pick(self.objects[kind] or [None])

    def call(self):
        C, name = client.C, self.pick(self.names)
        words = []
        for param in self.rows[name]:
            if param.kind in client.NUMBERS:
                number = self.pick([0, 1, 2, -1, 3, 64, -(2 ** 31)])
                words.append(client.NUMBERS[param.kind](number))
            elif param.kind == "str":
                words.append(C.c_char_p(self.pick([b"", b"mean", b"BSND", b"none", None])))
            else:
                words.append(C.c_void_p(self.any(param.kind)))
        size, executor = C.c_uint64(), C.c_void_p()
        last = [C.byref(size), C.byref(executor)] if self.random.random() < 0.97 else [None, None]
        code = getattr(client.LIBRARY, name + "GetWorkspaceSize")(*words, *last)
        if code == 0:
            self.executors.append((name, size.value, executor.value))
        else:
            self.refused += 1

    def run(self):
        C = client.C
        name, size, executor = self.pick(self.executors or [("aclnnAdd", 64, None)])
        if self.random.random() < 0.1:
            client.LIBRARY.aclSetAclOpExecutorRepeatable(C.c_void_p(executor))
        if self.random.random() < 0.05:
            name = self.pick(self.names)
        if self.random.random() < 0.05:
            client.LIBRARY.aclDestroyAclOpExecutor(C.c_void_p(executor))
        room = self.pick([size, size, size, max(0, size - 1), 0])
        workspace = client.acl.rt.malloc(size + 1, 0)[0] if self.random.random() < 0.9 else None
        stream = self.session.stream if self.random.random() < 0.95 else None
        code = getattr(client.LIBRARY, name)(C.c_void_p(workspace), C.c_uint64(room), C.c_void_p(executor),
                                             C.c_void_p(stream))
        done = client.acl.rt.synchronize_stream(self.session.stream)
        self.ran += code == 0 and done == 0
        self.refused += code != 0 or done != 0
        if workspace:
            client.acl.rt.free(workspace)
        if done != 0:  # a stream that failed stays so
            client.acl.rt.destroy_stream(self.session.stream)
            self.session.stream = client.acl.rt.create_stream()[0]

    def destroy(self):
        kind = self.pick(sorted(self.DESTROY))
        if not self.objects[kind]:
            return
        index = int(self.random.integers(len(self.objects[kind])))
        handle = self.objects[kind].pop(index)
        getattr(client.LIBRARY, "aclDestroy" + self.DESTROY[kind])(client.C.c_void_p(handle))
        self.destroyed.append(handle)

    def free(self):
        if len(self.blocks) > 3:
            client.acl.rt.free(self.blocks.pop(int(self.random.integers(len(self.blocks)))))

    def close(self):
        for kind, handles in self.objects.items():
            for handle in handles:
                getattr(client.LIBRARY, "aclDestroy" + self.DESTROY[kind])(client.C.c_void_p(handle))
        for _, _, executor in self.executors:
            client.LIBRARY.aclDestroyAclOpExecutor(client.C.c_void_p(executor))
        for block in self.blocks:
            client.acl.rt.free(block)


# ---- Tests ----

def flat(arrays):
    """The arrays of a list in which lists of arrays stand for lists of tensors."""
    return [a for array in arrays for a in (array if isinstance(array, list) else [array])]


def placed(d, values, expected):
    """The arguments, with a tensor in place of each that is only written: those that expected has last."""
    def is_out(value):
        return isinstance(value, object) and type(value) is object

    outs = sum(is_out(value) or (isinstance(value, list) and any(map(is_out, value))) for value in values)
    left = list(expected)[len(expected) - outs:]
    made = []
    for value in values:
        if is_out(value):
            result = left.pop(0)
            value = d.out(result.dtype, result.shape)
        elif isinstance(value, list) and any(map(is_out, value)):
            value = [d.out(result.dtype, result.shape) for result in left.pop(0)]
        made.append(value)
    return made


def same(result, expected):
    if result.shape != np.shape(expected):
        return False
    if result.dtype.kind != "f":
        return np.array_equal(result, expected)
    tolerance = TOLERANCES[result.dtype.name]
    return np.allclose(result.astype("float64"), expected.astype("float64"), tolerance, tolerance, equal_nan=True)


class Aclnn(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = client.Session()
        cls.rows = client.signatures()

    @classmethod
    def tearDownClass(cls):
        cls.session.close()

    def test_random_calls_are_what_numpy_says(self):
        cases = {name: lambda d, name=name: CASES[name](d, name.startswith("aclnnInplace")) for name in CASES}
        self.compare(cases, CALLS)

    def test_random_calls_are_what_torch_says(self):
        if torch is None:
            self.skipTest("torch is not installed (build/venv of launch/install_deps --torch)")
        import aclnn_cases
        self.compare(aclnn_cases.CASES, CALLS)

    def test_the_page_counts_the_functions(self):
        if torch is None:
            self.skipTest("torch is not installed (build/venv of launch/install_deps --torch)")
        import aclnn_cases
        said = coverage_page.numbers("random calls of # of the functions: # against numpy, # against torch")
        self.assertEqual(said, [len({*CASES, *aclnn_cases.CASES}), len(CASES), len(aclnn_cases.CASES)],
                         "docs/coverage.md")

    def compare(self, cases, calls):
        names = sorted(name for name in cases if ONLY in (None, name))
        drawn, wrong = {}, []
        for seed in range(FIRST, FIRST + calls):
            d = Draw(seed)
            name = names[seed % len(names)] if names else None
            try:
                made = cases[name](d) if names else None
                if made is None:
                    continue
                values, expected = made
                values = placed(d, values, expected)
            except Exception as error:
                wrong.append(f"seed {seed}: {name}[: the case: {type(error).__name__}: {error}")
                continue
            told = [v.dtype.name + str(list(v.shape)) if isinstance(v, np.ndarray) else v for v in values]
            try:
                code, results = self.session.call(name, self.rows[name], values)
            except Exception as error:
                raise AssertionError(f"seed {seed}: {name}") from error
            if code != 0:
                wrong.append(f"seed {seed}: {name}{told}: {code}, {self.session.words()}")
            elif not all(map(same, flat(results), flat(expected))):
                wrong.append(f"seed {seed}: {name}{told}:\n{results}\nexpected\n{expected}")
            drawn[name] = drawn.get(name, 0) + 1
        functions = {text.split("aclnn")[1].split("[")[0]: text for text in wrong}
        if wrong:
            self.fail(f"{len(wrong)} of {calls} calls:\n" + "\n".join(list(functions.values())[:MOST]))
        if calls >= 12 * len(names):
            self.assertEqual(sorted(drawn), names)  # none of them was always passed over
        print(f"{sum(drawn.values())} calls of {len(drawn)} functions")

    def view_of(self, block, memory, dims, draw):
        """A view of the block without elements at one place, as an array and as a tensor."""
        steps = [draw.pick((1, 1, 2)) for _ in dims]
        strides, width = [0] * len(dims), 1
        for axis in draw.random.permutation(len(dims)):
            strides[axis] = width * steps[axis]
            width = strides[axis] * (dims[axis] - 1) + width
        offset = int(draw.random.integers(0, block.size - width + 1))
        array = np.lib.stride_tricks.as_strided(block[offset:], dims, [4 * stride for stride in strides])
        longs = lambda values: (C.c_int64 * len(values))(*values)  # noqa: E731
        handle = client.LIBRARY.aclCreateTensor(longs(dims), C.c_uint64(len(dims)), 0, longs(strides),
                                                C.c_int64(offset), 2, longs([block.size]), C.c_uint64(1),
                                                C.c_void_p(memory))
        return array, C.c_void_p(handle)

    def test_views_of_one_block(self):
        """Operands and results lie over each other in any way: what is read is what was there before."""
        def product(x, y):
            return np.einsum("ij,jk->ik", x, y)

        functions = {"aclnnMul": (2, np.multiply, ()), "aclnnNeg": (1, np.negative, ()), "aclnnMm": (2, product, (0,)),
                     "aclnnExp2": (1, np.exp2, ()), "aclnnMaximum": (2, np.maximum, ())}
        memory, workspace = acl.rt.malloc(4 * 64, 0)[0], acl.rt.malloc(4096, 0)[0]
        for seed in range(FIRST, FIRST + CALLS // 5):
            draw = Draw(seed)
            name = draw.pick(sorted(functions))
            count, function, more = functions[name]
            block = draw.random.integers(-3, 4, 64).astype("float32")
            C.memmove(memory, block.ctypes.data, block.nbytes)
            dims = [3, 3] if more else [int(n) for n in draw.random.integers(1, 4, draw.pick((1, 2)))]
            made = [self.view_of(block, memory, dims, draw) for _ in range(count)]
            # In place, or anywhere.
            made.append(made[0] if draw.random.random() < 0.3 else self.view_of(block, memory, dims, draw))
            made[-1][0][...] = function(*[array.copy() for array, _ in made[:-1]])
            size, executor = C.c_uint64(), C.c_void_p()
            handles = [handle for _, handle in made] + [C.c_int8(value) for value in more]
            code = getattr(client.LIBRARY, name + "GetWorkspaceSize")(*handles, C.byref(size), C.byref(executor))
            self.assertEqual(code, 0, self.session.words())
            self.assertLessEqual(size.value, 4096)
            code = getattr(client.LIBRARY, name)(C.c_void_p(workspace), size, executor, C.c_void_p(self.session.stream))
            self.assertEqual(code or acl.rt.synchronize_stream(self.session.stream), 0)
            seen = np.empty(64, "float32")
            C.memmove(seen.ctypes.data, memory, seen.nbytes)
            self.assertEqual(seen.tolist(), block.tolist(), f"seed {seed}: {name}")
            for _, handle in made[:len(made) - (made[-1] is made[0])]:
                client.LIBRARY.aclDestroyTensor(handle)
        for place in (memory, workspace):
            acl.rt.free(place)

    def test_every_row_has_its_two_functions(self):
        for name in self.rows:
            for symbol in (name, name + "GetWorkspaceSize"):
                self.assertTrue(hasattr(client.LIBRARY, symbol), symbol)

    def test_wrong_calls_in_any_order(self):
        fuzzer = Fuzzer(self.session, self.rows, FIRST)
        for _ in range(WRONG):
            fuzzer.step()
        fuzzer.close()
        self.assertTrue(fuzzer.ran, "no call was right")
        self.assertTrue(fuzzer.refused, "no call was wrong")
        print(f"{fuzzer.ran} calls ran, {fuzzer.refused} were refused")

    def test_wrong_calls_are_told(self):
        x = np.zeros((2, 3), "float32")
        add = self.rows["aclnnAdd"]
        for values, code, words in (
                ([x, None, 1, x.copy()], 161001, "other is null"),
                ([x, x.copy(), 1, np.zeros((2, 4), "float32")], 161002, "out is float32[2,4], expected [2,3]"),
                ([x, np.zeros((2, 4), "float32"), 1, x.copy()], 161002, "[2,4]")):
            self.assertEqual(self.session.call("aclnnAdd", add, values)[0], code)
            self.assertIn(words, self.session.words())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=FIRST)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--wrong", type=int, default=WRONG, help="calls in any order")
    parser.add_argument("--only", help="one function")
    given, words = parser.parse_known_args()  # words: tests of unittest
    FIRST, CALLS, WRONG, ONLY = given.first, given.calls, given.wrong, given.only
    sys.argv[1:] = words
    case.main()
