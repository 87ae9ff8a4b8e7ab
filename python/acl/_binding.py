"""Python functions made of the rows of _functions.py."""

from __future__ import annotations

import ctypes
import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import _library
from ._kinds import Kind, Text, kind_of

_ROW = re.compile(r"(\w+) = (\w+)\((.*)\)(?: -> (\w+))?$", re.S)
_LENGTH = re.compile(r"len\((\w+)\):(\w+)$")


class Parameter(NamedTuple):
    """One parameter of a row. `way`: in, out, echo (in and out) or length."""

    name: str
    way: str
    kind: Kind
    words: str
    optional: bool


class Row(NamedTuple):
    name: str  # of Python, with its module
    c_name: str
    parameters: Tuple[Parameter, ...]
    result: Optional[str]  # None: an error code

    @property
    def given(self) -> List[Parameter]:
        """What Python passes."""
        return [each for each in self.parameters if each.way in ("in", "echo")]

    @property
    def signature(self) -> str:
        return f"acl.{self.name}({', '.join(each.name for each in self.given)})"


def _parameter(words: str) -> Parameter:
    length = _LENGTH.match(words)
    if length:
        return Parameter(length[1], "length", kind_of(length[2]), length[2], False)
    name, _, kind = words.partition(":")
    way = "in"
    if name.startswith("&"):
        name, way = name[1:], "out"
    if kind.endswith("="):
        kind, way = kind[:-1], "echo"
    optional = kind.endswith("?")
    kind = kind.rstrip("?")
    return Parameter(name, way, kind_of(kind), kind, optional)


def rows_of(module: str, text: str) -> List[Row]:
    """The rows of one module. `module` is "" for acl itself."""
    rows = []
    for line in re.sub(r"\n +", " ", text).strip().split("\n"):
        found = _ROW.match(line)
        assert found, line
        name, c_name, parameters, result = found.groups()
        rows.append(Row(f"{module}.{name}" if module else name, c_name,
                        tuple(_parameter(each) for each in parameters.split(", ") if each),
                        result))
    return rows


def _room(parameter: Parameter, given: Dict[str, Any]) -> int:
    room = parameter.kind.room
    if not room:
        return 0
    return int(room) if room.isdigit() else int(given[room][0].value)


def _length(value: Any) -> int:
    return len(value.encode()) if isinstance(value, str) else len(value)


class Bound:
    """A row that is called. Errors of a call: TypeError (number or types of the arguments),
    OverflowError (a number that the C type does not hold), ValueError, KeyError (parts of lists and
    dicts). What C refuses is an error code among the returned values."""

    def __init__(self, row: Row) -> None:
        self._row = row
        self._given = row.given
        self._least = sum(not each.optional for each in self._given)
        self._result = kind_of(row.result) if row.result not in (None, "none") else None
        self._whats = [f"acl.{row.name}: {each.name}" for each in self._given]
        self.__name__ = row.name.rpartition(".")[2]
        self.__doc__ = f"{row.signature}: {row.c_name} of the C interface."

    def __call__(self, *arguments: Any) -> Any:
        if not self._least <= len(arguments) <= len(self._given):
            raise TypeError(f"{self._row.signature}: expected {len(self._given)} arguments, "
                            f"seen {len(arguments)}")
        given = {each.name: [None] for each in self._given[len(arguments):]}
        for each, what, value in zip(self._given, self._whats, arguments):
            given[each.name] = ([None] if each.optional and value is None
                                else each.kind.give(value, what))
        words: List[Any] = []
        held: List[Tuple[Parameter, Any]] = []
        for each in self._row.parameters:
            if each.way == "length":
                words.append(each.kind.ctype(_length(arguments[self._place(each.name)])))
            elif each.way == "out":
                room = each.kind.hold(_room(each, given))
                held.append((each, room))
                words.append(room if isinstance(room, ctypes.Array) else ctypes.byref(room))
            else:
                words.extend(given[each.name])
                if each.way == "echo":
                    held.append((each, given[each.name][0]))
        return self._answer(self._run(words), held)

    def _place(self, name: str) -> int:
        return [each.name for each in self._given].index(name)

    def _run(self, words: List[Any]) -> Any:
        function = _library.symbol(self._row.c_name)
        if function is None:
            return _library.refuse(f"acl.{self._row.name}", self._row.c_name)
        function.restype = (self._result.ctype if self._result else
                            None if self._row.result == "none" else ctypes.c_int)
        return function(*words)

    def _answer(self, code: Any, held: List[Tuple[Parameter, Any]]) -> Any:
        if self._row.result == "none":
            return None
        if self._result:
            missing = _library.symbol(self._row.c_name) is None
            if isinstance(self._result, Text):
                return None if missing or code is None else code.decode(errors="replace")
            return 0 if missing or code is None else code
        values = [each.kind.read(room, code != 0) for each, room in held]
        return (*values, code) if values else code


def bind(module: str, text: str) -> Dict[str, Callable[..., Any]]:
    """The functions of one module by their names in Python."""
    return {row.name.rpartition(".")[2]: Bound(row) for row in rows_of(module, text)}
