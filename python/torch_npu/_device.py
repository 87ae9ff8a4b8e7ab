"""npu is the CPU: wherever torch takes a device, "npu" means the memory of this process.

torch learns the name by its privateuse1 device, which stays empty: every function that takes a
device is given the CPU in its place. So tensors say device(type="cpu"), and torch's own operators
compute them as ever. What lies where, and what a transfer copies, is known by _places.py; `is_npu` is
false only for what is known to lie on the host.
"""

from __future__ import annotations

import functools
import types
from typing import Any, Callable, Optional

import torch
from torch.utils import _device as torch_device

from . import _places
from ._device_index import check_device
from ._places import CPU, Place, host, is_npu_name, place_named, put


# The CPU, as the device of a context that was asked for the npu: this very object.
_CONTEXT = torch.device("cpu")


def _place_asked(device: Any) -> Optional[Place]:
    """The place that a call asks for: by `device`, else by `with torch.device(...)` around it."""
    if device is not None:
        return place_named(device)
    for at in reversed(range(torch._C._len_torch_function_stack())):
        mode = torch._C._get_function_stack_at(at)
        if isinstance(mode, torch_device.DeviceContext):
            return Place.NPU if mode.device is _CONTEXT else None
    return None


def _by_keyword(function: Callable) -> Callable:
    """Of a function that makes a tensor; the device comes as the keyword `device`."""

    @functools.wraps(function)
    def with_host(*args: Any, **kwargs: Any) -> Any:
        pinned = kwargs.pop("pin_memory", False)
        device = kwargs.get("device")
        if device is not None:
            kwargs["device"] = host(device)
        made = function(*args, **kwargs)
        place = Place.PINNED if pinned else _place_asked(device)
        return made if place is None else put(made, place)

    return with_host


def _of_data(function: Callable) -> Callable:
    """The same of a function whose tensor may share the memory of what it is given: on a device it is
    a copy."""

    @functools.wraps(function)
    def with_host(*args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        place = _place_asked(device)
        if device is None and place is None:
            return function(*args, **kwargs)
        if device is None:
            device = place.value
        kwargs["device"] = host(device)
        made = function(*args, **kwargs)
        if isinstance(args[0] if args else kwargs.get("data", kwargs.get("obj")), torch.Tensor):
            return made.to(device)
        return put(made.clone(), place) if place is Place.NPU else made

    return with_host


# ---- what is replaced ----

# Besides the functions that torch itself knows as constructors for `with torch.device(...)`.
_MORE_CONSTRUCTORS = (
    "empty_like", "full_like", "ones_like", "zeros_like", "rand_like", "randn_like",
    "randint_like", "tensor", "scalar_tensor",
)
_OF_DATA = ("asarray", "as_tensor", "from_file")
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
    for name in _OF_DATA:
        _replace(torch, name, _of_data)
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
    _places.install()
    torch.Tensor.is_npu = property(_is_npu)
    torch.nn.Module.npu = _module_npu
    torch.nn.utils.rnn.PackedSequence.npu = lambda self, *_, **__: self.to("npu")


def _module_npu(self: torch.nn.Module, device: Any = None) -> torch.nn.Module:
    check_device(device)
    return self.to("npu")


def _is_npu(self: torch.Tensor) -> bool:
    place = _places.place_of(self)
    return self.device.type == "cpu" and (place is None or place is Place.NPU)


def _replace_device_context() -> None:
    """`with torch.device("npu"):` and torch.set_default_device."""
    start = torch_device.DeviceContext.__init__

    def with_host(self: Any, device: Any) -> None:
        start(self, host(torch.device(device)))
        if place_named(torch.device(device)) is Place.NPU:
            self.device = _CONTEXT

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


_hooks: list = []  # torch does not keep them


def _register_hooks() -> None:
    """What torch asks of an accelerator, its compiler too, where Python can answer (torch 2.9)."""
    accelerator = getattr(torch._C, "_acc", None)
    if not hasattr(accelerator, "register_python_privateuseone_hook"):
        return

    class Hooks(accelerator.PrivateUse1Hooks):
        def is_available(self) -> bool:
            return True

        def is_built(self) -> bool:
            return True

        def has_primary_context(self, device_index: int) -> bool:
            return True

    class Guard(accelerator.DeviceGuard):
        def type_(self) -> Any:
            return torch._C._autograd.DeviceType.PrivateUse1

    _hooks.extend((Hooks(), Guard()))
    accelerator.register_python_privateuseone_hook(_hooks[0])
    accelerator.register_python_privateuseone_device_guard(_hooks[1])


def install(module: types.ModuleType) -> None:
    """Teaches torch the device; `module` becomes torch.npu. Once for a process."""
    if getattr(torch, "npu", None) is module:
        return
    torch.utils.rename_privateuse1_backend("npu")
    torch._register_device_module("npu", module)
    _register_hooks()
    _replace_constructors()
    _replace_tensor_methods()
    _replace_device_context()
    _replace_generator()
    _replace_loading()
    _replace_autocast()
