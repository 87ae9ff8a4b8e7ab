"""What has no meaning on a simulated NPU says so once."""

from __future__ import annotations

import functools
import os
import sys
import warnings

import npumesh
import torch

# Whose lines no reader of a message has written.
_OURS = tuple(os.path.dirname(os.path.abspath(each)) + os.sep
              for each in (__file__, npumesh.__file__, torch.__file__))


def line_of_program() -> str:
    """The line of the program that has called, as FILE:LINE, with the path as Python has it."""
    frame = sys._getframe(1)
    while frame is not None and os.path.abspath(frame.f_code.co_filename).startswith(_OURS):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "?"


@functools.lru_cache(maxsize=None)
def once(text: str) -> None:
    """A warning, the first time that it is said in this process."""
    warnings.warn(f"torch_npu: {text}", RuntimeWarning, stacklevel=3)


def no_effect(what: str) -> None:
    once(f"{what} has no effect on a simulated NPU")
