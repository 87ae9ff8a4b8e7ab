"""Questions about operators: which there are, and what their interfaces have."""

from __future__ import annotations

import ctypes
import os
import tempfile
from typing import Iterator, NamedTuple, Optional, Tuple

from ._library import COp, COpField, check, encode, library

__all__ = ["Field", "Operator", "operator", "operators", "save_air", "version"]


class Field(NamedTuple):
    """An input, output or attribute of an operator."""

    name: str
    # Of inputs and outputs "required", "optional" or "dynamic"; of attributes the vendor's word for
    # the type: VT_INT, VT_LIST_FLOAT, ...
    kind: str
    default: Optional[str]  # of an optional attribute, as `npumesh ops` shows it; else None


class Operator(NamedTuple):
    """The interface of an operator, in the vendor's order. An output that has the name of an input
    is that input, changed in place."""

    type: str
    inputs: Tuple[Field, ...]
    outputs: Tuple[Field, ...]
    attrs: Tuple[Field, ...]


def operators() -> Tuple[str, ...]:
    """The types of all operators that npumesh has, in alphabetic order."""
    return tuple(_types())


def _types() -> Iterator[str]:
    position = 0
    while True:
        found = library().npumesh_op_type(position)
        if found is None:
            return
        yield found.decode()
        position += 1


def operator(type: str) -> Operator:  # noqa: A002
    """What the interface of an operator has. Errors: NotFoundError has the nearest names."""
    name = encode(type, "type")
    counts = COp()
    check(library().npumesh_get_op(name, ctypes.byref(counts)))
    return Operator(
        type,
        _fields(name, 0, counts.inputs),
        _fields(name, 1, counts.outputs),
        _fields(name, 2, counts.attrs),
    )


def _fields(name: bytes, part: int, count: int) -> Tuple[Field, ...]:
    fields = []
    for position in range(count):
        told = COpField()
        check(library().npumesh_get_op_field(name, part, position, ctypes.byref(told)))
        default = None if told.fallback is None else told.fallback.decode()
        fields.append(Field(told.name.decode(), told.kind.decode(), default))
    return tuple(fields)


def save_air(model: bytes, path: str) -> None:
    """Writes AIR bytes to a file as GE's own serialisation has them (docs/export.md), whole or not
    at all. A `path` that is a symbolic link is refused."""
    check(library().npumesh_save_air(bytes(model), len(model), encode(path, "path")))


def model_text(path: str) -> str:
    """The model of a file as GE's text: AIR, text of GE, or ONNX. Errors: those of World.load."""
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "model.txt")
        check(library().npumesh_save_text(encode(path, "path"), encode(text, "text")))
        with open(text, encoding="utf-8") as file:
            return file.read()


def version() -> str:
    """The version of the library, as in "0.1.0"."""
    return library().npumesh_version().decode()
