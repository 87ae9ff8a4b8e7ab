"""The card of NPUMESH_CARD: what it documents, and what becomes of what it would not take.

Unset, nothing is checked. NPUMESH_CARD_CHECK=fail makes an error of what the card refuses; the rest is
a warning, each once. NPUMESH_CARD_REPORT keeps all of it (`npumesh card report`).
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import warnings
from typing import Any, Set, Tuple

import torch

from npumesh._library import check, library

_said: Set[Tuple[str, str]] = set()
_noted: Set[Tuple[str, str]] = set()


def is_set() -> bool:
    if not os.environ.get("NPUMESH_CARD"):
        return False
    _begin(os.environ.get("NPUMESH_CARD_REPORT", ""))
    return True


@functools.lru_cache(maxsize=None)
def _begin(path: str) -> None:
    """The file of NPUMESH_CARD_REPORT is there also without findings."""
    if path:
        _add(path, "")


@functools.lru_cache(maxsize=None)
def number(fact: str) -> int:
    """A number that is documented, such as "streams". 0 without a card. Errors: npumesh's."""
    found = ctypes.c_int64()
    check(library().npumesh_get_card_number(fact.encode(), ctypes.byref(found)))
    return found.value


def note(rule: str, where: str, what: str, mend: str, source: str, code: str = "") -> str:
    """Something that the card refuses with `code`; without one it computes something else. Adds a
    line to the file of NPUMESH_CARD_REPORT, the first time; returns what there is to say, or an
    empty text without a card."""
    if not is_set():
        return ""
    chip = os.environ["NPUMESH_CARD"].lower()
    text = f"{chip} {'refuses' if code else 'computes something else for'} {where}: {what}"
    if code:
        text += f"; error code {code}"
    text += f"; {mend} (rule {rule}; {source})"
    path = os.environ.get("NPUMESH_CARD_REPORT")
    if path and (rule, where) not in _noted:
        _noted.add((rule, where))
        _add(path, json.dumps({
            "severity": "error" if code and _fails() else "warning", "text": text, "chip": chip,
            "rank": _rank(), "rule": rule, "where": where, "operator": None,
            "code": int(code.split()[0]) if code else None, "mend": mend, "source": source}) + "\n")
    return text


def _fails() -> bool:
    return os.environ.get("NPUMESH_CARD_CHECK") == "fail"


def _rank() -> Any:
    distributed = torch.distributed
    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else None


def _add(path: str, text: str) -> None:
    """In one piece: other ranks may write there, too."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def find(rule: str, where: str, what: str, mend: str, source: str, code: str = "") -> None:
    """What `note` takes, and a warning, each once. Errors: RuntimeError, where what the card refuses
    is to fail."""
    text = note(rule, where, what, mend, source, code)
    if code and _fails():
        raise RuntimeError(f"torch_npu: {text}")
    if (rule, where) not in _said:
        _said.add((rule, where))
        warnings.warn(f"torch_npu: {text}", RuntimeWarning, stacklevel=3)
