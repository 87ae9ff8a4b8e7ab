"""Questions about versions and devices."""

from __future__ import annotations

import re
from typing import Any, Tuple

import torch

import npumesh

from .._device_index import index_of

# The release of CANN whose interfaces npumesh follows.
CANN_VERSION = "8.5.0"


def get_cann_version(module: str = "CANN") -> str:
    return CANN_VERSION


def _parts(version: str) -> Tuple:
    """"8.2.RC1.alpha003" comes before "8.2.RC1", and that before "8.2.0"."""
    parts = []
    for word in version.upper().split("."):
        named = re.fullmatch(r"(RC|ALPHA|BETA)?(\d*)", word)
        if named is None:
            raise ValueError(f"torch_npu: expected a version as in 8.5.0 or 8.2.RC1, "
                             f"seen {version!r}")
        rank = {None: 0, "RC": -1, "BETA": -2, "ALPHA": -3}[named.group(1)]
        parts.append((rank, int(named.group(2) or 0)))
    return tuple(parts) + ((0, 0),) * (4 - len(parts))


def _is_gte_cann_version(version: str, module: str = "CANN") -> bool:
    """Whether the release that is followed is that version or a later one. Errors: ValueError."""
    return _parts(CANN_VERSION) >= _parts(version)


def npu_check_overflow(grad: Any) -> bool:
    return bool(not torch.isfinite(grad).all()) if isinstance(grad, torch.Tensor) else False


_device_index = _get_device_index = index_of


class Config:
    """torch.npu.config: switches of the hardware's modes."""

    allow_internal_format = False


def engine_version() -> str:
    """The version of npumesh."""
    return npumesh.version()
