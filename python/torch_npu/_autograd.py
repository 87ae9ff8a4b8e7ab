"""Gradients of torch.ops.npu, by the operators that compute them."""

from __future__ import annotations

from typing import Any

import torch


def register() -> None:
    pass
