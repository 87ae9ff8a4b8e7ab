"""torch_npu.profiler: torch's own profiler, which sees what the CPU computes. Times of the engine's
operators are those of npumesh (`world.profile` of docs/python.md, NPUMESH_PROFILE)."""

from __future__ import annotations

import enum
from typing import Any, Iterable, Optional

import torch
from torch.profiler import ProfilerAction, schedule, supported_activities  # noqa: F401

from .._say import no_effect


class ProfilerActivity(enum.Enum):
    CPU = "cpu"
    NPU = "npu"


class ProfilerLevel(enum.Enum):
    Level_none = -1
    Level0 = 0
    Level1 = 1
    Level2 = 2


class AiCMetrics(enum.Enum):
    AiCoreNone = 0
    PipeUtilization = 1
    ArithmeticUtilization = 2
    Memory = 3
    MemoryL0 = 4
    MemoryUB = 5
    L2Cache = 6


class ExportType(enum.Enum):
    Text = "text"
    Db = "db"


def _ExperimentalConfig(**words: Any) -> None:  # noqa: N802
    """What the hardware is to count: npumesh has none."""
    no_effect("torch_npu.profiler._ExperimentalConfig")


def tensorboard_trace_handler(dir_name: Optional[str] = None, worker_name: Optional[str] = None,
                              analyse_flag: bool = True, **words: Any) -> Any:
    """Writes torch's trace into a folder, by default the working directory."""
    return torch.profiler.tensorboard_trace_handler(dir_name or ".", worker_name)


class profile(torch.profiler.profile):
    """torch.profiler.profile; the activity NPU is that of the CPU."""

    def __init__(self, *, activities: Optional[Iterable[Any]] = None, schedule: Any = None,
                 on_trace_ready: Any = None, record_shapes: bool = False,
                 profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
                 with_modules: bool = False, experimental_config: Any = None,
                 **words: Any) -> None:
        for word in words:
            no_effect(f"torch_npu.profiler.profile({word}=...)")
        super().__init__(activities=[torch.profiler.ProfilerActivity.CPU], schedule=schedule,
                         on_trace_ready=on_trace_ready, record_shapes=record_shapes,
                         profile_memory=profile_memory, with_stack=with_stack,
                         with_flops=with_flops, with_modules=with_modules)
