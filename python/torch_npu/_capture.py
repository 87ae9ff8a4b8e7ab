"""The capture that goes on in this thread. npu/graphs.py makes it; what it permits, it says itself."""

from __future__ import annotations

import threading
from typing import Any, Dict

_here = threading.local()

# By thread: the captures of mode "global", which forbid other threads to copy and wait for it.
strict: Dict[int, Any] = {}


def current() -> Any:
    """That of this thread, or None."""
    return getattr(_here, "capture", None)


def make_current(capture: Any) -> None:
    """None: this thread captures no longer."""
    _here.capture = capture
