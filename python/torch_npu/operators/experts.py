"""Routing of tokens to experts on one rank."""

from __future__ import annotations

from typing import Any, List

import torch

from .._table import Arguments, bits, like, made, row


def _chosen(a: Arguments, dtype: torch.dtype = None) -> torch.Tensor:
    return made(a.x, [*a.x.shape[:-1], a.k], dtype)


row("npu_moe_gating_top_k_softmax(Tensor x, Tensor? finished=None, int k=1) "
    "-> (Tensor, Tensor, Tensor)",
    "MoeGatingTopKSoftmax",
    lambda a: (_chosen(a), _chosen(a, torch.int32), _chosen(a, torch.int32)))


def _gating_2(a: Arguments) -> None:
    a.renorm = a.renorm or 0
    a.output_softmax = bool(a.output_softmax)


row("npu_moe_gating_top_k_softmax_v2(Tensor x, *, int k=1, Tensor? finished=None, "
    "int? renorm=0, bool? output_softmax=False) -> (Tensor, Tensor, Tensor)",
    "MoeGatingTopKSoftmaxV2",
    lambda a: (_chosen(a), _chosen(a, torch.int32),
               like(a.x, torch.float32) if a.output_softmax and not a.renorm
               else made(a.x, [0], torch.float32)),
    names={"output_softmax": "output_softmax_result_flag"}, adapt=_gating_2)


row("npu_moe_gating_top_k(Tensor x, int k, *, Tensor? bias=None, Tensor? input_ids=None, "
    "Tensor? tid2eid=None, int k_group=1, int group_count=1, int group_select_mode=0, "
    "int renorm=0, int norm_type=0, bool out_flag=False, float routed_scaling_factor=1.0, "
    "float eps=1e-20) -> (Tensor, Tensor, Tensor)",
    "MoeGatingTopK",
    lambda a: (_chosen(a), _chosen(a, torch.int32), like(a.x, torch.float32)))


def _expanded(a: Arguments) -> List[Any]:
    rows = a.x.shape[0]
    experts = a.expert_idx.shape[1]
    active = torch.sym_min(a.active_num, rows) if not isinstance(rows, int) else min(
        a.active_num, rows)
    return [active * experts, a.x.shape[1]]


row("npu_moe_init_routing(Tensor x, Tensor row_idx, Tensor expert_idx, int active_num) "
    "-> (Tensor, Tensor, Tensor)",
    "MoeInitRouting",
    lambda a: (made(a.x, _expanded(a)),
               made(a.x, [a.expert_idx.shape[0] * a.expert_idx.shape[1]], torch.int32),
               made(a.x, [a.expert_idx.shape[0] * a.expert_idx.shape[1]], torch.int32)))


def _init_2(a: Arguments) -> None:
    a.x = bits(a.x, a.pop("x_dtype"))
    a.active_expert_range = list(a.active_expert_range or [])


def _init_2_meta(a: Arguments) -> tuple:
    experts = a.expert_idx.shape[0] * a.expert_idx.shape[1]
    first, last = a.active_expert_range or (0, a.expert_num)
    rows = [experts, a.x.shape[1]]
    if a.drop_pad_mode == 1:
        rows = [a.expert_num, a.expert_capacity, a.x.shape[1]]
    elif 0 < a.active_num:
        rows = [min(a.active_num, experts), a.x.shape[1]]
    dtype = torch.int8 if a.quant_mode in (0, 1) else a.x.dtype
    counts = [a.expert_num, 2] if a.expert_tokens_num_type == 2 else [last - first]
    if not a.expert_tokens_num_flag:
        counts = [0]
    scales = rows[:-1]
    if a.drop_pad_mode == 1:
        scales = [a.expert_num * a.expert_capacity]
    scaled = a.quant_mode == 1 or (a.quant_mode == -1 and a.scale is not None)
    return (made(a.x, rows, dtype), made(a.x, [experts], torch.int32),
            made(a.x, counts, torch.int64), made(a.x, scales if scaled else [0], torch.float32))


row("npu_moe_init_routing_v2(Tensor x, Tensor expert_idx, *, Tensor? scale=None, "
    "Tensor? offset=None, int active_num=-1, int expert_capacity=-1, int expert_num=-1, "
    "int drop_pad_mode=0, int expert_tokens_num_type=0, bool expert_tokens_num_flag=False, "
    "int quant_mode=-1, int[2] active_expert_range=[], int row_idx_type=0, "
    "int? x_dtype=None) -> (Tensor, Tensor, Tensor, Tensor)",
    "MoeInitRoutingV3", _init_2_meta, adapt=_init_2)


# ---- permuting tokens by expert, and back ----


def _choices(a: Arguments) -> int:
    return 1 if a.indices.dim() == 1 else a.indices.shape[1]


def _permuted_rows(a: Arguments) -> Any:
    count = a.indices.shape[0] * _choices(a)
    wanted = a.num_out_tokens or 0
    return min(wanted, count) if wanted > 0 else max(wanted + count, 0)


def _permute(a: Arguments) -> None:
    a.num_out_tokens = a.num_out_tokens or 0


row("npu_moe_token_permute(Tensor tokens, Tensor indices, int? num_out_tokens=None, "
    "bool padded_mode=False) -> (Tensor, Tensor)",
    "MoeTokenPermute",
    lambda a: (made(a.tokens, [_permuted_rows(a), a.tokens.shape[1]]),
               made(a.tokens, [a.indices.shape[0] * _choices(a)], torch.int32)), adapt=_permute)


def _permute_grad(a: Arguments) -> None:
    a.num_topk = _choices(a)


row("npu_moe_token_permute_grad(Tensor tokens, Tensor grad_permuted_tokens, Tensor indices, "
    "Tensor sorted_indices, bool padded_mode=False) -> Tensor",
    "MoeTokenPermuteGrad", lambda a: like(a.tokens), adapt=_permute_grad,
    names={"tokens": None, "indices": None, "grad_permuted_tokens": "permuted_output_grad"})
row("npu_moe_token_permute_grad_v2(Tensor grad_permuted_tokens, Tensor sorted_indices, "
    "int tokens_size_0, ScalarType tokens_dtype, int num_topK, bool padded_mode=False) -> Tensor",
    "MoeTokenPermuteGrad",
    lambda a: made(a.grad_permuted_tokens, [a.tokens_size_0, a.grad_permuted_tokens.shape[1]],
                   a.tokens_dtype),
    names={"grad_permuted_tokens": "permuted_output_grad", "num_topK": "num_topk",
           "tokens_size_0": None, "tokens_dtype": None})


def _restore(a: Arguments) -> None:
    a.restore_shape = list(a.restore_shape or [1, 1])


def _unpermuted(a: Arguments) -> torch.Tensor:
    tokens = a.sorted_indices.shape[0] if a.probs is None else a.probs.shape[0]
    return made(a.permuted_tokens, [tokens, a.permuted_tokens.shape[1]])


row("npu_moe_token_unpermute(Tensor permuted_tokens, Tensor sorted_indices, Tensor? probs=None, "
    "bool padded_mode=False, int[]? restore_shape=None) -> Tensor",
    "MoeTokenUnpermute", _unpermuted, adapt=_restore)


def _probs_grad(a: Arguments) -> torch.Tensor:
    return made(a.sorted_indices, [0], torch.float32) if a.probs is None else like(a.probs)


row("npu_moe_token_unpermute_grad(Tensor permuted_tokens, Tensor grad_unpermuted_tokens, "
    "Tensor sorted_indices, Tensor? probs=None, bool padded_mode=False, "
    "int[]? restore_shape=None) -> (Tensor, Tensor)",
    "MoeTokenUnpermuteGrad", lambda a: (like(a.permuted_tokens), _probs_grad(a)), adapt=_restore,
    names={"grad_unpermuted_tokens": "unpermuted_tokens_grad"})


def _unpermute_grad_2(a: Arguments) -> None:
    _restore(a)
    if a.permuted_tokens is None:  # only their shape counts, because there are no probabilities
        a.permuted_tokens = a.grad_unpermuted_tokens.new_zeros(
            a.permuted_tokens_size_0, a.grad_unpermuted_tokens.shape[1])


row("npu_moe_token_unpermute_grad_v2(Tensor grad_unpermuted_tokens, Tensor sorted_indices, "
    "int permuted_tokens_size_0, ScalarType permuted_tokens_dtype, Tensor? probs=None, "
    "bool padded_mode=False, int[]? restore_shape=None, Tensor? permuted_tokens=None) "
    "-> (Tensor, Tensor)",
    "MoeTokenUnpermuteGrad",
    lambda a: (made(a.grad_unpermuted_tokens,
                    [a.permuted_tokens_size_0, a.grad_unpermuted_tokens.shape[1]],
                    a.permuted_tokens_dtype), _probs_grad(a)), adapt=_unpermute_grad_2,
    names={"grad_unpermuted_tokens": "unpermuted_tokens_grad", "permuted_tokens_size_0": None,
           "permuted_tokens_dtype": None})


def _mapped_rows(a: Arguments) -> Any:
    wanted = a.tokens.shape[0] if a.num_out_tokens is None else a.num_out_tokens
    part = a.routing_map.shape[1 if a.drop_and_pad else 0]
    return wanted // part * part


def _permute_mapped(a: Arguments) -> None:
    a.num_out_tokens = _mapped_rows(a)


row("npu_moe_token_permute_with_routing_map(Tensor tokens, Tensor routing_map, *, "
    "Tensor? probs=None, int? num_out_tokens=None, bool drop_and_pad=False) "
    "-> (Tensor, Tensor, Tensor)",
    "MoeTokenPermuteWithRoutingMap",
    lambda a: (made(a.tokens, [_mapped_rows(a), a.tokens.shape[1]]),
               made(a.tokens, [0], torch.float32) if a.probs is None
               else made(a.probs, [_mapped_rows(a)]),
               made(a.tokens, [_mapped_rows(a)], torch.int32)), adapt=_permute_mapped)

row("npu_moe_token_permute_with_routing_map_grad(Tensor permuted_token_out_grad, "
    "Tensor? probs_grad, Tensor sorted_indices, Tensor routing_map, SymInt experts_num, "
    "SymInt tokens_num, bool drop_and_pad) -> (Tensor, Tensor)",
    "MoeTokenPermuteWithRoutingMapGrad",
    lambda a: (made(a.permuted_token_out_grad, [a.tokens_num, a.permuted_token_out_grad.shape[1]]),
               made(a.sorted_indices, [0], torch.float32) if a.probs_grad is None
               else made(a.probs_grad, [a.tokens_num, a.experts_num])),
    names={"permuted_token_out_grad": "permuted_token_output_grad",
           "probs_grad": "permuted_probs_output_grad_optional",
           "routing_map": "routing_map_optional", "experts_num": "num_experts",
           "drop_and_pad": "padded_mode"})


def _unpermuted_mapped(a: Arguments) -> tuple:
    indices = like(a.sorted_indices)
    return (made(a.permuted_tokens, a.restore_shape), indices, like(indices),
            made(a.sorted_indices, [0], torch.float32) if a.probs is None
            else made(a.probs, a.sorted_indices.shape))


_UNPERMUTE_MAPPED = ("npu_moe_token_unpermute_with_routing_map(Tensor permuted_tokens, "
                     "Tensor sorted_indices, int[] restore_shape, *, Tensor? probs=None, "
                     "Tensor? routing_map=None, bool drop_and_pad=False) -> ")

row("_" + _UNPERMUTE_MAPPED + "(Tensor, Tensor, Tensor, Tensor)",
    "MoeTokenUnpermuteWithRoutingMap", _unpermuted_mapped)
row(_UNPERMUTE_MAPPED + "Tensor",
    "MoeTokenUnpermuteWithRoutingMap", lambda a: _unpermuted_mapped(a)[0],
    results=("unpermuted_tokens",))

row("npu_moe_token_unpermute_with_routing_map_grad(Tensor unpermuted_tokens_grad, "
    "Tensor out_index, Tensor permuted_token_id, Tensor? routing_map, Tensor? permuted_tokens, "
    "Tensor? probs, bool drop_and_pad, int[] restore_shape) -> (Tensor, Tensor)",
    "MoeTokenUnpermuteWithRoutingMapGrad",
    lambda a: (made(a.unpermuted_tokens_grad,
                    [a.out_index.shape[0], a.unpermuted_tokens_grad.shape[1]]),
               made(a.out_index, [0], torch.float32) if a.probs is None else like(a.probs)),
    names={"permuted_token_id": "permute_token_id"})


row("npu_moe_compute_expert_tokens(Tensor sorted_expert_for_source_row, int num_expert) -> Tensor",
    "MoeComputeExpertTokens",
    lambda a: made(a.sorted_expert_for_source_row, [a.num_expert]),
    names={"sorted_expert_for_source_row": "sorted_experts", "num_expert": "num_experts"})


def _is_plain_finalize(a: Arguments) -> bool:
    wanted = ("skip1", "bias", "scales", "export_for_source_row")
    return a.drop_pad_mode == 0 and all(a[name] is not None for name in wanted)

_FINALIZE = {"expanded_permuted_rows": "expanded_x", "skip1": "x1", "skip2": "x2",
             "expanded_src_to_dst_row": "expanded_row_idx"}


def _finalize(a: Arguments) -> None:
    a.plain = _is_plain_finalize(a)
    experts = a.pop("export_for_source_row")
    if a.plain:
        a.expanded_expert_idx = experts
        a.pop("drop_pad_mode")
        a.pop("k")
    else:
        a.expert_idx = experts
        a.k = 1 if a.k is None else a.k


def _finalize_meta(a: Arguments) -> torch.Tensor:
    for name in ("skip1", "scales"):
        if a[name] is not None:
            rows = a[name].shape[0]
            break
    else:
        rows = a.expanded_src_to_dst_row.shape[0] // (a.k or 1)
    return made(a.expanded_permuted_rows, [rows, a.expanded_permuted_rows.shape[-1]])


row("npu_moe_finalize_routing(Tensor expanded_permuted_rows, Tensor? skip1, Tensor? skip2, "
    "Tensor? bias, Tensor? scales, Tensor expanded_src_to_dst_row, "
    "Tensor? export_for_source_row, int? drop_pad_mode=0, int? k=1) -> Tensor",
    lambda a: "MoeFinalizeRouting" if a.plain else "MoeFinalizeRoutingV2", _finalize_meta,
    kinds=("MoeFinalizeRouting", "MoeFinalizeRoutingV2"), adapt=_finalize,
    names={**_FINALIZE, "plain": None})


def _re_routing(a: Arguments) -> None:
    a.tokens = bits(a.tokens, a.pop("tokens_dtype"))


def _re_routing_meta(a: Arguments) -> tuple:
    rows = a.tokens.shape[0]
    scales = (made(a.tokens, [rows], torch.float32) if a.per_token_scales is None
              else like(a.per_token_scales))
    return (like(a.tokens), scales, made(a.tokens, [rows], torch.int32),
            made(a.expert_token_num_per_rank, [a.expert_token_num_per_rank.shape[1]]))


row("npu_moe_re_routing(Tensor tokens, Tensor expert_token_num_per_rank, *, "
    "Tensor? per_token_scales=None, int expert_token_num_type=1, int idx_type=0, "
    "int? tokens_dtype=None) -> (Tensor, Tensor, Tensor, Tensor)",
    "MoeReRouting", _re_routing_meta, adapt=_re_routing)


row("npu_moe_update_expert(Tensor expert_ids, Tensor eplb_table, *, Tensor? expert_scales=None, "
    "Tensor? pruning_threshold=None, Tensor? active_mask=None, int local_rank_id=-1, "
    "int world_size=-1, int balance_mode=0) -> (Tensor, Tensor)",
    "MoeUpdateExpert",
    lambda a: (like(a.expert_ids), made(a.expert_ids, a.expert_ids.shape, torch.bool)))
