"""Gradients of torch.ops.npu, by the operators that compute them.

A rule says what a call keeps for its gradient and how the gradient is computed; the gradients of
arguments that are no tensors are None.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

import torch

from ._table import DOORS, library

# From the arguments of the call by name, its results, and the gradients of the results: gradients
# of arguments, by name.
Backward = Callable[["_Kept", Sequence[Any]], Dict[str, Optional[torch.Tensor]]]


class _Kept(NamedTuple):
    arguments: Dict[str, Any]
    results: Sequence[Any]


class _Rule(NamedTuple):
    backward: Backward
    results: Sequence[int] = ()  # results that the gradient is computed from


def _ops() -> Any:
    return torch.ops.npu


def _rms_norm(kept: _Kept, grads: Sequence[Any]) -> Dict[str, Any]:
    a = kept.arguments
    x, gamma = _ops().npu_rms_norm_backward(grads[0], a["self"], a["gamma"], kept.results[0])
    return {"self": x, "gamma": gamma.to(a["gamma"].dtype)}


def _of_self(name: str, *more: str) -> Backward:
    """Of an activation: its gradient is computed by (gradient, self, *more)."""

    def backward(kept: _Kept, grads: Sequence[Any]) -> Dict[str, Any]:
        a = kept.arguments
        words = {each: a[each] for each in more}
        return {"self": getattr(_ops(), name)(grads[0], a["self"], **words)}

    return backward


def _silu(kept: _Kept, grads: Sequence[Any]) -> Dict[str, Any]:
    x = kept.arguments["self"]
    return {"self": _ops().npu_silu_backward(grads[0], x, kept.results[0])}


def _rotary(kept: _Kept, grads: Sequence[Any]) -> Dict[str, Any]:
    a = kept.arguments
    if a["rotate"] is not None:
        raise NotImplementedError("torch_npu: npu_rotary_mul with rotate has no gradient here")
    x, r1, r2 = _ops().npu_rotary_mul_backward(grads[0], a["self"], a["r1"], a["r2"],
                                               a["rotary_mode"])
    return {"self": x, "r1": r1, "r2": r2}


def _cast(kept: _Kept, grads: Sequence[Any]) -> Dict[str, Any]:
    return {"self": _ops()._npu_dtype_cast_backward(grads[0], kept.arguments["self"].dtype)}


def _linear(kept: _Kept, grads: Sequence[Any]) -> Dict[str, Any]:
    a, grad = kept.arguments, grads[0]
    flat = grad.reshape(-1, grad.shape[-1])
    x = a["input"].reshape(-1, a["input"].shape[-1])
    given = {"input": (flat @ a["weight"]).reshape(a["input"].shape), "weight": flat.t() @ x}
    if a["bias"] is not None:
        given["bias"] = flat.sum(0)
    return given


_SAME_WORDS = ("pse", "padding_mask", "atten_mask", "keep_prob", "pre_tockens", "next_tockens",
               "inner_precise", "prefix", "actual_seq_qlen", "actual_seq_kvlen", "sparse_mode",
               "softmax_layout", "sink")


def _attention(kept: _Kept, grads: Sequence[Any]) -> Dict[str, Any]:
    a = kept.arguments
    if a["keep_prob"] != 1.0:
        raise NotImplementedError("torch_npu: npu_fusion_attention with dropout has no gradient "
                                  "here")
    out, softmax_max, softmax_sum = kept.results
    query, key, value, pse, sink = _ops().npu_fusion_attention_grad(
        a["query"], a["key"], a["value"], grads[0], a["head_num"], a["input_layout"],
        softmax_max=softmax_max, softmax_sum=softmax_sum, attention_in=out,
        scale_value=a["scale"], **{name: a[name] for name in _SAME_WORDS})
    given = {"query": query, "key": key, "value": value}
    if a["pse"] is not None:
        given["pse"] = pse
    if a["sink"] is not None:
        given["sink"] = sink
    return given


_RULES: Dict[str, _Rule] = {
    "npu_rms_norm": _Rule(_rms_norm, results=(1,)),
    "npu_swiglu": _Rule(_of_self("npu_swiglu_backward", "dim")),
    "npu_fast_gelu": _Rule(_of_self("npu_fast_gelu_backward")),
    "fast_gelu": _Rule(_of_self("npu_fast_gelu_backward")),
    "npu_gelu": _Rule(_of_self("npu_gelu_backward", "approximate")),
    "npu_silu": _Rule(_silu, results=(0,)),
    "npu_mish": _Rule(_of_self("npu_mish_backward")),
    "npu_rotary_mul": _Rule(_rotary),
    "npu_dtype_cast": _Rule(_cast),
    "_npu_dtype_cast": _Rule(_cast),
    "npu_linear": _Rule(_linear),
    "npu_fusion_attention": _Rule(_attention, results=(0, 1, 2)),
}


def _keep(names: List[str], rule: _Rule) -> Callable:
    def keep(ctx: Any, inputs: Sequence[Any], output: Any,
             keyword_only_inputs: Optional[Dict[str, Any]] = None) -> None:
        arguments = {**dict(zip(names, inputs)), **(keyword_only_inputs or {})}
        results = output if isinstance(output, (tuple, list)) else (output,)
        tensors = {name: value for name, value in arguments.items()
                   if isinstance(value, torch.Tensor)}
        ctx.tensor_names = list(tensors)
        ctx.plain = {name: value for name, value in arguments.items() if name not in tensors}
        ctx.save_for_backward(*tensors.values(), *(results[at] for at in rule.results))

    return keep


def _differentiate(names: List[str], rule: _Rule) -> Callable:
    def backward(ctx: Any, *grads: Any) -> Any:
        saved = ctx.saved_tensors
        count = len(ctx.tensor_names)
        arguments = {**ctx.plain, **dict(zip(ctx.tensor_names, saved[:count]))}
        given = rule.backward(_Kept(arguments, saved[count:]),
                              [each.contiguous() if isinstance(each, torch.Tensor) else each
                               for each in grads])
        return tuple(given.get(name) for name in names)

    return backward


def register() -> None:
    """Gives these operators their gradients. Once for a process, after the operators are made."""
    for name, rule in _RULES.items():
        if name not in DOORS:
            continue
        arguments = DOORS[name].schema.arguments
        names = [each.name for each in arguments if not each.kwarg_only]
        keep = _keep(names, rule)
        if len(names) == len(arguments):
            def setup(ctx: Any, inputs: Any, output: Any, keep: Callable = keep) -> None:
                keep(ctx, inputs, output)
        else:
            def setup(ctx: Any, inputs: Any, keyword_only_inputs: Any,  # type: ignore[misc]
                      output: Any, keep: Callable = keep) -> None:
                keep(ctx, inputs, output, keyword_only_inputs)
        torch.library.register_autograd(f"npu::{name}", _differentiate(names, rule),
                                        setup_context=setup, lib=library())
