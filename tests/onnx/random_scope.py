"""A random ONNX graph in the making, and what it computes: every node comes with a function of numpy.

Arrays of floats are kept in float64, rounded to float32 after each node, so that the functions owe nothing to
the way an engine computes. `exact` values are those that float32 arithmetic gives without rounding: only they
may go where a last bit decides (comparisons, roundings, positions).
"""

import numpy
from onnx import TensorProto, helper, numpy_helper

KINDS = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "int32": TensorProto.INT32,
         "bool": TensorProto.BOOL, "uint8": TensorProto.UINT8, "int8": TensorProto.INT8}
MOST_ELEMENTS = 2000
LARGEST = 1000.0


class Unfit(Exception):
    """An operator finds nothing here that it can take."""


class Value:
    """A name, its array for the first inputs, and what is known about it."""

    def __init__(self, name, array, dtype, exact, constant=False):
        self.name, self.array, self.dtype = name, array, dtype
        self.exact, self.constant = exact, constant

    @property
    def shape(self):
        return self.array.shape

    @property
    def rank(self):
        return self.array.ndim

    @property
    def size(self):
        return self.array.size


def rounded(array, dtype):
    """An array as a tensor of `dtype` holds it."""
    if dtype == "float32":
        return numpy.asarray(array).astype(numpy.float32).astype(numpy.float64)
    return numpy.asarray(array).astype(dtype)


def stored(array, dtype):
    return numpy.ascontiguousarray(array).astype(dtype).reshape(numpy.shape(array))


class Step:
    """One node: names of operands ("" for an absent one) and results, and the function between them."""

    def __init__(self, operands, results, dtypes, function, exact):
        self.operands, self.results, self.dtypes = operands, results, dtypes
        self.function, self.exact = function, exact

    def run(self, env, noise=None):
        arrays = [env[name] if name else None for name in self.operands]
        outcome = self.function(*arrays, **({"env": env, "noise": noise} if self.nests else {}))
        outcome = outcome if isinstance(outcome, tuple) else (outcome,)
        for name, dtype, array in zip(self.results, self.dtypes, outcome):
            array = rounded(array, dtype)
            if noise is not None and dtype == "float32" and not self.exact:
                array = array * (1 + 3e-7 * noise.standard_normal(array.shape))
            env[name] = array

    @property
    def nests(self):
        return getattr(self.function, "nests", False)


class Scope:
    """A graph, or the body of a control operator, which sees the values around it."""

    def __init__(self, random, opset, outer=None, prefix=""):
        self.random, self.opset, self.outer, self.prefix = random, opset, outer, prefix
        self.nodes, self.initialisers, self.steps, self.values = [], [], [], []
        self.inputs, self.functions = [], outer.functions if outer else []
        self.shared = outer.shared if outer else {"names": 0}
        self.kinds = outer.kinds if outer else []  # of the nodes, for the report

    # Names and values.

    def name(self, hint):
        self.shared["names"] += 1
        style = self.random.randrange(8)
        number = self.shared["names"]
        return {0: f"{number}", 1: f"/m/{hint}_{number}/out.0", 2: f"{hint}:{number}"}.get(style, f"{hint}_{number}")

    def visible(self):
        return (self.outer.visible() if self.outer else []) + self.values

    def pick(self, *dtypes, least=0, most=9, test=None, exact=False):
        """A value of one of these dtypes and of `least` to `most` dimensions, newer ones more often."""
        fit = [value for value in self.visible()
               if (not dtypes or value.dtype in dtypes) and least <= value.rank <= most
               and (value.exact or not exact) and (test is None or test(value))]
        if not fit:
            raise Unfit
        return fit[max(self.random.randrange(len(fit)), self.random.randrange(len(fit)))]

    def floats(self, **wanted):
        return self.pick("float32", **wanted)

    def within(self, low, high, least=0, most=9):
        """A float value whose elements lie between two bounds."""
        return self.floats(least=least, most=most,
                           test=lambda v: v.size > 0 and v.array.min() >= low and v.array.max() <= high)

    def numbers(self, shape, dtype="float32"):
        """Random numbers that float32 holds exactly: multiples of 1/8."""
        draw = self.random.randrange
        count = int(numpy.prod(shape, dtype=int))
        if dtype == "float32":
            array = numpy.array([draw(-24, 25) / 8 for _ in range(count)], float)
        elif dtype == "bool":
            array = numpy.array([draw(2) for _ in range(count)], bool)
        else:
            array = numpy.array([draw(0 if dtype == "uint8" else -6, 7) for _ in range(count)], dtype)
        return array.reshape(shape)

    def constant(self, array, dtype="float32", hint="const"):
        """An initialiser or a Constant node."""
        array = rounded(array, dtype)
        value = Value(self.name(hint), array, dtype, exact=True, constant=True)
        plain = stored(array, dtype)
        form = self.random.randrange(4)
        # Before format 4 an initialiser is an input as well, which a body cannot have.
        if form == 0 or (self.outer and self.opset < 9):
            self.nodes.append(helper.make_node("Constant", [], [value.name],
                                               value=numpy_helper.from_array(plain, "")))
        elif form == 1 and self.opset >= 12 and plain.ndim <= 1 and plain.size and dtype in ("float32", "int64"):
            key = f"value_{'float' if dtype == 'float32' else 'int'}{'s' if plain.ndim else ''}"
            self.nodes.append(helper.make_node("Constant", [], [value.name], **{key: plain.tolist()}))
        else:
            self.initialisers.append(numpy_helper.from_array(plain, value.name))
        self.steps.append(Step([], [value.name], [dtype], lambda: array, exact=True))
        self.values.append(value)
        return value

    def ints(self, values):
        return self.constant(numpy.array(values, numpy.int64), "int64", "ints")

    def partner(self, value):
        """A second operand of the same dtype that can be broadcast with `value`."""
        def fits(other):
            try:
                shape = numpy.broadcast_shapes(value.shape, other.shape)
            except ValueError:
                return False
            return numpy.prod(shape, dtype=int) <= MOST_ELEMENTS
        if self.random.random() < 0.6:
            return self.pick(value.dtype, test=fits)
        shape = [size if self.random.random() < 0.7 else 1 for size in value.shape]
        shape = shape[self.random.randrange(len(shape) + 1):]
        if self.random.random() < 0.1 and len(shape) == value.rank < 4:
            shape = [self.random.randrange(1, 4), *shape]
        return self.constant(self.numbers(shape, value.dtype), value.dtype)

    # Nodes.

    def add(self, kind, operands, function, dtypes=None, exact=True, domain="", count=1, **attributes):
        """Adds a node, and runs its function. Returns its result, or a list of `count`."""
        operands = list(operands)
        while operands and operands[-1] is None and self.random.random() < 0.5:
            operands.pop()  # an absent one at the end may as well not be there
        names = ["" if operand is None else operand.name for operand in operands]
        dtypes = [dtypes] * count if isinstance(dtypes, str) else dtypes or [operands[0].dtype] * count
        results = [self.name(kind) for _ in range(count)]
        exact = exact and all(operand is None or operand.exact for operand in operands)
        step = Step(names, results, dtypes, function, exact)
        env = {value.name: value.array for value in self.visible()}
        with numpy.errstate(all="ignore"):
            step.run(env)
        made = []
        for name, dtype in zip(results, dtypes):
            array = env[name]
            if array.size > MOST_ELEMENTS or array.ndim > 6:
                raise Unfit
            if dtype == "float32" and (not numpy.isfinite(array).all() or (abs(array) > LARGEST).any()):
                raise Unfit
            if dtype.startswith("int") and (abs(array.astype(numpy.int64)) > LARGEST).any():
                raise Unfit
            # Sums and products of multiples of 1/8 stay exact while few bits are needed.
            held = dtype != "float32" or (numpy.round(array * 4096) == array * 4096).all()
            made.append(Value(name, array, dtype, exact and held))
        step.exact = all(value.exact for value in made)
        node_name = self.random.choice(["", f"{self.prefix}{kind}_{len(self.nodes)}", results[0]])
        attributes = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(helper.make_node(kind, names, results, name=node_name, domain=domain, **attributes))
        self.steps.append(step)
        self.values += made
        self.kinds.append(kind)
        return made[0] if count == 1 else made

    def run(self, env, noise=None):
        for step in self.steps:
            step.run(env, noise)
        return env

    def info(self, value, shape):
        """What a graph says of an input or output; `shape` None: nothing of its shape."""
        return helper.make_tensor_value_info(value.name, KINDS[value.dtype], shape)
