"""Decorators for tests of several npus."""

from __future__ import annotations

import functools
import unittest
from typing import Any, Callable

import torch


def skipIfUnsupportMultiNPU(npu_number_needed: int) -> Callable:  # noqa: N802
    """Decorates a test that is skipped on a host with fewer npus, which are ranks."""

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            count = torch.npu.device_count()
            if count < npu_number_needed:
                raise unittest.SkipTest(f"needs {npu_number_needed} npus; this host has {count}")
            return test(*args, **kwargs)

        return run

    return decorate
