"""torch.npu: the devices of the job. Each process has one, whatever index a call names."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, NamedTuple, Optional

import torch

from .. import _engine
from .._device_index import check_device, current_device, device_count, set_device
from .._say import no_effect
from . import amp, utils
from ._limits import (
    get_device_limit,
    get_stream_limit,
    reset_stream_limit,
    set_device_limit,
    set_stream_limit,
    super_kernel_scope_begin,
    super_kernel_scope_end,
)
from .capturing import is_current_stream_capturing
from .graphs import (
    NPUGraph,
    graph,
    graph_pool_handle,
    graph_task_group_begin,
    graph_task_group_end,
    graph_task_update_begin,
    graph_task_update_end,
    make_graphed_callables,
)
from .memory import (
    MemPool,
    NPUPluggableAllocator,
    caching_allocator_alloc,
    caching_allocator_delete,
    change_current_allocator,
    empty_cache,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from .random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import (
    Event,
    ExternalEvent,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    fake_record_stream,
    set_stream,
    stream,
    synchronize,
)

DEVICE_NAME = "Ascend910B1"  # what scripts for this hardware ask for


class DeviceProperties(NamedTuple):
    name: str
    total_memory: int
    cube_core_num: int = 24
    vector_core_num: int = 48
    L2_cache_size: int = 192 << 20


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def _is_in_bad_fork() -> bool:
    return False


def init() -> None:
    """Nothing is to be done: the first operator starts the engine."""


_lazy_init = init


class device(contextlib.ContextDecorator):
    """`with torch.npu.device(1):` names the current device for a while. None: nothing."""

    def __init__(self, device: Any) -> None:
        self._index = None if device is None else check_device(device)

    def __enter__(self) -> "device":
        self._before = current_device()
        if self._index is not None:
            set_device(self._index)
        return self

    def __exit__(self, *_: Any) -> None:
        set_device(self._before)


class device_of(device):
    """That of a tensor: the current one."""

    def __init__(self, obj: Any) -> None:
        super().__init__(current_device())


_DeviceGuard = device


def get_device_name(device: Any = None) -> str:
    check_device(device)
    return DEVICE_NAME


def get_soc_version() -> int:
    """The number that torch_npu has for Ascend910B1."""
    return 220


def get_device_properties(device: Any = None) -> DeviceProperties:
    check_device(device)
    return DeviceProperties(DEVICE_NAME, mem_get_info()[1])


def get_device_capability(device: Any = None) -> None:
    """A device of Ascend has none."""
    no_effect("torch.npu.get_device_capability")


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    return check_device(device) != check_device(peer_device)


def get_arch_list() -> list:
    return [DEVICE_NAME]


def utilization(device: Any = None) -> int:
    return 0


def finalize() -> None:
    """Collective over all ranks: ends the engine. The next operator starts it again."""
    if _engine.is_started():
        _engine.world().close()


_options: Dict[str, str] = {}


def option(name: str) -> Optional[bytes]:
    """What a call has set of the options that the vendor keeps by name; None: nothing."""
    switches = {"ALLOW_MATMUL_HF32": matmul.allow_hf32, "ALLOW_CONV_HF32": conv.allow_hf32,
                "ALLOW_INTERNAL_FORMAT": config.allow_internal_format}
    if name in switches:
        return b"enable" if switches[name] else b"disable"
    return _options[name].encode() if name in _options else None


def set_option(option: Dict[str, str]) -> None:
    _options.update({name: str(value) for name, value in option.items()})
    no_effect(f"torch.npu.set_option({', '.join(map(str, option))})")


def set_compile_mode(jit_compile: bool = False) -> None:
    no_effect("torch.npu.set_compile_mode")


def set_aoe(dump_path: str) -> None:
    no_effect("torch.npu.set_aoe")


def is_jit_compile_false() -> bool:
    return True


def enable_graph_mode() -> None:
    no_effect("torch.npu.enable_graph_mode")


def disable_graph_mode() -> None:
    no_effect("torch.npu.disable_graph_mode")


def get_sync_debug_mode() -> int:
    return 0


def set_sync_debug_mode(debug_mode: Any) -> None:
    no_effect("torch.npu.set_sync_debug_mode")


def set_deterministic_level(level: int) -> None:
    """The engine computes the same bits in each run at every level."""
    global _level
    if level not in (0, 1, 2):
        raise ValueError(f"torch_npu: deterministic level: expected 0, 1 or 2, seen {level!r}")
    _level = level


_level = 0


def _get_deterministic_level() -> int:
    return _level


def _aclnn_reselect_static_kernel() -> None:
    """Kernels are chosen with each plan."""


def is_bf16_supported() -> bool:
    return True


def is_support_inf_nan() -> bool:
    return True


def get_npu_overflow_flag() -> bool:
    """Sums that overflow are infinite here; there is no flag."""
    return False


def clear_npu_overflow_flag() -> None:
    pass


def stress_detect(device: Any = None) -> int:
    no_effect("torch.npu.stress_detect")
    return 0


def get_amp_supported_dtype() -> list:
    return [torch.float16, torch.bfloat16, torch.float32]


def get_amp_ops_supported_dtype() -> list:
    return get_amp_supported_dtype()


def is_autocast_enabled() -> bool:
    return torch.is_autocast_enabled("cpu")


def set_autocast_enabled(enable: bool) -> None:
    torch.set_autocast_enabled("cpu", enable)


def get_autocast_dtype() -> torch.dtype:
    return torch.get_autocast_dtype("cpu")


def set_autocast_dtype(dtype: torch.dtype) -> None:
    torch.set_autocast_dtype("cpu", dtype)


class _Precision:
    """torch.npu.matmul, torch.npu.conv: HF32 is a format of the hardware; products are float32."""

    def __init__(self, name: str) -> None:
        self.__dict__["name"] = name
        self.__dict__["allow_hf32"] = False

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "allow_hf32":
            raise AttributeError(f"torch.npu.{self.name}: there is no {name}")
        if value:
            no_effect(f"torch.npu.{self.name}.allow_hf32")
        self.__dict__["allow_hf32"] = bool(value)


matmul = _Precision("matmul")
conv = _Precision("conv")
config = utils.Config()


@contextlib.contextmanager
def mstx_range(message: str, stream: Any = None) -> Iterator[None]:
    no_effect("torch.npu.mstx")
    yield


class mstx:
    """Marks for the vendor's profiler."""

    @staticmethod
    def mark(message: str = "", stream: Any = None) -> None:
        no_effect("torch.npu.mstx")

    @staticmethod
    def range_start(message: str, stream: Any = None) -> int:
        no_effect("torch.npu.mstx")
        return 0

    @staticmethod
    def range_end(range_id: int) -> None:
        pass


default_generators = (torch.default_generator,)

# torch asks a device's module for classes of tensors by their old names.
FloatTensor = torch.FloatTensor
HalfTensor = torch.HalfTensor
DoubleTensor = torch.DoubleTensor
IntTensor = torch.IntTensor
LongTensor = torch.LongTensor
ShortTensor = torch.ShortTensor
CharTensor = torch.CharTensor
ByteTensor = torch.ByteTensor
BoolTensor = torch.BoolTensor
BFloat16Tensor = torch.BFloat16Tensor
