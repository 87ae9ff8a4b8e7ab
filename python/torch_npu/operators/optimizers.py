"""Optimizers: a step on a variable and its slots, in place."""

from __future__ import annotations

from typing import Any, Sequence

import torch

from .._table import FUNCTIONS, Arguments, row

_NUMBERS = ("beta1_power", "beta2_power", "lr", "weight_decay", "beta1", "beta2", "epsilon")


def _tensors(a: Arguments) -> None:
    """Numbers as tensors of the variable's type, which the operator wants."""
    for name in _NUMBERS:
        if name in a:
            a[name] = torch.tensor([float(a[name])], dtype=a.var.dtype)
    for name in ("use_locking", "use_nesterov", "amsgrad", "maximize"):
        if name in a:
            a[name] = bool(a[name])


def _changed(a: Arguments, _: Any = None) -> tuple:
    return a.var, a.m, a.v


_RESULTS = ("*, Tensor(a!) var, Tensor(b!) m, Tensor(c!) v) -> (Tensor(a!), Tensor(b!), Tensor(c!))")

row("npu_apply_adam.out(Scalar beta1_power, Scalar beta2_power, Scalar lr, Scalar beta1, "
    "Scalar beta2, Scalar epsilon, Tensor grad, bool? use_locking, bool? use_nesterov, " + _RESULTS,
    "ApplyAdamD", _changed, adapt=_tensors, results=_changed)

row("npu_apply_adam_w.out(Scalar beta1_power, Scalar beta2_power, Scalar lr, Scalar weight_decay, "
    "Scalar beta1, Scalar beta2, Scalar epsilon, Tensor grad, Tensor? max_grad_norm, bool? amsgrad, "
    "bool? maximize, " + _RESULTS,
    "ApplyAdamW", _changed, adapt=_tensors, results=_changed)


def _with_out(name: str, numbers: int) -> None:
    """The vendor's two ways to call: with `out`, and as `<name>_out` with three tensors more. The
    first arguments are numbers, also as tensors of one element."""


    def positional(*args: Any) -> tuple:
        *given, var, m, v = args
        given[:numbers] = map(float, given[:numbers])
        return getattr(torch.ops.npu, name).out(*given, var=var, m=m, v=v)

    def with_out(*args: Any, out: Sequence[torch.Tensor] = (), **kwargs: Any) -> tuple:
        if len(out) != 3:
            raise TypeError(f"torch_npu.{name}: expected out=(var, m, v), seen {len(out)} tensors")
        var, m, v = out
        return getattr(torch.ops.npu, name).out(*args, **kwargs, var=var, m=m, v=v)

    FUNCTIONS[name] = with_out
    FUNCTIONS[name + "_out"] = positional


_with_out("npu_apply_adam", 6)
_with_out("npu_apply_adam_w", 7)
