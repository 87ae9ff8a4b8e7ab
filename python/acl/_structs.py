"""Structs of the C interface that are dicts in Python: keys in the order of the struct."""

from __future__ import annotations

import ctypes
from ctypes import (
    c_char,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any, Dict, Mapping

_MOST = 128  # dimensions, batch sizes, images: ACL_MAX_DIM_CNT and its like


class DictStruct(ctypes.Structure):
    """A struct with the names that Python sees."""

    # Lists that are shorter than their array: the field that counts them.
    counted: Mapping[str, str] = {}
    # Fields that a dict may leave out.
    optional: frozenset = frozenset()

    def to_dict(self) -> Dict[str, Any]:
        return {name: self._read(name) for name, *_ in self._fields_}

    def _read(self, name: str) -> Any:
        value = getattr(self, name)
        if isinstance(value, DictStruct):
            return value.to_dict()
        if isinstance(value, bytes):
            return value.decode(errors="replace")
        if isinstance(value, ctypes.Array):
            count = getattr(self, self.counted[name]) if name in self.counted else len(value)
            return [list(item) if isinstance(item, ctypes.Array) else item
                    for item in value[:min(count, len(value))]]
        return 0 if value is None else value

    @classmethod
    def from_dict(cls, given: Any, what: str) -> "DictStruct":
        """Errors: TypeError (no dict, a value of another type), KeyError (a key is missing),
        ValueError (a list that is too long)."""
        if not isinstance(given, dict):
            raise TypeError(f"{what}: expected a dict, seen {given!r}")
        made = cls()
        for name, kind in cls._fields_:
            if name in given:
                made._write(name, kind, given[name], f"{what}[{name!r}]")
            elif name not in cls.optional:
                raise KeyError(f"{what}: the key {name} is missing")
        return made

    def _write(self, name: str, kind: Any, value: Any, what: str) -> None:
        if issubclass(kind, DictStruct):
            setattr(self, name, kind.from_dict(value, what))
        elif issubclass(kind, ctypes.Array) and kind._type_ is not c_char:
            if len(value) > len(getattr(self, name)):
                raise ValueError(f"{what}: at most {len(getattr(self, name))} values, "
                                 f"seen {len(value)}")
            getattr(self, name)[:len(value)] = list(value)
        elif issubclass(kind, ctypes.Array):
            setattr(self, name, str(value).encode())
        else:
            setattr(self, name, value)


class IODims(DictStruct):
    _fields_ = [("name", c_char * 128), ("dimCount", c_size_t), ("dims", c_int64 * _MOST)]
    counted = {"dims": "dimCount"}
    optional = frozenset({"name"})


class IODimsRange(DictStruct):
    _fields_ = [("rangeCount", c_size_t), ("range", c_int64 * 2 * _MOST)]
    counted = {"range": "rangeCount"}


class Batch(DictStruct):
    _fields_ = [("batchCount", c_size_t), ("batch", c_uint64 * _MOST)]
    counted = {"batch": "batchCount"}


class HW(DictStruct):
    _fields_ = [("hwCount", c_size_t), ("hw", c_uint64 * 2 * _MOST)]
    counted = {"hw": "hwCount"}


class UtilizationInfo(DictStruct):
    _fields_ = [
        ("cube_utilization", c_int32),
        ("vector_utilization", c_int32),
        ("aicpu_utilization", c_int32),
        ("memory_utilization", c_int32),
        ("utilization_extend", c_void_p),
    ]


class MemLocation(DictStruct):
    _fields_ = [("id", c_uint32), ("type", c_uint32)]


class PhysicalMemProp(DictStruct):
    _fields_ = [
        ("handleType", c_int32),
        ("allocationType", c_int32),
        ("memAttr", c_int32),
        ("location", MemLocation),
        ("reserve", c_uint64),
    ]
    optional = frozenset({"reserve"})


class PtrAttributes(DictStruct):
    _fields_ = [("location", MemLocation), ("page_size", c_uint32), ("rsv", c_uint32 * 4)]


class Uuid(DictStruct):
    _fields_ = [("bytes", c_uint8 * 16)]


class CannVersion(DictStruct):
    _fields_ = [
        ("version", c_char * 128),
        ("major_version", c_char * 64),
        ("minor_version", c_char * 64),
        ("release_version", c_char * 64),
        ("patch_version", c_char * 64),
        ("reserved", c_char * 128),
    ]


class MemUceInfo(DictStruct):
    _fields_ = [("addr", c_void_p), ("len", c_size_t), ("reserved", c_size_t * 14)]


class MallocValue(ctypes.Union):
    """One of them, by its key."""

    _fields_ = [("moduleId", c_uint16), ("deviceId", c_uint32), ("vaFlag", c_uint32),
                ("rsv", c_uint8 * 8)]


class MallocAttribute(ctypes.Structure):
    _fields_ = [("attr", c_int32), ("value", MallocValue)]


class MallocConfig(ctypes.Structure):
    _fields_ = [("attrs", ctypes.POINTER(MallocAttribute)), ("numAttrs", c_size_t)]


class StreamAttribute(ctypes.Union):
    _fields_ = [("failureMode", c_uint64), ("overflowSwitch", c_uint32),
                ("userCustomTag", c_uint32), ("cacheOpInfoSwitch", c_uint32),
                ("streamPriority", c_uint32), ("reserved", c_uint32 * 4)]


# Values of the C interface's kinds by their names in _functions.py.
STRUCTS: Dict[str, Any] = {
    kind.__name__: kind
    for kind in (IODims, IODimsRange, Batch, HW, UtilizationInfo, MemLocation, PhysicalMemProp,
                 PtrAttributes, Uuid, CannVersion)
}
