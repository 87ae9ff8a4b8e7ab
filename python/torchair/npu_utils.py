"""TorchAir's module _npu_utils: conversions of formats on the CPU."""

import sys
from typing import Any

import torch

FRACTAL_NZ = 29


def NpuFormatCastViaCpu(tensor: torch.Tensor, acl_format: int,  # noqa: N802
                        customize_dtype: Any = None, input_dtype: Any = None) -> torch.Tensor:
    """A copy of int8 weights with FRACTAL_NZ as the name of its format: memory is ND on a simulated
    NPU (torch_npu.npu_format_cast). Errors: RuntimeError."""
    if acl_format != FRACTAL_NZ:
        raise RuntimeError(f"acl_format must be {FRACTAL_NZ}, but is {acl_format}")
    if tensor.dim() < 2 or 0 in tensor.shape[-2:]:
        raise RuntimeError("npu_format_cast_via_cpu: expected at least two axes with elements, "
                           f"seen the shape {list(tensor.shape)}")
    if tensor.dtype != torch.int8:
        raise RuntimeError(f"npu_format_cast_via_cpu: unsupported dtype {tensor.dtype}, "
                           "expected torch.int8")
    copy = tensor.clone()
    torch_npu = sys.modules.get("torch_npu")  # without it no one asks for a format
    return copy if torch_npu is None else torch_npu.npu_format_cast(copy, acl_format)
