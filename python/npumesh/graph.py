"""Graphs built in Python, operator by operator, without protobuf.

    graph = npumesh.Graph("scores")
    x = graph.input("x", (2, 3))
    y = graph.op("MatMul", x, np.ones((3, 4), np.float32))
    graph.output(graph.op("SoftmaxV2", y))
    graph.save("scores.air")
    model = world.load(graph.text())

Graphs of files are edited in the same way:

    graph = npumesh.Graph.load("scores.air")
    graph.replace(graph.value("MatMul"), graph.op("Relu", graph.value("MatMul")))
"""

from __future__ import annotations

import ctypes
import dataclasses
import difflib
import math
import os
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import graph_text, questions, tensors
from .dtypes import DTypeLike, dtype
from .errors import InvalidArgumentError, NotFoundError, UnsupportedError
from .questions import Field, Operator, operator, save_air

__all__ = ["Graph", "Value"]

# ---- the text form of GE's models ----

# The type of a tensor: the element type's name, and its dimensions.
Type = Tuple[str, Tuple[int, ...]]

# Names of element types in graphs, where they are not "DT_" with the name in capitals.
_PROTO_NAMES = {"float32": "DT_FLOAT", "float64": "DT_DOUBLE", "bfloat16": "DT_BF16"}
_OPEN_RANK = -2


def node_text(name: str, kind: str, inputs: Sequence[str], body: Sequence[str]) -> str:
    """A node; `inputs` are values as "node:port", `body` descriptors and attributes."""
    sources = (f"input: {_quoted(each)}" for each in inputs)
    return "  op { " + " ".join([f"name: {_quoted(name)} type: {_quoted(kind)}", *sources, *body]) + " }"


def model_text(name: str, nodes: Sequence[str], others: Sequence[str] = ()) -> bytes:
    """A model of one graph, and `others` that its nodes call, as text."""
    body = "\n".join(nodes)
    head = f"name: {_quoted(name)}"
    graphs = "\n".join([f"graph {{\n  {head}\n{body}\n}}", *others])
    return f"{head}\nversion: 1\n{graphs}\n".encode("utf-8", "surrogateescape")


def descriptor(field: str, of: Optional[Type], port: str = "") -> str:
    """A descriptor; `of` None: type and shape are what the engine infers."""
    named = f"name: {_quoted(port)} " if port else ""
    if of is None:
        return f'{field} {{ {named}dtype: DT_UNDEFINED layout: "ND" shape {{ dim: {_OPEN_RANK} }} }}'
    name, shape = of
    dims = " ".join(f"dim: {dim}" for dim in shape)
    proto = _PROTO_NAMES.get(name, "DT_" + name.upper())
    return f'{field} {{ {named}dtype: {proto} layout: "ND" shape {{ {dims} }} }}'


def constant_text(name: str, of: Type, data: bytes) -> str:
    """A Const node whose elements have the bytes."""
    return node_text(name, "Const", [], [_constant_attr(of, data), descriptor("output_desc", of)])


def _constant_attr(of: Type, data: bytes) -> str:
    octal = "".join(f"\\{byte:03o}" for byte in data)
    return f'attr {{ key: "value" value {{ t {{ {descriptor("desc", of)} data: "{octal}" }} }} }}'


def _number(value: float) -> str:
    return str(value) if math.isnan(value) or math.isinf(value) else repr(value)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


# Of an attribute: the field of its value, and how a value is written, by the vendor's word for the
# kind without "VT_" and "LIST_".
_KINDS = {
    "INT": ("i", lambda value: str(int(value))),
    "FLOAT": ("f", lambda value: _number(float(value))),
    "BOOL": ("b", lambda value: "true" if value else "false"),
    "STRING": ("s", lambda value: _quoted(str(value))),
    "DATA_TYPE": ("dt", lambda value: str(int(value))),
}


def attribute(name: str, kind: str, value: Any) -> str:
    """An attribute of one of the kinds that the registry tells, "VT_LIST_INT" for example. Of
    another kind it is what the value is."""
    word = kind[3:]
    if word.removeprefix("LIST_") not in _KINDS:
        word = _kind_of(value)
    if word.startswith("LIST_"):
        field, write = _KINDS[word[5:]]
        items = " ".join(f"{field}: {write(each)}" for each in value)
        text = f"list {{ {items} val_type: VT_{word} }}"
    else:
        field, write = _KINDS[word]
        text = f"{field}: {write(value)}"
    return f"attr {{ key: {_quoted(name)} value {{ {text} }} }}"


def _kind_of(value: Any) -> str:
    """Of an attribute whose kind is left open."""
    if isinstance(value, bool):
        return "BOOL"
    if isinstance(value, int):
        return "INT"
    if isinstance(value, float):
        return "FLOAT"
    if isinstance(value, str):
        return "STRING"
    kinds = [_kind_of(each) for each in value]
    return "LIST_" + (kinds[0] if len(set(kinds)) == 1 else "FLOAT" if kinds else "INT")


# ---- the builder ----


class Value(NamedTuple):
    """An output of a node. Of port -1 is no value: who has it as an input runs after the node."""

    node: str
    port: int

    def __str__(self) -> str:
        return f"{self.node}:{self.port}"


# What an input of an operator takes: a value, or an array that becomes a constant.
Source = Union[Value, Any]


@dataclasses.dataclass
class _Node:
    """A node whose inputs are values, None where one is left out; `body` descriptors, `attrs` attributes as text."""

    name: str
    type: str
    inputs: List[Optional[Value]]
    body: List[str]
    attrs: Dict[str, str]

    def text(self, edited: bool = False) -> str:
        """`edited`: what stands behind a change, so that its types are inferred anew."""
        body = [graph_text.open_descriptor(each) for each in self.body] if edited else self.body
        return node_text(self.name, self.type, ["" if value is None else str(value) for value in self.inputs],
                         [*body, *self.attrs.values()])

    def is_inferred(self) -> bool:
        """True when the engine tells the outputs' types from the inputs' alone."""
        made = self.type in ("Data", "RefData", "Const", "Constant", "FileConstant")
        calls = any(each.startswith("subgraph_name") for each in self.body)
        return not made and not calls and _interface(self.type) is not None


def _value_of(text: str) -> Optional[Value]:
    """ "node:1" as GE's text has it."""
    if not text:
        return None
    node, _, port = text.rpartition(":")
    return Value(node, int(port))




_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _line_of_program() -> str:
    """The line that asked for a node, and the one that called its function, as tracebacks have them:
    messages about the node repeat them (graph/ir/node_origin.h)."""
    frame: Any = sys._getframe(1)
    while frame is not None and os.path.abspath(frame.f_code.co_filename).startswith(_OURS):
        frame = frame.f_back
    lines = []
    while frame is not None and len(lines) < 2:
        lines.append(f'File "{frame.f_code.co_filename}", line {frame.f_lineno}, in {frame.f_code.co_name}')
        frame = frame.f_back if frame.f_code.co_name != "<module>" else None
    return ", called by ".join(lines)


class Graph:
    """A graph under construction, or one of a file. Types and shapes between nodes are inferred when it is loaded,
    which is when errors of operators are found; they name the line of the program that has added the
    node. Not thread-safe."""

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self._nodes: Dict[str, _Node] = {}
        self._names: Dict[str, int] = {}  # how often a name was asked for
        self._inputs = 0
        self._outputs: List[Value] = []
        # Of a file: its path, the graphs that its nodes call, and what it says of the graph's outputs.
        self._file: Optional[str] = None
        self._others: List[str] = []
        self._sink: Optional[graph_text.NodeText] = None
        self._edited: "set[str]" = set()

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"]) -> "Graph":
        """The graph of a file, to be read and edited: AIR, text of GE, or ONNX, whose operators become those of
        GE. Weights in other files stay there; those in the file stand in `text()` four times as long. Bodies of If
        and While are kept as they are. Errors: those of World.load."""
        file = os.fspath(path)
        name, nodes, others = graph_text.nodes_and_rest(questions.model_text(file))
        graph = cls(name)
        graph._file, graph._others = file, others
        for node in nodes:
            graph._names[node.name] = 1
            inputs = [_value_of(each) for each in node.inputs]
            if node.type == "NetOutput":
                graph._sink = node
                graph._outputs = [value for value in inputs if value is not None and value.port >= 0]
                continue
            graph._inputs += node.type in ("Data", "RefData")
            graph._nodes[node.name] = _Node(node.name, node.type, inputs, node.body, node.attrs)
        return graph

    def input(self, name: str, shape: Sequence[int], of: DTypeLike = "float32") -> Value:
        """An input of the graph, after those before. An open dimension is -1."""
        return self._data("Data", name, shape, of)

    def state(self, name: str, shape: Sequence[int], of: DTypeLike = "float32") -> Value:
        """An input that the graph may change in place (RefData), a cache for example."""
        return self._data("RefData", name, shape, of)

    def constant(self, value: Any, name: str = "const", of: Optional[DTypeLike] = None) -> Value:
        """A constant of an array or, with numpy, of numbers. `of`: the element type of numbers;
        without it that of numpy. Error: InvalidArgumentError."""
        declared = None if of is None else dtype(of)
        if tensors.np is not None and declared is None and isinstance(value, (int, float, list, tuple)):
            value = tensors.np.asarray(value)
        operand = tensors.read(value, declared, f"graph {self.name!r}: constant {name!r}")
        data = ctypes.string_at(operand.address, operand.bytes) if operand.bytes else b""
        kind = (operand.dtype.name, tuple(operand.shape))
        return self._add(name, "Const", [], [descriptor("output_desc", kind)],
                         {"value": _constant_attr(kind, data)})

    def op(self, type: str, *inputs: Source, name: Optional[str] = None,  # noqa: A002
           outputs: Optional[int] = None, **named: Any) -> Any:
        """An operator; inputs by position in the vendor's order or by name, attributes by name.

        An array becomes a constant; None leaves an optional input or an attribute out; a dynamic
        input takes a list. Of an operator that npumesh does not know (of a library of your own)
        inputs have the names that they are given, by position "x0", "x1" ...
        `outputs`: how many outputs of a dynamic port; of an unknown operator of all (default: 1).
        Gives the output, or a tuple of several. Errors: InvalidArgumentError for an input, an
        attribute or a number of inputs that the operator lacks.
        """
        known = _interface(type)
        ports, attrs = (_unknown(inputs, named) if known is None
                        else _sorted(known, inputs, named))
        own = self._named(name or type)
        sources: List[Optional[Value]] = [self._value(source, f"{own}_{port}") for port, source in ports]
        results = _results(known, outputs)
        body = [descriptor("input_desc", None, port) for port, _ in ports]
        body += [descriptor("output_desc", None, port) for port in results]
        texts = {key: attribute(key, kind, value) for key, kind, value in attrs}
        texts["_stack_trace"] = attribute("_stack_trace", "VT_STRING", _line_of_program())
        self._nodes[own] = _Node(own, type, sources, body, texts)
        values = tuple(Value(own, port) for port in range(len(results)))
        return values[0] if len(values) == 1 else values

    def change(self, node: Union[str, Value], **attrs: Any) -> None:
        """Gives a node other attributes; None takes one away. `node`: its name, or one of its outputs.
        Errors: NotFoundError; UnsupportedError for an attribute that the operator lacks."""
        changed = self._node(node)
        known = _interface(changed.type)
        kinds = {} if known is None else {field.name: field.kind for field in known.attrs}
        for name, value in attrs.items():
            if known is not None and name not in kinds:
                raise UnsupportedError(f"{changed.type}: there is no attribute {name!r}; attributes are "
                                       f"{_names(known.attrs) or 'none'}")
            if value is None:
                changed.attrs.pop(name, None)
            else:
                changed.attrs[name] = attribute(name, kinds.get(name, ""), value)
        self._edited.add(changed.name)

    def replace(self, old: Value, new: Source, reader: Union[str, Value, None] = None) -> int:
        """Lets every reader of `old`, also the graph's output, read `new` instead, an array as a constant; what
        `new` itself is made of goes on reading `old`. `reader`: only this node does. Gives the number of inputs that
        read `new` now. Errors: NotFoundError; InvalidArgumentError when `reader` does not read `old`."""
        only = None if reader is None else self._node(reader)
        if only is not None and old not in only.inputs:
            raise InvalidArgumentError(f"graph {self.name!r}: {only.name!r} does not read {old}")
        value = self._value(new, f"{old.node}_replaced")
        behind = self._behind(value)
        readers = 0
        for node in self._nodes.values() if only is None else [only]:
            if node.name in behind or old not in node.inputs:
                continue
            readers += node.inputs.count(old)
            node.inputs = [value if each == old else each for each in node.inputs]
            self._edited.add(node.name)
        if only is None:
            readers += self._outputs.count(old)
            self._outputs = [value if each == old else each for each in self._outputs]
        return readers

    def remove(self, node: Union[str, Value]) -> None:
        """Takes a node away that nothing reads. Errors: NotFoundError; InvalidArgumentError names a
        reader; an input of the graph stays."""
        removed = self._node(node)
        if removed.type in ("Data", "RefData"):
            raise InvalidArgumentError(f"graph {self.name!r}: {removed.name!r} is an input of the graph")
        for other in self._nodes.values():
            if any(value is not None and value.node == removed.name for value in other.inputs):
                raise InvalidArgumentError(
                    f"graph {self.name!r}: {other.name!r} reads {removed.name!r}; replace it first")
        if any(value.node == removed.name for value in self._outputs):
            raise InvalidArgumentError(
                f"graph {self.name!r}: {removed.name!r} is an output of the graph; replace it first")
        del self._nodes[removed.name]

    @property
    def nodes(self) -> Tuple[Tuple[str, str], ...]:
        """Name and type of every node, in the order in which they were added, or in that of the file."""
        return tuple((node.name, node.type) for node in self._nodes.values())

    @property
    def outputs(self) -> Tuple[Value, ...]:
        """What the graph gives."""
        return tuple(self._outputs)

    def value(self, node: str, port: int = 0) -> Value:
        """An output of a node. Error: NotFoundError has the nearest names."""
        return Value(self._node(node).name, port)

    def inputs(self, node: Union[str, Value]) -> Tuple[Optional[Value], ...]:
        """What a node reads, None where an input is left out; behind it values of port -1, of nodes that it runs
        after. Error: NotFoundError."""
        return tuple(self._node(node).inputs)

    def readers(self, value: Value) -> Tuple[str, ...]:
        """The nodes that read a value."""
        return tuple(node.name for node in self._nodes.values() if value in node.inputs)

    def attributes(self, node: Union[str, Value]) -> Dict[str, Any]:
        """The attributes that a node has, as numbers, booleans, texts and lists of them; one of another kind, such as
        the tensor of a constant, is GE's text of it. What the operator's default says is not there. Error:
        NotFoundError."""
        return {name: graph_text.attribute_value(text) for name, text in self._node(node).attrs.items()}

    def output(self, *values: Value) -> "Graph":
        """Outputs of the graph, after those before."""
        for value in values:
            if not isinstance(value, Value):
                raise InvalidArgumentError(
                    f"graph {self.name!r}: an output is {_what(value)}; expected one value, as op gives it")
        self._outputs += values
        return self

    def text(self) -> bytes:
        """The model, as World.load takes it. Error: InvalidArgumentError without an output."""
        if not self._outputs:
            raise InvalidArgumentError(f"graph {self.name!r}: has no output; call output(value)")
        edited = self._behind_edits()
        nodes = [node.text(node.name in edited) for node in self._nodes.values()]
        return model_text(self.name, [*nodes, self._sink_text(bool(edited))], self._others)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the model as an AIR file, whole or not at all. Errors: those of save_air; InvalidArgumentError for
        a folder without the weights that lie beside the file of `load`."""
        target = os.fspath(path)
        if self._file is not None and any(node.type == "FileConstant" for node in self._nodes.values()):
            home = os.path.realpath(os.path.dirname(self._file))
            if os.path.realpath(os.path.dirname(target)) != home:
                raise InvalidArgumentError(
                    f"graph {self.name!r}: its weights lie beside {self._file}; save it in {home}")
        save_air(self.text(), target)

    def _sink_text(self, edited: bool) -> str:
        values = [str(value) for value in self._outputs]
        told = self._sink
        if told is None or len(told.inputs) != len(values):
            return node_text("NetOutput", "NetOutput", values, [descriptor("input_desc", None)] * len(values))
        body = [graph_text.open_descriptor(each) for each in told.body] if edited else told.body
        return node_text(told.name, told.type, values, [*body, *told.attrs.values()])

    def _behind_edits(self) -> "set[str]":
        """The nodes that were edited, and those whose types may be others by it."""
        readers: Dict[str, List[_Node]] = {}
        for node in self._nodes.values():
            for value in node.inputs:
                if value is not None and value.port >= 0:
                    readers.setdefault(value.node, []).append(node)
        behind: "set[str]" = set()
        open_nodes = [self._nodes[name] for name in self._edited if name in self._nodes]
        while open_nodes:
            node = open_nodes.pop()
            if node.name not in behind and node.is_inferred():
                behind.add(node.name)
                open_nodes += readers.get(node.name, [])
        return behind

    def _data(self, kind: str, name: str, shape: Sequence[int], of: DTypeLike) -> Value:
        told = descriptor("output_desc", (dtype(of).name, tuple(int(size) for size in shape)))
        added = self._add(name, kind, [], [told], {"index": attribute("index", "VT_INT", self._inputs)})
        self._inputs += 1
        return added

    def _add(self, name: str, kind: str, inputs: List[Optional[Value]], body: List[str],
             attrs: Dict[str, str]) -> Value:
        own = self._named(name)
        self._nodes[own] = _Node(own, kind, inputs, body, attrs)
        return Value(own, 0)

    def _value(self, source: Source, name: str) -> Value:
        return source if isinstance(source, Value) else self.constant(source, name)

    def _node(self, node: Union[str, Value]) -> _Node:
        name = node.node if isinstance(node, Value) else node
        if name not in self._nodes:
            near = difflib.get_close_matches(name, self._nodes, 3)
            hint = f"; near: {', '.join(near)}" if near else ""
            raise NotFoundError(f"graph {self.name!r}: there is no node {name!r}{hint}")
        return self._nodes[name]

    def _behind(self, value: Value) -> "set[str]":
        """The node of the value, and all that it is made of."""
        names, open_names = set(), [value.node]
        while open_names:
            name = open_names.pop()
            if name not in names:
                names.add(name)
                open_names += [each.node for each in self._node(name).inputs if each is not None]
        return names

    def _named(self, name: str) -> str:
        """The name, with a number where it is taken."""
        while name in self._names:
            self._names[name] += 1
            name = f"{name}_{self._names[name] - 1}"
        self._names[name] = 1
        return name


def _interface(type: str) -> Optional[Operator]:  # noqa: A002
    try:
        return operator(type)
    except NotFoundError:
        return None


def _what(value: Any) -> str:
    return "a tuple of values" if isinstance(value, tuple) else f"a {type(value).__name__}"


Ports = List[Tuple[str, Source]]
Attributes = List[Tuple[str, str, Any]]


def _unknown(inputs: Sequence[Source], named: Dict[str, Any]) -> Tuple[Ports, Attributes]:
    ports: Ports = [(f"x{at}", each) for at, each in enumerate(inputs)]
    attrs: Attributes = []
    for name, value in named.items():
        if isinstance(value, Value) or hasattr(value, "__array__"):
            ports.append((name, value))
        elif value is not None:
            attrs.append((name, "", value))
    return ports, attrs


def _sorted(known: Operator, inputs: Sequence[Source],
            named: Dict[str, Any]) -> Tuple[Ports, Attributes]:
    if len(inputs) > len(known.inputs):
        raise InvalidArgumentError(
            f"{known.type}: got {len(inputs)} inputs; expected at most {len(known.inputs)}: "
            f"{_names(known.inputs)}")
    given = {field.name: value for field, value in zip(known.inputs, inputs)}
    kinds = {field.name: field.kind for field in known.attrs}
    attrs: Attributes = []
    for name, value in named.items():
        if name in given:
            raise InvalidArgumentError(f"{known.type}: input {name!r} is given twice")
        if any(field.name == name for field in known.inputs):
            given[name] = value
        elif name not in kinds:
            raise UnsupportedError(
                f"{known.type}: there is no input or attribute {name!r}; inputs are "
                f"{_names(known.inputs)}; attributes are {_names(known.attrs) or 'none'}")
        elif value is not None:
            attrs.append((name, kinds[name], value))
    ports: Ports = []
    for field in known.inputs:
        value = given.get(field.name)
        if field.kind == "dynamic":
            ports += [(f"{field.name}{at}", each) for at, each in enumerate(value or ())]
        elif value is not None:
            ports.append((field.name, value))
        elif field.kind == "required":
            raise InvalidArgumentError(
                f"{known.type}: input {field.name!r} is missing; inputs are {_names(known.inputs)}")
    return ports, attrs


def _names(fields: Sequence[Field]) -> str:
    return ", ".join(field.name for field in fields)


def _results(known: Optional[Operator], outputs: Optional[int]) -> List[str]:
    if known is None:
        return [f"y{at}" for at in range(1 if outputs is None else outputs)]
    names: List[str] = []
    for field in known.outputs:
        if field.kind == "dynamic":
            names += [f"{field.name}{at}" for at in range(outputs or 0)]
        else:
            names.append(field.name)
    return names
