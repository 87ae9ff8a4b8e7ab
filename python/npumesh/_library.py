"""libnpumesh.so by ctypes: where it is, its structs, its functions.

Only this file knows the C interface (npumesh/npumesh.h); the modules beside it call `check`.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from ctypes import (
    POINTER,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any, List, Optional, Sequence, Tuple

from .errors import NotFoundError, UnsupportedError, error_of

OPEN_RANK = -1
UNDEFINED = 28
READ_ONLY = 0
IN_PLACE = 1

# Names of the library, the first one that loads is taken. The number is that of the interface.
_NAMES = ("libnpumesh.so.1", "libnpumesh.so")


class COption(ctypes.Structure):
    _fields_ = [("key", c_char_p), ("value", c_char_p)]


class CWorldInfo(ctypes.Structure):
    _fields_ = [
        ("rank", c_int32),
        ("size", c_int32),
        ("local_rank", c_int32),
        ("local_size", c_int32),
        ("node", c_int32),
        ("node_count", c_int32),
        ("memory_bytes", c_uint64),
        ("memory_used", c_uint64),
        ("memory_peak", c_uint64),
    ]


class CTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("bytes", c_uint64),
        ("dims", POINTER(c_int64)),
        ("rank", c_int32),
        ("dtype", c_int32),
        ("flags", c_uint32),
    ]


class CPort(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("index", c_int64),
        ("dims", POINTER(c_int64)),
        ("rank", c_int32),
        ("dtype", c_int32),
        ("ref", c_int32),
        ("host", c_int32),
        ("bytes", c_uint64),
    ]


class CSessionStats(ctypes.Structure):
    _fields_ = [
        ("runs", c_uint64),
        ("plans", c_uint64),
        ("input_bytes_copied", c_uint64),
        ("output_bytes_copied", c_uint64),
        ("arena_bytes", c_uint64),
        ("constant_bytes", c_uint64),
        ("compile_seconds", c_double),
        ("compute_seconds", c_double),
        ("collective_seconds", c_double),
    ]


class COp(ctypes.Structure):
    _fields_ = [("inputs", c_size_t), ("outputs", c_size_t), ("attrs", c_size_t)]


class COpField(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("kind", c_char_p), ("fallback", c_char_p)]


_OPTIONS = [POINTER(COption), c_size_t]
_TENSORS = [POINTER(CTensor), c_size_t]

# Functions that return an npumesh_code, by name without "npumesh_".
_CHECKED = {
    "init": [*_OPTIONS, POINTER(c_void_p)],
    "finalize": [c_void_p],
    "get_world_info": [c_void_p, POINTER(CWorldInfo)],
    "fail": [c_void_p, c_char_p],
    "alloc": [c_void_p, c_uint64, POINTER(c_void_p)],
    "free": [c_void_p, c_void_p],
    "set_dump": [c_void_p, c_char_p],
    "start_profile": [c_void_p, c_char_p],
    "stop_profile": [c_void_p],
    "load_file": [c_void_p, c_char_p, *_OPTIONS, POINTER(c_void_p)],
    "load_bytes": [c_void_p, c_void_p, c_size_t, c_char_p, *_OPTIONS, POINTER(c_void_p)],
    "close": [c_void_p],
    "count_ports": [c_void_p, POINTER(c_size_t), POINTER(c_size_t)],
    "get_input": [c_void_p, c_size_t, POINTER(CPort)],
    "get_output": [c_void_p, c_size_t, POINTER(CPort)],
    "prepare": [c_void_p, *_TENSORS],
    "run": [c_void_p, *_TENSORS, *_TENSORS],
    "read_ref": [c_void_p, c_size_t, c_void_p, c_uint64],
    "get_stats": [c_void_p, POINTER(CSessionStats), c_size_t],
    "save_air": [c_void_p, c_size_t, c_char_p],
    "save_text": [c_char_p, c_char_p],
    "get_card_number": [c_char_p, POINTER(c_int64)],
    "get_op": [c_char_p, POINTER(COp)],
    "get_op_field": [c_char_p, c_int, c_size_t, POINTER(COpField)],
    "make_group": [c_void_p, POINTER(c_int32), c_size_t, c_char_p, POINTER(c_void_p)],
    "close_group": [c_void_p],
    "get_group": [c_void_p, POINTER(c_int32), POINTER(c_int32)],
    "all_reduce": [c_void_p, c_void_p, c_void_p, c_uint64, c_int32, c_int],
    "reduce_to": [c_void_p, c_void_p, c_void_p, c_uint64, c_int32, c_int, c_int32],
    "all_gather": [c_void_p, c_void_p, c_void_p, c_uint64, c_int32],
    "reduce_scatter": [c_void_p, c_void_p, c_void_p, c_uint64, c_int32, c_int],
    "broadcast": [c_void_p, c_void_p, c_uint64, c_int32, c_int32],
    "all_to_all": [c_void_p, c_void_p, c_void_p, c_uint64, c_int32],
    "all_to_all_v": [
        c_void_p,
        c_void_p,
        POINTER(c_uint64),
        c_void_p,
        POINTER(c_uint64),
        c_int32,
    ],
    "barrier": [c_void_p],
    "send": [c_void_p, c_void_p, c_uint64, c_int32, c_int32],
    "recv": [c_void_p, c_void_p, c_uint64, c_int32, c_int32],
}

# The others: arguments, result.
_PLAIN = {
    "last_error": ([], c_char_p),
    "exit_code": ([c_int], c_int),
    "version": ([], c_char_p),
    "dtype_name": ([c_int32], c_char_p),
    "dtype_bits": ([c_int32], c_int32),
    "op_type": ([c_size_t], c_char_p),
    "release": ([c_void_p], None),
}


_HERE = os.path.dirname(os.path.abspath(__file__))
# What pip installs beside the modules (pyproject.toml): bin, lib, lib64, share.
_PREFIX = os.path.join(_HERE, "prefix")


def prefix() -> str:
    """The folder with set_env.sh, bin, lib and lib64 that this package belongs to. Errors: NotFoundError in a
    build tree, which has none."""
    # Installed otherwise than by pip the package lies in <prefix>/lib/python3/dist-packages/npumesh.
    above = os.path.normpath(os.path.join(_HERE, "../../../.."))
    for folder in (_PREFIX, above):
        if os.path.exists(os.path.join(folder, "set_env.sh")):
            return folder
    raise NotFoundError(f"{_HERE}: neither prefix/set_env.sh nor {above}/set_env.sh is there; "
                        "install npumesh with pip or cmake --install")


def _candidates() -> List[str]:
    """Paths and names of the library in the order in which they are tried."""
    named = os.environ.get("NPUMESH_LIBRARY")
    if named:
        return [named]
    beside = [os.path.join(_PREFIX, "lib"), _HERE]
    # An installed package lies in <libdir>/python3/dist-packages/npumesh, or the library beside it.
    for _ in range(3):
        beside.append(os.path.dirname(beside[-1]))
    return [os.path.join(folder, name) for folder in beside for name in _NAMES
            if os.path.exists(os.path.join(folder, name))] + list(_NAMES)


def _declare(library: ctypes.CDLL) -> None:
    for name, arguments in _CHECKED.items():
        function = getattr(library, "npumesh_" + name)
        function.argtypes, function.restype = arguments, c_int
    for name, (arguments, result) in _PLAIN.items():
        function = getattr(library, "npumesh_" + name)
        function.argtypes, function.restype = arguments, result


def _load() -> Tuple[ctypes.CDLL, str]:
    # OpenMP reads this when it is loaded: its threads then sleep soon after a kernel, as with `npumesh run`.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "3000")
    refusals = []
    for candidate in _candidates():
        try:
            library = ctypes.CDLL(candidate)
        except OSError as error:
            refusals.append(f"{candidate}: {error}")
            continue
        try:
            _declare(library)
        except AttributeError as error:
            raise UnsupportedError(
                f"{candidate} is no libnpumesh.so of this package's version: {error}"
            ) from None
        return library, candidate
    raise NotFoundError(
        "libnpumesh.so does not load; set NPUMESH_LIBRARY to its path, or LD_LIBRARY_PATH to its "
        "folder (" + "; ".join(refusals) + ")"
    )


_lock = threading.Lock()
_loaded: Optional[Tuple[ctypes.CDLL, str]] = None


def library() -> ctypes.CDLL:
    """The library, loaded when it is needed first. Any thread."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load()
    return _loaded[0]


def library_path() -> str:
    """What the library was loaded by: a path, or a name that the loader found."""
    library()
    assert _loaded is not None
    return _loaded[1]


# The function of C with which a text of the library begins; Python has other names.
_CALL = re.compile(r"^npumesh_[a-z_]+: ")


def check(code: int, context: str = "") -> None:
    """Raises the exception that belongs to `code`, with the text of this thread's last failure."""
    __tracebackhide__ = True  # pytest shows the caller's line
    if code == 0:
        return
    of = library()
    text = _CALL.sub("", of.npumesh_last_error().decode(errors="replace"), count=1)
    raise error_of(code, f"{context}: {text}" if context else text, of.npumesh_exit_code(code))


def encode(text: Any, what: str) -> bytes:
    """`text`, a str or path, for C. Errors: TypeError; a NUL inside is a ValueError."""
    encoded = os.fsencode(text)
    if b"\0" in encoded:
        raise ValueError(f"{what}: expected a text without NUL, seen {text!r}")
    return encoded


def option_array(pairs: Sequence[Tuple[str, str]]) -> Any:
    """Pairs of texts as npumesh_option[]. The array keeps the texts."""
    return (COption * len(pairs))(
        *(COption(encode(key, "option"), encode(value, key)) for key, value in pairs)
    )


def dims_of(dims: Any, rank: int) -> Optional[Tuple[int, ...]]:
    """Dimensions that C tells. None: the rank is not known."""
    return None if rank == OPEN_RANK else tuple(dims[:rank]) if rank > 0 else ()
