"""torch.npu.amp: mixed precision of the CPU, which is the npu."""

from __future__ import annotations

from typing import Any

import torch
from torch.amp import GradScaler as _GradScaler


class autocast(torch.amp.autocast_mode.autocast):
    def __init__(self, enabled: bool = True, dtype: Any = torch.float16,
                 cache_enabled: bool = True) -> None:
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(_GradScaler):
    def __init__(self, init_scale: float = 2.0**16, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000, dynamic: bool = True,
                 enabled: bool = True) -> None:
        super().__init__("cpu", init_scale=init_scale, growth_factor=growth_factor,
                         backoff_factor=backoff_factor,
                         growth_interval=growth_interval if dynamic else 2**31 - 1,
                         enabled=enabled)
