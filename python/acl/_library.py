"""The libraries of the C interface: where they are, and what is not in them.

Thread-safety: all functions may be called from any thread.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from typing import Any, Dict, List, Optional, Set

# What a function returns that npumesh lacks: ACL_ERROR_API_NOT_SUPPORT.
NOT_SUPPORTED = 200001

# In this order; those that an installation lacks are passed over, the first one must load.
_NAMES = ("libascendcl.so", "libacl_op_compiler.so", "libmsprofiler.so")

_lock = threading.Lock()
_loaded: Optional[List[ctypes.CDLL]] = None
_said: Set[str] = set()
_last = threading.local()


def _folders() -> List[str]:
    """Where the libraries may be, the most likely first. "": where the loader looks."""
    named = os.environ.get("NPUMESH_ACL_LIBRARY")
    if named:
        return [os.path.dirname(os.path.abspath(named))]
    folder = os.path.dirname(os.path.abspath(__file__))
    found = []
    # An installed package lies in <prefix>/lib/python3/dist-packages/acl.
    for _ in range(5):
        folder = os.path.dirname(folder)
        found.append(os.path.join(folder, "lib64"))
    home = os.environ.get("ASCEND_HOME_PATH")
    if home:
        found.append(os.path.join(home, "lib64"))
    return [place for place in found if os.path.exists(os.path.join(place, _NAMES[0]))] + [""]


def _load() -> List[ctypes.CDLL]:
    refusals = []
    for folder in _folders():
        try:
            found = [ctypes.CDLL(os.path.join(folder, _NAMES[0]))]
        except OSError as error:
            refusals.append(str(error))
            continue
        for name in _NAMES[1:]:
            try:
                found.append(ctypes.CDLL(os.path.join(folder, name)))
            except OSError:
                continue
        return found
    raise ImportError(
        "acl: libascendcl.so does not load; source set_env.sh of npumesh, or set "
        "NPUMESH_ACL_LIBRARY to its path (" + "; ".join(refusals) + ")"
    )


def libraries() -> List[ctypes.CDLL]:
    """The libraries, loaded when they are needed first. Errors: ImportError."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load()
    return _loaded


_symbols: Dict[str, Any] = {}


def symbol(name: str) -> Any:
    """The C function of that name, with int as its result; None where no library has it."""
    if name not in _symbols:
        holders = [library for library in libraries() if hasattr(library, name)]
        # By item: a function object that no other user of the library shares.
        _symbols[name] = holders[0][name] if holders else None
    return _symbols[name]


def refuse(python_name: str, c_name: str) -> int:
    """Says once, on standard error, that npumesh has no `c_name`; returns the caller's code."""
    words = (f"{python_name}: npumesh has no {c_name} (docs/acl.md); "
             f"returned {NOT_SUPPORTED}, ACL_ERROR_API_NOT_SUPPORT")
    _last.words = words
    with _lock:
        first = c_name not in _said
        _said.add(c_name)
    if first:
        print(f"npumesh: {words}", file=sys.stderr, flush=True)
    return NOT_SUPPORTED


def take_refusal() -> Optional[str]:
    """What `refuse` said to this thread since the last call; None: nothing."""
    words = getattr(_last, "words", None)
    _last.words = None
    return words
