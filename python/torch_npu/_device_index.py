"""Which device a call means: its index. Each process has one device, whatever index a call names."""

from __future__ import annotations

import os
from typing import Any, Optional

import torch

_current: Optional[int] = None


def device_count() -> int:
    """The ranks of this host that the launcher has started, 1 without a launcher: torch_npu counts
    the devices of a host, and each rank has one."""
    for name in ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "LOCAL_WORLD_SIZE"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            return int(value)
    return 1


def check_index(index: int, device: Any) -> int:
    """The index that `device` names. Errors: RuntimeError, as the vendor's, when the host has no such
    device."""
    if 0 <= index < device_count():
        return index
    raise RuntimeError(
        f"torch_npu: device {device!r}: NPU error, error code is 107001 (ACL_ERROR_RT_INVALID_DEVICEID): "
        f"Invalid device ID. Check whether the device ID is valid: expected an index from 0 to "
        f"{device_count() - 1}, the ranks of this host; start more ranks, or name another device")


def current_device() -> int:
    """The index that set_device has named; before that 0."""
    return _current or 0


def set_device(device: Any) -> None:
    """Remembers the index; tensors stay in the memory of this process."""
    global _current
    _current = check_device(device)


def index_of(device: Any) -> int:
    """The index that a device names: of None, -1 and a device without one the current. Errors:
    ValueError for a device that is no npu."""
    if device is None:
        return current_device()
    if isinstance(device, int):
        return current_device() if device == -1 else device
    of = torch.device(device)
    if of.type not in ("npu", "cpu"):
        raise ValueError(f"torch_npu: expected a device of npu, seen {device!r}")
    return current_device() if of.index is None or of.type == "cpu" else of.index


def check_device(device: Any) -> int:
    """The index that a device names. Errors: RuntimeError when the host has no such device."""
    return check_index(index_of(device), device)
