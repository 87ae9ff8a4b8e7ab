"""acl.util: addresses of arrays and bytes, and threads.

An address is valid as long as the object is; keep the object.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any, Callable, Dict, Tuple

from . import _library


def _need_array(value: Any, name: str) -> Any:
    if not hasattr(value, "__array_interface__"):
        raise ValueError(f"acl.util.{name}: expected a numpy array, seen {value!r}")
    return value


def numpy_to_ptr(array: Any) -> int:
    """The address of the array's first element; of a view, of the view's. Errors: ValueError."""
    return _need_array(array, "numpy_to_ptr").__array_interface__["data"][0]


def numpy_contiguous_to_ptr(array: Any) -> Tuple[int, Any]:
    """The address, and the array that it belongs to: the same one, or a dense copy."""
    import numpy

    dense = numpy.ascontiguousarray(_need_array(array, "numpy_contiguous_to_ptr"))
    return numpy_to_ptr(dense), dense


def ptr_to_numpy(ptr: int, shape: Tuple[int, ...], dtype: int) -> Any:
    """An array over the memory at `ptr`, without a copy. `dtype`: numpy's number of a type
    (numpy.dtype(...).num; 11 is float32). Errors: ValueError."""
    import numpy

    numbers = {numpy.dtype(code).num: numpy.dtype(code) for code in numpy.typecodes["All"]
               if code not in "OSUVmM"}
    if dtype not in numbers:
        raise ValueError("acl.util.ptr_to_numpy: expected numpy's number of a type, "
                         f"seen {dtype!r}")
    if not ptr:
        raise ValueError("acl.util.ptr_to_numpy: ptr is 0")
    size = numbers[dtype].itemsize
    for dim in shape:
        size *= dim
    memory = (ctypes.c_char * max(size, 1)).from_address(ptr)
    return numpy.ndarray(tuple(shape), numbers[dtype], memory)


def bytes_to_ptr(data: bytes) -> int:
    """The address of the bytes. Errors: ValueError."""
    if not isinstance(data, bytes):
        raise ValueError(f"acl.util.bytes_to_ptr: expected bytes, seen {type(data).__name__}")
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


def ptr_to_bytes(ptr: int, size: int) -> bytes:
    """A copy of `size` bytes. Errors: ValueError."""
    if not ptr and size:
        raise ValueError("acl.util.ptr_to_bytes: ptr is 0")
    return ctypes.string_at(ptr, size)


class _Thread(threading.Thread):
    """Calls `function`; keeps what it raised. It lives until it is stopped, because its id belongs
    to the next thread once it has ended."""

    def __init__(self, function: Callable[..., Any], argument: Any) -> None:
        super().__init__(daemon=True)
        self._function = function
        self._argument = argument
        self.error: Any = None
        self._returned = threading.Event()
        self._stopped = threading.Event()

    def run(self) -> None:
        try:
            self._function(*([] if self._argument is None else [self._argument]))
        except BaseException as error:  # told to the thread that stops this one
            self.error = error
        self._returned.set()
        self._stopped.wait()

    def stop(self) -> None:
        """Waits for the function's end, then for the thread's."""
        self._returned.wait()
        self._stopped.set()
        self.join()


_threads: Dict[int, _Thread] = {}


def start_thread(function: Callable[..., Any], argument: Any) -> Tuple[int, int]:
    """Calls function(argument) in a thread, function() where argument is None. Returns the thread's
    id, as rt.subscribe_report takes it, and 0."""
    if not callable(function):
        raise TypeError(f"acl.util.start_thread: expected a function, seen {function!r}")
    _library.libraries()  # a failure to load is told here, not in the thread
    thread = _Thread(function, argument)
    thread.start()
    assert thread.ident is not None
    _threads[thread.ident] = thread
    return thread.ident, 0


def stop_thread(thread_id: int) -> int:
    """Waits for the end of a thread of start_thread. Returns 0, or 3 (no such thread). Errors:
    RuntimeError, the thread ended by an exception."""
    thread = _threads.pop(thread_id, None)
    if thread is None:
        return 3
    thread.stop()
    if thread.error is not None:
        raise RuntimeError(
            f"the thread ended by {type(thread.error).__name__}: {thread.error}") from thread.error
    return 0
