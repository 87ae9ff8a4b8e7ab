"""Element types of tensors, and how they look in numpy.

numpy has no bfloat16, float8 or int4. With ml_dtypes installed arrays of the first two have its
types. Without it, and for all other types that numpy lacks, an array holds the bits as unsigned
integers, and its attribute `npumesh_dtype` says what they mean (class `BitArray`).
"""

from __future__ import annotations

import functools
from typing import Any, Dict, NamedTuple, Optional, Tuple, Union

from .errors import InvalidArgumentError, UnsupportedError

try:
    import numpy as np
except ImportError:
    np = None  # type: ignore[assignment]

__all__ = ["DType", "DTYPES", "dtype", "bytes_of"]


class DType(NamedTuple):
    """An element type. Compare with `==`; `str()` is the name."""

    name: str
    number: int  # npumesh_dtype
    bits: int  # of one element; below 8 the elements of a tensor are packed
    format: str  # of memoryview and struct; of types that they lack that of the bits
    own: Optional[str] = None  # the type of numpy that has the same values; None: numpy lacks it
    ml: Optional[str] = None  # the type of ml_dtypes that has

    def __str__(self) -> str:
        return self.name

    @property
    def packed(self) -> bool:
        """True when elements are smaller than a byte."""
        return self.bits < 8

    @property
    def itemsize(self) -> int:
        """Bytes of an element of the array; of packed types, bytes of a byte: 1."""
        return max(self.bits // 8, 1)


DTYPES: Tuple[DType, ...] = (
    DType("float32", 0, 32, "f", "float32"),
    DType("float16", 1, 16, "e", "float16"),
    DType("int8", 2, 8, "b", "int8"),
    DType("int32", 3, 32, "i", "int32"),
    DType("uint8", 4, 8, "B", "uint8"),
    DType("int16", 6, 16, "h", "int16"),
    DType("uint16", 7, 16, "H", "uint16"),
    DType("uint32", 8, 32, "I", "uint32"),
    DType("int64", 9, 64, "q", "int64"),
    DType("uint64", 10, 64, "Q", "uint64"),
    DType("float64", 11, 64, "d", "float64"),
    DType("bool", 12, 8, "?", "bool"),
    DType("complex64", 16, 64, "Q", "complex64"),
    DType("complex128", 17, 128, "B", "complex128"),
    DType("bfloat16", 27, 16, "H", None, "bfloat16"),
    DType("int4", 29, 4, "B"),
    DType("complex32", 33, 32, "I"),
    DType("hifloat8", 34, 8, "B"),
    DType("float8_e5m2", 35, 8, "B", None, "float8_e5m2"),
    DType("float8_e4m3fn", 36, 8, "B", None, "float8_e4m3fn"),
    DType("float8_e8m0", 37, 8, "B", None, "float8_e8m0fnu"),
    DType("float6_e3m2", 38, 6, "B"),
    DType("float6_e2m3", 39, 6, "B"),
    DType("float4_e2m1", 40, 4, "B"),
    DType("float4_e1m2", 41, 4, "B"),
)

BY_NUMBER: Dict[int, DType] = {each.number: each for each in DTYPES}
_BY_NAME: Dict[str, DType] = {each.name: each for each in DTYPES}
_BY_NAME.update((each.ml, each) for each in DTYPES if each.ml is not None)

DTypeLike = Union[DType, str, Any]


def dtype(value: DTypeLike) -> DType:
    """The element type that `value` means: a DType, a name, or what numpy.dtype takes.

    Errors: InvalidArgumentError for a type that tensors do not have.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    found = None
    if np is not None:
        try:
            found = _of_numpy(np.dtype(value))
        except TypeError:
            pass
    if found is None:
        raise InvalidArgumentError(
            f"dtype: expected one of {', '.join(_BY_NAME)}, seen {value!r}"
        )
    return found


@functools.lru_cache(maxsize=None)
def _of_numpy(of: Any) -> Optional[DType]:
    """Of a numpy.dtype; kept, because numpy makes the name anew each time (2 us)."""
    return _BY_NAME.get(of.name)


def dtype_of_number(number: int, where: str) -> DType:
    """The element type of an npumesh_dtype. Errors: UnsupportedError names `where`."""
    if number not in BY_NUMBER:
        raise UnsupportedError(f"{where}: this package does not know dtype {number}")
    return BY_NUMBER[number]


def bytes_of(of: DTypeLike, shape: Tuple[int, ...]) -> int:
    """Bytes of a tensor; packed elements fill whole bytes at the end."""
    count = 1
    for dim in shape:
        count *= dim
    bits = of.bits if isinstance(of, DType) else dtype(of).bits
    return (count * bits + 7) // 8


@functools.lru_cache(maxsize=None)
def ml_dtypes() -> Any:
    """The module ml_dtypes, None when it is not installed."""
    try:
        import ml_dtypes as module
    except ImportError:
        return None
    return module


def numpy_type(of: DType) -> Any:
    """The numpy.dtype whose values are those of `of`; None: there is none here."""
    return _numpy_type_of_number(of.number)


@functools.lru_cache(maxsize=None)
def _numpy_type_of_number(number: int) -> Any:
    of = BY_NUMBER[number]
    if of.own is not None:
        return np.dtype(of.own)
    module = ml_dtypes() if of.ml is not None else None
    found = getattr(module, of.ml, None) if module is not None else None
    return None if found is None else np.dtype(found)


def bits_type(of: DType) -> Any:
    """The numpy.dtype of the bits of an element; of packed types that of bytes."""
    return np.dtype(f"uint{of.itemsize * 8}")
