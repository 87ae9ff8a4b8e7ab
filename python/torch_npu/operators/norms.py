"""Norms."""

from __future__ import annotations

from typing import Any

import torch

from .. import _engine
from .._table import Arguments, like, made, row
from .._types import held_dtype, held_shape, number


def statistics(x: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
    """One float for each vector that `gamma` scales."""
    kept = x.dim() - gamma.dim()
    return made(x, [*x.shape[:kept], *([1] * gamma.dim())], torch.float32)


row("npu_rms_norm(Tensor self, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor)",
    "RmsNorm", lambda a: (like(a.self), statistics(a.self, a.gamma)), names={"self": "x"})

row("npu_rms_norm_backward(Tensor dy, Tensor self, Tensor gamma, Tensor rstd) -> (Tensor, Tensor)",
    "RmsNormGrad", lambda a: (like(a.self), like(a.gamma, torch.float32)), names={"self": "x"})

row("npu_add_rms_norm(Tensor x1, Tensor x2, Tensor gamma, float epsilon=1e-06) "
    "-> (Tensor, Tensor, Tensor)",
    "AddRmsNorm", lambda a: (like(a.x1), statistics(a.x1, a.gamma), like(a.x1)))


def _add_in_place(a: Arguments, outputs: dict) -> torch.Tensor:
    """x1 becomes the norm, x2 the sum; the call returns rstd."""
    a.x1.copy_(outputs["y"])
    a.x2.copy_(outputs["x"])
    return outputs["rstd"]


row("npu_add_rms_norm_v2(Tensor(a!) x1, Tensor(b!) x2, Tensor gamma, float epsilon=1e-06) "
    "-> Tensor",
    "AddRmsNorm", lambda a: statistics(a.x1, a.gamma), results=_add_in_place)

row("npu_add_rms_norm_v2_functional(Tensor x1, Tensor x2, Tensor gamma, float epsilon=1e-06) "
    "-> (Tensor, Tensor, Tensor)",
    "AddRmsNorm", lambda a: (statistics(a.x1, a.gamma), like(a.x1), like(a.x1)),
    results=("rstd", "y", "x"))

row("npu_add_rms_norm_cast(Tensor x1, Tensor x2, Tensor gamma, float epsilon=1e-06) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    "AddRmsNormCast",
    lambda a: (like(a.x1, torch.float32), like(a.x1), statistics(a.x1, a.gamma), like(a.x1)))

row("npu_gemma_rms_norm(Tensor self, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor)",
    "GemmaRmsNorm", lambda a: (like(a.self), statistics(a.self, a.gamma)), names={"self": "x"})


def _summed(a: Arguments) -> torch.Tensor:
    return like(a.x1, a.x1.dtype if a.x1.dtype == a.x2.dtype else torch.float32)


row("npu_add_layer_norm(Tensor x1, Tensor x2, Tensor gamma, Tensor beta, float epsilon=1e-05, "
    "bool additional_output=False) -> (Tensor, Tensor, Tensor, Tensor)",
    "AddLayerNorm",
    lambda a: (_summed(a), statistics(a.x1, a.gamma), statistics(a.x1, a.gamma), _summed(a)))


def _no_gradient(a: Arguments) -> None:
    """A result that has no gradient counts as zeros."""
    a.dy = a.x1.new_zeros(a.x1.shape) if a.dy_opt is None else a.pop("dy_opt")


row("npu_add_layer_norm_backward(Tensor? dy_opt, Tensor x1, Tensor x2, Tensor rstd, Tensor mean, "
    "Tensor gamma, Tensor? dsum_opt) -> (Tensor, Tensor, Tensor, Tensor)",
    "AddLayerNormGrad",
    lambda a: (like(a.x1), like(a.x1), like(a.gamma, torch.float32),
               like(a.gamma, torch.float32)),
    names={"dsum_opt": "dsum"}, adapt=_no_gradient,
    results=lambda a, outputs: (outputs["dx"], outputs["dx"].clone(), outputs["dgamma"],
                                outputs["dbeta"]))

row("npu_deep_norm_backward(Tensor dy, Tensor x, Tensor gx, Tensor gamma, Tensor mean, "
    "Tensor rstd, float alpha=0.3) -> (Tensor, Tensor, Tensor, Tensor)",
    "DeepNormGrad",
    lambda a: (like(a.x), like(a.x), like(a.gamma, torch.float32), like(a.gamma, torch.float32)))

row("npu_deep_norm(Tensor x, Tensor gx, Tensor beta, Tensor gamma, float alpha=0.3, "
    "float epsilon=1e-06) -> (Tensor, Tensor, Tensor)",
    "DeepNorm", lambda a: (statistics(a.x, a.gamma), statistics(a.x, a.gamma), like(a.x)))

row("npu_layer_norm_eval(Tensor input, int[] normalized_shape, Tensor? weight=None, "
    "Tensor? bias=None, float eps=1e-05) -> Tensor",
    "LayerNormV4", lambda a: like(a.input), results=("y",), constants=("normalized_shape",),
    names={"input": "x", "weight": "gamma", "bias": "beta", "eps": "epsilon"})


def _group_statistics(a: Arguments) -> torch.Tensor:
    return made(a.input, [a.input.shape[0], a.group])


row("npu_group_norm_silu(Tensor input, Tensor? weight, Tensor? bias, int group, "
    "float eps=0.00001) -> (Tensor, Tensor, Tensor)",
    "GroupNormSilu", lambda a: (like(a.input), _group_statistics(a), _group_statistics(a)),
    names={"input": "x", "weight": "gamma", "bias": "beta", "group": "num_groups"})


row("npu_group_norm_swish(Tensor input, int num_groups, Tensor weight, Tensor bias, "
    "float? eps=1e-5, float? swish_scale=1.0) -> (Tensor, Tensor, Tensor)",
    "GroupNormSwish",
    lambda a: (like(a.input), made(a.input, [a.input.shape[0], a.num_groups]),
               made(a.input, [a.input.shape[0], a.num_groups])),
    names={"input": "x", "weight": "gamma", "bias": "beta"})


def _required(a: Arguments) -> None:
    _, a.dgamma_is_require, a.dbeta_is_require = map(bool, a.pop("grad_input_mask"))


row("npu_group_norm_swish_grad(Tensor grad, Tensor input, int num_groups, Tensor weight, "
    "Tensor bias, Tensor mean, Tensor rstd, bool[3] grad_input_mask, float? swish_scale=1.0) "
    "-> (Tensor, Tensor, Tensor)",
    "GroupNormSwishGrad", lambda a: (like(a.input), like(a.weight), like(a.bias)),
    names={"grad": "dy", "input": "x", "weight": "gamma", "bias": "beta"}, adapt=_required)

# ---- norms that are quantised ----


def _quantised(x: torch.Tensor, dst_type: Any) -> torch.Tensor:
    return made(x, held_shape(x.shape, dst_type), held_dtype(dst_type, torch.int8))


def _dst_type(a: Arguments) -> None:
    name = "dst_type" if "dst_type" in a else "dst_dtype"
    a.dst_type = number(a.pop(name), "int8")


row("npu_rms_norm_quant(Tensor x, Tensor gamma, Tensor beta, Tensor scale, Tensor offset, "
    "float epsilon=1e-06, *, int? dst_dtype=None) -> Tensor",
    "RmsNormQuant", lambda a: _quantised(a.x, a.dst_dtype), adapt=_dst_type)



def _write_quantised(a: Arguments, outputs: dict) -> None:
    a.output.copy_(outputs["y"])


row("_npu_quant_rms_norm(Tensor self, Tensor gamma, Tensor beta, Tensor scale, Tensor offset, "
    "Tensor(a!) output, float eps=1e-05) -> ()",
    "RmsNormQuant", lambda a: None, results=_write_quantised,
    names={"self": "x", "eps": "epsilon", "output": None})

def _rstd_meta(a: Arguments) -> torch.Tensor:
    """Given where x wants a gradient, as the vendor's call does."""
    return made(a.x, [*a.x.shape[:-1], 1] if a.x.requires_grad else [0], torch.float32)


def _with_rstd(a: Arguments, outputs: dict) -> tuple:
    if not a.x.requires_grad:
        return outputs["y1"], _rstd_meta(a)
    ports = {"x": a.x, "gamma": a.x.new_ones(a.x.shape[-1])}
    return outputs["y1"], _engine.run("RmsNorm", ports, {"epsilon": a.epsilon})["rstd"]


row("npu_rms_norm_quant_v2(Tensor x, Tensor gamma, Tensor scale, *, Tensor? offset=None, "
    "Tensor? beta=None, float epsilon=1e-06, bool div_mode=True, int? dst_dtype=None) "
    "-> (Tensor, Tensor)",
    "RmsNormQuantV2", lambda a: (_quantised(a.x, a.dst_dtype), _rstd_meta(a)), adapt=_dst_type,
    names={"scale": "scales1", "offset": "zero_points1"}, results=_with_rstd,
    kinds=("RmsNormQuantV2", "RmsNorm"))

row("npu_add_rms_norm_quant(Tensor x1, Tensor x2, Tensor gamma, Tensor scales1, "
    "Tensor? zero_points1, Tensor? beta=None, Tensor? scales2=None, Tensor? zero_points2=None, *, "
    "int axis=-1, float epsilon=1e-06, bool div_mode=True, int? dst_type=None) "
    "-> (Tensor, Tensor, Tensor)",
    "AddRmsNormQuant",
    lambda a: (_quantised(a.x1, a.dst_type), _quantised(a.x1, a.dst_type), like(a.x1)),
    adapt=_dst_type)


def _add_quant(a: Arguments) -> None:
    a.dst_type = number(a.pop("y_dtype"), "int8")
    a.output_mask = list(a.output_mask) if a.output_mask is not None else None


def _add_quant_meta(a: Arguments) -> tuple:
    y_type = held_dtype(a.y_dtype, torch.int8)
    mask = a.output_mask
    first = mask[0] if mask else True
    second = mask[1] if mask else a.smooth_scale2 is not None
    rows = a.x1.shape[:-1]

    def when(wanted: bool, shape: list, dtype: torch.dtype) -> torch.Tensor:
        return made(a.x1, shape if wanted else [1], dtype)

    return (when(first, a.x1.shape, y_type), when(second, a.x1.shape, y_type), like(a.x1),
            when(first, rows, torch.float32), when(second, rows, torch.float32))


row("npu_add_rms_norm_dynamic_quant(Tensor x1, Tensor x2, Tensor gamma, *, "
    "Tensor? smooth_scale1=None, Tensor? smooth_scale2=None, Tensor? beta=None, "
    "float epsilon=1e-6, bool[2]? output_mask=None, int? y_dtype=None) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    "AddRmsNormDynamicQuant", _add_quant_meta, adapt=_add_quant)


def _mx(a: Arguments) -> None:
    a.dst_type = number(a.dst_type)


def mx_scales(x: torch.Tensor, axis: int = -1, block: int = 32) -> torch.Tensor:
    """Scales of blocks along an axis, in pairs: the axis becomes ceil(blocks / 2), and 2 follow."""
    shape = list(x.shape)
    axis = axis % x.dim()
    shape[axis] = (shape[axis] + 2 * block - 1) // (2 * block)
    return made(x, [*shape, 2], torch.uint8)


def mx_values(x: torch.Tensor, dst_type: int) -> torch.Tensor:
    return made(x, held_shape(x.shape, dst_type), held_dtype(dst_type, torch.uint8))


row("npu_rms_norm_dynamic_mx_quant(Tensor x, Tensor gamma, *, Tensor? beta=None, "
    'float epsilon=1e-06, int scale_alg=0, str round_mode="rint", int dst_type=296) '
    "-> (Tensor, Tensor, Tensor)",
    "RmsNormDynamicMxQuant",
    lambda a: (mx_values(a.x, a.dst_type), mx_scales(a.x), made(a.x, [0], torch.float32)),
    adapt=_mx)

row("npu_add_rms_norm_dynamic_mx_quant(Tensor x1, Tensor x2, Tensor gamma, *, Tensor? beta=None, "
    'float epsilon=1e-06, int scale_alg=0, str round_mode="rint", int dst_type=296) '
    "-> (Tensor, Tensor, Tensor, Tensor)",
    "AddRmsNormDynamicMxQuant",
    lambda a: (mx_values(a.x1, a.dst_type), like(a.x1), mx_scales(a.x1),
               made(a.x1, [0], torch.float32)),
    adapt=_mx)

# ---- batch norm over the batches of several ranks ----

row("batch_norm_reduce(Tensor input, float eps) -> (Tensor, Tensor)",
    "BNTrainingReduce",
    lambda a: (made(a.input, [a.input.shape[1]], torch.float32),
               made(a.input, [a.input.shape[1]], torch.float32)),
    names={"input": "x", "eps": None})


def _gather_statistics(a: Arguments) -> None:
    """The operator has running statistics, which a call may leave out."""
    a["counts"] = a["counts"].to(torch.int32)
    for name in ("running_mean", "running_var"):
        if a[name] is None:
            a[name] = a.input.new_zeros(a.input.shape[1], dtype=torch.float32)


# What a call names mean and invstd are sums and sums of squares: a row for each rank.
row("batch_norm_gather_stats_update(Tensor input, Tensor mean, Tensor invstd, "
    "Tensor? running_mean, Tensor? running_var, float momentum, float eps, Tensor counts) "
    "-> (Tensor, Tensor)",
    "SyncBatchNormGatherStats",
    lambda a: (made(a.mean, [a.input.shape[1]]), made(a.mean, [a.input.shape[1]])),
    names={"input": None, "mean": "total_sum", "invstd": "total_square_sum",
           "running_mean": "mean", "running_var": "variance", "counts": "sample_count"},
    adapt=_gather_statistics, results=("batch_mean", "batch_invstd"))
