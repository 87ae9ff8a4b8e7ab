"""Memory: what the simulated device of this rank has, as the engine counts it. Tensors of torch lie
in the memory of the process and are not counted."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .. import _engine
from .._device_index import check_device
from .._say import no_effect
from .graphs import graph_pool_handle

_base_peak = 0


def _info() -> Any:
    return _engine.world().info


def mem_get_info(device: Any = None) -> Tuple[int, int]:
    """Free and total bytes of the simulated device."""
    info = _info()
    return info.memory_bytes - info.memory_used, info.memory_bytes


def memory_allocated(device: Any = None) -> int:
    return _info().memory_used if _engine.is_started() else 0


def max_memory_allocated(device: Any = None) -> int:
    """The most since the start; reset_peak_memory_stats has no effect on what the engine counts."""
    return _info().memory_peak if _engine.is_started() else 0


memory_reserved = memory_cached = memory_allocated
max_memory_reserved = max_memory_cached = max_memory_allocated


def memory_stats(device: Any = None) -> Dict[str, int]:
    used, peak = memory_allocated(), max_memory_allocated()
    return {f"{kind}_bytes.all.{what}": value for kind in ("allocated", "reserved", "active")
            for what, value in (("current", used), ("peak", peak))}


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    free, total = mem_get_info()
    return f"simulated device: {total - free} of {total} bytes in use, " \
           f"at most {max_memory_allocated()}"


def memory_snapshot() -> List[Dict[str, Any]]:
    """The engine plans memory; there are no blocks to list."""
    return []


def empty_cache() -> None:
    """Drops the graphs of operators that are kept for the next call."""
    with _engine._lock:
        while _engine._programs:
            _engine._programs.popitem(last=False)[1].close()


def reset_peak_memory_stats(device: Any = None) -> None:
    no_effect("torch.npu.reset_peak_memory_stats")


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats
reset_accumulated_memory_stats = reset_peak_memory_stats


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """NPUMESH_HBM_SIZE says how much memory a simulated device has."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"torch_npu: memory fraction: expected 0 to 1, seen {fraction!r}")
    no_effect("torch.npu.set_per_process_memory_fraction")


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    raise NotImplementedError("torch_npu: memory of the simulated device comes by "
                              "npumesh.World.alloc")


caching_allocator_delete = caching_allocator_alloc


class NPUPluggableAllocator:
    """An allocator of one's own has nothing to allocate here."""

    def __init__(self, *_: Any) -> None:
        no_effect("torch.npu.NPUPluggableAllocator")


def change_current_allocator(allocator: Any) -> None:
    no_effect("torch.npu.change_current_allocator")


class MemPool:
    """A pool of memory: a name. Tensors of a capture live as long as its graph, and others as torch has
    them, so nothing is taken from a pool or given back to it."""

    def __init__(self, allocator: Any = None, use_on_oom: bool = False,
                 no_split: bool = False) -> None:
        if allocator is not None:
            no_effect("an allocator of torch.npu.MemPool")
        self.allocator = allocator
        self.id: Tuple[int, int] = graph_pool_handle()
        self._uses = 1

    def use_count(self) -> int:
        """How many refer to the pool: its owner, and blocks of use_mem_pool."""
        return self._uses

    def snapshot(self) -> List[Dict[str, Any]]:
        return memory_snapshot()


@contextlib.contextmanager
def use_mem_pool(pool: MemPool, device: Optional[Any] = None) -> Iterator[None]:
    """`with torch.npu.use_mem_pool(pool):` Errors: RuntimeError for a device that is not there."""
    check_device(device)
    pool._uses += 1
    try:
        yield
    finally:
        pool._uses -= 1
