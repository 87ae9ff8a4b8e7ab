"""Graphs of one operator, as text of proto/ge_ir.proto: a form of models that npumesh loads."""

from __future__ import annotations

import struct
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import npumesh
from npumesh.graph import Type, attribute, constant_text, descriptor, model_text, node_text


class Constant(NamedTuple):
    """An input whose integers the graph holds, because shapes of outputs depend on them."""

    values: Tuple[int, ...]
    shape: Tuple[int, ...]

    @classmethod
    def of(cls, values: Sequence[Any], *shape: int) -> "Constant":
        """One dimension, unless there is a shape."""
        numbers = tuple(int(each) for each in values)
        return cls(numbers, shape or (len(numbers),))


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
        return model_text(self._operator.type, self._nodes)

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
        data = struct.pack(f"<{len(of.values)}q", *of.values)
        self._nodes.append(constant_text(name, kind, data))
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
