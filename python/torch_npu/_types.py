"""Element types: of torch, of npumesh, and the numbers by which calls of torch_npu name them."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import torch

import npumesh

# torch_npu's numbers above 256 are 256 and the number of the graph engine.
_ENGINE_BASE = 256

# Types that torch 2.6 lacks, as torch_npu names them.
hifloat8 = _ENGINE_BASE + 34
float8_e5m2 = _ENGINE_BASE + 35
float8_e4m3fn = _ENGINE_BASE + 36
float8_e8m0fnu = _ENGINE_BASE + 37
float4_e2m1fn_x2 = _ENGINE_BASE + 40
float4_e1m2fn_x2 = _ENGINE_BASE + 41
int4 = _ENGINE_BASE + 29

# Numbers of torch's own types, c10::ScalarType.
_TORCH_NUMBERS: Dict[int, torch.dtype] = {
    0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64,
    5: torch.float16, 6: torch.float32, 7: torch.float64, 9: torch.complex64, 11: torch.bool,
    15: torch.bfloat16, 23: torch.float8_e5m2, 24: torch.float8_e4m3fn,
}
# Quantised types of torch stand for the integers they store.
_QUANTISED = {12: "int8", 13: "uint8", 14: "int32", 16: "int4"}
_QUANTISED_TYPES = {torch.qint8: 12, torch.quint8: 13, torch.qint32: 14, torch.quint4x2: 16}

# How a tensor of torch holds elements of a type that torch lacks: the type of the tensor, and how
# many elements one element of it has.
_HOLDERS: Dict[str, Tuple[torch.dtype, int]] = {
    "int4": (torch.int32, 8),
    "float4_e2m1": (torch.uint8, 2),
    "float4_e1m2": (torch.uint8, 2),
    "hifloat8": (torch.uint8, 1),
    "float8_e8m0": (torch.uint8, 1),
}


def engine_name(dtype: torch.dtype) -> str:
    """The name that npumesh has for the elements of a tensor. Errors: TypeError."""
    name = str(dtype)[len("torch."):]
    try:
        return npumesh.dtype(name).name
    except npumesh.NpumeshError:
        raise TypeError(f"torch_npu: the engine has no elements of type {dtype}") from None


def named(value: Any) -> Optional[str]:
    """The engine's name of a type that a call gives as torch.dtype, or as number. None: None."""
    if value is None:
        return None
    if isinstance(value, torch.dtype):
        if value not in _QUANTISED_TYPES:
            return engine_name(value)
        value = _QUANTISED_TYPES[value]
    number = int(value)
    if number in _QUANTISED:
        return _QUANTISED[number]
    if number in _TORCH_NUMBERS:
        return engine_name(_TORCH_NUMBERS[number])
    for of in npumesh.DTYPES:
        if of.number == number - _ENGINE_BASE:
            return of.name
    raise ValueError(f"torch_npu: there is no type with the number {number}")


def number(value: Any, default: str = "") -> Optional[int]:
    """The engine's number of such a type; of None that of `default`, or None."""
    name = named(value) or default
    return npumesh.dtype(name).number if name else None


def holder(name: str) -> Tuple[torch.dtype, int]:
    """How a tensor holds elements of the engine's type: its type, and how many elements each of
    its elements has."""
    if name in _HOLDERS:
        return _HOLDERS[name]
    return getattr(torch, name), 1


def held_dtype(value: Any, default: torch.dtype) -> torch.dtype:
    """The type of a result that a call asks for by torch.dtype or number."""
    name = named(value)
    return default if name is None else holder(name)[0]


def held_shape(shape: Any, value: Any) -> list:
    """The shape of the tensor that holds elements of such a type in `shape`."""
    name = named(value)
    sizes = list(shape)
    packed = holder(name)[1] if name else 1
    if packed > 1:
        sizes[-1] = sizes[-1] // packed
    return sizes
