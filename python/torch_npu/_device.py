"""npu is the CPU: wherever torch takes a device, "npu" means the memory of this process.

torch learns the name by its privateuse1 device, which stays empty: every function that takes a
device is given the CPU in its place. So tensors say device(type="cpu"), `is_npu` is true for them,
and torch's own operators compute them as ever.
"""

from __future__ import annotations

import functools
import types
from typing import Any, Callable

import torch
from torch.utils import _device as torch_device

CPU = torch.device("cpu")


def is_npu_name(value: Any) -> bool:
    return isinstance(value, str) and (value == "npu" or value.startswith("npu:"))


def host(device: Any) -> Any:
    """The CPU for "npu", "npu:0" and torch.device("npu"); anything else as it is."""
    if isinstance(device, torch.device):
        return CPU if device.type == "npu" else device
    return CPU if is_npu_name(device) else device


def _hosted(value: Any) -> Any:
    """The same for an argument that need not be a device."""
    if isinstance(value, (str, torch.device)):
        return host(value)
    return value


def _by_keyword(function: Callable) -> Callable:
    """Of a function whose device comes as the keyword `device`."""

    @functools.wraps(function)
    def with_host(*args: Any, **kwargs: Any) -> Any:
        if "device" in kwargs:
            kwargs["device"] = host(kwargs["device"])
        return function(*args, **kwargs)

    return with_host


def _anywhere(function: Callable) -> Callable:
    """Of a function that takes a device in any place."""

    @functools.wraps(function)
    def with_host(*args: Any, **kwargs: Any) -> Any:
        args = tuple([_hosted(each) for each in args])
        if "device" in kwargs:
            kwargs["device"] = host(kwargs["device"])
        return function(*args, **kwargs)

    return with_host


# ---- what is replaced ----

# Besides the functions that torch itself knows as constructors for `with torch.device(...)`.
_MORE_CONSTRUCTORS = (
    "empty_like", "full_like", "ones_like", "zeros_like", "rand_like", "randn_like",
    "randint_like", "asarray", "as_tensor", "tensor", "from_file", "scalar_tensor",
)
_TENSOR_BY_KEYWORD = ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor",
                      "new_zeros")


def _replace(owner: Any, name: str, wrap: Callable) -> None:
    function = getattr(owner, name, None)
    if function is None or getattr(function, "_npu_host", False):
        return
    replaced = wrap(function)
    replaced._npu_host = True
    setattr(owner, name, replaced)


def _replace_constructors() -> None:
    # Asked before anything is replaced: torch keeps these functions, and compares them with what
    # it sees below `with torch.device(...)`.
    known = torch_device._device_constructors()
    for owner in (torch, torch.fft, torch.signal.windows):
        for name in dir(owner):
            if not name.startswith("_") and getattr(owner, name, None) in _callables(known):
                _replace(owner, name, _by_keyword)
    for name in _MORE_CONSTRUCTORS:
        _replace(torch, name, _by_keyword)


def _callables(known: Any) -> list:
    return [each for each in known if callable(each)]


def _replace_tensor_methods() -> None:
    for name in _TENSOR_BY_KEYWORD:
        _replace(torch.Tensor, name, _by_keyword)
    _replace(torch.Tensor, "to", _anywhere)
    torch.Tensor.npu = _tensor_npu
    torch.Tensor.is_npu = property(_is_npu)
    torch.nn.Module.npu = _module_npu
    torch.nn.Parameter.npu = _tensor_npu
    torch.nn.utils.rnn.PackedSequence.npu = lambda self, *_, **__: self.to(CPU)
    torch.UntypedStorage.npu = _storage_npu
    torch.TypedStorage.npu = _storage_npu
    torch.UntypedStorage.is_npu = torch.TypedStorage.is_npu = property(lambda self: True)


def _tensor_npu(self: torch.Tensor, device: Any = None, non_blocking: bool = False,
                memory_format: Any = torch.preserve_format) -> torch.Tensor:
    """The tensor itself: it is where the simulated NPU computes."""
    from .npu import check_device

    check_device(device)
    return self.to(CPU, non_blocking=non_blocking, memory_format=memory_format)


def _storage_npu(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
    return self.cpu()


def _module_npu(self: torch.nn.Module, device: Any = None) -> torch.nn.Module:
    from .npu import check_device

    check_device(device)
    return self.to(CPU)


def _is_npu(self: torch.Tensor) -> bool:
    return self.device.type == "cpu"


def _replace_device_context() -> None:
    """`with torch.device("npu"):` and torch.set_default_device."""
    start = torch_device.DeviceContext.__init__

    def with_host(self: Any, device: Any) -> None:
        start(self, host(torch.device(device)))

    torch_device.DeviceContext.__init__ = with_host


def _replace_generator() -> None:
    """A subclass, because torch.Generator is a type of C, and isinstance is asked of it."""
    plain = torch.Generator

    class GeneratorType(type):
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, plain)

        def __subclasscheck__(cls, other: type) -> bool:
            return issubclass(other, plain)

    class Generator(metaclass=GeneratorType):
        """A generator of random numbers of the CPU, which is the npu."""

        def __new__(cls, device: Any = CPU) -> Any:  # type: ignore[misc]
            return plain(device=host(device))

    if not isinstance(plain, GeneratorType):
        torch.Generator = Generator


def _replace_loading() -> None:
    load = torch.load

    @functools.wraps(load)
    def with_host(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(map_location, dict):
            map_location = {name: str(host(place)) for name, place in map_location.items()}
        elif isinstance(map_location, (str, torch.device)):
            map_location = host(map_location)
        return load(f, map_location, *args, **kwargs)

    torch.load = with_host
    torch.serialization.load = with_host
    # A file that was saved on a device names it.
    torch.serialization.register_package(
        9, lambda storage: None,
        lambda storage, location: storage if is_npu_name(location) else None)


def _replace_autocast() -> None:
    """torch.autocast("npu") is that of the CPU."""
    start = torch.amp.autocast_mode.autocast.__init__

    @functools.wraps(start)
    def with_host(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        start(self, "cpu" if device_type == "npu" else device_type, *args, **kwargs)

    torch.amp.autocast_mode.autocast.__init__ = with_host
    scaler = torch.amp.grad_scaler.GradScaler.__init__

    @functools.wraps(scaler)
    def scaler_with_host(self: Any, device: str = "npu", *args: Any, **kwargs: Any) -> None:
        scaler(self, "cpu" if device == "npu" else device, *args, **kwargs)

    torch.amp.grad_scaler.GradScaler.__init__ = scaler_with_host


def install(module: types.ModuleType) -> None:
    """Teaches torch the device; `module` becomes torch.npu. Once for a process."""
    if getattr(torch, "npu", None) is module:
        return
    torch.utils.rename_privateuse1_backend("npu")
    torch._register_device_module("npu", module)
    _replace_constructors()
    _replace_tensor_methods()
    _replace_device_context()
    _replace_generator()
    _replace_loading()
    _replace_autocast()
