"""Where memory lies: on the simulated NPU, or on the host.

Both are memory of this process, and torch cannot tell one from the other. So a storage remembers what
a call has said of it; what torch computes lies where no call has said. A transfer gives the tensor
itself only where that is known to lie in the right place already, and a copy otherwise, as between a
host and a device.
"""

from __future__ import annotations

import enum
import functools
from typing import Any, Callable, Optional

import torch

from . import _capture
from ._device_index import check_device, check_index

CPU = torch.device("cpu")


class Place(enum.Enum):
    NPU = "npu"
    HOST = "cpu"
    PINNED = "pinned"  # of the host, for copies without a wait

    @property
    def is_host(self) -> bool:
        return self is not Place.NPU


def place_of(tensor: torch.Tensor) -> Optional[Place]:
    """None: no call has said it. Any tensor, also without a storage."""
    try:
        return getattr(tensor.untyped_storage(), "_npumesh_place", None)
    except (RuntimeError, NotImplementedError):  # of sparse tensors and wrappers
        return None


def put(tensor: torch.Tensor, place: Optional[Place]) -> torch.Tensor:
    """Says where a tensor lies, with all that shares its memory. Returns it. None: not known."""
    try:
        tensor.untyped_storage()._npumesh_place = place
    except (RuntimeError, NotImplementedError):
        pass
    return tensor


# ---- names of devices ----


def is_npu_name(value: Any) -> bool:
    return isinstance(value, str) and (value == "npu" or value.startswith("npu:"))


def host(device: Any) -> Any:
    """The CPU for what names an npu: "npu", "npu:0", torch.device("npu"), an index. Anything else as
    it is. Errors: RuntimeError when the host has no npu of that index."""
    if place_named(device) is not Place.NPU:
        return device
    index = device if isinstance(device, int) else torch.device(device).index
    if index is not None and index != -1:  # -1: the current one
        check_index(index, device)
    return CPU


def place_named(device: Any) -> Optional[Place]:
    """The place that a device means. None: none of these two, or a torch.device("cpu"), which may be
    the `.device` of a tensor on the npu."""
    if isinstance(device, torch.device):
        return Place.NPU if device.type == "npu" else None
    if isinstance(device, str):
        if is_npu_name(device):
            return Place.NPU
        return Place.HOST if device == "cpu" or device.startswith("cpu:") else None
    if isinstance(device, int) and not isinstance(device, bool):
        return Place.NPU  # torch gives an index to the accelerator
    return None


# ---- transfers ----

_plain_to: Callable = torch.Tensor.to


def _to(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """torch.Tensor.to."""
    first = args[0] if args else None
    other = first if isinstance(first, torch.Tensor) else kwargs.get("other")
    device = kwargs.get("device")
    if device is None and isinstance(first, (str, torch.device, int)):
        device = first
    if other is not None:
        place = place_of(other)
    elif device is None or _is_elsewhere(device):
        return _plain_to(self, *args, **kwargs)
    else:
        place = place_named(device)
    if "device" in kwargs:
        kwargs["device"] = host(device)
    elif device is not None:
        args = (host(device), *args[1:])
    if place is not None and _same(place_of(self), place):
        return _plain_to(self, *args, **kwargs)
    _permit(self, place, _non_blocking(args, kwargs))
    args, kwargs = _copied(args, kwargs)
    return put(_plain_to(self, *args, **kwargs), place)


def _same(one: Optional[Place], other: Place) -> bool:
    return one is not None and one.is_host == other.is_host


def _is_elsewhere(device: Any) -> bool:
    """Whether it is another device, such as "meta"."""
    return place_named(device) is None and torch.device(device).type != "cpu"


# `to` takes (device, dtype, non_blocking, copy), or (other, non_blocking, copy).


def _at_copy(args: Any) -> int:
    return 2 if args and isinstance(args[0], torch.Tensor) else 3


def _non_blocking(args: Any, kwargs: Any) -> bool:
    at = _at_copy(args) - 1
    return bool(args[at] if len(args) > at else kwargs.get("non_blocking", False))


def _copied(args: Any, kwargs: Any) -> Any:
    """The arguments of `to` that ask for a copy."""
    at = _at_copy(args)
    if len(args) > at:
        return (*args[:at], True, *args[at + 1:]), kwargs
    return args, {**kwargs, "copy": True}


def _permit(tensor: torch.Tensor, place: Optional[Place], non_blocking: bool) -> None:
    """Errors: RuntimeError where a capture forbids the transfer."""
    capture = _capture.current()
    if capture is not None:
        capture.permit_transfer(tensor, place, non_blocking)
    elif _capture.strict and place is not None and not non_blocking:
        next(iter(_capture.strict.values())).permit_beside(place)


def _format_words(memory_format: Any) -> Any:
    """The default is not said: TorchAir has no translation for it."""
    return {} if memory_format is torch.preserve_format else {"memory_format": memory_format}


def _npu(self: torch.Tensor, device: Any = None, non_blocking: bool = False,
         memory_format: Any = torch.preserve_format) -> torch.Tensor:
    """torch.Tensor.npu."""
    check_device(device)
    return self.to("npu", non_blocking=non_blocking, **_format_words(memory_format))


def _cpu(self: torch.Tensor, memory_format: Any = torch.preserve_format) -> torch.Tensor:
    """torch.Tensor.cpu."""
    return self.to("cpu", **_format_words(memory_format))


def _storage_npu(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
    """The npu method of storages: always a copy."""
    copy = self.clone()
    untyped = copy.untyped() if isinstance(copy, torch.TypedStorage) else copy
    untyped._npumesh_place = Place.NPU
    return copy


def _storage_cpu(self: Any) -> Any:
    return self.clone()


# ---- pinned memory ----


def _pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
    """torch.Tensor.pin_memory. Errors: RuntimeError for a tensor on the npu."""
    place = place_of(self)
    if place is Place.NPU:
        raise RuntimeError("torch_npu: pin_memory: only memory of the host can be pinned, and this "
                           "tensor is on the npu; take .cpu() of it first")
    if place is Place.PINNED:
        return self
    return put(put(self, Place.HOST).clone(), Place.PINNED)


def _is_pinned(self: torch.Tensor, device: Any = None) -> bool:
    """torch.Tensor.is_pinned."""
    return place_of(self) is Place.PINNED


def _record_stream(self: torch.Tensor, stream: Any) -> None:
    """torch.Tensor.record_stream: work is done when a call returns."""


# ---- reading ----

# Methods that read values past torch's dispatcher, which a capture would not see.
_READERS = ("numpy", "tolist", "__repr__", "__reduce_ex__", "__deepcopy__")


def _reading(name: str) -> Callable:
    method = getattr(torch.Tensor, name)

    @functools.wraps(method)
    def read(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        capture = _capture.current()
        if capture is not None:
            capture.permit_reading(self, name.strip("_"))
        return method(self, *args, **kwargs)

    return read


def install() -> None:
    """Replaces the methods of tensors and storages. Once for a process."""
    tensor = torch.Tensor
    for name, method in (("to", _to), ("npu", _npu), ("cpu", _cpu), ("pin_memory", _pin_memory),
                         ("is_pinned", _is_pinned), ("record_stream", _record_stream)):
        method.__name__ = name  # torch's compiler takes what has its own name for a method of tensors
        setattr(tensor, name, method)
    for name in _READERS:
        setattr(tensor, name, _reading(name))
    torch.nn.Parameter.npu = _npu
    for storage in (torch.UntypedStorage, torch.TypedStorage):
        storage.npu, storage.cpu = _storage_npu, _storage_cpu
        storage.is_npu = property(lambda self: True)
