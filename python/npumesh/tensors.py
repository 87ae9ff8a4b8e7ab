"""Tensors of Python programs as memory that C reads and writes, and the way back.

Taken are numpy arrays (ml_dtypes and BitArray too), what has `__dlpack__`, and what has the buffer
protocol: array.array, bytes, memoryview, ctypes arrays. With numpy also numbers and lists, which
become what the graph declares. Memory is used where it is when it is contiguous and in the byte
order of the machine, and copied otherwise.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import POINTER, c_char_p, c_int, c_int64, c_ssize_t, c_void_p, py_object
from typing import Any, Callable, Optional, Sequence, Tuple

from . import dlpack
from ._library import IN_PLACE, UNDEFINED, CTensor, library
from .dtypes import BY_NUMBER, DType, bytes_of, dtype, dtype_of_number, np, numpy_type
from .errors import InvalidArgumentError, NpumeshError

if np is not None:
    from .bits import as_dtype, to_bfloat16

Shape = Tuple[int, ...]


class Spec:
    """A type without values, for Session.prepare: `Spec((2, 3), "float32")`. An open dimension is
    -1."""

    def __init__(self, shape: Sequence[int], dtype: Any) -> None:  # noqa: A002
        self.shape: Shape = tuple(shape)
        self.dtype: DType = _dtype(dtype)

    def __repr__(self) -> str:
        return f"Spec({self.shape}, {self.dtype.name!r})"


_dtype = dtype


class Operand:
    """Memory of one tensor while C uses it."""

    __slots__ = ("address", "bytes", "shape", "dtype", "keep", "_finish")

    def __init__(self, address: int, shape: Shape, of: DType, keep: Any,
                 finish: Optional[Callable[[], None]] = None) -> None:
        self.address = address
        self.shape = shape
        self.dtype = of
        self.bytes = bytes_of(of, shape)
        self.keep = keep  # what the memory belongs to
        self._finish = finish

    def finish(self) -> None:
        """After C has written: brings the values to where the program wants them."""
        if self._finish is not None:
            self._finish()


# ---- the buffer protocol ----


class _PyBuffer(ctypes.Structure):
    _fields_ = [
        ("buf", c_void_p),
        ("obj", c_void_p),
        ("len", c_ssize_t),
        ("itemsize", c_ssize_t),
        ("readonly", c_int),
        ("ndim", c_int),
        ("format", c_char_p),
        ("shape", POINTER(c_ssize_t)),
        ("strides", POINTER(c_ssize_t)),
        ("suboffsets", POINTER(c_ssize_t)),
        ("internal", c_void_p),
    ]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes, _get_buffer.restype = [py_object, POINTER(_PyBuffer), c_int], c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes, _release_buffer.restype = [POINTER(_PyBuffer)], None
_FULL_RO = 0x11C


class _Buffer:
    """The address of memory with the buffer protocol, also of memory that is read-only."""

    def __init__(self, memory: memoryview) -> None:
        self._buffer = _PyBuffer()
        _get_buffer(memory, self._buffer, _FULL_RO)
        self.address = self._buffer.buf or 0

    def __del__(self) -> None:
        _release_buffer(self._buffer)


# dtypes by the letter of struct, native sizes. "l" is as wide as the machine has it.
_LETTERS = {
    "f": "float32", "e": "float16", "d": "float64", "?": "bool", "b": "int8", "B": "uint8",
    "c": "uint8", "h": "int16", "H": "uint16", "i": "int32", "I": "uint32", "q": "int64",
    "Q": "uint64", "l": f"int{ctypes.sizeof(ctypes.c_long) * 8}",
    "L": f"uint{ctypes.sizeof(ctypes.c_long) * 8}", "n": "int64", "N": "uint64",
    "Zf": "complex64", "Zd": "complex128",
}
_NATIVE_ORDER = "@=<" if sys.byteorder == "little" else "@=>"


def _letter_dtype(form: str, where: str) -> DType:
    letter = form[1:] if form[:1] and form[0] in _NATIVE_ORDER else form
    if letter not in _LETTERS:
        raise InvalidArgumentError(
            f"{where}: a buffer with elements of format {form!r} has no npumesh dtype"
        )
    return dtype(_LETTERS[letter])


def _of_buffer(value: Any, where: str, writable: bool) -> Operand:
    memory = memoryview(value)
    of = _letter_dtype(memory.format, where)
    if writable and memory.readonly:
        raise InvalidArgumentError(f"{where}: its memory is read-only")
    shape = tuple(memory.shape or ())
    if not memory.c_contiguous:
        if writable:
            raise InvalidArgumentError(f"{where}: a buffer that is written must be contiguous")
        memory = memoryview(memory.tobytes())
    kept = _Buffer(memory)
    return Operand(kept.address, shape, of, kept)


# ---- DLPack ----


def _of_dlpack(value: Any, where: str, writable: bool) -> Operand:
    try:
        tensor = dlpack.take(value)
    except NpumeshError as error:
        raise type(error)(f"{where}: {error}") from None
    if writable and not tensor.writable:
        raise InvalidArgumentError(f"{where}: its memory is read-only")
    if tensor.contiguous:
        return Operand(tensor.address, tensor.shape, tensor.dtype, tensor)
    if np is None or writable:
        raise InvalidArgumentError(f"{where}: a DLPack tensor with gaps; make it contiguous")
    return _of_array(_strided(tensor), where, False)


def _strided(tensor: dlpack.Imported) -> Any:
    """A numpy array over a tensor with gaps."""
    itemsize = tensor.dtype.itemsize
    view = np.asarray(_Interface(tensor.address, tensor.shape, itemsize,
                                 tuple(each * itemsize for each in tensor.strides or ()), tensor))
    own = numpy_type(tensor.dtype)
    return as_dtype(view, tensor.dtype) if own is None else view.view(own)


class _Interface:
    """Memory for numpy: elements of `itemsize` bytes, as unsigned integers or bytes."""

    def __init__(self, address: int, shape: Shape, itemsize: int, strides: Optional[Shape],
                 keep: Any) -> None:
        kind = "u" if itemsize <= 8 else "V"
        self.__array_interface__ = {
            "version": 3, "typestr": f"{'<>'[sys.byteorder == 'big']}{kind}{itemsize}",
            "shape": shape, "strides": strides, "data": (address, False),
        }
        self.keep = keep


# ---- numpy ----


def _meaning(array: Any, where: str) -> DType:
    marked = getattr(array, "npumesh_dtype", None)
    if marked is not None:
        return marked
    try:
        return dtype(array.dtype)
    except InvalidArgumentError:
        raise InvalidArgumentError(
            f"{where}: numpy's {array.dtype} has no npumesh dtype"
        ) from None


def _of_array(array: Any, where: str, writable: bool) -> Operand:
    of = _meaning(array, where)
    if writable and not array.flags.writeable:
        raise InvalidArgumentError(f"{where}: its memory is read-only")
    shape = getattr(array, "npumesh_shape", array.shape)
    ready = array
    if not (array.flags.c_contiguous and array.dtype.isnative):
        ready = np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
    finish = None
    if writable and ready is not array:
        def finish() -> None:
            array[...] = ready
    return Operand(ready.ctypes.data, tuple(shape), of, ready, finish)


def _convert(natural: Any, own: Any) -> Any:
    """The same integers, or floats rounded; None: they do not fit."""
    if natural.dtype.kind in "biu" and own.kind in "biu":
        converted = natural.astype(own)
        return converted if (converted == natural).all() else None
    fits = own.kind not in "biufc" or np.can_cast(natural.dtype, own, "same_kind")
    return natural.astype(own) if fits else None


def _of_values(value: Any, declared: Optional[DType], where: str) -> Operand:
    """Numbers and lists of them, as the graph declares them."""
    natural = np.asarray(value)
    if natural.dtype.kind not in "biufc":
        raise InvalidArgumentError(
            f"{where}: expected an array, something with __dlpack__ or the buffer protocol, or "
            f"numbers, seen {type(value).__name__}"
        )
    if declared is None:
        return _of_array(natural, where, False)
    own = numpy_type(declared)
    if own is None:
        if declared.name != "bfloat16":
            raise InvalidArgumentError(
                f"{where}: numbers do not become {declared}; give its bits (npumesh.as_dtype)"
            )
        return _of_array(to_bfloat16(natural), where, False)
    converted = _convert(natural, own)
    if converted is None:
        raise InvalidArgumentError(f"{where}: {natural.dtype} numbers do not fit into {declared}")
    return _of_array(converted, where, False)


# ---- all of them ----


def read(value: Any, declared: Optional[DType], where: str) -> Operand:
    """Memory that C reads. `declared`: what numbers become. Errors: InvalidArgumentError."""
    return _operand(value, declared, where, False)


def write(value: Any, where: str) -> Operand:
    """Memory that C reads and writes; `finish` is called afterwards. Errors:
    InvalidArgumentError."""
    return _operand(value, None, where, True)


def _operand(value: Any, declared: Optional[DType], where: str, writable: bool) -> Operand:
    if np is not None and isinstance(value, (np.ndarray, np.generic)):
        if writable and not isinstance(value, np.ndarray):
            raise InvalidArgumentError(f"{where}: its memory is read-only")
        return _of_array(np.asanyarray(value), where, writable)
    if hasattr(value, "__dlpack__"):
        return _of_dlpack(value, where, writable)
    try:
        memoryview(value)
    except TypeError:
        if np is None or writable:
            raise InvalidArgumentError(
                f"{where}: expected an array, something with __dlpack__ or the buffer protocol, "
                f"seen {type(value).__name__}"
            ) from None
        return _of_values(value, declared, where)
    return _of_buffer(value, where, writable)


_NOWHERE = ctypes.c_uint64()


def describe(operand: Optional[Operand], tensor: CTensor, in_place: bool = False) -> None:
    """Fills a tensor of C for `operand`; None: an input that is not given, an output without
    memory."""
    if operand is None:
        tensor.data, tensor.bytes, tensor.rank, tensor.dtype = None, 0, 0, UNDEFINED
        return
    # A tensor without elements has an address all the same: NULL would mean no tensor.
    tensor.data, tensor.bytes = operand.address or ctypes.addressof(_NOWHERE), operand.bytes
    describe_type(operand.shape, operand.dtype, tensor)
    tensor.flags = IN_PLACE if in_place else 0


def describe_type(shape: Shape, of: DType, tensor: CTensor) -> None:
    # Assigning an array to a pointer keeps the array with the struct.
    tensor.dims = (c_int64 * len(shape))(*shape) if shape else None
    tensor.rank, tensor.dtype = len(shape), of.number


# ---- the way back ----


class _Given:
    """Memory that the library gave; it gets it back when the last array over it is gone."""

    def __init__(self, address: int) -> None:
        self.address = address
        self._release = library().npumesh_release

    def __del__(self) -> None:
        self._release(self.address)


def array_over(address: int, shape: Shape, of: DType, keep: Any) -> Any:
    """A numpy array over memory that stays as long as `keep`; without numpy a memoryview."""
    if np is None:
        return _view_over(address, shape, of, keep)
    dims = (bytes_of(of, shape),) if of.packed else shape
    view = np.asarray(_Interface(address, dims, of.itemsize, None, keep))
    own = numpy_type(of)
    return as_dtype(view, of, shape) if own is None else view.view(own)


def _view_over(address: int, shape: Shape, of: DType, keep: Any) -> memoryview:
    size = bytes_of(of, shape)
    memory = (ctypes.c_ubyte * size).from_address(address)
    memory.keep = keep
    view = memoryview(memory).cast("B")
    if of.packed or of.format == "B" and of.itemsize > 1:
        return view
    dims = [] if 0 in shape else [list(shape)]  # memoryview has no such shape
    try:
        return view.cast(of.format, *dims)
    except ValueError:  # Python before 3.12 casts to no float16
        return view.cast("H", *dims)


def take(tensor: CTensor, where: str) -> Any:
    """The array of an output whose memory the library gave. It owns the memory."""
    given = _Given(tensor.data)
    of = dtype_of_number(tensor.dtype, where)
    shape = tuple(tensor.dims[: tensor.rank]) if tensor.rank else ()
    return array_over(tensor.data, shape, of, given)


def empty(shape: Shape, of: DType) -> Any:
    """A new array, zeros; without numpy a memoryview."""
    if np is not None:
        own = numpy_type(of)
        if own is not None:
            return np.zeros(shape, own)
        dims = (bytes_of(of, shape),) if of.packed else shape
        return as_dtype(np.zeros(dims, f"uint{of.itemsize * 8}"), of, shape)
    memory = (ctypes.c_ubyte * max(bytes_of(of, shape), 1))()
    return _view_over(ctypes.addressof(memory), shape, of, memory)


def known_dtype(number: int) -> Optional[DType]:
    """None: not known yet, or a type that tensors of programs do not have."""
    return BY_NUMBER.get(number)
