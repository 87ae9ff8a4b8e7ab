"""What has no meaning on a simulated NPU says so once."""

from __future__ import annotations

import functools
import warnings


@functools.lru_cache(maxsize=None)
def once(text: str) -> None:
    """A warning, the first time that it is said in this process."""
    warnings.warn(f"torch_npu: {text}", RuntimeWarning, stacklevel=3)


def no_effect(what: str) -> None:
    once(f"{what} has no effect on a simulated NPU")
