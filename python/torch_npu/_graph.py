"""Graphs of one operator, as text of ge.proto: a form of models that npumesh loads."""

from __future__ import annotations

import math
import struct
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import npumesh

# An input of a graph: the element type's name, and its dimensions.
Type = Tuple[str, Tuple[int, ...]]


class Constant(NamedTuple):
    """An input whose integers the graph holds, because shapes of outputs depend on them."""

    values: Tuple[int, ...]
    shape: Tuple[int, ...]

    @classmethod
    def of(cls, values: Sequence[Any], *shape: int) -> "Constant":
        """One dimension, unless there is a shape."""
        numbers = tuple(int(each) for each in values)
        return cls(numbers, shape or (len(numbers),))



# Names of element types in graphs, where they are not "DT_" with the name in capitals.
_PROTO_NAMES = {"float32": "DT_FLOAT", "float64": "DT_DOUBLE", "bfloat16": "DT_BF16"}
_OPEN_RANK = -2


def node_text(name: str, kind: str, inputs: Sequence[str], body: Sequence[str]) -> str:
    parts = [f'name: "{name}" type: "{kind}"', *(f'input: "{each}"' for each in inputs), *body]
    return "  op { " + " ".join(parts) + " }"


def descriptor(field: str, of: Optional[Type], port: str = "") -> str:
    """A descriptor; `of` None: type and shape are what the engine infers."""
    named = f'name: "{port}" ' if port else ""
    if of is None:
        return f'{field} {{ {named}dtype: DT_UNDEFINED layout: "ND" shape {{ dim: {_OPEN_RANK} }} }}'
    dtype, shape = of
    dims = " ".join(f"dim: {dim}" for dim in shape)
    proto = _PROTO_NAMES.get(dtype, "DT_" + dtype.upper())
    return f'{field} {{ {named}dtype: {proto} layout: "ND" shape {{ {dims} }} }}'


def _number(value: float) -> str:
    if math.isnan(value) or math.isinf(value):
        return str(value)
    return repr(float(value))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


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
    """An attribute of one of the kinds that the registry tells, "VT_LIST_INT" for example."""
    word = kind[3:]
    if word not in _KINDS and not word.startswith("LIST_"):
        word = _kind_of(value)
    if word.startswith("LIST_"):
        field, write = _KINDS[word[5:]]
        items = " ".join(f"{field}: {write(each)}" for each in value)
        text = f"list {{ {items} val_type: VT_{word} }}"
    else:
        field, write = _KINDS[word]
        text = f"{field}: {write(value)}"
    return f'attr {{ key: "{name}" value {{ {text} }} }}'


def _kind_of(value: Any) -> str:
    """Of an attribute whose kind is left open."""
    if isinstance(value, bool):
        return "BOOL"
    if isinstance(value, int):
        return "INT"
    if isinstance(value, float):
        return "FLOAT"
    return "STRING" if isinstance(value, str) else "LIST_INT"


class OneOperator:
    """The graph that runs one operator.

    `ports` has for each input of the operator that is given its type or its Constant, of a dynamic
    input a list of types. `attrs`: values of attributes; None is left out. `output_counts`: of dynamic outputs.
    The graph's inputs are those of `ports` that are no Constant, in the operator's order,
    flattened; its outputs are those of the operator that are not an input changed in place, flattened: `outputs` names them.
    """

    def __init__(self, operator: npumesh.Operator, ports: Dict[str, Any], attrs: Dict[str, Any],
                 output_counts: Dict[str, int]) -> None:
        self.outputs: List[str] = []
        self._operator = operator
        self._nodes: List[str] = []
        self._inputs: List[str] = []
        self._descriptors: List[str] = []
        self._count = 0
        for field in operator.inputs:
            self._take(field, ports.get(field.name))
        self._add_operator(attrs, output_counts)

    def text(self) -> bytes:
        name = self._operator.type
        body = "\n".join(self._nodes)
        return f'name: "{name}"\nversion: 1\ngraph {{\n  name: "{name}"\n{body}\n}}\n'.encode()

    def _take(self, field: npumesh.Field, of: Any) -> None:
        if field.kind == "dynamic":
            for at, each in enumerate(of or ()):
                self._data(f"{field.name}{at}", each)
        elif isinstance(of, Constant):
            self._const(field.name, of)
        elif of is not None:
            self._data(field.name, of)

    def _data(self, port: str, of: Type) -> None:
        name = f"in{self._count}_{port}"
        index = attribute("index", "VT_INT", self._count)
        self._nodes.append(node_text(name, "Data", [], [index, descriptor("output_desc", of)]))
        self._inputs.append(name + ":0")
        self._descriptors.append(descriptor("input_desc", of, port))
        self._count += 1

    def _const(self, port: str, of: Constant) -> None:
        name = f"const_{port}"
        kind: Type = ("int64", of.shape)
        octal = "".join(f"\\{byte:03o}" for byte in struct.pack(f"<{len(of.values)}q", *of.values))
        value = f'attr {{ key: "value" value {{ t {{ {descriptor("desc", kind)} data: "{octal}" }} }} }}'
        self._nodes.append(node_text(name, "Const", [], [value, descriptor("output_desc", kind)]))
        self._inputs.append(name + ":0")
        self._descriptors.append(descriptor("input_desc", kind, port))

    def _add_operator(self, attrs: Dict[str, Any], output_counts: Dict[str, int]) -> None:
        changed = {field.name for field in self._operator.inputs}
        ports, sources = [], []
        for field in self._operator.outputs:
            copies = output_counts.get(field.name, 0) if field.kind == "dynamic" else 1
            for at in range(copies):
                port = f"{field.name}{at}" if field.kind == "dynamic" else field.name
                if field.name not in changed:
                    sources.append(f"{self._operator.type}:{len(ports)}")
                    self.outputs.append(port)
                ports.append(descriptor("output_desc", None, port))
        kinds = {field.name: field.kind for field in self._operator.attrs}
        unknown = [name for name in attrs if name not in kinds]
        if unknown:
            raise npumesh.UnsupportedError(
                f"{self._operator.type}: there is no attribute {unknown[0]!r}")
        values = [attribute(name, kinds[name], value) for name, value in attrs.items()
                  if value is not None]
        self._nodes.append(node_text(self._operator.type, self._operator.type, self._inputs,
                                     [*self._descriptors, *values, *ports]))
        self._nodes.append(node_text("NetOutput", "NetOutput", sources,
                                     [descriptor("input_desc", None)] * len(sources)))
