"""Random calls of what holds graphs, sequences, optionals or states: If, Loop, Scan, SequenceInsert, Adam ..

A call of several nodes has them in `nodes`, between the inputs x0, x1 .. and the results y0, y1 ..
"""

import onnx
from onnx import helper, numpy_helper

import numpy

from sweep_operators import Call, KINDS, i64, operator

TRAINING = "ai.onnx.preview.training"


class Body:
    """Drawn nodes that work element by element; names are its own."""

    def __init__(self, dice, prefix):
        self.dice, self.prefix, self.nodes = dice, prefix, []

    def node(self, op, inputs, **attributes):
        name = f"{self.prefix}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def constant(self, value):
        return self.node("Constant", [], value=numpy_helper.from_array(numpy.array(value)))

    def mixed(self, *operands):
        """Some steps from the first operand, to whose shape the others broadcast; all have one type."""
        name = operands[0]
        for _ in range(self.dice.randrange(1, 4)):
            if self.dice.chance(0.4):
                name = self.node(self.dice.choice(["Neg", "Abs", "Identity"]), [name])
            else:
                pair = [name, self.dice.choice(operands)]
                self.dice.random.shuffle(pair)
                name = self.node(self.dice.choice(["Add", "Sub", "Max", "Min"]), pair)
        return name

    def graph(self, inputs, outputs):
        """A graph of these nodes; inputs and outputs as (name, kind, shape or None)."""
        infos = lambda ports: [helper.make_tensor_value_info(*port) for port in ports]
        return helper.make_graph(self.nodes, self.prefix, infos(inputs), infos(outputs))


def kind_of(dice):
    """Types that Max and Min have in all operator sets."""
    return dice.choice(["float32", "float64"] if dice.opset < 12 else ["float32", "float64", "int32", "int64"])


# ---- graphs in attributes ----

@operator("If")
def if_(d, op):
    dtype = kind_of(d)
    shape = d.shape(most=3)
    branches = {}
    for branch in ("then_branch", "else_branch"):
        body = Body(d, branch[0])
        outputs = []
        for _ in range(2):
            name = body.mixed("x1", "x2")
            if d.opset >= 11 and d.chance(0.2):  # another rank than in the other branch
                name = body.node("Flatten", [name], axis=0)
            outputs.append(body.node("Identity", [name]))
        branches[branch] = body.graph([], [(name, KINDS[dtype], None) for name in outputs])
    condition = numpy.array(d.chance(0.5)).reshape(() if d.chance(0.7) else (1,))
    return Call(op, [condition, d.array(dtype, shape), d.array(dtype, d.broadcast(shape))], outputs=2, operands=1,
                fixed=[0] if d.chance(0.3) else [], **branches)


@operator("Loop")
def loop(d, op):
    """The number of turns, a condition, or both; a variable, and what each turn adds to an output."""
    dtype = kind_of(d)
    shape = d.shape(most=2)
    variable, other = d.array(dtype, shape, low=-2, high=2), d.array(dtype, (1,) * len(shape), low=-2, high=2)
    turns = i64(d.choice([0, 1, 2, 3, 4])).reshape(()) if d.chance(0.8) else None
    start = numpy.array(d.chance(0.9)) if turns is None or d.chance(0.5) else None
    body = Body(d, "b")
    limit = body.constant(numpy.int64(d.randrange(3)))
    go_on = body.node("Less", ["turn", limit]) if d.opset >= 9 and (turns is None or d.chance(0.5)) else None
    if go_on is None:
        turns = i64(2).reshape(()) if turns is None else turns
        go_on = body.node("Identity", ["more"])
    following = body.mixed("now", "x3", body.node("Cast", ["turn"], to=KINDS[dtype]))
    following = body.node("Identity", [following])
    row = body.node("Identity", [body.mixed("now", following)])
    kind = KINDS[dtype]
    graph = body.graph([("turn", 7, ()), ("more", 9, ()), ("now", kind, shape)],
                       [(go_on, 9, ()), (following, kind, shape), (row, kind, shape)])
    return Call(op, [turns, start, variable, other], outputs=2, operands=3, body=graph,
                fixed=[0, 1] if d.chance(0.3) else [])


@operator("Scan", since=9)
def scan(d, op):
    """A state and the slices of a tensor, from either end, along any axis."""
    dtype = kind_of(d)
    shape = d.shape(1, 2, empty=0)
    whole = d.randrange(len(shape))
    rest = shape[:whole] + shape[whole + 1:]
    state = d.array(dtype, rest, low=-2, high=2)
    body = Body(d, "b")
    following = body.node("Identity", [body.mixed("now", "slice", "x2")])
    row = body.node("Identity", [body.mixed("slice", following)])
    kind = KINDS[dtype]
    graph = body.graph([("now", kind, rest), ("slice", kind, rest)], [(following, kind, rest), (row, kind, rest)])
    out_axis = d.randrange(len(rest) + 1)
    return Call(op, [state, d.array(dtype, shape, low=-2, high=2), d.array(dtype, ())], outputs=2, operands=2, body=graph,
                num_scan_inputs=1, scan_input_axes=[whole], scan_output_axes=[out_axis],
                scan_input_directions=d.maybe([0], [1]), scan_output_directions=d.maybe([0], [1]))


# ---- sequences and optionals ----

class Program:
    """Nodes from x0, x1 .. on; positions and lengths become operands that are known."""

    def __init__(self, dice, operands):
        self.dice, self.operands, self.nodes, self.fixed = dice, operands, [], []

    def known(self, array):
        self.operands.append(array)
        self.fixed.append(len(self.operands) - 1)
        return f"x{len(self.operands) - 1}"

    def place(self, low, high):
        return self.known(numpy.array(self.dice.random.randint(low, high), self.dice.choice(["int64", "int32"])))

    def node(self, op, inputs, result=None, **attributes):
        name = result or f"s{len(self.nodes)}"
        attributes = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"node{len(self.nodes)}", **attributes))
        return name

    def call(self, op):
        return Call(op, self.operands, fixed=self.fixed, nodes=self.nodes)


def changed(program, name, count, items):
    """A sequence after some insertions and removals, and its length."""
    d = program.dice
    for _ in range(d.randrange(4)):
        if d.chance(0.6) or count == 0:
            place = [program.place(-count, count)] if d.chance(0.6) else []
            name, count = program.node("SequenceInsert", [name, d.choice(items), *place]), count + 1
        else:
            place = [program.place(-count, count - 1)] if d.chance(0.7) else []
            name, count = program.node("SequenceErase", [name, *place]), count - 1
    return name, count


def read(program, name, count, rank):
    """The result: an element, all of them in one tensor, or how many there are."""
    d = program.dice
    form = d.choice(["at", "join", "length"]) if count else "length"
    if form == "at":
        program.node("SequenceAt", [name, program.place(-count, count - 1)], "y0")
    elif form == "join":
        stacks = d.chance(0.5) or rank == 0
        axes = rank + 1 if stacks else rank
        program.node("ConcatFromSequence", [name], "y0", axis=d.random.randint(-axes, axes - 1),
                     new_axis=1 if stacks else d.maybe(0))
    else:
        program.node("SequenceLength", [name], "y0")


@operator("SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength",
          "ConcatFromSequence", since=11)
def sequences(d, op):
    dtype, shape = d.choice(["float32", "float64", "int32", "int64", "bool"]), d.shape(most=3)
    items = [f"x{i}" for i in range(d.randrange(1, 4))]
    program = Program(d, [d.array(dtype, shape) for _ in items])
    if d.chance(0.7):
        name, count = program.node("SequenceConstruct", items), len(items)
    else:
        name, count = program.node("SequenceEmpty", [], dtype=KINDS[dtype]), 0
    name, count = changed(program, name, count, items)
    read(program, name, count, len(shape))
    return program.call(op)


@operator("SplitToSequence", since=11)
def split_to_sequence(d, op):
    dtype, shape = d.choice(["float32", "float64", "int32", "int64"]), d.shape(1, 3, empty=0)
    axis = d.randrange(len(shape))
    program = Program(d, [d.array(dtype, shape)])
    size, form = shape[axis], d.choice(["one", "equal", "given"])
    inputs, keep, rank = ["x0"], None, len(shape)
    if form == "one":
        keep, count = d.flag(), size
        rank -= keep == 0
    elif form == "equal":
        part = d.randrange(1, size + 1)
        inputs.append(program.known(i64(part).reshape(())))
        count = -(-size // part)
    else:
        cut = d.randrange(size + 1)
        inputs.append(program.known(i64(cut, size - cut)))
        count = 2
    name = program.node(op, inputs, axis=d.choice([axis, axis - len(shape)]), keepdims=keep)
    if form == "one":
        read(program, name, count, rank)
    elif d.chance(0.5):
        program.node("ConcatFromSequence", [name], "y0", axis=axis)
    else:
        program.node("SequenceAt", [name, program.place(0, count - 1)], "y0")
    return program.call(op)


@operator("Optional", "OptionalHasElement", "OptionalGetElement", since=15)
def optionals(d, op):
    dtype = d.choice(["float32", "int64"])
    program = Program(d, [d.array(dtype, d.shape())])
    name = program.node("Optional", ["x0"])
    program.node("OptionalHasElement" if op == "OptionalHasElement" else "OptionalGetElement", [name], "y0")
    return program.call(op)


# ---- training ----

@operator("Adagrad", "Adam", "Momentum")
def optimizers(d, op):
    """One or two tensors, their gradients and states."""
    states, count = {"Adagrad": 1, "Adam": 2, "Momentum": 1}[op], d.choice([1, 2])
    shapes = [d.shape(most=2) for _ in range(count)]
    dtype = d.choice(["float32", "float64"])
    low = {"Adagrad": [0], "Adam": [-3, 0], "Momentum": [-3]}[op]
    groups = [d.array(dtype, shape, low=-3, high=3) for _ in range(2) for shape in shapes]
    groups += [d.array(dtype, shape, low=bound, high=3) for bound in low for shape in shapes]
    attributes = dict(norm_coefficient=d.choice([0.0, 0.125]))
    if op == "Momentum":
        attributes.update(alpha=0.75, beta=d.choice([0.5, 1.0]), mode=d.choice(["standard", "nesterov"]))
    elif op == "Adagrad":
        attributes.update(decay_factor=d.maybe(0.25), epsilon=d.choice([0.0625, 0.5]))
    else:
        attributes.update(alpha=d.maybe(0.75), beta=d.maybe(0.875), epsilon=d.choice([0.0625, 0.5]),
                          norm_coefficient_post=d.maybe(0.125))
    rate, turn = numpy.array(0.125, dtype), i64(d.randrange(4)).reshape(())
    return Call(op, [rate, turn, *groups], outputs=count * (1 + states), domain=TRAINING, loose=20, **attributes)
