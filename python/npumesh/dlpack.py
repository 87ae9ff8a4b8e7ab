"""DLPack by ctypes: tensors of other libraries in memory, without a copy and without numpy."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64
from ctypes import c_void_p, py_object
from typing import Any, Dict, Optional, Tuple

from .dtypes import DType, dtype
from .errors import InvalidArgumentError, UnsupportedError

# Kinds of element types in DLPack.
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
_TYPES: Dict[Tuple[int, int], str] = {
    (_BOOL, 8): "bool",
    (_BFLOAT, 16): "bfloat16",
    (_COMPLEX, 32): "complex32",
    (_COMPLEX, 64): "complex64",
    (_COMPLEX, 128): "complex128",
    (10, 8): "float8_e4m3fn",
    (12, 8): "float8_e5m2",
    (14, 8): "float8_e8m0",
}
_TYPES.update({(_FLOAT, bits): f"float{bits}" for bits in (16, 32, 64)})
_TYPES.update({(_INT, bits): f"int{bits}" for bits in (8, 16, 32, 64)})
_TYPES.update({(_UINT, bits): f"uint{bits}" for bits in (8, 16, 32, 64)})
_KINDS = {name: kind for kind, name in _TYPES.items()}

# Devices whose memory this process reads: the CPU, and pinned memory of CUDA and ROCm.
_HOST_DEVICES = (1, 3, 11)


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


_Deleter = ctypes.CFUNCTYPE(None, c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", _Deleter)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", _Deleter),
        ("flags", c_uint64),
        ("tensor", _Tensor),
    ]


_READ_ONLY_FLAG = 1

# Names of capsules. Python keeps the addresses, so the texts stay as long as the module.
_NEW, _USED = b"dltensor", b"used_dltensor"
_NEW_VERSIONED, _USED_VERSIONED = b"dltensor_versioned", b"used_dltensor_versioned"

_api = ctypes.pythonapi
_capsule_new = _api.PyCapsule_New
_capsule_new.argtypes, _capsule_new.restype = [c_void_p, c_char_p, c_void_p], py_object
_capsule_is = _api.PyCapsule_IsValid
_capsule_is.argtypes, _capsule_is.restype = [py_object, c_char_p], ctypes.c_int
_capsule_pointer = _api.PyCapsule_GetPointer
_capsule_pointer.argtypes, _capsule_pointer.restype = [py_object, c_char_p], c_void_p
_capsule_rename = _api.PyCapsule_SetName
_capsule_rename.argtypes, _capsule_rename.restype = [py_object, c_char_p], ctypes.c_int


class Imported:
    """Memory of a tensor that another library made. It stays until this object goes."""

    def __init__(self, capsule: Any) -> None:
        self._managed: Any = None
        if _capsule_is(capsule, _NEW_VERSIONED):
            kind, new, used = _Versioned, _NEW_VERSIONED, _USED_VERSIONED
        elif _capsule_is(capsule, _NEW):
            kind, new, used = _Managed, _NEW, _USED
        else:
            raise InvalidArgumentError("__dlpack__ gave no capsule of a tensor, or a used one")
        managed = ctypes.cast(_capsule_pointer(capsule, new), POINTER(kind))
        if kind is _Versioned and managed.contents.major != 1:
            raise UnsupportedError(
                f"DLPack version {managed.contents.major} of a tensor is not known, expected 1"
            )
        _capsule_rename(capsule, used)
        self._managed = managed  # from here on the tensor is ours to delete
        tensor = managed.contents.tensor
        name = _TYPES.get((tensor.code, tensor.bits))
        if name is None or tensor.lanes != 1:
            raise UnsupportedError(
                f"a DLPack tensor with elements of kind {tensor.code}, {tensor.bits} bits and "
                f"{tensor.lanes} lanes has no npumesh dtype"
            )
        self.dtype = dtype(name)
        self.shape = tuple(tensor.shape[: tensor.ndim])
        self.address = (tensor.data or 0) + tensor.byte_offset
        self.strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
        self.writable = not (kind is _Versioned and managed.contents.flags & _READ_ONLY_FLAG)

    def __del__(self) -> None:
        managed, self._managed = self._managed, None
        if managed is not None and managed.contents.deleter:
            managed.contents.deleter(ctypes.cast(managed, c_void_p))

    @property
    def contiguous(self) -> bool:
        """True when the elements lie in C order without gaps."""
        if self.strides is None or 0 in self.shape:
            return True
        expected = 1
        for dim, stride in zip(reversed(self.shape), reversed(self.strides)):
            if dim != 1 and stride != expected:
                return False
            expected *= dim
        return True


def take(value: Any) -> Imported:
    """The tensor that `value.__dlpack__` gives. Errors: it is not in memory of this host."""
    device = getattr(value, "__dlpack_device__", None)
    if device is not None and int(device()[0]) not in _HOST_DEVICES:
        raise InvalidArgumentError(
            f"expected a tensor in memory of the host, seen one of DLPack device {device()}; "
            "copy it to the CPU first"
        )
    try:
        return Imported(value.__dlpack__())
    except BufferError:  # read-only: only the later capsule can say so
        try:
            return Imported(value.__dlpack__(max_version=(1, 0)))
        except TypeError:
            pass
        raise


# ---- tensors for other libraries ----

_exported: Dict[int, Tuple[Any, ...]] = {}  # what a tensor that is out needs, by its address


@_Deleter
def _forget(address: Any) -> None:
    _exported.pop(address, None)


@ctypes.CFUNCTYPE(None, c_void_p)
def _capsule_gone(capsule: Any) -> None:
    """Destructor of a capsule: the tensor was not taken."""
    is_valid, pointer = _raw_api()
    if is_valid(capsule, _NEW):
        _forget(pointer(capsule, _NEW))


def _raw_api() -> Tuple[Any, Any]:
    """The capsule functions for a capsule that is being deleted, which must not be referenced."""
    is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", _api))
    pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", _api))
    return is_valid, pointer


def export(array: Any, meaning: DType, shape: Optional[Tuple[int, ...]] = None) -> Any:
    """A capsule of the memory of a numpy array whose bits mean `meaning`; the array stays as long
    as the tensor. Errors: BufferError for a type that DLPack lacks, or a read-only array."""
    kind = _KINDS.get(meaning.name)
    if kind is None:
        raise BufferError(f"DLPack has no type for {meaning}")
    if not array.flags.writeable:
        raise BufferError("the array is read-only, which this DLPack capsule cannot say")
    dims = tuple(array.shape if shape is None else shape)
    sizes = (c_int64 * max(len(dims), 1))(*dims)
    steps = (c_int64 * max(len(dims), 1))(*(each // array.itemsize for each in array.strides))
    managed = _Managed()
    managed.tensor = _Tensor(
        array.ctypes.data, 1, 0, len(dims), kind[0], kind[1], 1, sizes, steps, 0
    )
    managed.deleter = _forget
    address = ctypes.addressof(managed)
    _exported[address] = (managed, array, sizes, steps)
    return _capsule_new(address, _NEW, ctypes.cast(_capsule_gone, c_void_p))
