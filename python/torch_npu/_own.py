"""What `import torch_npu` gives on a machine without the vendor's wheel.

It teaches torch the device "npu", where each process is a simulated NPU and npu is the CPU, makes
torch.npu, torch.ops.npu with the operators of the engine, and the backend "hccl" of
torch.distributed (docs/python.md). Needs torch 2.6 or later and libnpumesh.so.
"""

from __future__ import annotations

from typing import Any

from . import _needs  # noqa: F401  says what is missing before anything else does

import torch

from . import npu, profiler
from . import _device, _table, operators  # noqa: F401

_device.install(npu)
_table.register()

from . import _C, atb, distributed  # noqa: E402, F401
from ._autograd import register as _register_gradients  # noqa: E402
from ._types import (  # noqa: E402, F401
    float4_e1m2fn_x2,
    float4_e2m1fn_x2,
    float8_e4m3fn,
    float8_e5m2,
    float8_e8m0fnu,
    hifloat8,
    int4,
)
from ._references import register_reference  # noqa: E402, F401
from .formats import (  # noqa: E402, F401
    Format,
    empty_with_format,
    get_npu_format,
    get_storage_size,
    npu_format_cast,
    npu_format_cast_,
)

_register_gradients()

__version__ = "2.6.0"


def __getattr__(name: str) -> Any:
    """torch_npu.npu_x is torch.ops.npu.npu_x."""
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _table.FUNCTIONS:
        return _table.FUNCTIONS[name]
    try:
        return getattr(torch.ops.npu, name)
    except AttributeError:
        raise AttributeError(
            f"torch_npu: there is no {name!r} on npumesh (docs/python.md lists the operators)"
        ) from None
