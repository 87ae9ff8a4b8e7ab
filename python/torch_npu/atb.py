"""torch_npu.atb: calls of the vendor's library for transformers, as calls of other operators."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence, Tuple

import torch

from .operators.attention import shift_of


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


def _mode(function: str, name: str, value: Optional[str], known: Mapping[str, Any]) -> Any:
    """What an argument that names a way means; None is the first one."""
    if value is None:
        return next(iter(known.values()))
    if value not in known:
        raise RuntimeError(f"{function}: {name}: expected {', '.join(known)}, seen {value!r}")
    return known[value]


# ---- latent attention ----


def npu_ring_mla(
        q_nope: torch.Tensor, q_rope: torch.Tensor, k_nope: torch.Tensor, k_rope: torch.Tensor,
        value: torch.Tensor, mask: Optional[torch.Tensor], seqlen: torch.Tensor, head_num: int,
        kv_head_num: int, *, pre_out: Optional[torch.Tensor] = None,
        prev_lse: Optional[torch.Tensor] = None, qk_scale: float = 1,
        kernel_type: Optional[str] = None, mask_type: Optional[str] = None,
        input_layout: Optional[str] = None, calc_type: Optional[str] = None,
        output: Optional[torch.Tensor] = None,
        softmax_lse: Optional[torch.Tensor] = None) -> Tuple[torch.Tensor, torch.Tensor]:
    """Attention of sequences one after the other, [tokens, heads, width], and the logarithms of its
    sums, [heads, tokens]; with calc_type "calc_type_default" joined with those of other keys.
    `seqlen`: lengths of queries and keys [2, B], or [B] of both. Sequences without keys keep what
    was before. "mask_type_triu" hides the keys after a query's place; `mask` is that triangle."""
    name = "npu_ring_mla"
    causal = _mode(name, "mask_type", mask_type, {"no_mask": False, "mask_type_triu": True})
    joins = _mode(name, "calc_type", calc_type,
                  {"calc_type_first_ring": False, "calc_type_default": True})
    _mode(name, "input_layout", input_layout, {"type_bsnd": None})
    _mode(name, "kernel_type", kernel_type,
          {"kernel_type_high_precision": None, "kernel_type_default": None})
    if joins and (pre_out is None or prev_lse is None):
        raise RuntimeError("npu_ring_mla: calc_type_default joins with pre_out and prev_lse, which "
                           "are missing")
    if seqlen.device.type != "cpu":
        raise RuntimeError("npu_ring_mla: seqlen: expected a tensor of the host")
    lengths = seqlen.to(torch.int64).expand(2, -1) if seqlen.dim() == 1 else seqlen.to(torch.int64)
    ends = lengths.cumsum(1).tolist()
    if k_nope.shape[0] == 0:  # the operator takes inputs without elements for absent ones
        out = q_nope.new_zeros(*q_nope.shape[:2], value.shape[-1])
        lse = torch.full(q_nope.shape[:2], -torch.inf, device=q_nope.device)
    else:
        out, lse = torch.ops.npu.npu_fused_infer_attention_score(
            q_nope, k_nope, value, query_rope=q_rope, key_rope=k_rope, input_layout="TND",
            num_heads=head_num, num_key_value_heads=kv_head_num, scale=qk_scale,
            actual_seq_lengths=ends[0], actual_seq_lengths_kv=ends[1], softmax_lse_flag=True,
            sparse_mode=2 if causal else 0)
        lse = lse.squeeze(-1)
    if joins:
        before = prev_lse.float().t().contiguous()
        joined, sums = torch.ops.npu.npu_attention_update(
            [before.flatten(), lse.flatten()],
            [pre_out.to(out.dtype).flatten(0, 1), out.flatten(0, 1)], 1)
        out, lse = joined.reshape(out.shape), sums.reshape(lse.shape)
    lse = lse.t().contiguous()
    if output is None or softmax_lse is None:
        return out, lse
    return output.copy_(out), softmax_lse.copy_(lse)


def _plain_cache(cache: torch.Tensor, heads: int) -> torch.Tensor:
    """A cache in NZ form, [blocks, heads * width / 16, rows, 16], as [blocks, rows, heads, width]"""
    return cache.transpose(1, 2).flatten(2).unflatten(2, (heads, -1))


def _rows_of(mask: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
    """A mask with a row for each token, [tokens, S2], for each sequence, [B, S1, S2]."""
    return torch.nn.utils.rnn.pad_sequence(list(mask.split(list(lengths))), batch_first=True)


def npu_multi_head_latent_attention(
        q_nope: torch.Tensor, q_rope: torch.Tensor, ctkv: torch.Tensor, k_rope: torch.Tensor,
        block_tables: torch.Tensor, context_lens: Any, q_headnum: int, qk_scale: float,
        kv_headnum: int, return_lse: Optional[bool] = None, *,
        mask: Optional[torch.Tensor] = None, qseqlen: Any = None,
        qk_descale: Optional[torch.Tensor] = None, pv_descale: Optional[torch.Tensor] = None,
        mask_type: Optional[str] = None, calc_type: Optional[str] = None,
        cache_mode: Optional[str] = None, workspace: Optional[torch.Tensor] = None,
        output: Optional[torch.Tensor] = None, lse: Optional[torch.Tensor] = None) -> Any:
    """Attention of queries [tokens, heads, width] to latent keys in pages, which are the values,
    too: ctkv [blocks, rows, heads, width] beside k_rope. A token is a sequence, unless calc_type is
    "calc_type_spec", which has `qseqlen` tokens in each. With `return_lse` also the logarithms of
    sums, [tokens, heads, 1], which "calc_type_ring" asks for."""
    name = "npu_multi_head_latent_attention"
    several = _mode(name, "calc_type", calc_type, {"calc_type_undefined": False,
                                                   "calc_type_spec": True, "calc_type_ring": False})
    shown = _mode(name, "mask_type", mask_type,
                  {"undefined": False, "mask_type_spec": True, "mask_type_free": False})
    folded = _mode(name, "cache_mode", cache_mode,
                   {"krope_ctkv": False, "nzcache": True, "int8_nzcache": None})
    if folded is None or mask_type == "mask_type_free" or qk_descale is not None \
            or pv_descale is not None:
        raise RuntimeError(f"{name}: cache_mode int8_nzcache, mask_type_free and descales are not "
                           "here; expected krope_ctkv or nzcache and mask_type_spec")
    if return_lse and calc_type != "calc_type_ring":
        raise RuntimeError(f"{name}: return_lse: expected calc_type 'calc_type_ring', seen "
                           f"{calc_type!r}")
    if folded:
        ctkv, k_rope = _plain_cache(ctkv, kv_headnum), _plain_cache(k_rope, kv_headnum)
    contexts = [int(each) for each in context_lens]
    queries = [int(each) for each in qseqlen] if several and qseqlen is not None else [1] * len(
        contexts)
    words = {}
    if shown:
        if mask is None:
            raise RuntimeError(f"{name}: mask_type_spec: mask is missing")
        rows = _rows_of(mask, queries) if mask.dim() == 2 and several else mask
        words["pse_shift"] = shift_of(rows, len(contexts), q_headnum)
    keys = ctkv.flatten(2)
    found, sums = torch.ops.npu.npu_fused_infer_attention_score(
        q_nope, keys, keys, query_rope=q_rope, key_rope=k_rope.flatten(2), input_layout="TND",
        num_heads=q_headnum, num_key_value_heads=kv_headnum, scale=qk_scale,
        block_table=block_tables, block_size=ctkv.shape[1],
        actual_seq_lengths=torch.tensor(queries).cumsum(0).tolist(),
        actual_seq_lengths_kv=contexts, softmax_lse_flag=bool(return_lse), **words)
    found = found if output is None else output.copy_(found)
    if return_lse is None:
        return found
    if not return_lse:
        return found, torch.empty(0, dtype=q_rope.dtype, device=q_rope.device)
    sums = sums.to(q_rope.dtype)
    return found, sums if lse is None else lse.copy_(sums)


def _npu_multi_head_latent_attention_get_workspace(q_nope: torch.Tensor, *args: Any,
                                                   **kwargs: Any) -> torch.Tensor:
    """The engine plans its own memory: a workspace of one byte."""
    return torch.empty(1, dtype=torch.uint8, device=q_nope.device)
