"""The card of NPUMESH_CARD: what it documents, and what becomes of what it would not take.

Unset, nothing is checked. NPUMESH_CARD_CHECK=fail makes an error of what the card refuses; the rest is
a warning, each once.
"""

from __future__ import annotations

import ctypes
import functools
import os
import warnings
from typing import Set, Tuple

from npumesh._library import check, library

_said: Set[Tuple[str, str]] = set()


def is_set() -> bool:
    return bool(os.environ.get("NPUMESH_CARD"))


@functools.lru_cache(maxsize=None)
def number(fact: str) -> int:
    """A number that is documented, such as "streams". 0 without a card. Errors: npumesh's."""
    found = ctypes.c_int64()
    check(library().npumesh_get_card_number(fact.encode(), ctypes.byref(found)))
    return found.value


def find(rule: str, where: str, what: str, mend: str, source: str, code: str = "") -> None:
    """Something that the card refuses with `code`; without one it computes something else. Errors:
    RuntimeError, where what it refuses is to fail."""
    verb = "refuses" if code else "computes something else for"
    text = f"{os.environ['NPUMESH_CARD']} {verb} {where}: {what}"
    if code:
        text += f"; error code {code}"
    text += f"; {mend} (rule {rule}; {source})"
    if code and os.environ.get("NPUMESH_CARD_CHECK") == "fail":
        raise RuntimeError(f"torch_npu: {text}")
    if (rule, where) not in _said:
        _said.add((rule, where))
        warnings.warn(f"torch_npu: {text}", RuntimeWarning, stacklevel=3)
