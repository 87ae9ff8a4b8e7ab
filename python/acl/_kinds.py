"""How one value goes to C and comes back, by the kinds of _functions.py."""

from __future__ import annotations

import ctypes
import operator
import re
from typing import Any, Callable, Dict, List

from ._structs import STRUCTS

_NUMBERS: Dict[str, Any] = {
    "i8": ctypes.c_int8, "u8": ctypes.c_uint8, "i16": ctypes.c_int16, "u16": ctypes.c_uint16,
    "i32": ctypes.c_int32, "u32": ctypes.c_uint32, "i64": ctypes.c_int64, "u64": ctypes.c_uint64,
    "size": ctypes.c_size_t, "ptr": ctypes.c_void_p,
}


class Kind:
    """One kind. `give` makes C values of a Python value; `hold` makes room for what C writes, and
    `read` is what Python gets of it. `count`: the length of the room, for kinds that have one."""

    ctype: Any = None
    room: str = ""  # a number, or the name of the parameter that tells it

    def give(self, value: Any, what: str) -> List[Any]:
        raise NotImplementedError

    def hold(self, count: int) -> Any:
        return self.ctype()

    def read(self, held: Any, failed: bool) -> Any:
        return held.value


class Number(Kind):
    def __init__(self, name: str) -> None:
        self.ctype = _NUMBERS[name]
        bits = 8 * ctypes.sizeof(self.ctype)
        signed = name.startswith("i")
        self._least = -(1 << bits - 1) if signed else 0
        self._most = (1 << (bits - 1 if signed else bits)) - 1

    def give(self, value: Any, what: str) -> List[Any]:
        try:
            number = operator.index(value)
        except TypeError:
            raise TypeError(f"{what}: expected an int, seen {value!r}") from None
        if not self._least <= number <= self._most:
            raise OverflowError(f"{what}: expected {self._least} to {self._most}, seen {number}")
        return [self.ctype(number)]

    def read(self, held: Any, failed: bool) -> Any:
        return held.value or 0  # ctypes reads a null pointer as None


class Float(Kind):
    ctype = ctypes.c_float

    def give(self, value: Any, what: str) -> List[Any]:
        try:
            return [ctypes.c_float(float(value))]
        except (TypeError, ValueError):
            raise TypeError(f"{what}: expected a float, seen {value!r}") from None


class Text(Kind):
    """str, and text[n]."""

    ctype = ctypes.c_char_p

    def __init__(self, room: str = "") -> None:
        self.room = room

    def give(self, value: Any, what: str) -> List[Any]:
        if not isinstance(value, str):
            raise TypeError(f"{what}: expected a str, seen {value!r}")
        if "\0" in value:
            raise ValueError(f"{what}: expected a text without NUL, seen {value!r}")
        return [ctypes.c_char_p(value.encode())]

    def hold(self, count: int) -> Any:
        return ctypes.create_string_buffer(count + 1)

    def read(self, held: Any, failed: bool) -> Any:
        value = held.value
        return None if value is None else value.decode(errors="replace")


class Struct(Kind):
    def __init__(self, name: str) -> None:
        self.ctype = STRUCTS[name]

    def give(self, value: Any, what: str) -> List[Any]:
        return [ctypes.byref(self.ctype.from_dict(value, what))]

    def read(self, held: Any, failed: bool) -> Any:
        return {} if failed else held.to_dict()


class List_(Kind):
    """[kind], [kind n]."""

    def __init__(self, item: Kind, room: str = "") -> None:
        self._item = item
        self.room = room

    def give(self, value: Any, what: str) -> List[Any]:
        items = _items(value, what)
        given = [self._item.give(item, f"{what}[{at}]")[0] for at, item in enumerate(items)]
        return [(self._item.ctype * max(len(given), 1))(*(item.value for item in given))]

    def hold(self, count: int) -> Any:
        return (self._item.ctype * max(count, 1))()

    def read(self, held: Any, failed: bool) -> Any:
        if failed:
            return []
        return [item.to_dict() if hasattr(item, "to_dict") else item for item in held]


class Pairs(Kind):
    """[2 i64]."""

    def give(self, value: Any, what: str) -> List[Any]:
        pairs = _items(value, what)
        given = (ctypes.c_int64 * 2 * max(len(pairs), 1))()
        for at, pair in enumerate(pairs):
            two = _items(pair, f"{what}[{at}]")
            if len(two) != 2:
                raise ValueError(f"{what}[{at}]: expected two ints, seen {pair!r}")
            for side in range(2):
                given[at][side] = _I64.give(two[side], f"{what}[{at}][{side}]")[0].value
        return [given]


class Lists(Kind):
    """[[i64]]: for C the number of lists, their lengths, and the lists."""

    def give(self, value: Any, what: str) -> List[Any]:
        rows = [List_(_I64).give(row, f"{what}[{at}]")[0]
                for at, row in enumerate(_items(value, what))]
        lengths = (ctypes.c_int32 * max(len(rows), 1))(*(len(_items(row, what)) for row in value))
        pointers = (ctypes.c_void_p * max(len(rows), 1))(*(ctypes.addressof(row) for row in rows))
        pointers.rows = rows  # alive as long as the pointers
        return [ctypes.c_int32(len(rows)), lengths, pointers]


def _items(value: Any, what: str) -> List[Any]:
    """The items of a list, tuple or array."""
    if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__len__"):
        raise TypeError(f"{what}: expected a list, seen {value!r}")
    return list(value)


_I64 = Number("i64")
_LIST = re.compile(r"\[(\w+)(?: (\w+))?\]$")
_ROOM = re.compile(r"text\[(\w+)\]$")


def kind_of(words: str) -> Kind:
    """The kind that a row of _functions.py writes so. Errors: KeyError."""
    if words == "[[i64]]":
        return Lists()
    if words == "[2 i64]":
        return Pairs()
    found = _LIST.match(words)
    if found:
        return List_(kind_of(found[1]), found[2] or "")
    found = _ROOM.match(words)
    if found:
        return Text(found[1])
    plain: Dict[str, Callable[[], Kind]] = {"f32": Float, "str": Text}
    if words in plain:
        return plain[words]()
    return Number(words) if words in _NUMBERS else Struct(words)
