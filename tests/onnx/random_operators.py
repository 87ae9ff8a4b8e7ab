"""The operators of random ONNX models: how each is written in an operator set, and what numpy makes of it.

A function picks its operands in a scope and adds a node; it raises Unfit when there are none. What a function
computes follows the text of the ONNX specification.
"""

import itertools
import math

import numpy

from random_scope import LARGEST, MOST_ELEMENTS, Scope, Unfit
from onnx import helper

TABLE = []  # (since, until, weight, function)


def operator(since=7, until=99, weight=1.0):
    def register(function):
        TABLE.append((since, until, weight, function))
        return function
    return register


def must(holds):
    """What ONNX asks of operands, and numpy does not; other sizes of inputs may break it."""
    if not holds:
        raise ValueError("not a call of ONNX")


def choose(scope):
    """One operator that this operator set has."""
    fit = [row for row in TABLE if row[0] <= scope.opset <= row[1]]
    return scope.random.choices([row[3] for row in fit], [row[2] for row in fit])[0]


# ---- element by element ----

ANY = (-LARGEST, LARGEST)
erf = numpy.vectorize(math.erf, otypes=[float])
SMOOTH = {  # since, domain, function
    "Exp": (7, (-5, 5), numpy.exp), "Log": (7, (0.1, LARGEST), numpy.log), "Sqrt": (7, (0.01, LARGEST), numpy.sqrt),
    "Sin": (7, (-20, 20), numpy.sin), "Cos": (7, (-20, 20), numpy.cos), "Tan": (7, (-1, 1), numpy.tan),
    "Asin": (7, (-0.9, 0.9), numpy.arcsin), "Acos": (7, (-0.9, 0.9), numpy.arccos), "Atan": (7, ANY, numpy.arctan),
    "Sinh": (9, (-4, 4), numpy.sinh), "Cosh": (9, (-4, 4), numpy.cosh), "Asinh": (9, ANY, numpy.arcsinh),
    "Acosh": (9, (1.1, LARGEST), numpy.arccosh), "Atanh": (9, (-0.9, 0.9), numpy.arctanh), "Erf": (9, ANY, erf),
    "Tanh": (7, ANY, numpy.tanh), "Sigmoid": (7, ANY, lambda x: 1 / (1 + numpy.exp(-x))),
    "Softplus": (7, ANY, lambda x: numpy.logaddexp(0, x)), "Softsign": (7, ANY, lambda x: x / (1 + abs(x))),
    "HardSwish": (14, ANY, lambda x: x * numpy.clip(x / 6 + 0.5, 0, 1)),
    "Reciprocal": (7, (0.2, LARGEST), lambda x: 1 / x),
}
PLAIN = {"Abs": abs, "Neg": lambda x: -x, "Relu": lambda x: numpy.maximum(x, 0), "Identity": lambda x: x}
STEPS = {"Floor": (7, numpy.floor), "Ceil": (7, numpy.ceil), "Sign": (9, numpy.sign), "Round": (11, numpy.round)}


@operator(weight=4)
def smooth(s):
    kind = s.random.choice([kind for kind, (since, _, _) in SMOOTH.items() if since <= s.opset])
    _, bounds, function = SMOOTH[kind]
    return s.add(kind, [s.within(*bounds)], function, exact=False)


@operator(weight=2)
def plain(s):
    kind = s.random.choice(list(PLAIN))
    return s.add(kind, [s.floats()], PLAIN[kind])


@operator(weight=2)
def steps(s):
    kind = s.random.choice([kind for kind, (since, _) in STEPS.items() if since <= s.opset])
    return s.add(kind, [s.floats(exact=True)], STEPS[kind][1])


@operator(weight=2)
def activation(s):
    alpha, beta = s.random.choice([None, 0.25, 0.5, 1.5]), s.random.choice([None, 0.25, 0.75])
    a = lambda default: default if alpha is None else alpha
    b = lambda default: default if beta is None else beta
    x = s.within(-30, 30)
    kind = s.random.choice(["LeakyRelu", "Elu", "Selu", "HardSigmoid", "Celu"])
    if kind == "LeakyRelu":
        return s.add(kind, [x], lambda x: numpy.where(x < 0, a(0.01) * x, x), exact=False, alpha=alpha)
    if kind == "Elu":
        return s.add(kind, [x], lambda x: numpy.where(x < 0, a(1.0) * numpy.expm1(x), x), exact=False, alpha=alpha)
    if kind == "Selu":
        gamma, default = 1.05070102214813232421875, 1.67326319217681884765625
        return s.add(kind, [x], lambda x: numpy.where(x > 0, b(gamma) * x, b(gamma) * a(default) * numpy.expm1(x)),
                     exact=False, alpha=alpha, gamma=beta)
    if kind == "HardSigmoid":
        return s.add(kind, [x], lambda x: numpy.clip(a(0.2) * x + b(0.5), 0, 1), exact=False, alpha=alpha, beta=beta)
    if s.opset < 12:
        raise Unfit
    return s.add(kind, [x], lambda x: numpy.maximum(x, 0) + numpy.minimum(0, a(1.0) * numpy.expm1(x / a(1.0))),
                 exact=False, alpha=alpha)


@operator(since=9)
def shrink(s):
    lambd, bias = 0.5, s.random.choice([None, 0.25])
    return s.add("Shrink", [s.floats(exact=True)],
                 lambda x: numpy.where(x < -lambd, x + (bias or 0), numpy.where(x > lambd, x - (bias or 0), 0)),
                 lambd=lambd, bias=bias)


@operator(since=10)
def thresholded(s):
    return s.add("ThresholdedRelu", [s.floats(exact=True)], lambda x: numpy.where(x > 0.5, x, 0), alpha=0.5)


@operator(weight=5)
def arithmetic(s):
    kind, function = s.random.choice([("Add", numpy.add), ("Sub", numpy.subtract), ("Mul", numpy.multiply)])
    x = s.pick("float32", "float32", "int64", "int32")
    operands = [x, s.partner(x)]
    s.random.shuffle(operands)
    return s.add(kind, operands, function)


@operator()
def divide(s):
    x = s.floats()
    y = s.partner(x)
    if y.size == 0 or abs(y.array).min() < 0.2:
        raise Unfit
    return s.add("Div", [x, y], numpy.divide, exact=False)


@operator()
def divide_integers(s):
    x = s.pick("int64", "int32")
    y = s.partner(x)
    def function(x, y):
        if (y == 0).any():  # other numbers may have come
            raise Unfit
        return numpy.sign(x) * numpy.sign(y) * (abs(x) // abs(y))  # without the fraction
    return s.add("Div", [x, y], function)


@operator()
def power(s):
    x = s.within(0.2, 4)
    y = s.random.choice([s.constant(s.random.choice([2.0, 0.5, -1.0, 3.0])), s.partner(x)])
    if y.size == 0 or abs(y.array).max() > 4:
        raise Unfit
    return s.add("Pow", [x, y], numpy.power, exact=False)


@operator(since=10)
def modulo(s):
    x = s.pick("int64", "int32")
    y = s.partner(x)
    by_sign = s.random.random() < 0.5
    def function(x, y):
        if (y == 0).any():
            raise Unfit
        return (numpy.fmod if by_sign else numpy.mod)(x, y)
    return s.add("Mod", [x, y], function, fmod=1 if by_sign else None)


@operator(since=8, weight=2)
def variadic(s):
    kind = s.random.choice(["Sum", "Mean", "Max", "Min"])
    first = s.floats()
    operands = [first] + [s.partner(first) for _ in range(s.random.randrange(3))]
    try:
        shape = numpy.broadcast_shapes(*(operand.shape for operand in operands))
    except ValueError:
        raise Unfit from None
    reduce = {"Sum": numpy.sum, "Mean": numpy.mean, "Max": numpy.max, "Min": numpy.min}[kind]
    return s.add(kind, operands, lambda *all_: reduce([a + numpy.zeros(numpy.broadcast_shapes(*(b.shape for b in all_)))
                                                       for a in all_], axis=0),
                 exact=kind != "Mean") if numpy.prod(shape, dtype=int) <= MOST_ELEMENTS else None


@operator()
def prelu(s):
    x = s.floats(least=1)
    slope = s.constant(s.numbers([size if s.random.random() < 0.5 else 1 for size in x.shape]))
    def function(x, slope):
        must(numpy.broadcast_shapes(x.shape, slope.shape) == x.shape)
        return numpy.where(x < 0, slope * x, x)
    return s.add("PRelu", [x, slope], function)


@operator(weight=2)
def compare(s):
    kinds = {"Greater": numpy.greater, "Less": numpy.less, "Equal": numpy.equal}
    if s.opset >= 12:
        kinds.update(GreaterOrEqual=numpy.greater_equal, LessOrEqual=numpy.less_equal)
    kind = s.random.choice(list(kinds))
    dtypes = {"Equal": ("int64", "int32", "bool")}.get(kind, ("float32",)) if s.opset < 11 else ("float32", "int64")
    if kind in ("Greater", "Less") and s.opset < 9:
        dtypes = ("float32",)
    x = s.pick(*dtypes, exact=True)
    y = s.partner(x)
    if not y.exact:
        raise Unfit
    return s.add(kind, [x, y], kinds[kind], dtypes="bool")


@operator(weight=2)
def logic(s):
    if s.random.random() < 0.3:
        return s.add("Not", [s.pick("bool")], numpy.logical_not)
    kind, function = s.random.choice([("And", numpy.logical_and), ("Or", numpy.logical_or),
                                      ("Xor", numpy.logical_xor)])
    x = s.pick("bool")
    return s.add(kind, [x, s.partner(x)], function)


@operator(since=9, weight=2)
def where(s):
    x = s.floats()
    y = s.partner(x)
    shape = numpy.broadcast_shapes(x.shape, y.shape)
    def fits(c):
        try:
            return numpy.prod(numpy.broadcast_shapes(c.shape, shape), dtype=int) <= MOST_ELEMENTS
        except ValueError:
            return False
    return s.add("Where", [s.pick("bool", test=fits), x, y], numpy.where, dtypes="float32")


@operator(weight=2)
def clip(s):
    x = s.floats()
    low, high = s.random.choice([(None, 1.5), (-1.0, None), (-1.0, 1.5), (0.0, 6.0)])
    function = lambda x, *_: numpy.clip(x, -numpy.inf if low is None else low, numpy.inf if high is None else high)
    if s.opset < 11:
        return s.add("Clip", [x], function, min=low, max=high)
    bounds = [None if bound is None else s.constant(bound) for bound in (low, high)]
    return s.add("Clip", [x, *bounds], function)


@operator(weight=2)
def cast(s):
    from random_scope import KINDS
    x = s.pick("float32", "int64", "int32", "bool", exact=True)
    to = s.random.choice(["float32", "int64", "int32", "bool"])
    if x.dtype == "float32" and to.startswith("int"):
        return s.add("Cast", [x], numpy.trunc, dtypes=to, to=KINDS[to])
    return s.add("Cast", [x], lambda x: x.astype(bool) if to == "bool" else x, dtypes=to, to=KINDS[to])


@operator()
def dropout(s):
    x = s.floats()
    if s.opset < 12:
        return s.add("Dropout", [x], lambda x: x, ratio=0.3)
    return s.add("Dropout", [x, s.constant(0.3) if s.random.random() < 0.5 else None], lambda x, *_: x)


@operator(since=11)
def bit_shift(s):
    x = s.pick("uint8")
    to = s.random.choice(["LEFT", "RIGHT"])
    shift = s.constant(numpy.array(s.random.randrange(1, 3)), "uint8")
    return s.add("BitShift", [x, shift], numpy.left_shift if to == "LEFT" else numpy.right_shift, direction=to)


# ---- shapes ----

def some_axes(s, rank, least=1):
    count = s.random.randrange(least, rank + 1)
    axes = sorted(s.random.sample(range(rank), count))
    written = [axis - rank if s.opset >= 11 and s.random.random() < 0.3 else axis for axis in axes]
    return axes, written


def an_axis(s, rank):
    axis = s.random.randrange(rank)
    return axis, axis - rank if s.opset >= 11 and s.random.random() < 0.4 else axis


def divisors(number):
    return [d for d in range(1, number + 1) if number % d == 0]


@operator(weight=3)
def reshape(s):
    x = s.pick(test=lambda v: v.size > 0)
    left, shape = x.size, []
    for i in range(s.random.randrange(4)):
        if i < x.rank and x.shape[i] and left % x.shape[i] == 0 and s.random.random() < 0.4:
            shape.append(0)  # as it is
            left //= x.shape[i]
        else:
            shape.append(s.random.choice(divisors(left)))
            left //= shape[-1]
    shape.append(s.random.choice([-1, left]))
    return s.add("Reshape", [x, s.ints(shape)], lambda x, shape: x.reshape(
        [x.shape[i] if size == 0 else size for i, size in enumerate(shape.tolist())]))


@operator()
def reshape_by_shape(s):
    """As exporters write x.view(x.size(0), -1): the sizes are computed."""
    x = s.pick(least=2, test=lambda v: v.size > 0)
    shape = s.add("Shape", [x], lambda x: numpy.array(x.shape), dtypes="int64")
    index = s.random.randrange(x.rank)
    size = s.add("Gather", [shape, s.ints([index])], lambda a, i: a[i], axis=0)
    minus = s.ints([-1])
    wanted = s.add("Concat", [size, minus], lambda a, b: numpy.concatenate([a, b]), axis=0)
    return s.add("Reshape", [x, wanted], lambda x, shape: x.reshape(shape.tolist()))


@operator()
def flatten(s):
    x = s.pick("float32", "int64") if s.opset >= 9 else s.floats()
    axis = s.random.randrange(x.rank + 1)
    return s.add("Flatten", [x], lambda x: x.reshape(int(numpy.prod(x.shape[:axis], dtype=int)), -1)
                 if x.size else x.reshape(int(numpy.prod(x.shape[:axis], dtype=int)),
                                          int(numpy.prod(x.shape[axis:], dtype=int))), axis=axis)


@operator(weight=2)
def transpose(s):
    x = s.pick()
    perm = None if s.random.random() < 0.2 else s.random.sample(range(x.rank), x.rank)
    return s.add("Transpose", [x], lambda x: x.transpose(perm), perm=perm or None)


def with_axes(s, kind, x, axes, function, since=13, **more):
    """Axes are an attribute before operator set `since`, and then an operand."""
    if s.opset < since:
        return s.add(kind, [x], lambda x: function(x), axes=axes, **more)
    return s.add(kind, [x, s.ints(axes)], lambda x, _: function(x), **more)


@operator()
def squeeze(s):
    x = s.pick(test=lambda v: 1 in v.shape)
    ones = [axis for axis, size in enumerate(x.shape) if size == 1]
    axes = s.random.sample(ones, s.random.randrange(1, len(ones) + 1))
    return with_axes(s, "Squeeze", x, axes, lambda x: x.squeeze(tuple(axes)))


@operator()
def unsqueeze(s):
    x = s.pick(most=3)
    axes = sorted(s.random.sample(range(x.rank + 1), 1))
    return with_axes(s, "Unsqueeze", x, axes, lambda x: numpy.expand_dims(x, tuple(axes)))


@operator(weight=2)
def concat(s):
    x = s.pick(least=1)
    axis, written = an_axis(s, x.rank)
    rest = lambda shape: shape[:axis] + shape[axis + 1:]
    others = [s.pick(x.dtype, least=x.rank, most=x.rank, test=lambda v: rest(v.shape) == rest(x.shape))
              for _ in range(s.random.randrange(1, 3))]
    return s.add("Concat", [x, *others], lambda *all_: numpy.concatenate(all_, axis), axis=written)


@operator(weight=2)
def split(s):
    x = s.pick(least=1, test=lambda v: max(v.shape) >= 2)
    axis = s.random.choice([axis for axis, size in enumerate(x.shape) if size >= 2])
    if s.random.random() < 0.3 and x.shape[axis] % 2 == 0:
        more = {"num_outputs": 2} if s.opset >= 18 else {}
        return s.add("Split", [x], lambda x: tuple(numpy.split(x, 2, axis)), count=2, axis=axis, **more)
    first = s.random.randrange(1, x.shape[axis])
    sizes = [first, x.shape[axis] - first]
    def function(x, *_):
        must(x.shape[axis] == sum(sizes))
        return tuple(numpy.split(x, [first], axis))
    if s.opset < 13:
        return s.add("Split", [x], function, count=2, axis=axis, split=sizes)
    return s.add("Split", [x, s.ints(sizes)], function, count=2, axis=axis)


@operator(weight=2)
def slice_(s):
    x = s.pick(least=1, test=lambda v: v.size > 0)
    axes, written = some_axes(s, x.rank)
    starts, ends, strides, parts = [], [], [], [slice(None)] * x.rank
    for axis in axes:
        size = x.shape[axis]
        start = s.random.randrange(-size, size)
        end = s.random.choice([size, 2**31 - 1, s.random.randrange(-size, size + 1), -1])
        stride = s.random.choice([1, 1, 2]) if s.opset >= 10 else 1
        if s.opset >= 10 and s.random.random() < 0.2:
            start, end, stride = -1, -(2**31), -1
        starts, ends, strides = starts + [start], ends + [end], strides + [stride]
        parts[axis] = slice(start, None if end == -(2**31) else end, stride)
    function = lambda x, *_: x[tuple(parts)]
    if s.opset < 10:
        return s.add("Slice", [x], function, starts=starts, ends=ends, axes=axes)
    plain_axes = axes == list(range(x.rank)) and set(strides) == {1} and s.random.random() < 0.5
    rest = [None, None] if plain_axes else [s.ints(written), None if set(strides) == {1} else s.ints(strides)]
    return s.add("Slice", [x, s.ints(starts), s.ints(ends), *rest], function)


@operator(weight=2)
def gather(s):
    x = s.pick(least=1, test=lambda v: v.size > 0)
    axis, written = an_axis(s, x.rank)
    size = x.shape[axis]
    low = -size if s.opset >= 11 else 0
    shape = s.random.choice([(), (2,), (3, 1)])
    index = numpy.array([s.random.randrange(low, size) for _ in range(int(numpy.prod(shape, dtype=int)))])
    indices = s.constant(index.reshape(shape), s.random.choice(["int64", "int32"]))
    return s.add("Gather", [x, indices], lambda x, i: numpy.take(x, i, axis), axis=written)


@operator(since=11)
def gather_elements(s):
    x = s.pick(least=1, test=lambda v: v.size > 0)
    axis, written = an_axis(s, x.rank)
    shape = [s.random.randrange(1, 4) if i == axis else s.random.randrange(1, size + 1)
             for i, size in enumerate(x.shape)]
    index = numpy.array([s.random.randrange(-x.shape[axis], x.shape[axis]) for _ in range(numpy.prod(shape))])
    def function(x, i):
        must(all(d == axis or i.shape[d] <= x.shape[d] for d in range(x.ndim)))
        cut = tuple(slice(None) if d == axis else slice(i.shape[d]) for d in range(x.ndim))
        return numpy.take_along_axis(x[cut], i, axis)
    return s.add("GatherElements", [x, s.constant(index.reshape(shape), "int64")], function, axis=written)


def index_rows(s, shape, depth):
    """Distinct positions into the first `depth` dimensions."""
    places = list(itertools.product(*(range(size) for size in shape[:depth])))
    return numpy.array(s.random.sample(places, s.random.randrange(1, min(4, len(places)) + 1)))


@operator(since=11)
def gather_nd(s):
    x = s.pick(least=1, test=lambda v: v.size > 0)
    rows = index_rows(s, x.shape, s.random.randrange(1, x.rank + 1))
    return s.add("GatherND", [x, s.constant(rows, "int64")], lambda x, i: x[tuple(i.T)])


@operator(since=11)
def scatter_nd(s):
    x = s.floats(least=1, test=lambda v: v.size > 0)
    depth = s.random.randrange(1, x.rank + 1)
    rows = index_rows(s, x.shape, depth)
    updates = s.constant(s.numbers([len(rows), *x.shape[depth:]]))
    def function(x, i, updates):
        must(updates.shape[1:] == x.shape[depth:])
        y = x.copy()
        y[tuple(i.T)] = updates
        return y
    return s.add("ScatterND", [x, s.constant(rows, "int64"), updates], function)


@operator(since=11)
def scatter_elements(s):
    x = s.floats(least=1, test=lambda v: v.size > 0)
    axis, written = an_axis(s, x.rank)
    shape = [s.random.randrange(1, size + 1) for size in x.shape]
    lines = numpy.array([s.random.sample(range(x.shape[axis]), shape[axis])
                         for _ in range(int(numpy.prod(shape)) // shape[axis])])
    index = numpy.moveaxis(lines.reshape([size for i, size in enumerate(shape) if i != axis] + [shape[axis]]), -1, axis)
    updates = s.constant(s.numbers(shape))
    def function(x, i, updates):
        y = x.copy()
        for place in numpy.ndindex(*i.shape):
            y[place[:axis] + (i[place],) + place[axis + 1:]] = updates[place]
        return y
    return s.add("ScatterElements", [x, s.constant(index, "int64"), updates], function, axis=written)


@operator(since=8)
def expand(s):
    x = s.pick(test=lambda v: v.size > 0)
    shape = [s.random.choice([1, size if size > 1 else s.random.randrange(1, 4)]) for size in x.shape]
    shape = s.random.choice([[], [2]]) + shape
    return s.add("Expand", [x, s.ints(shape)],
                 lambda x, shape: numpy.broadcast_to(x, numpy.broadcast_shapes(x.shape, tuple(shape.tolist()))))


@operator()
def tile(s):
    x = s.pick(least=1)
    repeats = [s.random.choice([1, 1, 2, 3]) for _ in x.shape]
    return s.add("Tile", [x, s.ints(repeats)], lambda x, r: numpy.tile(x, r.tolist()))


@operator()
def pad(s):
    x = s.floats(least=1, test=lambda v: v.size > 0)
    mode = s.random.choice(["constant", "constant", "edge", "reflect"])
    most = [size - 1 if mode == "reflect" else 2 for size in x.shape]
    pads = [(s.random.randrange(m + 1), s.random.randrange(m + 1)) for m in most]
    value = s.random.choice([None, 1.5]) if mode == "constant" else None
    flat = [before for before, _ in pads] + [after for _, after in pads]
    more = {"constant_values": value or 0} if mode == "constant" else {}
    def function(x, *_):
        if mode == "reflect" and any(max(pair) >= size for pair, size in zip(pads, x.shape)):
            raise Unfit
        return numpy.pad(x, pads, mode, **more)
    if s.opset < 11:
        return s.add("Pad", [x], function, pads=flat, mode=mode, value=value)
    return s.add("Pad", [x, s.ints(flat), None if value is None else s.constant(value)], function, mode=mode)


@operator()
def shape_of(s):
    x = s.pick()
    if s.random.random() < 0.3:
        return s.add("Size", [x], lambda x: numpy.array(x.size), dtypes="int64")
    if s.opset >= 15 and s.random.random() < 0.5 and x.rank > 1:
        return s.add("Shape", [x], lambda x: numpy.array(x.shape[1:], numpy.int64), dtypes="int64", start=1)
    return s.add("Shape", [x], lambda x: numpy.array(x.shape, numpy.int64), dtypes="int64")


@operator(since=9)
def constant_of_shape(s):
    """The rank of the result has to be known, so its shape is never a vector whose length depends on data."""
    if s.random.random() < 0.3:
        shape = s.ints([s.random.randrange(4) for _ in range(s.random.randrange(4))])
    else:
        shape = s.add("Shape", [s.pick()], lambda x: numpy.array(x.shape, numpy.int64), dtypes="int64")
    value = s.random.choice([None, 2.5])
    tensor = None if value is None else helper.make_tensor("", 1, [1], [value])
    return s.add("ConstantOfShape", [shape], lambda shape: numpy.full(shape.tolist(), value or 0.0), dtypes="float32",
                 value=tensor)


@operator(since=11)
def range_(s):
    start, count = s.random.randrange(-3, 4), s.random.randrange(1, 6)
    step = s.random.choice([1, 2, -1])
    ends = [s.constant(numpy.array(v), "int64") for v in (start, start + step * count, step)]
    return s.add("Range", ends, lambda a, b, c: numpy.arange(a, b, c))


@operator(since=9)
def one_hot(s):
    x = s.pick("int64", test=lambda v: v.size <= 50)
    depth = s.random.randrange(2, 6)
    x_ok = ((x.array >= -depth) & (x.array < depth)).all() if s.opset >= 11 else (x.array >= 0).all()
    if not x_ok:
        raise Unfit
    axis = s.random.choice([-1, 0])
    def function(x, depth, values):
        hot = (numpy.mod(x, int(depth))[..., None] == numpy.arange(int(depth))) & ((x >= -int(depth)) & (x < int(depth)))[..., None]
        return numpy.moveaxis(numpy.where(hot, values[1], values[0]), -1, axis)
    return s.add("OneHot", [x, s.constant(numpy.array(depth), "int64"), s.constant([-0.5, 2.0])], function,
                 dtypes="float32", axis=axis)


@operator(since=11)
def cumsum(s):
    x = s.pick("float32", "int64", least=1)
    axis, written = an_axis(s, x.rank)
    exclusive, reverse = s.random.randrange(2), s.random.randrange(2)
    def function(x, _):
        x = numpy.flip(x, axis) if reverse else x
        y = numpy.cumsum(x, axis)
        y = y - x if exclusive else y
        return numpy.flip(y, axis) if reverse else y
    return s.add("CumSum", [x, s.constant(numpy.array(written), s.random.choice(["int64", "int32"]))], function,
                 exclusive=exclusive, reverse=reverse)


@operator(since=9)
def non_zero(s):
    x = s.pick("float32", "bool", "int64", least=1, exact=True)
    return s.add("NonZero", [x], lambda x: numpy.array(numpy.nonzero(x)), dtypes="int64")


@operator(since=9)
def compress(s):
    x = s.pick(least=1, test=lambda v: v.size > 0)
    axis = s.random.choice([None, *range(x.rank)])
    size = x.size if axis is None else x.shape[axis]
    keep = s.constant(s.numbers([size], "bool"), "bool")
    return s.add("Compress", [x, keep], lambda x, keep: numpy.compress(keep, x, axis), axis=axis)


@operator(since=14)
def trilu(s):
    x = s.pick("float32", "int64", least=2)
    upper = s.random.choice([None, 0, 1])
    k = s.random.choice([None, -1, 0, 1])
    function = lambda x, *_: numpy.tril(x, k or 0) if upper == 0 else numpy.triu(x, k or 0)
    return s.add("Trilu", [x, None if k is None else s.constant(numpy.array(k), "int64")], function, upper=upper)


@operator(since=9)
def eye_like(s):
    x = s.floats(least=2, most=2)
    k = s.random.choice([None, -1, 1])
    return s.add("EyeLike", [x], lambda x: numpy.eye(*x.shape, k or 0), k=k)


@operator(since=10)
def reverse_sequence(s):
    x = s.floats(least=2, test=lambda v: v.size > 0)
    time = s.random.randrange(2)
    lengths = [s.random.randrange(1, x.shape[time] + 1) for _ in range(x.shape[1 - time])]
    def function(x, lengths):
        must(x.shape[1 - time] == lengths.size and (lengths <= x.shape[time]).all())
        y = numpy.moveaxis(x, time, 1).copy() if time == 0 else x.copy()
        for row, length in enumerate(lengths.tolist()):
            y[row, :length] = y[row, :length][::-1]
        return numpy.moveaxis(y, 1, time) if time == 0 else y
    return s.add("ReverseSequence", [x, s.ints(lengths)], function, time_axis=time, batch_axis=1 - time)


@operator()
def top_k(s):
    x = s.floats(least=1, exact=True, test=lambda v: v.size > 0)
    axis, written = an_axis(s, x.rank)
    k = s.random.randrange(1, x.shape[axis] + 1)
    largest = s.random.choice([None, 0]) if s.opset >= 11 else None
    def function(x, *_):
        order = numpy.argsort(x if largest == 0 else -x, axis, "stable")
        order = numpy.take(order, range(k), axis)
        return numpy.take_along_axis(x, order, axis), order
    dtypes = ["float32", "int64"]
    if s.opset < 10:
        return s.add("TopK", [x], function, dtypes=dtypes, count=2, axis=axis, k=k)
    return s.add("TopK", [x, s.ints([k])], function, dtypes=dtypes, count=2, axis=written, largest=largest)


@operator()
def arg_max(s):
    kind, find = s.random.choice([("ArgMax", numpy.argmax), ("ArgMin", numpy.argmin)])
    x = s.floats(least=1, exact=True, test=lambda v: v.size > 0)
    axis, written = an_axis(s, x.rank)
    keep = s.random.choice([None, 0])
    last = s.random.choice([None, 1]) if s.opset >= 12 else None
    def function(x):
        found = x.shape[axis] - 1 - find(numpy.flip(x, axis), axis) if last else find(x, axis)
        return found if keep == 0 else numpy.expand_dims(found, axis)
    return s.add(kind, [x], function, dtypes="int64", axis=written, keepdims=keep, select_last_index=last)


@operator()
def depth_space(s):
    if s.random.random() < 0.5:
        x = s.floats(least=4, most=4, test=lambda v: v.size > 0 and v.shape[2] % 2 == 0 and v.shape[3] % 2 == 0)
        def function(x):
            n, c, h, w = x.shape
            return x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 3, 5, 1, 2, 4).reshape(n, c * 4, h // 2, w // 2)
        return s.add("SpaceToDepth", [x], function, blocksize=2)
    x = s.floats(least=4, most=4, test=lambda v: v.size > 0 and v.shape[1] % 4 == 0)
    mode = s.random.choice([None, "CRD"]) if s.opset >= 11 else None
    def function(x):
        n, c, h, w = x.shape
        if mode:
            y = x.reshape(n, c // 4, 2, 2, h, w).transpose(0, 1, 4, 2, 5, 3)
        else:
            y = x.reshape(n, 2, 2, c // 4, h, w).transpose(0, 3, 4, 1, 5, 2)
        return y.reshape(n, c // 4, h * 2, w * 2)
    return s.add("DepthToSpace", [x], function, blocksize=2, mode=mode)


@operator()
def enlarge(s):
    x = s.floats(least=4, most=4, test=lambda v: 0 < v.size <= MOST_ELEMENTS // 6)
    factors = (s.random.randrange(1, 4), s.random.randrange(1, 3))
    scales = [1.0, 1.0, *map(float, factors)]
    function = lambda x, *_: x.repeat(factors[0], 2).repeat(factors[1], 3)
    def to_sizes(grown, *_):
        if grown.shape != x.shape:
            raise Unfit
        return function(grown)
    if s.opset < 9:
        return s.add("Upsample", [x], function, mode="nearest", scales=scales)
    if s.opset < 11:
        return s.add("Upsample" if s.opset < 10 else "Resize", [x, s.constant(scales)], function, mode="nearest")
    roi = s.constant(numpy.zeros(0)) if s.opset < 13 else None
    if s.random.random() < 0.3:
        sizes = [*x.shape[:2], x.shape[2] * factors[0], x.shape[3] * factors[1]]
        scale = s.constant(numpy.zeros(0)) if s.opset < 13 else None
        operands, grow_it = [x, roi, scale, s.ints(sizes)], to_sizes
    else:
        operands, grow_it = [x, roi, s.constant(scales)], function
    return s.add("Resize", operands, grow_it, mode="nearest", coordinate_transformation_mode="asymmetric",
                 nearest_mode="floor")


# ---- reductions ----

REDUCE = {
    "ReduceSum": (numpy.sum, True), "ReduceMax": (numpy.max, True), "ReduceMin": (numpy.min, True),
    "ReduceMean": (numpy.mean, False), "ReduceProd": (numpy.prod, False),
    "ReduceL1": (lambda x, a, keepdims: numpy.sum(abs(x), a, keepdims=keepdims), True),
    "ReduceL2": (lambda x, a, keepdims: numpy.sqrt(numpy.sum(x * x, a, keepdims=keepdims)), False),
    "ReduceSumSquare": (lambda x, a, keepdims: numpy.sum(x * x, a, keepdims=keepdims), True),
    "ReduceLogSumExp": (lambda x, a, keepdims: numpy.log(numpy.sum(numpy.exp(x), a, keepdims=keepdims)), False),
    "ReduceLogSum": (lambda x, a, keepdims: numpy.log(numpy.sum(x, a, keepdims=keepdims)), False),
}


@operator(weight=4)
def reduce(s):
    kind = s.random.choice(list(REDUCE))
    function, exact = REDUCE[kind]
    x = s.within(0.1, 50) if kind == "ReduceLogSum" else s.floats(test=lambda v: v.size > 0)
    if kind == "ReduceLogSumExp" and abs(x.array).max() > 20:
        raise Unfit
    keep = s.random.choice([None, 0, 1])
    keepdims = keep != 0
    if x.rank == 0 or s.random.random() < 0.2:
        return s.add(kind, [x], lambda x: function(x, None, keepdims=keepdims), exact=exact, keepdims=keep)
    axes, written = some_axes(s, x.rank)
    since = 13 if kind == "ReduceSum" else 18
    return with_axes(s, kind, x, written, lambda x: function(x, tuple(axes), keepdims=keepdims), since,
                     exact=exact, keepdims=keep)


@operator(weight=2)
def softmax(s):
    kind = s.random.choice(["Softmax", "LogSoftmax", "Hardmax"])
    x = s.floats(least=1, exact=kind == "Hardmax", test=lambda v: v.size > 0)
    axis = s.random.choice([None, s.random.randrange(x.rank)])
    if s.opset < 13 and axis is None and x.rank < 2:
        raise Unfit
    def along(x, axes):
        e = numpy.exp(x - x.max(axes, keepdims=True))
        if kind == "Softmax":
            return e / e.sum(axes, keepdims=True)
        if kind == "LogSoftmax":
            return x - x.max(axes, keepdims=True) - numpy.log(e.sum(axes, keepdims=True))
        flat = x.reshape(*x.shape[:axes[0]], -1) if len(axes) > 1 or axes[0] == x.ndim - 1 else numpy.moveaxis(x, axes[0], -1)
        hot = (numpy.arange(flat.shape[-1]) == flat.argmax(-1)[..., None]).astype(float)
        return hot.reshape(x.shape) if len(axes) > 1 or axes[0] == x.ndim - 1 else numpy.moveaxis(hot, -1, axes[0])
    # Before 13 all dimensions from `axis` on are one.
    axes = (tuple(range(1 if axis is None else axis, x.rank)) if s.opset < 13
            else (x.rank - 1 if axis is None else axis,))
    return s.add(kind, [x], lambda x: along(x, axes), exact=kind == "Hardmax", axis=axis)


# ---- products, images, norms ----

@operator(weight=4)
def matmul(s):
    x = s.floats(least=1, test=lambda v: v.size > 0)
    k = x.shape[-1]
    if s.random.random() < 0.4:
        y = s.floats(least=1, test=lambda v: v.size > 0 and v.shape[max(v.rank - 2, 0)] == k)
    else:
        y = s.constant(s.numbers(s.random.choice([(k,), (k, 3), (k, 1), (2, k, 2)])))
    try:
        numpy.matmul(x.array, y.array)
    except ValueError:
        raise Unfit from None
    return s.add("MatMul", [x, y], numpy.matmul)


@operator(weight=2)
def gemm(s):
    x = s.floats(least=2, most=2, test=lambda v: v.size > 0)
    turn_a, turn_b = s.random.randrange(2), s.random.randrange(2)
    m, k = x.shape[::-1] if turn_a else x.shape
    n = s.random.randrange(1, 4)
    b = s.constant(s.numbers((n, k) if turn_b else (k, n)))
    c = s.constant(s.numbers(s.random.choice([(), (n,), (1, n), (m, 1), (m, n)])))
    if s.opset >= 11 and s.random.random() < 0.3:
        c = None
    alpha, beta = s.random.choice([None, 0.5]), s.random.choice([None, 2.0])
    def function(a, b, c=None):
        product = (a.T if turn_a else a) @ (b.T if turn_b else b) * (alpha or 1)
        return product if c is None else product + c * (beta or 1)
    return s.add("Gemm", [x, b, c], function, alpha=alpha, beta=beta, transA=turn_a, transB=turn_b)


@operator(since=12)
def einsum(s):
    x = s.floats(least=2, most=2, test=lambda v: v.size > 0)
    equation = s.random.choice(["ij->ji", "ij->i", "ij,jk->ik", "ij,kj->ik", "ij,ij->", "ij,j->i"])
    i, j = x.shape
    shapes = {"jk": (j, 2), "kj": (3, j), "ij": (i, j), "j": (j,)}
    operands = [x] + [s.constant(s.numbers(shapes[term])) for term in equation.split("->")[0].split(",")[1:]]
    return s.add("Einsum", operands, lambda *all_: numpy.einsum(equation, *all_), equation=equation)


def windows(x, kernel, strides, pads, dilations, fill):
    """[n, c, oh, ow, kh, kw] of an image [n, c, h, w] with pads (top, left, bottom, right)."""
    x = numpy.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])), constant_values=fill)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    view = numpy.lib.stride_tricks.sliding_window_view(x, reach, (2, 3))
    return view[:, :, ::strides[0], ::strides[1], ::dilations[0], ::dilations[1]]


def image(s, channels=None):
    fit = [v for v in s.visible() if v.dtype == "float32" and v.rank == 4 and v.size
           and (channels is None or v.shape[1] == channels)]
    if fit and s.random.random() < 0.8:
        return s.random.choice(fit)
    flat = s.floats(test=lambda v: v.size >= 6 and v.size % 6 == 0)
    side = s.random.choice([d for d in divisors(flat.size // 6)])
    return s.add("Reshape", [flat, s.ints([1, -1, 3 if side % 2 else 2, side])],
                 lambda x, shape: x.reshape(shape.tolist()))


def window_attributes(s, x):
    kernel = [s.random.randrange(1, min(3, size) + 1) for size in x.shape[2:]]
    strides = [s.random.choice([1, 1, 2]) for _ in kernel]
    pads = [s.random.randrange(k) for k in kernel] + [s.random.randrange(k) for k in kernel]
    return kernel, strides, pads


@operator(weight=2)
def conv(s):
    x = image(s)
    kernel, strides, pads = window_attributes(s, x)
    dilations = [s.random.choice([1, 1, 2]) if (k - 1) * 2 < size else 1 for k, size in zip(kernel, x.shape[2:])]
    group = s.random.choice([1, 1, x.shape[1]])
    out = group * s.random.randrange(1, 3)
    w = s.constant(s.numbers((out, x.shape[1] // group, *kernel)))
    b = s.constant(s.numbers((out,))) if s.random.random() < 0.5 else None
    def function(x, w, b=None):
        must(x.shape[1] == w.shape[1] * group)
        view = windows(x, kernel, strides, pads, dilations, 0.0)
        parts = [numpy.einsum("ncxyhw,ochw->noxy", v, u)
                 for v, u in zip(numpy.split(view, group, 1), numpy.split(w, group, 0))]
        y = numpy.concatenate(parts, 1)
        return y if b is None else y + b[:, None, None]
    return s.add("Conv", [x, w, b], function, kernel_shape=s.random.choice([None, kernel]), strides=strides, pads=pads,
                 dilations=dilations, group=group)


@operator(weight=2)
def pool(s):
    kind = s.random.choice(["MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool"])
    x = image(s)
    if kind.startswith("Global"):
        find = numpy.max if kind == "GlobalMaxPool" else numpy.mean
        return s.add(kind, [x], lambda x: find(x, (2, 3), keepdims=True), exact=kind == "GlobalMaxPool")
    kernel, strides, pads = window_attributes(s, x)
    if kind == "MaxPool":
        return s.add(kind, [x], lambda x: windows(x, kernel, strides, pads, (1, 1), -numpy.inf).max((4, 5)),
                     kernel_shape=kernel, strides=strides, pads=pads)
    counts = s.random.choice([None, 1])
    def function(x):
        sums = windows(x, kernel, strides, pads, (1, 1), 0.0).sum((4, 5))
        ones = numpy.ones_like(x)
        inside = windows(ones, kernel, strides, pads, (1, 1), 1.0 if counts else 0.0).sum((4, 5))
        return sums / inside
    return s.add(kind, [x], function, exact=False, kernel_shape=kernel, strides=strides, pads=pads,
                 count_include_pad=counts)


@operator()
def batch_norm(s):
    x = s.floats(least=2, most=4, test=lambda v: v.size > 0)
    c = x.shape[1]
    scale, bias, mean = (s.constant(s.numbers((c,))) for _ in range(3))
    variance = s.constant(abs(s.numbers((c,))) + 0.5)
    epsilon = s.random.choice([None, 0.01])
    def function(x, *parameters):
        if x.shape[1] != c:
            raise Unfit
        scale, bias, mean, variance = (p.reshape([-1] + [1] * (x.ndim - 2)) for p in parameters)
        return (x - mean) / numpy.sqrt(variance + (epsilon or 1e-5)) * scale + bias
    return s.add("BatchNormalization", [x, scale, bias, mean, variance], function, exact=False, epsilon=epsilon)


@operator()
def instance_norm(s):
    x = s.floats(least=3, most=4, test=lambda v: v.size > 0)
    c = x.shape[1]
    epsilon = 0.1
    def function(x, scale, bias):
        axes = tuple(range(2, x.ndim))
        shape = [-1] + [1] * (x.ndim - 2)
        y = (x - x.mean(axes, keepdims=True)) / numpy.sqrt(x.var(axes, keepdims=True) + epsilon)
        return y * scale.reshape(shape) + bias.reshape(shape)
    return s.add("InstanceNormalization", [x, s.constant(s.numbers((c,))), s.constant(s.numbers((c,)))], function,
                 exact=False, epsilon=epsilon)


@operator(since=17)
def layer_norm(s):
    x = s.floats(least=1, test=lambda v: v.size > 0)
    axis, written = an_axis(s, x.rank)
    scale = s.constant(s.numbers(x.shape[axis:]))
    bias = s.constant(s.numbers(x.shape[axis:])) if s.random.random() < 0.5 else None
    def function(x, scale, bias=None):
        axes = tuple(range(axis, x.ndim))
        y = (x - x.mean(axes, keepdims=True)) / numpy.sqrt(x.var(axes, keepdims=True) + 0.1) * scale
        return y if bias is None else y + bias
    return s.add("LayerNormalization", [x, scale, bias], function, exact=False, axis=written,
                 epsilon=0.1)


@operator()
def lp_norm(s):
    x = s.floats(least=1, test=lambda v: v.size > 0)
    axis = s.random.choice([None, s.random.randrange(x.rank)])
    p = s.random.choice([None, 1])
    along = -1 if axis is None else axis
    def function(x):
        norm = abs(x).sum(along, keepdims=True) if p == 1 else numpy.sqrt((x * x).sum(along, keepdims=True))
        if (norm < 0.1).any():
            raise Unfit
        return x / norm
    return s.add("LpNormalization", [x], function, exact=False, axis=axis, p=p)


# ---- quantised ----

@operator(since=10)
def quantise(s):
    x = s.floats(exact=True)
    dtype = s.random.choice(["uint8", "int8"])
    low, high = (0, 255) if dtype == "uint8" else (-128, 127)
    point = s.random.choice([None, 3]) if dtype == "uint8" else s.random.randrange(-3, 4)
    zero = None if point is None else s.constant(numpy.array(point), dtype)
    scale = s.random.choice([0.25, 0.5, 2.0])
    q = s.add("QuantizeLinear", [x, s.constant(scale), zero],
              lambda x, *_: numpy.clip(numpy.round(x / scale) + (point or 0), low, high), dtypes=dtype)
    if s.random.random() < 0.3:
        return q
    return s.add("DequantizeLinear", [q, s.constant(scale), zero],
                 lambda q, *_: (q.astype(float) - (point or 0)) * scale, dtypes="float32")


@operator(since=10)
def matmul_integer(s):
    x = s.pick("uint8", "int8", least=2, most=2, test=lambda v: v.size > 0)
    w = s.constant(s.numbers((x.shape[1], 3), "int8"), "int8")
    zero = s.constant(numpy.array(2), x.dtype) if s.random.random() < 0.5 else None
    return s.add("MatMulInteger", [x, w, zero],
                 lambda x, w, z=None: (x.astype(int) - (0 if z is None else int(z))) @ w.astype(int), dtypes="int32")


# ---- control ----

def body(s, prefix):
    return Scope(s.random, s.opset, s, prefix)


def grow(scope, count):
    """Adds some operators; those that find no operands are passed over."""
    for _ in range(count * 4):
        if count == 0:
            return
        before = [len(part) for part in (scope.nodes, scope.initialisers, scope.steps, scope.values, scope.kinds)]
        try:
            choose(scope)(scope)
            count -= 1
        except (Unfit, ValueError, IndexError):
            for part, size in zip((scope.nodes, scope.initialisers, scope.steps, scope.values, scope.kinds), before):
                del part[size:]


def same_rank_end(scope, start, dtype, rank):
    """A value that the body made, or a copy of `start`."""
    own = [v for v in scope.values if v.dtype == dtype and v.rank == rank and not v.constant]
    end = scope.random.choice(own) if own else start
    return scope.add("Identity", [end], lambda x: x)


@operator(since=7, weight=1.5)
def if_(s):
    if s.outer and s.outer.outer:
        raise Unfit
    condition = s.pick("bool", test=lambda v: v.size == 1 and v.rank <= 1)
    x = s.floats()
    bodies, ends = [], []
    for name in ("then_", "else_"):
        inner = body(s, name)
        grow(inner, s.random.randrange(4))
        end = same_rank_end(inner, x, "float32", x.rank)
        bodies.append(inner)
        ends.append(end)
    def function(condition, env, noise):
        taken = 0 if condition.item() else 1
        return bodies[taken].run(dict(env), noise)[ends[taken].name]
    function.nests = True
    graphs = [helper.make_graph(inner.nodes, name, [], [inner.info(end, None)], inner.initialisers)
              for inner, end, name in zip(bodies, ends, ("then", "else"))]
    exact = all(end.exact for end in ends)
    return s.add("If", [condition], function, dtypes="float32", exact=exact, then_branch=graphs[0],
                 else_branch=graphs[1])


@operator(since=8, weight=1.5)
def loop(s):
    if s.outer:
        raise Unfit
    carried = s.floats(test=lambda v: v.size <= 100)
    trips = s.random.randrange(5)
    inner = body(s, "loop_")
    from random_scope import Value
    place = Value(s.name("i"), numpy.array(0), "int64", True)
    going = Value(s.name("going"), numpy.array(True), "bool", True)
    state = Value(s.name("state"), carried.array, "float32", False)
    inner.values += [place, going, state]
    grow(inner, s.random.randrange(1, 4))
    candidates = [v for v in inner.values if v.dtype == "float32" and v.shape == state.shape and not v.constant]
    squeezed = inner.add("Tanh", [s.random.choice(candidates)], numpy.tanh, exact=False)
    if squeezed.shape != state.shape:
        raise Unfit
    scanned = inner.add("Identity", [inner.pick("float32", test=lambda v: v.size <= 60)], lambda x: x)
    limit = s.random.choice([None, s.random.randrange(4)])
    if limit is None:
        goes_on = inner.add("Identity", [going], lambda x: x)
    else:
        last = inner.constant(numpy.array(float(limit)))
        number = inner.add("Cast", [place], lambda x: x, dtypes="float32", to=1)
        goes_on = inner.add("Less", [number, last], numpy.less, dtypes="bool")
    def function(trips_, condition, start, env, noise):
        state_, going_, scans = start, condition is None or bool(condition.item()), []
        for i in range(trips):
            if not going_:
                break
            inside = dict(env)
            inside.update({place.name: numpy.array(i), going.name: numpy.array(going_), state.name: state_})
            inner.run(inside, noise)
            state_, going_ = inside[squeezed.name], bool(inside[goes_on.name].item())
            if scans and inside[scanned.name].shape != scans[0].shape:
                raise Unfit
            scans.append(inside[scanned.name])
        return state_, numpy.array(scans) if scans else numpy.zeros((0, *scanned.shape))
    function.nests = True
    graph = helper.make_graph(
        inner.nodes, "body", [inner.info(place, []), inner.info(going, []), inner.info(state, None)],
        [inner.info(goes_on, []), inner.info(squeezed, None), inner.info(scanned, None)], inner.initialisers)
    count = s.constant(numpy.array(trips), "int64")
    condition = s.constant(numpy.array(True), "bool") if s.random.random() < 0.6 else None
    if trips == 0 and scanned.rank > 0:
        raise Unfit  # what shape nothing has is not said
    return s.add("Loop", [count, condition, carried], function, dtypes=["float32", "float32"], count=2, exact=False,
                 body=graph)


@operator(since=13)
def local_function(s):
    """f(x, y) = LeakyRelu_alpha(x y) + x, with alpha an attribute of the call."""
    if s.outer:
        raise Unfit
    x = s.floats()
    y = s.partner(x)
    alpha = s.random.choice([0.25, 0.5])
    name = f"Fused{len(s.functions) % 2}"
    if not any(function.name == name for function in s.functions):
        leaky = helper.make_node("LeakyRelu", ["p"], ["l"])
        reference = leaky.attribute.add()
        reference.name, reference.ref_attr_name, reference.type = "alpha", "slope", 1
        nodes = [helper.make_node("Mul", ["x", "y"], ["p"]), leaky, helper.make_node("Add", ["l", "x"], ["z"])]
        s.functions.append(helper.make_function("local", name, ["x", "y"], ["z"], nodes,
                                                [helper.make_opsetid("", s.opset)], ["slope"]))
    return s.add(name, [x, y], lambda x, y: numpy.where(x * y < 0, alpha * (x * y), x * y) + x, exact=False,
                 domain="local", slope=alpha)
