"""Random calls of single ONNX operators: operands of every type, empty ones and scalars, and attributes.

A function of the table draws one call for an operator set and gives it as a `Call`. What is right is not said here:
operator_sweep.py asks ONNX Runtime and the reference of onnx.
"""

import numpy

TABLE = []  # (operator, since, until, function)

FLOATS = ["float32", "float32", "float16", "float64"]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS
ALL = NUMBERS + ["bool"]


class Call:
    """One node: operands as arrays (None: left out), of which `fixed` are initialisers always."""

    def __init__(self, op, inputs, outputs=1, fixed=(), steps=0, loose=1.0, operands=None, nodes=None, domain="",
                 **attributes):
        self.op, self.inputs, self.outputs, self.fixed = op, inputs, outputs, set(fixed)
        self.steps = steps  # how far integers may be apart
        self.loose = loose  # how much wider the bounds of floats are
        self.operands = len(inputs) if operands is None else operands  # graphs in attributes read the inputs after these
        self.nodes = nodes  # in the place of the one node
        self.domain = domain
        self.attributes = {name: value for name, value in attributes.items() if value is not None}


def operator(*names, since=7, until=99):
    def register(function):
        for name in names:
            TABLE.append((name, since, until, function))
        return function
    return register


class Dice:
    """Random shapes and arrays."""

    def __init__(self, random, opset):
        self.random, self.opset = random, opset
        self.choice, self.randrange = random.choice, random.randrange

    def chance(self, share):
        return self.random.random() < share

    def maybe(self, *values):
        return self.choice([None, *values])

    def flag(self):
        return self.choice([None, 0, 1])

    def shape(self, least=0, most=4, empty=0.08):
        shape = [self.choice([1, 2, 3, 4, 5]) for _ in range(self.randrange(least, most + 1))]
        if shape and self.chance(empty):
            shape[self.randrange(len(shape))] = 0
        return tuple(shape)

    def array(self, dtype, shape, low=-6.0, high=6.0, special=0.0):
        """Multiples of 1/8, or integers; `special`: the share of infinities, NaN, extremes and zeros."""
        count = int(numpy.prod(shape, dtype=int))
        if dtype == "bool":
            return numpy.array([self.chance(0.5) for _ in range(count)], bool).reshape(shape)
        if numpy.dtype(dtype).kind in "iu":
            info = numpy.iinfo(dtype)
            bounds = max(int(numpy.ceil(low)), info.min), min(int(numpy.floor(high)), info.max)
            values = [self.random.randint(*bounds) for _ in range(count)]
            if special:
                values = [self.choice([info.min, info.max, info.min + 1, info.max // 2, 0, 1])
                          if self.chance(special) else v for v in values]
            return numpy.array(values, dtype).reshape(shape)
        values = [self.random.randint(int(low * 8), int(high * 8)) / 8 for _ in range(count)]
        if special:
            values = [self.choice([numpy.inf, -numpy.inf, numpy.nan, 0.0, -0.0, 60000.0, -60000.0, 6e-6, 1e-3])
                      if self.chance(special) else v for v in values]
        return numpy.array(values, dtype).reshape(shape)

    def broadcast(self, shape):
        """A shape that broadcasts with `shape`."""
        cut = list(shape[self.randrange(len(shape) + 1):]) if shape and self.chance(0.4) else list(shape)
        return tuple(1 if self.chance(0.3) else size for size in cut)

    def pair(self, dtype, special=0.05, **bounds):
        shape = self.shape()
        shapes = [shape, self.broadcast(shape)]
        self.random.shuffle(shapes)
        return [self.array(dtype, s, special=special if self.chance(0.4) else 0, **bounds) for s in shapes]

    def axis(self, rank, negative=True):
        axis = self.randrange(rank)
        return axis - rank if negative and self.opset >= 11 and self.chance(0.4) else axis

    def axes(self, rank, least=1):
        axes = self.random.sample(range(rank), self.randrange(min(least, rank), rank + 1))
        return [a - rank if self.opset >= 11 and self.chance(0.3) else a for a in axes]


def i64(*values):
    return numpy.array(values, numpy.int64)


# ---- element by element ----

@operator("Exp", "Log", "Sqrt", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Tanh", "Sigmoid", "Softplus", "Softsign",
          "Reciprocal", "Floor", "Ceil", "Elu", "Selu", "LeakyRelu", "HardSigmoid")
@operator("Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Erf", since=9)
@operator("Round", since=11)
@operator("Celu", since=12)
@operator("HardSwish", since=14)
@operator("ThresholdedRelu", since=10)
@operator("Mish", since=18)
@operator("Gelu", since=20)
def smooth(d, op):
    dtype = d.choice(FLOATS) if op != "Celu" or d.opset > 99 else "float32"
    narrow = op in ("Asin", "Acos", "Atanh", "Tan")
    bounds = dict(low=-1, high=1) if narrow else {}
    x = d.array(dtype, d.shape(), special=0.1 if d.chance(0.4) else 0, **bounds)
    attributes = {}
    if op in ("Elu", "Celu", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Selu"):
        attributes["alpha"] = d.maybe(0.5, 1.5)
    if op == "HardSigmoid":
        attributes["beta"] = d.maybe(0.25)
    if op == "Selu":
        attributes["gamma"] = d.maybe(1.25)
    if op == "Gelu":
        attributes["approximate"] = d.maybe("tanh", "none")
    return Call(op, [x], loose=4, **attributes)


@operator("Abs", "Neg", "Relu", "Identity")
@operator("Sign", since=9)
@operator("Round", since=11)
def plain(d, op):
    dtypes = {"Abs": NUMBERS, "Neg": FLOATS + SIGNED, "Sign": NUMBERS, "Identity": ALL, "Round": FLOATS,
              "Relu": FLOATS + SIGNED if d.opset >= 14 else FLOATS}[op]
    return Call(op, [d.array(d.choice(dtypes), d.shape(), special=0.1)])


@operator("Add", "Sub", "Mul", "Div")
def arithmetic(d, op):
    few = FLOATS + ["int32", "int64", "uint32", "uint64"]
    dtype = d.choice(NUMBERS if d.opset >= 14 else few)
    a, b = d.pair(dtype, special=0.05)
    if op == "Div" and b.dtype.kind in "iu":
        b = numpy.where(b == 0, numpy.array(3, b.dtype), b)
        if b.dtype.kind == "i":  # the least integer has no opposite
            a = numpy.where(a == numpy.iinfo(a.dtype).min, a + numpy.array(1, a.dtype), a)
    return Call(op, [a, b])


@operator("Mod", since=10)
def modulo(d, op):
    dtype = d.choice(NUMBERS)
    a, b = d.pair(dtype, special=0.03)
    b = numpy.where(b == 0, numpy.array(3, b.dtype), b)
    if b.dtype.kind == "i":
        b = numpy.where(b == -1, numpy.array(5, b.dtype), b)
    fmod = 1 if a.dtype.kind == "f" else d.choice([None, 0, 1])
    return Call(op, [a, b], fmod=fmod)


@operator("Pow")
def power(d, op):
    dtype = d.choice(["float32", "float64"] if d.opset < 12 else FLOATS + ["int32", "int64"])
    other = dtype if d.opset < 12 else d.choice(["float32", "float64", "int32", "int64", "float16", dtype])
    shape = d.shape()
    whole = numpy.dtype(dtype).kind in "iu"
    low = 0 if d.chance(0.5) else -4
    x = d.array(dtype, shape, low=low, high=4, special=0 if whole else 0.03)
    low = 0 if whole else -3
    n = d.array(other, d.broadcast(shape), low=low, high=4, special=0)
    if whole:  # 0 to a negative power has no integer, nor has a root of a negative one
        x, n = x if n.dtype.kind == "i" else abs(x), abs(n)
    return Call(op, [x, n], loose=4)


@operator("Sum", "Mean", "Max", "Min", since=8)
def variadic(d, op):
    wide = op in ("Max", "Min") and d.opset >= 12
    dtype = d.choice(FLOATS + (["int32", "int64", "uint32", "uint64", "int8", "uint8"] if wide else []))
    shape = d.shape()
    return Call(op, [d.array(dtype, d.broadcast(shape), special=0.05 if d.chance(0.3) else 0)
                     for _ in range(d.randrange(1, 4))])


@operator("And", "Or", "Xor")
def logic(d, op):
    return Call(op, d.pair("bool"))


@operator("Not")
def negation(d, op):
    return Call(op, [d.array("bool", d.shape())])


@operator("Equal", "Greater", "Less")
@operator("GreaterOrEqual", "LessOrEqual", since=12)
def compare(d, op):
    dtype = d.choice(["float32", "float64"] if d.opset < 9 and op != "Equal" else
                     ["int32", "int64", "bool"] if d.opset < 11 and op == "Equal" else
                     NUMBERS + (["bool"] if op == "Equal" else []))
    return Call(op, d.pair(dtype, low=-2, high=2))


@operator("BitwiseAnd", "BitwiseOr", "BitwiseXor", since=18)
def bits(d, op):
    return Call(op, d.pair(d.choice(INTEGERS), special=0.2))


@operator("BitwiseNot", since=18)
def bit_not(d, op):
    return Call(op, [d.array(d.choice(INTEGERS), d.shape(), special=0.2)])


@operator("BitShift", since=11)
def shift(d, op):
    dtype = d.choice(UNSIGNED)
    a, _ = d.pair(dtype, low=0, high=200)
    by = d.array(dtype, d.broadcast(a.shape), low=0, high=7)
    return Call(op, [a, by], direction=d.choice(["LEFT", "RIGHT"]))


@operator("Where", since=9)
def where(d, op):
    dtype = d.choice(ALL)
    a, b = d.pair(dtype, special=0.1)
    shape = numpy.broadcast_shapes(a.shape, b.shape)
    return Call(op, [d.array("bool", d.broadcast(shape)), a, b])


@operator("Clip")
def clip(d, op):
    if d.opset < 11:
        x = d.array(d.choice(FLOATS), d.shape(), special=0.05)
        return Call(op, [x], min=d.maybe(-1.0), max=d.maybe(2.0))
    dtype = d.choice(FLOATS + (["int8", "int32", "int64", "uint8", "uint32", "uint64"] if d.opset >= 12 else []))
    x = d.array(dtype, d.shape(), special=0.05)
    if d.chance(0.2):
        return Call(op, [x, numpy.array(0, dtype), numpy.array(6, dtype)])
    low = numpy.array(1, dtype) if d.chance(0.6) else None
    high = numpy.array(3, dtype) if d.chance(0.6) else None
    return Call(op, [x, low, high])


@operator("PRelu")
def prelu(d, op):
    dtype = d.choice(FLOATS + (["int32", "int64", "uint32", "uint64"] if d.opset >= 9 else []))
    x = d.array(dtype, d.shape())
    slope = [size if d.chance(0.5) else 1 for size in x.shape]
    return Call(op, [x, d.array(dtype, slope)])


@operator("Shrink", since=9)
def shrink(d, op):
    x = d.array(d.choice(NUMBERS), d.shape())
    return Call(op, [x], bias=d.maybe(0.25, 1.0), lambd=d.maybe(1.5, 0.5))


@operator("IsNaN", since=9)
@operator("IsInf", since=10)
def tests(d, op):
    dtype = d.choice(FLOATS if op == "IsNaN" or d.opset >= 20 else ["float32", "float64"])
    more = dict(detect_negative=d.flag(), detect_positive=d.flag()) if op == "IsInf" else {}
    return Call(op, [d.array(dtype, d.shape(), special=0.4)], **more)


KINDS = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
         "float64": 11, "uint32": 12, "uint64": 13, "bfloat16": 16}


@operator("Cast")
@operator("CastLike", since=15)
def cast(d, op):
    x = d.array(d.choice(ALL), d.shape(), low=0 if d.chance(0.6) else -5, high=7)
    to = d.choice(ALL + (["bfloat16"] if d.opset >= 13 else []))
    if numpy.dtype(to).kind == "u":
        x = abs(x)
    if op == "CastLike":
        return Call(op, [x, d.array(to, (2,), low=0)])
    return Call(op, [x], to=KINDS[to])


# ---- shapes ----

@operator("Reshape")
def reshape(d, op):
    x = d.array(d.choice(ALL), d.shape())
    left, shape = x.size, []
    for i in range(d.randrange(4)):
        if i < x.ndim and x.shape[i] and left % x.shape[i] == 0 and d.chance(0.4):
            shape.append(0)
            left //= x.shape[i]
        elif left:
            shape.append(d.choice([k for k in range(1, left + 1) if left % k == 0]))
            left //= shape[-1]
    allow = None
    if x.size == 0:
        allow = d.choice([None, 0, 1]) if d.opset >= 14 else None
        shape = list(x.shape)
        if allow and d.chance(0.5):
            d.random.shuffle(shape)
        elif allow:
            shape = [d.choice([0, size]) for size in shape[:-1]] + [0]
        else:
            shape = [d.choice([0, size]) for size in shape]
            if d.chance(0.3) and shape[0] != 0 and 0 not in x.shape[1:]:
                shape[0] = -1
    elif left != 1 or d.chance(0.5):
        shape.append(d.choice([-1, left]))
    return Call(op, [x, i64(*shape)], fixed=[1] if d.chance(0.6) else [], allowzero=allow)


@operator("Flatten")
def flatten(d, op):
    x = d.array(d.choice(ALL if d.opset >= 9 else FLOATS), d.shape(least=0 if d.opset >= 11 else 1))
    low = -x.ndim if d.opset >= 11 else 0
    return Call(op, [x], axis=d.random.randint(low, x.ndim))


@operator("Squeeze", "Unsqueeze")
def squeeze(d, op):
    dtype = d.choice(ALL)
    if op == "Squeeze":
        shape = [1 if d.chance(0.5) else size for size in d.shape()]
        ones = [i for i, size in enumerate(shape) if size == 1]
        axes = d.random.sample(ones, d.randrange(len(ones) + 1))
        rank = len(shape)
    else:
        shape = d.shape(most=3)
        rank = len(shape) + d.randrange(1, 3)
        axes = d.random.sample(range(rank), rank - len(shape))
    x = d.array(dtype, shape)
    axes = [a - rank if d.opset >= 11 and d.chance(0.3) else a for a in axes]
    if op == "Squeeze" and not axes:
        return Call(op, [x])
    if d.opset < 13:
        return Call(op, [x], axes=sorted(axes) if d.opset < 11 else axes)
    return Call(op, [x, i64(*axes)], fixed=[1] if d.chance(0.6) else [])


@operator("Transpose")
def transpose(d, op):
    x = d.array(d.choice(ALL), d.shape())
    perm = d.random.sample(range(x.ndim), x.ndim) if x.ndim and d.chance(0.8) else None
    return Call(op, [x], perm=perm)


@operator("Concat")
def concat(d, op):
    dtype, shape = d.choice(ALL), d.shape(least=1)
    axis = d.randrange(len(shape))
    parts = []
    for _ in range(d.randrange(1, 4)):
        own = list(shape)
        own[axis] = d.choice([0, 1, 2, 3])
        parts.append(d.array(dtype, own))
    return Call(op, parts, axis=axis - len(shape) if d.opset >= 11 and d.chance(0.4) else axis)


@operator("Split")
def split(d, op):
    x = d.array(d.choice(ALL), d.shape(least=1))
    axis = d.axis(x.ndim)
    size, parts = x.shape[axis], d.randrange(1, 4)
    if d.chance(0.4) and (size % parts == 0 or d.opset >= 18) and -(-size // parts) * (parts - 1) <= size:
        return Call(op, [x], outputs=parts, axis=axis, num_outputs=parts if d.opset >= 18 else None)
    cuts = sorted(d.randrange(size + 1) for _ in range(parts - 1))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, size])]
    if d.opset < 13:
        return Call(op, [x], outputs=parts, axis=axis, split=sizes)
    return Call(op, [x, i64(*sizes)], outputs=parts, axis=axis, fixed=[1] if d.chance(0.6) else [])


@operator("Slice")
def slice_(d, op):
    x = d.array(d.choice(ALL), d.shape(least=1))
    axes = d.axes(x.ndim)
    starts, ends, steps = [], [], []
    for axis in axes:
        size = x.shape[axis]
        step = d.choice([1, 1, 2, -1, -2]) if d.opset >= 10 else 1
        starts.append(d.random.randint(-size - 1, size + 1))
        ends.append(d.choice([d.random.randint(-size - 1, size + 1), 1000, -1000]))
        steps.append(step)
    if d.opset < 10:
        return Call(op, [x], starts=starts, ends=ends, axes=axes)
    kind = d.choice(["int64", "int32"])
    operands = [numpy.array(v, kind) for v in (starts, ends, axes, steps)]
    if set(steps) == {1} and d.chance(0.5):
        operands.pop()
    return Call(op, [x, *operands], fixed=range(1, 5) if d.chance(0.6) else [])


@operator("Expand", since=8)
def expand(d, op):
    x = d.array(d.choice(ALL), d.shape())
    shape = [d.choice([1, size if size != 1 else d.choice([1, 2, 3, 0])]) for size in x.shape]
    shape = ([d.choice([1, 2])] if d.chance(0.3) else []) + shape
    return Call(op, [x, i64(*shape)], fixed=[1] if d.chance(0.5) else [])


@operator("Tile")
def tile(d, op):
    x = d.array(d.choice(ALL), d.shape())
    return Call(op, [x, i64(*(d.choice([1, 1, 2, 3, 0]) for _ in x.shape))], fixed=[1] if d.chance(0.5) else [])


@operator("Pad")
def pad(d, op):
    few = ["float32", "float64", "float16"]
    x = d.array(d.choice(few if d.opset < 11 else few + ["int8", "uint8", "int32", "int64", "uint32", "bool"]
                         if d.opset >= 13 else few + ["int32", "int64"]), d.shape(least=1, empty=0.03))
    modes = ["constant", "constant", "edge", "reflect"] + (["wrap"] if d.opset >= 19 else [])
    mode = d.choice(modes)
    axes = list(range(x.ndim))
    if d.opset >= 18 and d.chance(0.4):
        axes = d.axes(x.ndim)
    begins, ends = [], []
    for axis in axes:
        size = x.shape[axis]
        low, high = {"constant": (-size + 1 if size else 0, 3), "edge": (0, 3) if size else (0, 0),
                     "reflect": (0, max(size - 1, 0)), "wrap": (0, max(size, 0))}[mode]
        begins.append(d.random.randint(min(low, 0), high) if d.chance(0.7) else 0)
        ends.append(d.random.randint(0, high) if d.chance(0.7) else 0)
    if d.opset < 11:
        return Call(op, [x], pads=begins + ends, mode=mode, value=d.maybe(1.5) if mode == "constant" else None)
    value = d.array(x.dtype, ()) if mode == "constant" and d.chance(0.5) else None
    operands = [x, i64(*begins, *ends), value]
    if axes != list(range(x.ndim)):
        operands.append(numpy.array(axes, d.choice(["int64", "int32"])))
    return Call(op, operands, mode=d.choice([mode]), fixed=[1, 3] if d.chance(0.6) or len(operands) > 3 else [])


@operator("Shape", "Size")
def shape_of(d, op):
    x = d.array(d.choice(ALL), d.shape())
    if op == "Size" or d.opset < 15:
        return Call(op, [x])
    bound = lambda: d.random.randint(-x.ndim - 1, x.ndim + 1)
    return Call(op, [x], start=bound() if d.chance(0.5) else None, end=bound() if d.chance(0.5) else None)


@operator("ConstantOfShape", since=9)
def constant_of_shape(d, op):
    shape = i64(*d.shape(most=3, empty=0.2))
    value = d.array(d.choice(ALL), (1,)) if d.chance(0.7) else None
    return Call(op, [shape], value=value, fixed=[0] if d.chance(0.5) else [])


@operator("Range", since=11)
def range_(d, op):
    dtype = d.choice(["float32", "float64", "int16", "int32", "int64"])
    step = d.choice([1, 2, -1, -3]) if numpy.dtype(dtype).kind == "i" else d.choice([0.5, 1, -0.75])
    values = [d.randrange(-4, 5), d.randrange(-4, 5), step]
    return Call(op, [numpy.array(v, dtype) for v in values], fixed=range(3) if d.chance(0.5) else [])


@operator("EyeLike", since=9)
def eye_like(d, op):
    x = d.array(d.choice(["float32", "float64", "int32", "int64", "uint64", "bool", "float16"]), d.shape(2, 2))
    to = d.maybe(*(KINDS[k] for k in ("float32", "float64", "int32", "int64", "uint64")))
    if to is None and x.dtype == bool:
        to = 1
    return Call(op, [x], k=d.maybe(-1, 0, 1, 2), dtype=to)


@operator("DepthToSpace", "SpaceToDepth")
def blocks(d, op):
    n, c, h, w = d.choice([0, 1, 2]), d.choice([1, 2]), d.choice([1, 2, 0]), d.choice([1, 3])
    b = d.choice([1, 2])
    dtype = d.choice(["float32", "float64", "uint8", "float16", "int32"])
    if op == "DepthToSpace":
        mode = d.maybe("DCR", "CRD") if d.opset >= 11 else None
        return Call(op, [d.array(dtype, (n, c * b * b, h, w))], blocksize=b, mode=mode)
    return Call(op, [d.array(dtype, (n, c, h * b, w * b))], blocksize=b)


@operator("Trilu", since=14)
def trilu(d, op):
    x = d.array(d.choice(ALL), d.shape(least=2))
    k = i64(d.randrange(-4, 5)).reshape(()) if d.chance(0.6) else None
    return Call(op, [x, k], upper=d.flag())


# ---- lookups and order ----

@operator("Gather")
def gather(d, op):
    x = d.array(d.choice(ALL), d.shape(least=1, empty=0.05))
    axis = d.axis(x.ndim)
    size = x.shape[axis]
    shape = d.shape(most=2, empty=0.1) if size else (0,)
    low = -size if d.opset >= 11 else 0
    indices = d.array("int64", shape, low=low, high=size - 1) if size else numpy.zeros(shape, "int64")
    return Call(op, [x, indices.astype(d.choice(["int64", "int32"]))], axis=d.choice([axis, axis if axis else None]))


@operator("GatherElements", "ScatterElements", since=11)
def elements(d, op):
    x = d.array(d.choice(ALL), d.shape(least=1, empty=0.03))
    axis = d.axis(x.ndim)
    shape = [d.randrange(1, size + 1) if size else 0 for size in x.shape]
    size = x.shape[axis]
    low = -size if d.opset >= 11 else 0
    index = d.array("int64", shape, low=low, high=size - 1) if size else numpy.zeros(shape, "int64")
    index = index.astype(d.choice(["int64", "int32"]))
    if op == "GatherElements":
        return Call(op, [x, index], axis=axis)
    reductions = [None] + (["none", "add", "mul"] if d.opset >= 16 else []) + (["max", "min"] if d.opset >= 18 else [])
    reduction = d.choice(reductions) if x.dtype != bool else None
    updates = d.array(x.dtype, shape)
    if reduction in (None, "none") and index.size:  # no place twice
        lines = numpy.moveaxis(index, axis, 0)
        for place in numpy.ndindex(lines.shape[1:]):
            own = d.random.sample(range(size), lines.shape[0])
            lines[(slice(None), *place)] = [i - size if low < 0 and d.chance(0.3) else i for i in own]
    return Call(op, [x, index, updates], axis=axis, reduction=reduction)


def tuples(d, shape, depth, count, distinct):
    places = [tuple(d.randrange(size) for size in shape[:depth]) for _ in range(count)]
    if distinct:
        places = list(dict.fromkeys(places))
    rows = [[i - size if d.chance(0.3) else i for i, size in zip(place, shape)] for place in places]
    return numpy.array(rows, "int64").reshape(len(places), depth)


@operator("GatherND", "ScatterND", since=11)
def nd(d, op):
    x = d.array(d.choice(ALL), d.shape(least=1, empty=0))
    depth = d.randrange(1, x.ndim + 1)
    if op == "GatherND":
        batch = d.choice([0, 1]) if d.opset >= 12 and x.ndim > 1 else 0
        if batch:
            depth = d.randrange(1, x.ndim)
            rows = numpy.stack([tuples(d, x.shape[1:], depth, 2, False) for _ in range(x.shape[0])])
            return Call(op, [x, rows], batch_dims=1)
        return Call(op, [x, tuples(d, x.shape, depth, d.randrange(4), False)])
    reductions = [None] + (["none", "add", "mul"] if d.opset >= 16 else []) + (["max", "min"] if d.opset >= 18 else [])
    reduction = d.choice(reductions) if x.dtype != bool else None
    rows = tuples(d, x.shape, depth, d.randrange(4), reduction in (None, "none"))
    updates = d.array(x.dtype, (len(rows), *x.shape[depth:]))
    return Call(op, [x, rows, updates], reduction=reduction, fixed=[1] if d.chance(0.4) else [])


@operator("OneHot", since=9)
def one_hot(d, op):
    x = d.array(d.choice(["int64", "int32", "float32"]), d.shape(least=1, most=3), low=0 if d.opset < 11 else -5, high=5)
    x = numpy.trunc(x).astype(x.dtype)
    values = d.array(d.choice(["float32", "int64", "int32"]), (2,))
    axis = d.choice([None, -1, 0])
    return Call(op, [x, numpy.array(d.choice([4, 6]), d.choice(["int64", "int32"])), values], axis=axis)


@operator("CumSum", since=11)
def cumsum(d, op):
    x = d.array(d.choice(["float32", "float64", "int32", "int64"] + (["float16"] if d.opset >= 14 else [])),
                d.shape(least=1))
    return Call(op, [x, numpy.array(d.axis(x.ndim), d.choice(["int64", "int32"]))], exclusive=d.flag(),
                reverse=d.flag())


@operator("NonZero", since=9)
def non_zero(d, op):
    return Call(op, [d.array(d.choice(["float32", "int32", "int64", "bool", "uint8"]), d.shape(least=1), low=-1, high=1)])


@operator("Compress", since=9)
def compress(d, op):
    x = d.array(d.choice(ALL), d.shape(least=1))
    axis = d.choice([None, d.axis(x.ndim)])
    size = x.size if axis is None else x.shape[axis]
    return Call(op, [x, d.array("bool", (d.random.randint(0, size),))], axis=axis)


@operator("ReverseSequence", since=10)
def reverse_sequence(d, op):
    x = d.array(d.choice(ALL), d.shape(least=2, empty=0))
    time = d.randrange(2)
    lengths = i64(*(d.random.randint(1, x.shape[time]) for _ in range(x.shape[1 - time])))
    return Call(op, [x, lengths], time_axis=time, batch_axis=1 - time)


@operator("TopK")
def top_k(d, op):
    dtype = d.choice(FLOATS if d.opset < 11 else FLOATS + ["int32", "int64", "int8", "uint8"])
    shape = d.shape(least=1, empty=0)
    count = int(numpy.prod(shape))
    dtype = dtype if count < 128 else "float32"
    x = numpy.array(d.random.sample(range(count), count), dtype).reshape(shape)
    axis = d.axis(x.ndim)
    k = d.random.randint(1, x.shape[axis])
    if d.opset < 10:
        return Call(op, [x], outputs=2, axis=axis, k=k)
    largest = d.flag() if d.opset >= 11 else None
    return Call(op, [x, i64(k)], outputs=2, axis=axis, largest=largest, fixed=[1] if d.chance(0.5) else [])


@operator("ArgMax", "ArgMin")
def arg(d, op):
    dtype = d.choice(["float32", "float64", "float16", "int32", "int64", "int8", "uint8"])
    x = d.array(dtype, d.shape(least=1, empty=0))
    last = d.flag() if d.opset >= 12 else None
    return Call(op, [x], axis=d.axis(x.ndim), keepdims=d.flag(), select_last_index=last)


@operator("Hardmax", "Softmax", "LogSoftmax")
def softmax(d, op):
    x = d.array(d.choice(FLOATS), d.shape(least=1))
    axis = d.choice([None, d.axis(x.ndim)])
    if d.opset < 13 and axis is None and x.ndim < 2:
        axis = 0
    return Call(op, [x], axis=axis, loose=4)


@operator("Unique", since=11)
def unique(d, op):
    x = d.array(d.choice(["float32", "int64", "int8", "float64"]), d.shape(least=1, most=2, empty=0), low=-1, high=1)
    return Call(op, [x], outputs=d.choice([1, 4]), axis=d.choice([None, 0]), sorted=d.flag())


# ---- reductions ----

@operator("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
          "ReduceLogSumExp", "ReduceLogSum")
def reduce(d, op):
    dtypes = FLOATS + ["int32", "int64"]
    if op in ("ReduceMax", "ReduceMin"):
        dtypes += (["int8", "uint8"] if d.opset >= 12 else []) + (["bool"] if d.opset >= 20 else [])
    dtype = d.choice(dtypes)
    positive = op == "ReduceLogSum" or (op == "ReduceL2" and d.chance(0.5))
    x = d.array(dtype, d.shape(empty=0.06), low=1 if positive else -4, high=4)
    since = 13 if op == "ReduceSum" else 18
    keep = d.flag()
    noop = d.flag() if d.opset >= since else None
    if x.ndim == 0 or d.chance(0.25):
        return Call(op, [x] + ([i64()] if d.opset >= since and d.chance(0.4) else []), keepdims=keep, loose=8,
                    noop_with_empty_axes=noop)
    axes = d.axes(x.ndim)
    if d.opset < since:
        return Call(op, [x], axes=axes, keepdims=keep, loose=8)
    return Call(op, [x, i64(*axes)], keepdims=keep, noop_with_empty_axes=noop, loose=8,
                fixed=[1] if d.chance(0.6) or op == "ReduceLogSumExp" else [])


# ---- products ----

@operator("MatMul")
def matmul(d, op):
    dtype = d.choice(FLOATS + (["int32", "int64", "uint32", "uint64"] if d.opset >= 9 else []))
    m, k, n = (d.choice([1, 2, 3, 5, 0 if d.chance(0.1) else 4]) for _ in range(3))
    batch = d.shape(0, 2, empty=0.05)
    a = (*batch, m, k) if d.chance(0.8) else (k,)
    b = (*d.broadcast(batch), k, n) if d.chance(0.8) else (k,)
    return Call(op, [d.array(dtype, a), d.array(dtype, b)], loose=8)


@operator("Gemm")
def gemm(d, op):
    dtype = d.choice(FLOATS + (["int32", "int64"] if d.opset >= 9 else []))
    m, k, n = (d.choice([1, 2, 3, 4]) for _ in range(3))
    ta, tb = d.flag(), d.flag()
    c = d.array(dtype, d.choice([(), (n,), (1, n), (m, 1), (m, n)]))
    whole = numpy.dtype(dtype).kind == "i"
    return Call(op, [d.array(dtype, (k, m) if ta else (m, k)), d.array(dtype, (n, k) if tb else (k, n)),
                     c if d.opset < 11 or d.chance(0.7) else None], transA=ta, transB=tb, loose=8,
                alpha=d.maybe(2.0 if whole else 0.5), beta=d.maybe(2.0 if whole else 0.25))


@operator("Einsum", since=12)
def einsum(d, op):
    dtype = d.choice(["float32", "float32", "float64", "int32", "int64", "float16"])
    sizes = {letter: d.choice([1, 2, 3]) for letter in "bijk"}
    equation = d.choice(["ij->ji", "ij->i", "ij,jk->ik", "ij,kj->ik", "ij,ij->", "i,j->ij", "bij,bjk->bik", "ii->i",
                         "...ij->...ji", "...ij,...jk->...ik", "ij,jk", "ij", "bij->b", "i,i", ",i->i"])
    operands = []
    for term in equation.split("->")[0].split(","):
        hidden = (2, 3) if "..." in term else ()
        operands.append(d.array(dtype, (*hidden, *(sizes[letter] for letter in term.replace("...", "")))))
    return Call(op, operands, equation=equation, loose=8)


@operator("Det", since=11)
def det(d, op):
    n = d.choice([1, 2, 3, 4])
    return Call(op, [d.array(d.choice(["float32", "float64"]), (*d.shape(0, 2, empty=0), n, n), low=-2, high=2)], loose=50)


# ---- images ----

def window(d, dims, image, empty=False):
    kernel = [d.randrange(1, min(4, size + 1)) for size in image]
    strides = [d.choice([1, 1, 2, 3]) for _ in range(dims)]
    pads = [d.randrange(k) for k in kernel] + [d.randrange(k) for k in kernel]
    return kernel, d.maybe(strides), d.maybe(pads)


@operator("MaxPool", "AveragePool", "LpPool")
def pool(d, op):
    dims = d.choice([1, 2, 2, 3])
    image = [d.randrange(3, 9) for _ in range(dims)]
    dtype = d.choice(FLOATS + (["int8", "uint8"] if op == "MaxPool" and d.opset >= 12 else []))
    x = d.array(dtype, (d.choice([1, 2, 0 if d.chance(0.2) else 1]), d.choice([1, 3]), *image))
    kernel, strides, pads = window(d, dims, image)
    more = dict(kernel_shape=kernel, strides=strides)
    if d.chance(0.25):
        more["auto_pad"] = d.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    else:
        more["pads"] = pads
    dilated = {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[op]
    if d.opset >= dilated and d.chance(0.3) and "auto_pad" not in more:
        more["dilations"] = [d.choice([1, 2]) for _ in kernel]
    if d.opset >= (18 if op == "LpPool" else 10) and "auto_pad" not in more:
        more["ceil_mode"] = d.flag()
    if op == "AveragePool":
        more["count_include_pad"] = d.flag()
    if op == "LpPool":
        more["p"] = d.maybe(1, 2, 3)
    if op == "MaxPool" and d.chance(0.3) and d.opset >= 8:
        return Call(op, [x], outputs=2, storage_order=d.maybe(0), **more)
    return Call(op, [x], loose=8, **more)


@operator("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool")
def global_pool(d, op):
    x = d.array(d.choice(FLOATS), (d.choice([0, 1, 2]), 2, *(d.randrange(1, 5) for _ in range(d.randrange(1, 4)))))
    return Call(op, [x], loose=8, p=d.maybe(1, 2, 3) if op == "GlobalLpPool" else None)


@operator("Conv", "ConvTranspose")
def conv(d, op):
    dims = d.choice([1, 2, 2, 3])
    image = [d.randrange(3, 8) for _ in range(dims)]
    dtype = d.choice(["float32", "float32", "float16"])
    group = d.choice([1, 1, 2])
    channels, out = group * d.randrange(1, 3), group * d.randrange(1, 3)
    kernel, strides, pads = window(d, dims, image)
    x = d.array(dtype, (d.choice([1, 2]), channels, *image), low=-2, high=2)
    filters = (out, channels // group) if op == "Conv" else (channels, out // group)
    w = d.array(dtype, (*filters, *kernel), low=-2, high=2)
    b = d.array(dtype, (out,)) if d.chance(0.5) else None
    more = dict(strides=strides, group=d.choice([group, group if group > 1 else None]))
    if d.chance(0.25):
        more["auto_pad"] = d.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    else:
        more["pads"] = pads
        more["dilations"] = [d.choice([1, 1, 2]) if (k - 1) * 2 < size else 1 for k, size in zip(kernel, image)]
    if op == "ConvTranspose" and strides and d.chance(0.3):
        more["output_padding"] = [d.randrange(s) for s in strides]
    return Call(op, [x, w, b], loose=20, kernel_shape=d.maybe(kernel), **more)


@operator("Resize", since=10)
def resize(d, op):
    shape = [1, d.choice([1, 2]), d.randrange(2, 7), d.randrange(2, 7)]
    dtype = d.choice(["float32", "float32", "float16", "uint8", "int32", "float64"])
    mode = d.choice([None, "nearest", "linear"] + (["cubic"] if d.opset >= 11 else []))
    if dtype not in ("float32",) and mode == "cubic":
        dtype = "float32"
    x = d.array(dtype, shape, low=0, high=60)
    scales = numpy.array([1, 1, d.choice([0.5, 0.6, 1.5, 2, 3]), d.choice([0.5, 0.7, 1, 2, 2.5])], "float32")
    if mode in (None, "nearest"):  # places in the middle of two are decided by a last bit
        scales[2:] = [d.choice([0.5, 1.5, 2, 3]), d.choice([0.5, 1, 2, 2.5])]
    steps = 1 if x.dtype.kind in "iu" else 0
    if d.opset < 11:
        return Call(op, [x, scales], mode=mode, steps=steps, loose=8)
    smooth = mode in ("linear", "cubic")
    antialias = d.flag() if d.opset >= 18 and smooth else None
    more = dict(mode=mode, antialias=antialias, coordinate_transformation_mode=d.maybe(
        "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
        *(["half_pixel_symmetric"] if d.opset >= 19 else [])))
    if mode in (None, "nearest"):
        more["nearest_mode"] = d.maybe("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    if mode == "cubic":
        more["cubic_coeff_a"] = d.maybe(-0.5)
        more["exclude_outside"] = d.flag()
    roi = None if d.opset >= 13 else numpy.zeros(0, "float32")
    if d.chance(0.4):
        sizes = i64(*shape[:2], d.randrange(1, 9), d.randrange(1, 9))
        if d.opset >= 18 and d.chance(0.4):
            sizes = sizes[2:]
            more["axes"] = d.choice([[2, 3], [-2, -1]])
            more["keep_aspect_ratio_policy"] = d.maybe("stretch", "not_larger", "not_smaller")
        operands = [x, roi, None if d.opset >= 13 else numpy.zeros(0, "float32"), sizes]
    else:
        operands = [x, roi, scales]
    return Call(op, operands, steps=steps, loose=40, fixed=range(1, 4), **more)


@operator("Upsample", until=9)
def upsample(d, op):
    x = d.array("float32", (1, d.choice([1, 2]), d.randrange(1, 5), d.randrange(1, 5)))
    scales = [1.0, 1.0, float(d.choice([1, 2, 3])), float(d.choice([1, 2, 3]))]
    mode = d.maybe("nearest", "linear")
    if d.opset < 9:
        return Call(op, [x], mode=mode, scales=scales, loose=8)
    return Call(op, [x, numpy.array(scales, "float32")], mode=mode, loose=8, fixed=[1])


@operator("GridSample", since=16)
def grid_sample(d, op):
    dtype = d.choice(["float32", "float64"])
    new = d.opset >= 20
    dims = 3 if new and d.chance(0.3) else 2
    x = d.array(dtype, (d.choice([1, 2]), 2, *(d.randrange(2, 5) for _ in range(dims))))
    grid = d.array(dtype, (x.shape[0], *(d.randrange(1, 4) for _ in range(dims)), dims), low=-2, high=2)
    modes = (["linear", "nearest"] + (["cubic"] if dims == 2 else [])) if new else ["bilinear", "nearest", "bicubic"]
    # Coordinates between pixels: a place in the middle of two is rounded by the last bit.
    grid = grid + numpy.array(0.0371, dtype)
    return Call(op, [x, grid], mode=d.maybe(*modes), padding_mode=d.maybe("zeros", "border", "reflection"),
                align_corners=d.flag(), loose=40)


@operator("RoiAlign", since=10)
def roi_align(d, op):
    x = d.array("float32", (2, 2, d.randrange(3, 8), d.randrange(3, 8)))
    count = d.randrange(0, 4)
    corners = numpy.array([[d.randrange(0, 8), d.randrange(0, 8)] for _ in range(count)], "float32").reshape(count, 2)
    sizes = numpy.array([[d.randrange(1, 9), d.randrange(1, 9)] for _ in range(count)], "float32").reshape(count, 2)
    rois = numpy.concatenate([corners, corners + sizes], 1) + numpy.array(0.125, "float32")
    mode = d.maybe("half_pixel", "output_half_pixel") if d.opset >= 16 else None
    return Call(op, [x, rois, i64(*(d.randrange(2) for _ in range(count)))], output_height=d.maybe(1, 2, 3),
                output_width=d.maybe(1, 2), sampling_ratio=d.maybe(0, 1, 2, 3), spatial_scale=d.maybe(0.5),
                coordinate_transformation_mode=mode, mode=d.maybe("avg", "max"), loose=40)


# ---- norms ----

def channels(d, least=2):
    shape = list(d.shape(least=least, empty=0))
    return tuple(shape), shape[1]


@operator("BatchNormalization")
def batch_norm(d, op):
    shape, c = channels(d)
    dtype = d.choice(FLOATS)
    vector = lambda **bounds: d.array(dtype, (c,), **bounds)
    x = d.array(dtype, shape)
    operands = [x, vector(), vector(), vector(), vector(low=0.5, high=3)]
    return Call(op, operands, epsilon=d.maybe(0.01), loose=20)


@operator("InstanceNormalization")
def instance_norm(d, op):
    shape, c = channels(d, 3)
    dtype = d.choice(FLOATS)
    factor = d.choice([1, 1, 300 if dtype == "float16" else 1, 0.001])
    x = d.array(dtype, shape) * numpy.array(factor, dtype)
    return Call(op, [x, d.array(dtype, (c,)), d.array(dtype, (c,))], epsilon=d.maybe(0.01), loose=100)


@operator("GroupNormalization", since=18)
def group_norm(d, op):
    groups = d.choice([1, 2])
    c = groups * d.choice([1, 2])
    dtype = d.choice(FLOATS)
    x = d.array(dtype, (d.choice([1, 2]), c, *(d.randrange(1, 4) for _ in range(d.randrange(0, 3)))))
    x = x * numpy.array(d.choice([1, 1, 300 if dtype == "float16" else 1]), dtype)
    size = c if d.opset >= 21 else groups
    return Call(op, [x, d.array(dtype, (size,)), d.array(dtype, (size,))], num_groups=groups, epsilon=d.maybe(0.01),
                loose=100)


@operator("LayerNormalization", since=17)
def layer_norm(d, op):
    dtype = d.choice(FLOATS)
    shape = d.shape(least=1, empty=0)
    axis = d.choice([None, d.axis(len(shape))])
    normal = shape[-1 if axis is None else axis:]
    x = d.array(dtype, shape) * numpy.array(d.choice([1, 1, 256 if dtype == "float16" else 1]), dtype)
    b = d.array(dtype, normal) if d.chance(0.5) else None
    return Call(op, [x, d.array(dtype, normal), b], outputs=d.choice([1, 1, 3]), axis=axis, epsilon=d.maybe(0.01),
                loose=100)


@operator("MeanVarianceNormalization", since=9)
def mean_variance(d, op):
    x = d.array(d.choice(["float32", "float32", "float16", "float64"]), d.shape(4, 4, empty=0))
    return Call(op, [x], axes=d.maybe([0, 2, 3], [1], [0, 1, 2, 3]), loose=100)


@operator("LpNormalization")
def lp_norm(d, op):
    x = d.array(d.choice(FLOATS), d.shape(least=1)) * 1
    x = x * numpy.array(d.choice([1, 300 if x.dtype == numpy.float16 else 1]), x.dtype)
    return Call(op, [x], axis=d.choice([None, d.axis(x.ndim)]), p=d.maybe(1, 2), loose=20)


@operator("LRN")
def lrn(d, op):
    x = d.array(d.choice(FLOATS), (1, d.randrange(1, 6), *(d.randrange(1, 3) for _ in range(2))))
    return Call(op, [x], size=d.choice([1, 3, 5, 2, 4]), alpha=d.maybe(0.5), beta=d.maybe(0.5), bias=d.maybe(2.0),
                loose=20)


@operator("Dropout")
def dropout(d, op):
    x = d.array(d.choice(FLOATS), d.shape())
    outputs = d.choice([1, 2])
    if d.opset < 12:
        return Call(op, [x], outputs=1, ratio=d.maybe(0.3))
    return Call(op, [x, numpy.array(0.3, "float32") if d.chance(0.5) else None], outputs=outputs)


@operator("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", since=12)
def loss(d, op):
    dtype = d.choice(["float32", "float64", "float16"])
    n, c = d.choice([1, 2, 3]), d.choice([2, 4])
    rest = d.choice([(), (), (3,), (2, 2)])
    x = d.array(dtype, (n, c, *rest), low=-3, high=1)
    target = d.array(d.choice(["int64", "int32"]), (n, *rest), low=0, high=c - 1)
    weight = d.array(dtype, (c,), low=0.5, high=2) if d.chance(0.5) else None
    ignore = d.maybe(1, -1)
    outputs = d.choice([1, 2]) if op.startswith("Softmax") else 1
    return Call(op, [x, target, weight], outputs=outputs, reduction=d.maybe("none", "sum", "mean"), loose=50,
                ignore_index=ignore)


# ---- quantised ----

@operator("QuantizeLinear", "DequantizeLinear", since=10)
def quantise(d, op):
    few = ["uint8", "int8"] + (["uint16", "int16"] if d.opset >= 21 else [])
    byte = d.choice(few)
    shape = d.shape(least=1)
    if d.opset >= 21 and d.chance(0.4):
        return quantise_blocks(d, op, byte, shape)
    many = d.opset >= 13 and d.chance(0.4)
    axis = d.axis(len(shape)) if many else None
    vector = (shape[axis],) if many else ()
    real = "float16" if d.opset >= 19 and d.chance(0.3) else "float32"
    scale = numpy.array([d.choice([0.25, 0.5, 2, 1.5]) for _ in range(int(numpy.prod(vector)))], real).reshape(vector)
    zero = d.array(byte, vector, low=0, high=5) if d.chance(0.6) or byte != "uint8" else None
    if op == "QuantizeLinear":
        x = d.array(real if d.chance(0.85) or d.opset >= 19 else "int32", shape, low=-50, high=50)
        return Call(op, [x, scale, zero], axis=axis, steps=1)
    x = d.array(byte, shape, low=-100, high=200)
    if zero is None and d.chance(0.4):
        x = d.array("int32", shape, low=-1000, high=1000)
    return Call(op, [x, scale, zero], axis=axis)


def quantise_blocks(d, op, byte, shape):
    """A scale for each block of an axis, and the type of the result by an attribute (versions 21 and 23)."""
    axis, block = d.axis(len(shape)), d.choice([1, 2, 3])
    blocks = list(shape)
    blocks[axis] = -(-shape[axis] // block)
    reals = ["float32", "float16"]
    real = d.choice(reals)
    scale = d.array(real, blocks, low=1, high=6)
    zero = d.array(byte, blocks, low=0, high=5) if d.chance(0.5) else None
    if op == "QuantizeLinear":
        x = d.array(real, shape, low=-50, high=50)
        asked = KINDS[byte] if d.chance(0.5) or (zero is None and byte != "uint8") else None
        precision = KINDS[d.choice(reals)] if d.opset >= 23 and d.chance(0.5) else None
        return Call(op, [x, scale, zero], axis=axis, block_size=block, output_dtype=asked, precision=precision, steps=1)
    x = d.array(byte, shape, low=-100, high=200)
    asked = KINDS[d.choice(reals)] if d.opset >= 23 and d.chance(0.5) else None
    return Call(op, [x, scale, zero], axis=axis, block_size=block, output_dtype=asked)


@operator("DynamicQuantizeLinear", since=11)
def dynamic_quantise(d, op):
    shape = d.shape(least=1, empty=0)
    x = d.array("float32", shape, low=d.choice([-6, 0, 1]), high=6) if d.chance(0.85) else numpy.zeros(shape, "float32")
    return Call(op, [x], outputs=3, steps=1)


@operator("MatMulInteger", since=10)
def matmul_integer(d, op):
    m, k, n = (d.choice([1, 2, 3, 5]) for _ in range(3))
    a_type, b_type = d.choice(["uint8", "int8"]), d.choice(["uint8", "int8"])
    a = d.array(a_type, (m, k), low=-128, high=255)
    b = d.array(b_type, (k, n), low=-128, high=255)
    za = d.array(a_type, (), low=0, high=9) if d.chance(0.5) else None
    zb = d.array(b_type, d.choice([(), (n,)]), low=0, high=9) if d.chance(0.5) else None
    operands = [a, b] + ([za if za is not None else numpy.array(0, a_type)] if za is not None or zb is not None else [])
    return Call(op, operands + ([zb] if zb is not None else []))


@operator("ConvInteger", since=10)
def conv_integer(d, op):
    x = d.array("uint8", (1, d.choice([1, 2]), 4, 5), low=0, high=255)
    w = d.array("uint8", (2, x.shape[1], 2, 2), low=0, high=255)
    zero = numpy.array(3, "uint8") if d.chance(0.5) else None
    return Call(op, [x, w] + ([zero] if zero is not None else []), pads=d.maybe([1, 0, 1, 0]), strides=d.maybe([2, 1]))


@operator("QLinearMatMul", "QLinearConv", since=10)
def quantised_product(d, op):
    real = lambda: numpy.array(d.choice([0.25, 0.5, 1.5]), "float32")
    zero = lambda: numpy.array(d.randrange(9), "uint8")
    if op == "QLinearMatMul":
        m, k, n = (d.choice([1, 2, 3]) for _ in range(3))
        a, b = d.array("uint8", (m, k), low=0, high=60), d.array("uint8", (k, n), low=0, high=60)
        return Call(op, [a, real(), zero(), b, real(), zero(), real(), zero()], steps=1)
    x = d.array("uint8", (1, 2, 4, 5), low=0, high=60)
    w = d.array("uint8", (2, 2, 2, 2), low=0, high=60)
    bias = d.array("int32", (2,)) if d.chance(0.5) else None
    return Call(op, [x, real(), zero(), w, real(), zero(), real(), zero(), bias], pads=d.maybe([1, 0, 1, 0]), steps=1)


# ---- signals ----

@operator("HannWindow", "HammingWindow", "BlackmanWindow", since=17)
def cosine_window(d, op):
    return Call(op, [i64(d.randrange(1, 9)).reshape(())], periodic=d.flag(), output_datatype=d.maybe(1, 11),
                fixed=[0] if d.chance(0.5) else [], loose=40)


@operator("DFT", since=17)
def dft(d, op):
    dtype = d.choice(["float32", "float64"])
    parts = d.choice([1, 2])
    x = d.array(dtype, (d.choice([1, 2]), d.randrange(2, 7), d.randrange(2, 5), parts))
    inverse, onesided = d.flag(), d.flag()
    if onesided and (parts == 2) != bool(inverse):
        onesided = None
    axis = d.choice([1, 2])
    length = i64(d.randrange(2, 8)).reshape(()) if d.chance(0.3) else None
    if d.opset < 20:
        return Call(op, [x, length], axis=axis, inverse=inverse, onesided=onesided, fixed=[1], loose=100)
    return Call(op, [x, length, i64(axis).reshape(())], inverse=inverse, onesided=onesided, fixed=[1, 2], loose=100)


@operator("STFT", since=17)
def stft(d, op):
    dtype = d.choice(["float32", "float64"])
    length, frame = d.randrange(6, 12), d.choice([2, 3, 4])
    x = d.array(dtype, (d.choice([1, 2]), length, 1))
    window = d.array(dtype, (frame,), low=0, high=1) if d.chance(0.5) else None
    size = i64(frame).reshape(()) if window is None or d.chance(0.5) else None
    return Call(op, [x, i64(d.choice([1, 2, 3])).reshape(()), window, size], onesided=d.flag(), fixed=[1, 3], loose=100)


@operator("MelWeightMatrix", since=17)
def mel_weights(d, op):
    scalar = lambda v, dtype: numpy.array(v, dtype)
    operands = [scalar(d.choice([3, 8]), "int64"), scalar(d.choice([16, 32]), "int64"), scalar(8192, "int64"),
                scalar(d.choice([0.0, 20.0]), "float32"), scalar(d.choice([4096.0, 2000.0]), "float32")]
    return Call(op, operands, fixed=range(5) if d.chance(0.5) else [], loose=100)


# ---- what is left ----

@operator("Scatter", since=9, until=10)
def scatter(d, op):
    return elements(d, op)


@operator("Constant")
def constant(d, op):
    if d.opset >= 12 and d.chance(0.5):
        return Call(op, [], **d.choice([dict(value_float=1.5), dict(value_int=-3), dict(value_ints=[1, 2]),
                                        dict(value_floats=[0.5, -2.0])]))
    return Call(op, [], value=d.array(d.choice(ALL), d.shape(most=2)))


@operator("MaxUnpool", since=9)
def max_unpool(d, op):
    x = d.array("float32", (1, d.choice([1, 2]), 2, 3))
    out = (x.shape[1], 4, 6)
    places = i64(*d.random.sample(range(int(numpy.prod(out))), x.size)).reshape(x.shape)
    return Call(op, [x, places], kernel_shape=[2, 2], strides=[2, 2])


@operator("NonMaxSuppression", since=10)
def non_max(d, op):
    count = d.randrange(1, 7)
    corners = numpy.array([[d.randrange(8), d.randrange(8)] for _ in range(count)], "float32")
    boxes = numpy.concatenate([corners, corners + [[d.randrange(1, 6), d.randrange(1, 6)] for _ in range(count)]], 1)
    classes = d.choice([1, 2])
    scores = numpy.array(d.random.sample(range(1, 90), classes * count), "float32").reshape(1, classes, count) / 100
    limit = lambda v: numpy.array([v], "float32") if v is not None else None
    return Call(op, [boxes[None].astype("float32"), scores, i64(d.choice([1, 3, 10])), limit(d.maybe(0.3, 0.6)),
                     limit(d.maybe(0.2))], fixed=range(2, 5) if d.chance(0.5) else [], center_point_box=d.maybe(0, 1))


@operator("TfIdfVectorizer", since=9)
def tf_idf(d, op):
    x = d.array(d.choice(["int64", "int32"]), d.choice([(6,), (2, 5)]), low=0, high=4)
    return Call(op, [x], mode=d.choice(["TF", "IDF", "TFIDF"]), min_gram_length=1, max_gram_length=2,
                max_skip_count=d.choice([0, 1]), ngram_counts=[0, 3], ngram_indexes=[0, 1, 2, 3, 4],
                pool_int64s=[1, 2, 3, 1, 2, 2, 3], weights=d.choice([None, [0.5, 1.0, 2.0, 1.5, 3.0]]), loose=10)


# ---- recurrent ----

@operator("RNN", "GRU", "LSTM")
def recurrent(d, op):
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    steps, batch, width, hidden = d.randrange(1, 4), d.choice([1, 2]), d.choice([1, 3]), d.choice([1, 2])
    direction = d.maybe("forward", "reverse", "bidirectional")
    ways = 2 if direction == "bidirectional" else 1
    array = lambda *shape: d.array("float32", shape, low=-1, high=1)
    operands = [array(steps, batch, width), array(ways, gates * hidden, width), array(ways, gates * hidden, hidden),
                array(ways, 2 * gates * hidden) if d.chance(0.6) else None]
    more = dict(linear_before_reset=d.flag()) if op == "GRU" else {}
    return Call(op, operands, outputs=3 if op == "LSTM" else 2, hidden_size=hidden, direction=direction, loose=100, **more)
