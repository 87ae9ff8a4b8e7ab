"""Tensors and decorators for tests of operators."""

from __future__ import annotations

import functools
import unittest
from typing import Any, Callable, Sequence, Tuple

import numpy as np
import torch


def get_npu_device() -> str:
    return f"npu:{torch.npu.current_device()}"


def create_common_tensor(item: Sequence[Any], minValue: float, maxValue: float,  # noqa: N803
                         device: Any = None) -> Tuple[torch.Tensor, torch.Tensor]:
    """The same random numbers on the host and on the npu. `item`: numpy's type, format, shape; the
    format -1 is the tensor's own."""
    import torch_npu

    dtype, npu_format, shape = item
    on_host = torch.from_numpy(np.random.uniform(minValue, maxValue, shape).astype(dtype))
    on_npu = on_host.to(device or get_npu_device())
    if npu_format != -1:
        on_npu = torch_npu.npu_format_cast(on_npu, npu_format)
    return on_host, on_npu


class SupportedDevices:
    """Decorates a test that is skipped unless the device is one of these, as "Ascend910B"."""

    def __init__(self, supported_devices: Sequence[str]) -> None:
        self._names = list(supported_devices)

    def __call__(self, test: Callable) -> Callable:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            name = torch.npu.get_device_name(0)[:len("Ascend910B")]
            if name not in self._names:
                raise unittest.SkipTest(f"runs on {self._names}; this device is {name}")
            return test(*args, **kwargs)

        return run
