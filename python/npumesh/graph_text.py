"""GE's text of a model, as the library prints it, taken apart into nodes and put together again.

The library prints one field a line and escapes texts, so that lines tell the structure; what is not read stays the
text that it is.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from .errors import UnsupportedError

__all__ = ["Field", "NodeText", "attribute_name", "attribute_value", "nodes_and_rest", "open_descriptor", "unquoted"]

# Fields of a node that GE derives from others when it loads a model; they may be stale after an edit.
_DERIVED = {"id", "stream_id", "input_name", "src_name", "src_index", "dst_name", "dst_index", "input_i", "output_i",
            "is_input_const"}
_OPEN_SHAPE = "shape { dim: -2 }"
_READERS = "_src_out_peer_index_for_ge_txt_load"


class Field(NamedTuple):
    """A field of a message: its value as text, of a message the lines between its braces."""

    name: str
    value: str
    lines: Optional[List[str]]

    def text(self) -> str:
        if self.lines is None:
            return f"{self.name}: {self.value}"
        return f"{self.name} {{ {' '.join(self.lines)} }}"


class NodeText(NamedTuple):
    name: str
    type: str
    inputs: List[str]  # "node:port", "" for one that is left out, "node:-1" for a node that runs before
    body: List[str]  # descriptors and what else there is
    attrs: Dict[str, str]  # by name, each a whole field


def fields(lines: Sequence[str]) -> Iterator[Field]:
    """The fields of a message by its lines, which are stripped."""
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if not line.endswith("{"):
            name, _, value = line.partition(": ")
            yield Field(name, value, None)
            continue
        begin, depth = at, 1
        while depth:
            depth += lines[at].endswith("{")
            depth -= lines[at] == "}"
            at += 1
        yield Field(line[:-1].strip(), "", list(lines[begin:at - 1]))


def nodes_and_rest(text: str) -> Tuple[str, List[NodeText], List[str]]:
    """The name of a model's main graph, its nodes, and all else of the model: the other graphs. Error:
    UnsupportedError without a graph."""
    rest: List[str] = []
    main: Optional[List[Field]] = None
    for field in fields([line.strip() for line in text.splitlines()]):
        if field.name == "graph" and main is None:
            main = list(fields(field.lines or []))
        elif field.name == "graph":
            rest.append(field.text())
    if main is None:
        raise UnsupportedError("the model has no graph")
    name = next((unquoted(field.value) for field in main if field.name == "name"), "graph")
    return name, [_node(field.lines or []) for field in main if field.name == "op"], rest


def _node(lines: Sequence[str]) -> NodeText:
    node = NodeText("", "", [], [], {})
    for field in fields(lines):
        if field.name == "name":
            node = node._replace(name=unquoted(field.value))
        elif field.name == "type":
            node = node._replace(type=unquoted(field.value))
        elif field.name == "input":
            node.inputs.append(unquoted(field.value))
        elif field.name == "attr":
            name = attribute_name(field)
            if name != _READERS:
                node.attrs[name] = field.text()
        elif field.name not in _DERIVED:
            node.body.append(field.text())
    return node


def attribute_name(attr: Field) -> str:
    return next(unquoted(field.value) for field in fields(attr.lines or []) if field.name == "key")


def unquoted(text: str) -> str:
    """The text of a quoted one, whose bytes beyond ASCII stand in octal."""
    if '\\' not in text:
        return text[1:-1]
    data = ast.literal_eval("b" + text) if text.isascii() else text[1:-1].encode()
    return data.decode("utf-8", "surrogateescape")


def attribute_value(text: str) -> Any:
    """Of an attribute as `NodeText.attrs` has it: a number, a boolean, a text, or a list of them. Of another kind,
    such as a tensor, its text."""
    match = re.match(r"attr \{ key: (\"(?:[^\"\\]|\\.)*\") value \{ ?(.*?) ?\} \}$", text, re.S)
    told = match.group(2) if match else text
    if not told.startswith("list {"):
        name, _, value = told.partition(": ")
        return _scalar(name, value) if name in _SCALARS else told
    items = _ITEM.findall(told[len("list {"):])
    if any(name not in _SCALARS and name != "val_type" for name, _ in items) or "{" in _QUOTED.sub("", told[6:]):
        return told
    return [_scalar(name, value) for name, value in items if name != "val_type"]


_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"")
_ITEM = re.compile(r"(\w+): (\"(?:[^\"\\]|\\.)*\"|\S+)")
_SCALARS = {"i": int, "f": float, "b": lambda value: value == "true", "s": unquoted, "dt": str}


def _scalar(name: str, value: str) -> Any:
    return _SCALARS[name](value)


def open_descriptor(text: str) -> str:
    """A descriptor whose dtype and shape are left to inference; one of a private format stays."""
    if not re.search(r'layout: "(ND|NCHW|NHWC)"', text):
        return text
    text = re.sub(r"\bdtype: \w+", "dtype: DT_UNDEFINED", text, count=1)
    return re.sub(r"\bshape \{[^{}]*\}", _OPEN_SHAPE, text, count=1)
