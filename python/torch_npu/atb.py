"""torch_npu.atb: calls of the vendor's library for transformers, as calls of other operators."""

from __future__ import annotations

from typing import Optional, Tuple

import torch


def npu_paged_cache_load(
        key_cache: torch.Tensor, value_cache: torch.Tensor, block_table: torch.Tensor,
        context_lens: torch.Tensor, *, seq_starts: Optional[torch.Tensor] = None,
        cumsum: bool = False, key: Optional[torch.Tensor] = None,
        value: Optional[torch.Tensor] = None) -> Tuple[torch.Tensor, torch.Tensor]:
    """Tokens of sequences in pages one after the other. `context_lens`: their lengths or, with
    `cumsum`, where each begins and the last ends; `seq_starts`: a token in the page with which each
    begins. Without `key` and `value`, which are written, there are new ones."""
    if (key is None) != (value is None):
        raise RuntimeError("npu_paged_cache_load: expected key and value or neither of them")
    if key is None:
        lengths = context_lens.tolist()
        tokens = (lengths[-1] if lengths else 0) if cumsum else sum(lengths)
        key, value = (torch.empty([tokens, *cache.shape[2:]], dtype=cache.dtype,
                                  device=cache.device) for cache in (key_cache, value_cache))
    torch.ops.npu.npu_gather_pa_kv_cache(key_cache, value_cache, block_table, context_lens, key,
                                         value, seq_offset=seq_starts, is_seq_lens_cumsum=cumsum)
    return key, value


def _mapped(experts: torch.Tensor, counts: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Of the copies that an expert has, each token takes the next one."""
    turn = torch.arange(experts.shape[0], device=experts.device)[:, None]
    return table[experts, turn % counts.clamp(min=1)[experts]]


def npu_fused_add_topk_div(
        x: torch.Tensor, add_num: torch.Tensor, *, mapping_num: Optional[torch.Tensor] = None,
        mapping_table: Optional[torch.Tensor] = None, activation_type: Optional[str] = None,
        group_num: int = 1, group_topk: int = 1, n: int = 1, k: int = 1, is_norm: bool = True,
        scale: float = 1, enable_expert_mapping: bool = False, y: Optional[torch.Tensor] = None,
        indices: Optional[torch.Tensor] = None) -> Tuple[torch.Tensor, torch.Tensor]:
    """The experts of each token of x [tokens, experts], and how much they count: the k largest of
    sigmoid(x) + add_num in the group_topk groups whose n largest have the largest sums; what
    counts is sigmoid(x), with is_norm divided by its sum and times scale."""
    if activation_type not in (None, "activation_sigmoid"):
        raise RuntimeError("npu_fused_add_topk_div: activation_type: expected "
                           f"'activation_sigmoid', seen {activation_type!r}")
    tokens, experts = x.shape
    if group_num < 1 or experts % group_num or not 1 <= n <= experts // group_num:
        raise RuntimeError(f"npu_fused_add_topk_div: {experts} experts in group_num {group_num} "
                           f"groups, of which n {n} count; expected groups of n or more")
    if not 1 <= group_topk <= group_num or not 1 <= k <= experts:
        raise RuntimeError(f"npu_fused_add_topk_div: group_topk {group_topk} of {group_num} groups "
                           f"and k {k} of {experts} experts; expected 1 or more, and no more")
    shares = x.float().sigmoid()
    scores = (shares + add_num.float()).reshape(tokens, group_num, -1)
    order = scores.topk(n).values.sum(-1).sort(descending=True, stable=True).indices
    left_out = torch.zeros(tokens, group_num, dtype=torch.bool, device=x.device)
    left_out.scatter_(1, order[:, group_topk:], True)
    scores = scores.masked_fill(left_out[..., None], 0).reshape(tokens, experts)
    chosen = scores.sort(descending=True, stable=True).indices[:, :k]
    counted = shares.gather(1, chosen)
    if is_norm:
        counted = counted / counted.sum(-1, keepdim=True) * scale
    if enable_expert_mapping:
        if mapping_num is None or mapping_table is None:
            raise RuntimeError("npu_fused_add_topk_div: enable_expert_mapping needs mapping_num "
                               "and mapping_table")
        chosen = _mapped(chosen, mapping_num.long(), mapping_table)
    chosen = chosen.int()
    if y is None or indices is None:
        return counted, chosen
    return y.copy_(counted), indices.copy_(chosen)
