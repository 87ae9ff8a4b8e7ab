"""Formats of tensors. Memory is ND here, so a cast to another format keeps the values where they
are; the format that was asked for is remembered."""

from __future__ import annotations

import enum
import weakref
from typing import Any, Sequence, Union

import torch


class Format(enum.IntEnum):
    UNDEFINED = -1
    NCHW = 0
    NHWC = 1
    ND = 2
    NC1HWC0 = 3
    FRACTAL_Z = 4
    NC1HWC0_C04 = 12
    HWCN = 16
    NDHWC = 27
    FRACTAL_NZ = 29
    NCDHW = 30
    NDC1HWC0 = 32
    FRACTAL_Z_3D = 33


_formats: "weakref.WeakKeyDictionary[torch.Tensor, int]" = weakref.WeakKeyDictionary()


def get_npu_format(tensor: torch.Tensor) -> Format:
    """What npu_format_cast was asked for last, else ND."""
    return Format(getattr(tensor, "_npu_format", Format.ND))


def npu_format_cast(tensor: torch.Tensor, acl_format: Union[int, torch.Tensor],
                    customize_dtype: Any = None, input_dtype: Any = None) -> torch.Tensor:
    """The same values: a new tensor over the same memory, with that format as its name.
    Errors: ValueError for a number that no format has."""
    wanted = get_npu_format(acl_format) if isinstance(acl_format, torch.Tensor) else acl_format
    result = tensor.view_as(tensor)
    result._npu_format = Format(int(wanted))
    return result


def npu_format_cast_(tensor: torch.Tensor, acl_format: Union[int, torch.Tensor]) -> torch.Tensor:
    wanted = get_npu_format(acl_format) if isinstance(acl_format, torch.Tensor) else acl_format
    tensor._npu_format = Format(int(wanted))
    return tensor


def get_storage_size(tensor: torch.Tensor) -> int:
    """Elements of its memory."""
    return tensor.untyped_storage().nbytes() // tensor.element_size()


def empty_with_format(size: Sequence[int], dtype: Any = None, layout: Any = None,
                      device: Any = None, pin_memory: Any = None,
                      acl_format: int = Format.ND) -> torch.Tensor:
    result = torch.empty(tuple(size), dtype=dtype)
    result._npu_format = Format(int(acl_format))
    return result
