"""Arrays of element types that numpy lacks: their bits, and what the bits mean."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import numpy as np

from .dtypes import DType, DTypeLike, bits_type, bytes_of, dtype, numpy_type
from .errors import InvalidArgumentError, UnsupportedError

__all__ = ["BitArray", "as_dtype", "to_float32", "to_bfloat16"]


class BitArray(np.ndarray):
    """Unsigned integers that are the bits of another type.

    `npumesh_dtype` is that type, and `npumesh_shape` the shape of the tensor. The shape of the
    array is the same, but for types smaller than a byte, whose arrays are the packed bytes in one
    dimension. Arithmetic and comparison see plain integers, and their results are plain arrays; so
    are parts of an array of packed bytes. `to_float32` converts.
    """

    _meaning: Optional[DType] = None
    _packed_shape: Optional[Tuple[int, ...]] = None

    @property
    def npumesh_dtype(self) -> Optional[DType]:
        """None where the integers are no such bits any more, as after `view` or `astype`."""
        meaning = self._meaning
        if meaning is None or self.dtype != bits_type(meaning):
            return None
        packed = self._packed_shape
        whole = packed is None or self.shape == (bytes_of(meaning, packed),)
        return meaning if whole else None

    @property
    def npumesh_shape(self) -> Tuple[int, ...]:
        if self._packed_shape is None or self.npumesh_dtype is None:
            return self.shape
        return self._packed_shape

    def __array_finalize__(self, source: Any) -> None:
        self._meaning = getattr(source, "_meaning", None)
        self._packed_shape = getattr(source, "_packed_shape", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        if "out" in keywords:
            keywords["out"] = tuple(map(_plain, keywords["out"]))
        return getattr(ufunc, method)(*map(_plain, inputs), **keywords)

    def __dlpack__(self, **keywords: Any) -> Any:
        """A capsule that says the type as well, where DLPack has it: bfloat16."""
        from . import dlpack

        if self.npumesh_dtype is None:
            return _plain(self).__dlpack__(**keywords)
        return dlpack.export(self, self.npumesh_dtype, self.npumesh_shape)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, BitArray) else value


def as_dtype(array: Any, of: DTypeLike, shape: Optional[Sequence[int]] = None) -> np.ndarray:
    """The same memory as a tensor of type `of`.

    `array`: unsigned integers as wide as an element. For types smaller than a byte: the packed
    bytes, one-dimensional, and `shape` says the dimensions of the tensor. Errors:
    InvalidArgumentError.
    """
    meaning = dtype(of)
    array = np.asarray(array)
    own = numpy_type(meaning)
    if array.dtype == own and own is not None:
        return array
    if array.dtype != bits_type(meaning):
        raise InvalidArgumentError(
            f"as_dtype: expected {bits_type(meaning)} for the bits of {meaning}, seen {array.dtype}"
        )
    if own is not None:
        return array.view(np.ndarray).view(own)
    dims = _dims(array, meaning, shape)
    bits = array.view(BitArray)
    bits._meaning = meaning
    bits._packed_shape = dims if meaning.packed else None
    return bits


def _dims(array: np.ndarray, meaning: DType, shape: Optional[Sequence[int]]) -> Tuple[int, ...]:
    if not meaning.packed:
        if shape is not None and tuple(shape) != array.shape:
            raise InvalidArgumentError(
                f"as_dtype: {meaning} has the array's shape {array.shape}, seen {tuple(shape)}"
            )
        return array.shape
    if shape is None:
        raise InvalidArgumentError(f"as_dtype: elements of {meaning} are packed; give their shape")
    needed = bytes_of(meaning, tuple(shape))
    if array.shape != (needed,):
        raise InvalidArgumentError(
            f"as_dtype: {meaning} of shape {tuple(shape)} has {needed} bytes in one dimension, "
            f"seen an array of shape {array.shape}"
        )
    return tuple(shape)


def to_float32(array: Any) -> np.ndarray:
    """A copy as float32: of a BitArray (bfloat16, float8) by what its bits mean, of another array
    by numpy's rules. Errors: UnsupportedError for meanings that have no rule here."""
    meaning = getattr(array, "npumesh_dtype", None)
    if meaning is None:
        return np.asarray(array).astype(np.float32)
    bits = array.view(np.ndarray)
    if meaning.name == "bfloat16":
        return (bits.astype(np.uint32) << 16).view(np.float32).reshape(bits.shape)
    if meaning.name in _FLOAT8:
        return _float8_table(meaning.name)[bits]
    raise UnsupportedError(f"to_float32: no rule for {meaning}; its bits are the array's integers")


def to_bfloat16(array: Any) -> np.ndarray:
    """A bfloat16 copy, rounded to the nearest, ties to even; NaN stays NaN."""
    values = np.array(array, dtype=np.float32, order="C")  # ascontiguousarray adds a dimension to 0
    bits = values.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    quiet = ((bits >> 16) | 0x40).astype(np.uint16)
    return as_dtype(np.where(np.isnan(values), quiet, rounded).astype(np.uint16), "bfloat16")


# Exponent and mantissa bits, exponent bias.
_FLOAT8 = {"float8_e5m2": (5, 2, 15), "float8_e4m3fn": (4, 3, 7), "float8_e8m0": (8, 0, 127)}


def _float8_table(name: str) -> np.ndarray:
    return np.array([_float8(name, bits) for bits in range(256)], dtype=np.float32)


def _float8(name: str, bits: int) -> float:
    exponent_bits, mantissa_bits, bias = _FLOAT8[name]
    if name == "float8_e8m0":  # no sign, no zero: powers of two
        return float("nan") if bits == 255 else 2.0 ** (bits - bias)
    sign = -1.0 if bits & 0x80 else 1.0
    exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = bits & ((1 << mantissa_bits) - 1)
    if name == "float8_e5m2" and exponent == 31:
        return float("nan") if mantissa else sign * float("inf")
    if name == "float8_e4m3fn" and bits & 0x7F == 0x7F:
        return float("nan")
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)
