"""tf.compat.v1 of the stand-in: the same names."""

from __future__ import annotations

import sys
import types
from typing import Any

from .core.protobuf.config_pb2 import ConfigProto
from .session import Session

v1 = types.ModuleType(__name__ + ".v1", "ConfigProto and Session.")
v1.ConfigProto, v1.Session = ConfigProto, Session  # type: ignore[attr-defined]
sys.modules[v1.__name__] = v1


def as_bytes(text: Any) -> bytes:
    """UTF-8; bytes stay."""
    return text if isinstance(text, bytes) else text.encode()


def as_text(text: Any) -> str:
    """The reverse."""
    return text.decode() if isinstance(text, bytes) else text


as_str = as_text
