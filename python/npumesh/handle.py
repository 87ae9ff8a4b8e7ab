"""What a session and a group share: a handle of the library that lives in a world."""

from __future__ import annotations

import os
import threading
from typing import Any, ClassVar, Deque, Optional, Protocol, Tuple

from ._library import check, library
from .errors import InvalidArgumentError


class Owner(Protocol):
    """What a handle asks of the world in which it lives."""

    _turn: Any  # a threading.RLock
    _dropped: Deque[Tuple[str, int]]  # enders and handles, to be closed at a quiet moment

    @property
    def is_open(self) -> bool:
        """Whether its handles may be used."""
        raise NotImplementedError

    def _open(self) -> int:
        """The world's own handle. Errors: InvalidArgumentError when it is closed."""
        raise NotImplementedError


class Handle:
    """Ended by `close`, by the end of a `with` block, or by the world. Several threads may call."""

    _kind: ClassVar[str]  # in messages
    _ender: ClassVar[str]  # the function of the library that ends such a handle

    def __init__(self, world: Owner, name: str) -> None:
        self._world = world
        self._handle: Optional[int] = None
        self._process = os.getpid()
        self._turn = threading.RLock()
        self.name = name

    @property
    def is_open(self) -> bool:
        """False after `close`, after the world's end, and in a process that was forked."""
        return self._handle is not None and self._world.is_open

    def close(self) -> None:
        """Local. Again is nothing. Errors: what only shows at the end, such as a dump that cannot
        be written or a mismatch; the handle is gone all the same."""
        with self._world._turn, self._turn:
            handle, self._handle = self._handle, None
            if handle is not None and self._world.is_open:
                check(getattr(library(), self._ender)(handle), self._label())

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        # A collector may run this in the middle of any call, so the world closes it at a quiet
        # moment.
        handle = getattr(self, "_handle", None)
        if handle is not None and self._process == os.getpid():
            self._world._dropped.append((self._ender, handle))

    # ---- parts ----

    def _label(self) -> str:
        return self.name

    def _open(self) -> int:
        if self._handle is None or not self._world.is_open:
            raise InvalidArgumentError(f"{self._label()}: the {self._kind} is closed")
        return self._handle

    def _state(self) -> str:
        return "" if self._handle is not None else ", closed"
