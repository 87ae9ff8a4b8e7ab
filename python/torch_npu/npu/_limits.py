"""Cores that a stream may use, and marks of super kernels: of the hardware only."""

from __future__ import annotations

from typing import Any, Dict

from .._say import no_effect

_CORES = {"cube_core_num": 24, "vector_core_num": 48}
_device_limit: Dict[str, int] = dict(_CORES)
_stream_limits: Dict[int, Dict[str, int]] = {}


def _limited(before: Dict[str, int], cube_num: int, vector_num: int) -> Dict[str, int]:
    wanted = dict(before)
    for name, value in (("cube_core_num", cube_num), ("vector_core_num", vector_num)):
        if value is None or value < 0:
            continue
        if not 0 < value <= _CORES[name]:
            raise ValueError(f"torch_npu: {name}: expected 1 to {_CORES[name]}, seen {value}")
        wanted[name] = value
    no_effect("a limit of cores")
    return wanted


def get_device_limit(device: Any = None) -> Dict[str, int]:
    return dict(_device_limit)


def set_device_limit(device: Any, cube_num: int = -1, vector_num: int = -1) -> None:
    _device_limit.update(_limited(_device_limit, cube_num, vector_num))


def get_stream_limit(stream: Any) -> Dict[str, int]:
    return dict(_stream_limits.get(stream.stream_id, _device_limit))


def kept_cores(stream: Any) -> int:
    """Vector cores that a collective on the stream keeps until the other ranks come; 0: no limit was
    set."""
    return _stream_limits.get(stream.stream_id, {}).get("vector_core_num", 0)


def set_stream_limit(stream: Any, cube_num: int = -1, vector_num: int = -1) -> None:
    _stream_limits[stream.stream_id] = _limited(get_stream_limit(stream), cube_num, vector_num)


def reset_stream_limit(stream: Any) -> None:
    _stream_limits.pop(stream.stream_id, None)


def super_kernel_scope_begin(*_: Any, **__: Any) -> None:
    no_effect("a super kernel")


def super_kernel_scope_end(*_: Any, **__: Any) -> None:
    pass
