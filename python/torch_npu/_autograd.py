"""Gradients of torch.ops.npu, by the operators that compute them.

A rule says what a call keeps for its gradient and how the gradient is computed; the gradients of
arguments that are no tensors are None.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

import torch

from ._table import DOORS, FUNCTIONS, library

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


_SAME_WORDS = ("pse", "padding_mask", "atten_mask", "keep_prob", "inner_precise", "prefix",
               "actual_seq_qlen", "actual_seq_kvlen", "sparse_mode", "softmax_layout", "sink")


def _attention_words(kept: _Kept) -> Dict[str, Any]:
    """What the calls for the gradients of attention have in common."""
    a = kept.arguments
    out, softmax_max, softmax_sum, seed, offset = kept.results
    words = {name: a[name] for name in _SAME_WORDS}
    for name in ("actual_seq_qlen", "actual_seq_kvlen"):
        if isinstance(a[name], torch.Tensor):
            words[name] = a[name].tolist()
    return dict(words, softmax_max=softmax_max, softmax_sum=softmax_sum, attention_in=out,
                scale_value=a["scale"], seed=int(seed), offset=int(offset),
                dropout_mask=a.get("dropout_mask"))


def _fed(kept: _Kept, grads: Dict[str, torch.Tensor]) -> Dict[str, Any]:
    """The gradients of the arguments that the call has."""
    return {name: grad for name, grad in grads.items() if kept.arguments[name] is not None}


def _attention(kept: _Kept, grads: Sequence[Any]) -> Dict[str, Any]:
    a = kept.arguments
    query, key, value, pse, sink = _ops().npu_fusion_attention_grad(
        a["query"], a["key"], a["value"], grads[0], a["head_num"], a["input_layout"],
        pre_tockens=a["pre_tockens"], next_tockens=a["next_tockens"], **_attention_words(kept))
    return _fed(kept, {"query": query, "key": key, "value": value, "pse": pse, "sink": sink})


_WORDS_2 = ("query_rope", "key_rope", "pre_tokens", "next_tokens", "pse_type", "q_start_idx",
            "kv_start_idx")


def _attention_2(kept: _Kept, grads: Sequence[Any]) -> Dict[str, Any]:
    a = kept.arguments
    found = _ops().npu_fusion_attention_grad_v2(
        a["query"], a["key"], a["value"], grads[0], a["head_num"], a["input_layout"],
        **{name: a[name] for name in _WORDS_2}, **_attention_words(kept))
    return _fed(kept, dict(zip(("query", "key", "value", "pse", "query_rope", "key_rope", "sink"),
                               found)))


def _add_layer_norm(kept: _Kept, grads: Sequence[Any]) -> Dict[str, Any]:
    a = kept.arguments
    x1, x2, gamma, beta = _ops().npu_add_layer_norm_backward(
        grads[0], a["x1"], a["x2"], kept.results[1], kept.results[0], a["gamma"], grads[3])
    return {"x1": x1, "x2": x2.to(a["x2"].dtype), "gamma": gamma.to(a["gamma"].dtype),
            "beta": beta.to(a["beta"].dtype)}


def _deep_norm(kept: _Kept, grads: Sequence[Any]) -> Dict[str, Any]:
    a = kept.arguments
    x, gx, beta, gamma = _ops().npu_deep_norm_backward(
        grads[2], a["x"], a["gx"], a["gamma"], kept.results[0], kept.results[1], a["alpha"])
    return {"x": x, "gx": gx, "beta": beta.to(a["beta"].dtype),
            "gamma": gamma.to(a["gamma"].dtype)}


def _group_norm_swish(kept: _Kept, grads: Sequence[Any]) -> Dict[str, Any]:
    a = kept.arguments
    x, weight, bias = _ops().npu_group_norm_swish_grad(
        grads[0], a["input"], a["num_groups"], a["weight"], a["bias"], *kept.results,
        [True, True, True], a["swish_scale"])
    return {"input": x, "weight": weight, "bias": bias}


def _masked_softmax(kept: _Kept, grads: Sequence[Any]) -> Dict[str, Any]:
    a = kept.arguments
    return {"x": _ops().npu_scaled_masked_softmax_backward(
        grads[0], kept.results[0], a["mask"], a["scale"], a["fixed_triu_mask"])}


def _cross_entropy(kept: _Kept, grads: Sequence[Any]) -> Dict[str, Any]:
    a = kept.arguments
    return {"input": _ops().npu_cross_entropy_loss_backward(
        grads[0], kept.results[0], a["target"], a["weight"], None, None, a["reduction"],
        a["ignore_index"], a["label_smoothing"], a["lse_square_scale_for_zloss"])}


def _permute(kept: _Kept, grads: Sequence[Any]) -> Dict[str, Any]:
    a = kept.arguments
    return {"tokens": _ops().npu_moe_token_permute_grad(
        a["tokens"], grads[0], a["indices"], kept.results[0], a["padded_mode"])}


def _unpermute(kept: _Kept, grads: Sequence[Any]) -> Dict[str, Any]:
    a = kept.arguments
    tokens, probs = _ops().npu_moe_token_unpermute_grad(
        a["permuted_tokens"], grads[0], a["sorted_indices"], a["probs"], a["padded_mode"],
        a["restore_shape"])
    return {"permuted_tokens": tokens, "probs": None if a["probs"] is None else probs}


def _permute_mapped(kept: _Kept, grads: Sequence[Any]) -> Dict[str, Any]:
    a = kept.arguments
    tokens, probs = _ops().npu_moe_token_permute_with_routing_map_grad(
        grads[0], None if a["probs"] is None else grads[1], kept.results[0], a["routing_map"],
        a["routing_map"].shape[1], a["tokens"].shape[0], a["drop_and_pad"])
    return {"tokens": tokens, "probs": None if a["probs"] is None else probs}


def _unpermute_mapped(kept: _Kept, grads: Sequence[Any]) -> Dict[str, Any]:
    a = kept.arguments
    rows, tokens = kept.results if a["drop_and_pad"] else [a["sorted_indices"]] * 2
    permuted, probs = _ops().npu_moe_token_unpermute_with_routing_map_grad(
        grads[0], rows, tokens, a["routing_map"], a["permuted_tokens"], a["probs"],
        a["drop_and_pad"], a["restore_shape"])
    return {"permuted_tokens": permuted, "probs": None if a["probs"] is None else probs}


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
    "npu_fusion_attention": _Rule(_attention, results=(0, 1, 2, 4, 5)),
    "npu_fusion_attention_v2": _Rule(_attention_2, results=(0, 1, 2, 4, 5)),
    "npu_fusion_attention_v3": _Rule(_attention, results=(0, 1, 2, 4, 5)),
    "npu_add_layer_norm": _Rule(_add_layer_norm, results=(1, 2)),
    "npu_deep_norm": _Rule(_deep_norm, results=(0, 1)),
    "npu_group_norm_swish": _Rule(_group_norm_swish, results=(1, 2)),
    "npu_scaled_masked_softmax": _Rule(_masked_softmax, results=(0,)),
    "npu_cross_entropy_loss": _Rule(_cross_entropy, results=(1,)),
    "npu_moe_token_permute": _Rule(_permute, results=(1,)),
    "npu_moe_token_unpermute": _Rule(_unpermute),
    "npu_moe_token_permute_with_routing_map": _Rule(_permute_mapped, results=(2,)),
    "_npu_moe_token_unpermute_with_routing_map": _Rule(_unpermute_mapped, results=(1, 2)),
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
        wanted = [results[at] for at in rule.results]
        ctx.numbers = [None if isinstance(each, torch.Tensor) else each for each in wanted]
        ctx.save_for_backward(*tensors.values(),
                              *(each for each in wanted if isinstance(each, torch.Tensor)))

    return keep


def _differentiate(names: List[str], rule: _Rule) -> Callable:
    def backward(ctx: Any, *grads: Any) -> Any:
        saved = ctx.saved_tensors
        count = len(ctx.tensor_names)
        arguments = {**ctx.plain, **dict(zip(ctx.tensor_names, saved[:count]))}
        tensors = iter(saved[count:])
        results = [next(tensors) if each is None else each for each in ctx.numbers]
        given = rule.backward(_Kept(arguments, results),
                              [each.contiguous() if isinstance(each, torch.Tensor) else each
                               for each in grads])
        return tuple(given.get(name) for name in names)

    return backward


def _differentiable(name: str, rule: _Rule) -> Callable:
    """A function that calls an operator with tensors among its keywords, to which torch.library
    gives no gradients. Calls of torch.ops.npu itself have none."""
    arguments = DOORS[name].schema.arguments
    names = [each.name for each in arguments]
    keep = _keep(names, rule)

    def run(*values: Any) -> Any:
        given = list(zip(arguments, values))
        words = {each.name: value for each, value in given if each.kwarg_only}
        return getattr(_ops(), name)(*(value for each, value in given if not each.kwarg_only),
                                     **words)

    class Call(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *values: Any) -> Any:
            output = run(*values)
            keep(ctx, values, output)
            ctx.mark_non_differentiable(*(each for each in output if isinstance(each, torch.Tensor)
                                          and not each.is_floating_point()))
            return output

        backward = staticmethod(_differentiate(names, rule))

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = DOORS[name].bind(args, kwargs)
        values = [bound[each] for each in names]
        wanted = any(isinstance(each, torch.Tensor) and each.requires_grad for each in values)
        return Call.apply(*values) if wanted and torch.is_grad_enabled() else run(*values)

    return call


def _tokens_alone(*args: Any, **kwargs: Any) -> Any:
    return FUNCTIONS["_npu_moe_token_unpermute_with_routing_map"](*args, **kwargs)[0]


def register() -> None:
    """Gives these operators their gradients. Once for a process, after the operators are made."""
    for name, rule in _RULES.items():
        if name not in DOORS:
            continue
        arguments = DOORS[name].schema.arguments
        names = [each.name for each in arguments if not each.kwarg_only]
        if any(each.kwarg_only and "Tensor" in str(each.type) for each in arguments):
            FUNCTIONS[name] = _differentiable(name, rule)
            continue
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
    FUNCTIONS["npu_moe_token_unpermute_with_routing_map"] = _tokens_alone
