"""Norms."""

from __future__ import annotations

import torch

from .._table import Arguments, like, made, row


def _statistics(x: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
    kept = x.dim() - gamma.dim()
    return made(x, [*x.shape[:kept], *([1] * gamma.dim())], torch.float32)


row("npu_rms_norm(Tensor self, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor)",
    "RmsNorm", lambda a: (like(a.self), _statistics(a.self, a.gamma)), names={"self": "x"})

row("npu_rms_norm_backward(Tensor dy, Tensor self, Tensor gamma, Tensor rstd) -> (Tensor, Tensor)",
    "RmsNormGrad", lambda a: (like(a.self), like(a.gamma, torch.float32)), names={"self": "x"})

row("npu_add_rms_norm(Tensor x1, Tensor x2, Tensor gamma, float epsilon=1e-06) "
    "-> (Tensor, Tensor, Tensor)",
    "AddRmsNorm", lambda a: (like(a.x1), _statistics(a.x1, a.gamma), like(a.x1)))

row("npu_add_rms_norm_cast(Tensor x1, Tensor x2, Tensor gamma, float epsilon=1e-06) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    "AddRmsNormCast",
    lambda a: (like(a.x1, torch.float32), like(a.x1), _statistics(a.x1, a.gamma), like(a.x1)))
