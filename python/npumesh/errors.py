"""Errors of npumesh as exceptions.

Each npumesh_code has a class. A class also has the built-in exception that a Python program would
expect: a wrong argument is a ValueError, a rank that did not come a TimeoutError.
"""

from __future__ import annotations

from typing import Dict, Type

__all__ = [
    "NpumeshError",
    "InvalidArgumentError",
    "NotFoundError",
    "CorruptError",
    "UnsupportedError",
    "IoError",
    "OutOfMemoryError",
    "MismatchError",
    "WaitTimeoutError",
    "PeerLostError",
    "InternalError",
]


class NpumeshError(Exception):
    """What npumesh refuses or cannot do, as one line: what, where, expected and seen, what to
    do."""

    code: int = 10  # npumesh_code
    exit_code: int = 4  # what the command `npumesh` would end with: 3 input, 4 run-time, 5 peer


class InvalidArgumentError(NpumeshError, ValueError):
    """An option or argument is wrong: mend the call."""

    code, exit_code = 1, 3


class NotFoundError(NpumeshError, LookupError):
    """A file, group or operator that was named does not exist."""

    code, exit_code = 2, 3


class CorruptError(NpumeshError, ValueError):
    """Bytes from outside do not say what they should."""

    code, exit_code = 3, 3


class UnsupportedError(NpumeshError, NotImplementedError):
    """Well formed, but npumesh cannot do it."""

    code, exit_code = 4, 3


class IoError(NpumeshError, OSError):
    """The operating system refused."""

    code, exit_code = 5, 4


class OutOfMemoryError(NpumeshError, MemoryError):
    """Device or host memory is exhausted."""

    code, exit_code = 6, 4


class MismatchError(NpumeshError):
    """Ranks disagree about a collective."""

    code, exit_code = 7, 5


class WaitTimeoutError(NpumeshError, TimeoutError):
    """A peer did not come in time."""

    code, exit_code = 8, 5


class PeerLostError(NpumeshError, ConnectionError):
    """A peer is dead or has left with an error."""

    code, exit_code = 9, 5


class InternalError(NpumeshError, RuntimeError):
    """A bug of npumesh."""

    code, exit_code = 10, 4


_CLASSES: Dict[int, Type[NpumeshError]] = {
    kind.code: kind
    for kind in (
        InvalidArgumentError,
        NotFoundError,
        CorruptError,
        UnsupportedError,
        IoError,
        OutOfMemoryError,
        MismatchError,
        WaitTimeoutError,
        PeerLostError,
        InternalError,
    )
}


def error_of(code: int, text: str, exit_code: int) -> NpumeshError:
    """The exception of an npumesh_code. A code that a later library may know is an NpumeshError."""
    error = _CLASSES.get(code, NpumeshError)(text)
    error.code, error.exit_code = code, exit_code
    return error
