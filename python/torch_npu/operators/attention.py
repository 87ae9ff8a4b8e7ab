"""Attention, with and without a cache in pages."""

from __future__ import annotations

import math
from typing import Any, List, Tuple

import torch

from .._table import FUNCTIONS, Arguments, bits, int4, like, made, row, typed
from .._types import held_dtype, number
from ..formats import Format, get_npu_format

# ---- training ----

_SCORE = ("Tensor query, Tensor key, Tensor value, %sint head_num, str input_layout, %s"
          "Tensor? pse=None, Tensor? padding_mask=None, Tensor? atten_mask=None, ")
_TOKENS = ("int pre_tockens=2147483647, int next_tockens=2147483647, int inner_precise=0, ")
_LENGTHS = ("int[]? prefix=None, int[]? actual_seq_qlen=None, int[]? actual_seq_kvlen=None, "
            "int sparse_mode=0, bool gen_mask_parallel=True, bool sync=False, "
            'str softmax_layout="", Tensor? sink=None')
_LENGTHS_3 = _LENGTHS.replace("int[]? actual", "Tensor? actual")


def _heads(query: torch.Tensor, layout: str, heads: int) -> List[Any]:
    """Batch, heads, length of a query; of TND: tokens and heads."""
    sizes = query.shape
    return {"BSH": lambda: [sizes[0], heads, sizes[1]],
            "SBH": lambda: [sizes[1], heads, sizes[0]],
            "BNSD": lambda: [sizes[0], sizes[1], sizes[2]],
            "BSND": lambda: [sizes[0], sizes[2], sizes[1]],
            "TND": lambda: [sizes[0], sizes[1]]}[layout]()


def _check_layout(layout: str) -> None:
    if layout not in ("BSH", "SBH", "BNSD", "BSND", "TND"):
        raise ValueError(f"input_layout: expected BSH, SBH, BNSD, BSND or TND, seen {layout!r}")


def _gen_mask(a: Arguments) -> None:
    if not 0 <= a.p <= 1:
        raise ValueError(f"p: expected a probability from 0 to 1, seen {a.p}")
    dtype = a.self.dtype if a.self.is_floating_point() else torch.float32
    a.prob = torch.tensor([1 - a.p], dtype=dtype)
    a.size = [math.prod(a.size)]
    a.seed, a.seed1, a.offset = [a.seed], [0], [0, a.offset]


def _mask_bytes(elements: Any) -> Any:
    return (elements + 127) // 128 * 16


row("_npu_dropout_gen_mask.Tensor(Tensor self, int[] size, float p, int seed, int offset, *, "
    "bool? parallel=True, bool? sync=None) -> Tensor",
    "StatelessDropOutGenMask",
    lambda a: made(a.self, [_mask_bytes(math.prod(a.size))], torch.uint8), adapt=_gen_mask,
    names={"self": None, "size": "shape", "p": None, "parallel": None, "sync": None},
    constants=("size",))


def _score_count(a: Arguments) -> int:
    batch, heads, rows = _heads(a.query, a.input_layout, a.head_num)
    return batch * heads * rows * a.key.shape[{"SBH": 0, "BNSD": 2}.get(a.input_layout, 1)]


def _next_seed() -> Tuple[int, int]:
    """A seed and an offset of torch's generator, whose state repeats them. As on a device, a
    generator that has just got its seed gives this one and the offset 0."""
    seed, state = torch.initial_seed(), torch.get_rng_state()
    is_fresh = torch.equal(state, torch.Generator().manual_seed(seed).get_state())
    offset = int(torch.randint(1 << 31, ()))
    return seed & ((1 << 63) - 1), 0 if is_fresh else offset


def _drop(a: Arguments) -> None:
    """Sets `drawn`: seed, offset and number of elements of the mask, which the gradient takes to
    make the same one."""
    a.drawn = (0, 0, 0)
    given = a.get("dropout_mask")
    if a.keep_prob == 1.0:
        return
    if a.input_layout == "TND":
        raise NotImplementedError(f"torch_npu: npu_fusion_attention: keep_prob {a.keep_prob}: there "
                                  "is no dropout in the layout TND here; expected 1.0")
    seed, offset = (int(a.get(name) or 0) for name in ("seed", "offset"))
    count = _score_count(a)
    if given is None and "dy" not in a and not (seed or offset):
        seed, offset = _next_seed()
    a.drawn = (seed, offset, count)
    if given is not None:
        return
    a.dropout_mask = torch.ops.npu._npu_dropout_gen_mask(a.query, [count], 1 - a.keep_prob, seed,
                                                         offset)


def _fusion(a: Arguments) -> None:
    _check_layout(a.input_layout)
    _drop(a)
    for name in ("gen_mask_parallel", "sync", "seed", "offset", "numels"):
        a.pop(name, None)


def _fusion_3(a: Arguments) -> None:
    _fusion(a)
    for name in ("actual_seq_qlen", "actual_seq_kvlen"):
        a[name] = None if a[name] is None else a[name].to(torch.int64)


def _output_of(a: Arguments) -> torch.Tensor:
    """The queries' places with the values' width."""
    shape = list(a.query.shape)
    if a.input_layout in ("BSH", "SBH"):
        key_heads = a.key.shape[-1] // (a.query.shape[-1] // a.head_num)
        shape[-1] = a.head_num * (a.value.shape[-1] // key_heads)
    else:
        shape[-1] = a.value.shape[-1]
    return made(a.query, shape)


def _fusion_meta(a: Arguments) -> tuple:
    _check_layout(a.input_layout)
    statistics = [*_heads(a.query, a.input_layout, a.head_num), 8]
    return (_output_of(a), made(a.query, statistics, torch.float32),
            made(a.query, statistics, torch.float32), made(a.query, [0]), 0, 0, 0)


def _fusion_results(a: Arguments, outputs: dict) -> tuple:
    return (outputs["attention_out"], outputs["softmax_max"], outputs["softmax_sum"],
            outputs["softmax_out"], *a.drawn)


_FUSION_NAMES = {"drawn": None, "pse": "real_shift", "scale": "scale_value",
                 "dropout_mask": "drop_mask", "softmax_layout": "softmax_out_layout"}

row("npu_fusion_attention(" + _SCORE % ("", "") + "float scale=1., float keep_prob=1., " + _TOKENS
    + _LENGTHS + ", Tensor? dropout_mask=None, int seed=0, int offset=0) "
    "-> (Tensor, Tensor, Tensor, Tensor, int, int, int)",
    "FlashAttentionScore", _fusion_meta, names=_FUSION_NAMES, adapt=_fusion,
    results=_fusion_results)


row("npu_fusion_attention_v2(Tensor query, Tensor key, Tensor value, int head_num, "
    "str input_layout, *, Tensor? pse=None, Tensor? padding_mask=None, Tensor? atten_mask=None, "
    "Tensor? query_rope=None, Tensor? key_rope=None, float scale=1., float keep_prob=1., "
    "int pre_tokens=2147483647, int next_tokens=2147483647, int inner_precise=0, "
    "int[]? prefix=None, int[]? actual_seq_qlen=None, int[]? actual_seq_kvlen=None, "
    "int sparse_mode=0, bool gen_mask_parallel=True, bool sync=False, int pse_type=1, "
    "int[]? q_start_idx=None, int[]? kv_start_idx=None, str softmax_layout=\"\", "
    "Tensor? sink=None, Tensor? dropout_mask=None, int seed=0, int offset=0) "
    "-> (Tensor, Tensor, Tensor, Tensor, int, int, int)",
    "FlashAttentionScore", _fusion_meta, adapt=_fusion, results=_fusion_results,
    names={**_FUSION_NAMES, "pre_tokens": "pre_tockens", "next_tokens": "next_tockens"})


def _fusion_meta_3(a: Arguments) -> tuple:
    numbers = made(a.query, [1], torch.int64)
    return (*_fusion_meta(a)[:4], numbers, like(numbers))


def _fusion_results_3(a: Arguments, outputs: dict) -> tuple:
    seed, offset, _ = a.drawn
    return (*_fusion_results(a, outputs)[:4], torch.tensor([seed]), torch.tensor([offset]))


# Its lengths are tensors, and what a seed would be are two more.
row("npu_fusion_attention_v3(" + _SCORE % ("", "") + "float scale=1., float keep_prob=1., " + _TOKENS
    + _LENGTHS_3 + ") -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    "FlashAttentionScore", _fusion_meta_3, names=_FUSION_NAMES, adapt=_fusion_3,
    results=_fusion_results_3)


def _fusion_grad_meta(a: Arguments) -> tuple:
    pse = made(a.query, [0]) if a.pse is None else like(a.pse)
    sink = made(a.query, [0], torch.float32) if a.sink is None else like(a.sink, torch.float32)
    return like(a.query), like(a.key), like(a.value), pse, sink


# The mask is what a forward call was given; without one the seed and the offset make it.
_GRAD_END = ", Tensor? dropout_mask=None) -> (Tensor, Tensor, Tensor, Tensor, "
_GRAD_NAMES = {"drawn": None, "pse": "pse_shift", "dropout_mask": "drop_mask",
               "softmax_layout": "softmax_in_layout"}

row("npu_fusion_attention_grad(" + _SCORE % ("Tensor dy, ", "*, ")
    + "Tensor? softmax_max=None, Tensor? softmax_sum=None, Tensor? softmax_in=None, "
    "Tensor? attention_in=None, float scale_value=1., float keep_prob=1., " + _TOKENS
    + "int seed=0, int offset=0, int numels=0, " + _LENGTHS + _GRAD_END + "Tensor)",
    "FlashAttentionScoreGrad", _fusion_grad_meta, adapt=_fusion, names=_GRAD_NAMES,
    results=("dq", "dk", "dv", "dpse", "dsink"))


row("npu_fusion_attention_grad_v3(" + _SCORE % ("Tensor dy, ", "*, ")
    + "Tensor? softmax_max=None, Tensor? softmax_sum=None, Tensor? softmax_in=None, "
    "Tensor? attention_in=None, float scale_value=1., float keep_prob=1., " + _TOKENS
    + "Tensor? seed=None, Tensor? offset=None, " + _LENGTHS_3
    + ") -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    "FlashAttentionScoreGrad", _fusion_grad_meta, adapt=_fusion_3, names=_GRAD_NAMES,
    results=("dq", "dk", "dv", "dpse", "dsink"))


def _fusion_grad_meta_2(a: Arguments) -> tuple:
    ropes = (made(a.query, [0]) if each is None else like(each)
             for each in (a.query_rope, a.key_rope))
    *first, sink = _fusion_grad_meta(a)
    return (*first, *ropes, sink)


row("npu_fusion_attention_grad_v2(" + _SCORE % ("Tensor dy, ", "*, ")
    + "Tensor? softmax_max=None, Tensor? softmax_sum=None, Tensor? softmax_in=None, "
    "Tensor? attention_in=None, Tensor? query_rope=None, Tensor? key_rope=None, "
    "float scale_value=1., float keep_prob=1., " + _TOKENS.replace("tockens", "tokens")
    + "int seed=0, int offset=0, int numels=0, "
    + _LENGTHS.replace("bool sync=False, ", "bool sync=False, int pse_type=1, "
                       "int[]? q_start_idx=None, int[]? kv_start_idx=None, ")
    + _GRAD_END + "Tensor, Tensor, Tensor)",
    "FlashAttentionScoreGrad", _fusion_grad_meta_2, adapt=_fusion,
    names={**_GRAD_NAMES, "pre_tokens": "pre_tockens", "next_tokens": "next_tockens"},
    results=("dq", "dk", "dv", "dpse", "dq_rope", "dk_rope", "dsink"))

# ---- inference ----


def _out_shape(query: torch.Tensor, value: torch.Tensor, layout: str, heads: int, kv_heads: int,
               paged: bool) -> List[Any]:
    """The result of an attention: the queries' places with the values' width. `layout` may name
    another one for the result: "BNSD_BSND"."""
    given, _, wanted = layout.partition("_")
    wanted = wanted or given
    shape = list(query.shape)
    kv_heads = kv_heads or heads
    if given in ("BSH", "SH", "NSD", "BNSD", "BSND", "TND", "NTD"):
        if given in ("BSH", "SH"):
            shape[-1] = query.shape[-1] if paged else heads * (value.shape[-1] // kv_heads)
        elif not paged:
            shape[-1] = value.shape[-1]
    if wanted == given:
        return shape
    axes = {letter: size for letter, size in zip(given, shape)}
    if wanted in ("BSH",):
        return [axes["B"], axes["S"], axes["N"] * axes["D"]]
    if all(letter in axes for letter in wanted):
        return [axes[letter] for letter in wanted]
    raise ValueError(f"input_layout: there is no form {layout!r} here")


def _result_type(a: Arguments, asked: Any = None) -> torch.dtype:
    if a.get("quant_scale2") is not None:
        return held_dtype(asked, torch.int8)
    if a.query.dtype == torch.int8:
        return torch.float16
    return a.query.dtype


def _prompt_meta(a: Arguments) -> torch.Tensor:
    shape = _out_shape(a.query, a.value, a.input_layout, a.num_heads, a.num_key_value_heads, False)
    return made(a.query, shape, _result_type(a))


def _prompt(a: Arguments) -> None:
    if a.atten_mask is not None and a.atten_mask.dtype == torch.float16:
        a.atten_mask = a.atten_mask.to(torch.uint8)
    if 10 <= a.sparse_mode <= 14:  # the vendor's way to ask for inner_precise 0
        a.inner_precise = 0
        a.sparse_mode -= 10


row("npu_prompt_flash_attention(Tensor query, Tensor key, Tensor value, *, "
    "Tensor? padding_mask=None, Tensor? atten_mask=None, Tensor? pse_shift=None, "
    "int[]? actual_seq_lengths=None, Tensor? deq_scale1=None, Tensor? quant_scale1=None, "
    "Tensor? deq_scale2=None, Tensor? quant_scale2=None, Tensor? quant_offset2=None, "
    "int num_heads=1, float scale_value=1.0, int pre_tokens=2147483647, int next_tokens=0, "
    'str input_layout="BSH", int num_key_value_heads=0, int[]? actual_seq_lengths_kv=None, '
    "int sparse_mode=0) -> Tensor",
    "PromptFlashAttention", _prompt_meta, names={"padding_mask": None}, adapt=_prompt)


def _incre_meta(a: Arguments) -> torch.Tensor:
    shape = _out_shape(a.query, a.value, a.input_layout, a.num_heads, a.num_key_value_heads,
                       a.block_table is not None)
    return made(a.query, shape, _result_type(a))


row("npu_incre_flash_attention(Tensor query, Tensor key, Tensor value, *, "
    "Tensor? padding_mask=None, Tensor? atten_mask=None, Tensor? pse_shift=None, "
    "SymInt[]? actual_seq_lengths=None, Tensor? antiquant_scale=None, "
    "Tensor? antiquant_offset=None, Tensor? block_table=None, Tensor? dequant_scale1=None, "
    "Tensor? quant_scale1=None, Tensor? dequant_scale2=None, Tensor? quant_scale2=None, "
    "Tensor? quant_offset2=None, Tensor? kv_padding_size=None, int num_heads=1, "
    'float scale_value=1.0, str input_layout="BSH", int num_key_value_heads=0, '
    "int block_size=0, int inner_precise=1) -> Tensor",
    "IncreFlashAttention", _incre_meta, names={"padding_mask": None})


def _fused(a: Arguments) -> None:
    for name in ("key", "value", "key_shared_prefix", "value_shared_prefix"):
        a[name] = int4(a.get(name))


def _fused_meta(a: Arguments, lse: bool, out_type: Any = None) -> tuple:
    heads = a.num_heads
    shape = _out_shape(a.query, a.value, a.input_layout, heads, a.num_key_value_heads,
                       a.block_table is not None)
    return made(a.query, shape, _result_type(a, out_type)), _lse(a.query, a.input_layout, heads, lse)


def _lse(query: torch.Tensor, layout: str, heads: int, wanted: bool) -> torch.Tensor:
    if not wanted:
        return made(query, [1], torch.float32)
    given = layout.partition("_")[0]
    sizes = query.shape
    if given in ("TND", "NTD"):
        axes = dict(zip(given, sizes))
        return made(query, [axes["T"], axes["N"], 1], torch.float32)
    if given == "BSH":
        shape = [sizes[0], heads, sizes[1]]
    elif given == "BSND":
        shape = [sizes[0], sizes[2], sizes[1]]
    else:
        shape = list(sizes[:-1])
    return made(query, [*shape, 1], torch.float32)


_FUSED = ("(Tensor query, Tensor key, Tensor value, *, Tensor? pse_shift=None, "
          "Tensor? atten_mask=None, SymInt[]? actual_seq_lengths=None, "
          "SymInt[]? actual_seq_lengths_kv=None, Tensor? dequant_scale1=None, "
          "Tensor? quant_scale1=None, Tensor? dequant_scale2=None, Tensor? quant_scale2=None, "
          "Tensor? quant_offset2=None, Tensor? antiquant_scale=None, "
          "Tensor? antiquant_offset=None, Tensor? key_antiquant_scale=None, "
          "Tensor? key_antiquant_offset=None, Tensor? value_antiquant_scale=None, "
          "Tensor? value_antiquant_offset=None, Tensor? block_table=None, "
          "Tensor? query_padding_size=None, Tensor? kv_padding_size=None, "
          "Tensor? key_shared_prefix=None, Tensor? value_shared_prefix=None, "
          "SymInt[]? actual_shared_prefix_len=None, Tensor? query_rope=None, "
          "Tensor? key_rope=None, Tensor? key_rope_antiquant_scale=None, int num_heads=1, "
          "float scale=1.0, int pre_tokens=2147483647, int next_tokens=2147483647, "
          'str input_layout="BSH", int num_key_value_heads=0, int sparse_mode=0, '
          "int inner_precise=0, int block_size=0, int antiquant_mode=0, "
          "int key_antiquant_mode=0, int value_antiquant_mode=0, bool softmax_lse_flag=False%s)")
_OUT = ", Tensor? workspace=None, Tensor(a!) attention_out, Tensor(b!) softmax_lse"
_OUT_NAMES = {"workspace": None, "attention_out": None, "softmax_lse": None}


def _into_out(a: Arguments, outputs: dict) -> tuple:
    a.attention_out.copy_(outputs["attention_out"])
    lse = outputs["softmax_lse"]
    if a.softmax_lse.shape == lse.shape:
        a.softmax_lse.copy_(lse)
    return a.attention_out, a.softmax_lse


row("npu_fused_infer_attention_score" + _FUSED % "" + " -> (Tensor, Tensor)",
    "FusedInferAttentionScore", lambda a: _fused_meta(a, a.softmax_lse_flag), adapt=_fused)
row("npu_fused_infer_attention_score.out" + _FUSED % _OUT + " -> (Tensor(a!), Tensor(b!))",
    "FusedInferAttentionScore", lambda a: (a.attention_out, a.softmax_lse), adapt=_fused,
    names=_OUT_NAMES, results=_into_out)


def _workspace(a: Arguments) -> torch.Tensor:
    """The engine plans its own memory: a workspace of one byte."""
    return made(a.query, [1], torch.uint8)


row("_npu_fused_infer_attention_score_get_max_workspace" + _FUSED % "" + " -> Tensor",
    "FusedInferAttentionScore", _workspace, adapt=_fused,
    results=lambda a, outputs: _workspace(a))

_FUSED_2 = ("(Tensor query, Tensor key, Tensor value, *, Tensor? query_rope=None, "
            "Tensor? key_rope=None, Tensor? pse_shift=None, Tensor? atten_mask=None, "
            "SymInt[]? actual_seq_qlen=None, SymInt[]? actual_seq_kvlen=None, "
            "Tensor? block_table=None, Tensor? dequant_scale_query=None, "
            "Tensor? dequant_scale_key=None, Tensor? dequant_offset_key=None, "
            "Tensor? dequant_scale_value=None, Tensor? dequant_offset_value=None, "
            "Tensor? dequant_scale_key_rope=None, Tensor? quant_scale_out=None, "
            "Tensor? quant_offset_out=None, Tensor? quant_scale_p=None, "
            "Tensor? learnable_sink=None, int num_query_heads=1, int num_key_value_heads=0, "
            "float softmax_scale=1.0, int pre_tokens=2147483647, int next_tokens=2147483647, "
            'str input_layout="BSH", int sparse_mode=0, int block_size=0, '
            "int query_quant_mode=0, int key_quant_mode=0, int value_quant_mode=0, "
            "int inner_precise=0, bool return_softmax_lse=False, int? query_dtype=None, "
            "int? key_dtype=None, int? value_dtype=None, int? query_rope_dtype=None, "
            "int? key_rope_dtype=None, int? key_shared_prefix_dtype=None, "
            "int? value_shared_prefix_dtype=None, int? dequant_scale_query_dtype=None, "
            "int? dequant_scale_key_dtype=None, int? dequant_scale_value_dtype=None, "
            "int? dequant_scale_key_rope_dtype=None, int? out_dtype=None%s)")
_FUSED_2_NAMES = {
    "actual_seq_qlen": "actual_seq_lengths", "actual_seq_kvlen": "actual_seq_lengths_kv",
    "quant_scale_p": "quant_scale1", "quant_scale_out": "quant_scale2",
    "quant_offset_out": "quant_offset2", "dequant_scale_key": "key_antiquant_scale",
    "dequant_offset_key": "key_antiquant_offset", "dequant_scale_value": "value_antiquant_scale",
    "dequant_offset_value": "value_antiquant_offset",
    "dequant_scale_key_rope": "key_rope_antiquant_scale", "num_query_heads": "num_heads",
    "softmax_scale": "scale", "return_softmax_lse": "softmax_lse_flag",
    "key_quant_mode": "key_antiquant_mode", "value_quant_mode": "value_antiquant_mode",
}
_TYPED = ("query", "key", "value", "query_rope", "key_rope", "dequant_scale_query",
          "dequant_scale_key", "dequant_scale_value", "dequant_scale_key_rope")


def _fused_2(a: Arguments) -> None:
    typed(a, *_TYPED)
    a.pop("key_shared_prefix_dtype")
    a.pop("value_shared_prefix_dtype")
    if a.out_dtype is not None:
        a.out_dtype = number(a.out_dtype)
    for name in ("key", "value"):
        if isinstance(a[name], torch.Tensor):
            a[name] = int4(a[name])


def _fused_2_meta(a: Arguments) -> tuple:
    plain = Arguments(a)
    plain.num_heads, plain.quant_scale2 = a.num_query_heads, a.quant_scale_out
    return _fused_meta(plain, a.return_softmax_lse, a.out_dtype)


row("npu_fused_infer_attention_score_v2" + _FUSED_2 % "" + " -> (Tensor, Tensor)",
    "FusedInferAttentionScore", _fused_2_meta, names=_FUSED_2_NAMES, adapt=_fused_2)
row("npu_fused_infer_attention_score_v2.out" + _FUSED_2 % _OUT + " -> (Tensor(a!), Tensor(b!))",
    "FusedInferAttentionScore", lambda a: (a.attention_out, a.softmax_lse), adapt=_fused_2,
    names={**_FUSED_2_NAMES, **_OUT_NAMES}, results=_into_out)
row("_npu_fused_infer_attention_score_v2_get_max_workspace" + _FUSED_2 % "" + " -> Tensor",
    "FusedInferAttentionScore", _workspace, names=_FUSED_2_NAMES, adapt=_fused_2,
    results=lambda a, outputs: _workspace(a))

row("npu_attention_update(Tensor[] lse, Tensor[] local_out, int update_type) -> (Tensor, Tensor)",
    "AttentionUpdate",
    lambda a: (like(a.local_out[0]),
               like(a.lse[0]) if a.update_type == 1 else made(a.lse[0], [0])),
    names={"local_out": "go"}, adapt=lambda a: a.update(sp=len(a.lse)))

# ---- the cache ----

_PA = ("(Tensor key, Tensor value, %s key_cache, %s value_cache, Tensor slot_mapping, *, "
       "Tensor? compress_lens=None, Tensor? compress_seq_offsets=None, Tensor? seq_lens=None, "
       "str? cache_mode='PA_NZ') -> %s")
_PA_NAMES = {"compress_seq_offsets": "compress_seq_offset"}


def _pa_mode(a: Arguments) -> None:
    """PA_NZ is the vendor's default, which a cache that has the heads of the keys and was not cast
    to that format does not mean."""
    looks = a.key_cache.dim() == 4 and a.key_cache.shape[2:] == a.key.shape[-2:]
    if a.cache_mode == "PA_NZ" and looks and not _is_nz(a.key_cache):
        a.cache_mode = "Norm"


def _is_nz(cache: torch.Tensor) -> bool:
    return get_npu_format(cache) == Format.FRACTAL_NZ


row("npu_scatter_pa_kv_cache" + _PA % ("Tensor(a!)", "Tensor(b!)", "()"),
    "ScatterPaKvCache", lambda a: None, names=_PA_NAMES, adapt=_pa_mode, results=())
row("npu_scatter_pa_kv_cache_functional" + _PA % ("Tensor", "Tensor", "(Tensor, Tensor)"),
    "ScatterPaKvCache", lambda a: (like(a.key_cache), like(a.value_cache)), names=_PA_NAMES,
    adapt=_pa_mode, copied=("key_cache", "value_cache"))


_GATHER = ("(Tensor key_cache, Tensor value_cache, Tensor block_tables, Tensor seq_lens, %s key, "
           "%s value, *, Tensor? seq_offset=None, bool is_seq_lens_cumsum=False) -> %s")


def _gather_mode(a: Arguments) -> None:
    """The format of the cache says how it lies, and so does a shape without the heads."""
    looks = a.key_cache.dim() == 4 and a.key_cache.shape[2:] == a.key.shape[-2:]
    a.cache_mode = "PA_NZ" if _is_nz(a.key_cache) or not looks else "Norm"


row("npu_gather_pa_kv_cache" + _GATHER % ("Tensor(a!)", "Tensor(b!)", "()"),
    "GatherPaKvCache", lambda a: None, adapt=_gather_mode, results=())
row("npu_gather_pa_kv_cache_functional" + _GATHER % ("Tensor", "Tensor", "(Tensor, Tensor)"),
    "GatherPaKvCache", lambda a: (like(a.key), like(a.value)), adapt=_gather_mode,
    copied=("key", "value"))

# ---- one query of each sequence, by the library of transformers ----

_PAGED = ("Tensor query, Tensor key_cache, Tensor value_cache, int num_kv_heads, int num_heads, "
          "float scale_value, Tensor block_table, Tensor context_lens, Tensor(a!) out")


def _paged(a: Arguments) -> None:
    a.query = a.query.unsqueeze(1)
    a.key, a.value = a.pop("key_cache").flatten(2), a.pop("value_cache").flatten(2)
    a.block_size = a.key.shape[1]
    a.actual_seq_lengths_kv = a.pop("context_lens").to(torch.int64)
    a.query = a.query.flatten(2)
    a.input_layout = "BSH"


def _write_attention(a: Arguments, outputs: dict) -> None:
    a.out.copy_(outputs["attention_out"].reshape(a.out.shape))


row("_npu_paged_attention(" + _PAGED + ", *, Tensor? workspace=None) -> ()",
    "FusedInferAttentionScore", lambda a: None, adapt=_paged,
    names={"num_kv_heads": "num_key_value_heads", "scale_value": "scale", "out": None,
           "workspace": None},
    results=_write_attention)


def _paged_mla(a: Arguments) -> None:
    """The values are the first elements of the keys."""
    a.value_cache = a.key_cache[..., :a.pop("mla_vheadsize")]
    _paged(a)


row("_npu_paged_attention_mla(Tensor query, Tensor key_cache, int num_kv_heads, int num_heads, "
    "float scale_value, Tensor block_table, Tensor context_lens, int mla_vheadsize, "
    "Tensor(a!) out) -> ()",
    "FusedInferAttentionScore", lambda a: None, adapt=_paged_mla, results=_write_attention,
    names={"num_kv_heads": "num_key_value_heads", "scale_value": "scale", "out": None})


def _unpad(a: Arguments) -> None:
    """Sequences one after the other, of which `seq_len` has the lengths."""
    a.input_layout = "TND"
    ends = a.pop("seq_len").to(torch.int64).cumsum(0)
    a.actual_seq_lengths, a.actual_seq_lengths_kv = ends, ends.clone()


def shift_of(mask: torch.Tensor, batch: int, heads: int) -> torch.Tensor:
    """What a mask of the library of transformers adds to scaled scores, [B or 1, N or 1, S1, S2].
    It comes as [S1, S2], [B, S1, S2], [N, S1, S2] or [B, N, S1, S2]. A 1 in bfloat16 hides, as the
    kernels for that type multiply it; other values are added. Errors: ValueError."""
    shift = mask.float()
    if mask.dtype == torch.bfloat16:
        shift = shift.masked_fill(mask == 1, -math.inf)
    if shift.dim() == 3:
        shift = shift.unsqueeze(0 if shift.shape[0] not in (1, batch) else 1)
    shift = shift.reshape((1,) * (4 - shift.dim()) + shift.shape)
    if shift.dim() != 4 or shift.shape[0] not in (1, batch) or shift.shape[1] not in (1, heads):
        raise ValueError(f"mask: expected [S1, S2], [B, S1, S2], [N, S1, S2] or [B, N, S1, S2] for "
                         f"{batch} sequences and {heads} heads, seen {list(mask.shape)}")
    return shift


def _masked(a: Arguments) -> None:
    longest = int(a.seq_len.max()) if a.seq_len.numel() else 0
    if min(a.mask.shape[-2:]) < longest:
        raise ValueError(f"mask: expected {longest} rows and columns, as many as the longest "
                         f"sequence has, seen {list(a.mask.shape)}")
    a.pse_shift = shift_of(a.pop("mask"), a.seq_len.numel(), a.num_heads)
    tokens = a.query.shape[0]
    a.query = a.query.reshape(tokens, a.num_heads, -1)
    a.key, a.value = (each.reshape(each.shape[0], a.num_kv_heads, -1) for each in (a.key, a.value))
    _unpad(a)


row("_npu_flash_attention(Tensor query, Tensor key, Tensor value, Tensor mask, Tensor seq_len, "
    "float scale_value, int num_heads, int num_kv_heads, Tensor(a!) out) -> ()",
    "FusedInferAttentionScore", lambda a: None, adapt=_masked, results=_write_attention,
    names={"num_kv_heads": "num_key_value_heads", "scale_value": "scale", "out": None})

_UNPAD = ("(Tensor query, Tensor key, Tensor value, Tensor seq_len, float scale_value, "
          "int num_heads, int num_kv_heads, %sTensor(a!) out) -> ()")

for _version, _more in (("", ""), ("_v2", "*, int? kernel_type=0, ")):
    row("_npu_flash_attention_unpad" + _version + _UNPAD % _more,
        "FusedInferAttentionScore", lambda a: None, adapt=_unpad, results=_write_attention,
        names={"num_kv_heads": "num_key_value_heads", "scale_value": "scale", "out": None,
               "kernel_type": None})


def _paged_workspace(*_: Any, **__: Any) -> torch.Tensor:
    """Memory to work in is the engine's, so there is one byte to hand around."""
    return torch.zeros(1, dtype=torch.uint8)


FUNCTIONS["_npu_paged_attention_get_workspace"] = _paged_workspace


def _reshape_and_cache(a: Arguments) -> None:
    a.cache_mode = "Norm"


row("_npu_reshape_and_cache(Tensor key, Tensor value, Tensor(a!) key_cache, "
    "Tensor(b!) value_cache, Tensor slot_indices) -> ()",
    "ScatterPaKvCache", lambda a: None, names={"slot_indices": "slot_mapping"},
    adapt=_reshape_and_cache, results=())


def _reshape_and_cache_keys(a: Arguments) -> None:
    """Keys alone: the values have no elements."""
    a.value = a.key.new_empty([*a.key.shape[:-1], 0])
    a.value_cache = a.key_cache.new_empty([*a.key_cache.shape[:-1], 0])
    a.cache_mode = "Norm"


row("_npu_reshape_and_cache_siso(Tensor key, Tensor(a!) key_cache, Tensor slot_indices) -> ()",
    "ScatterPaKvCache", lambda a: None, names={"slot_indices": "slot_mapping"},
    adapt=_reshape_and_cache_keys, results=())

_KV_NORM = ("Tensor kv, Tensor gamma, Tensor cos, Tensor sin, Tensor index, %s k_cache, "
            "%s ckv_cache, *, Tensor? k_rope_scale=None, Tensor? c_kv_scale=None, "
            "Tensor? k_rope_offset=None, Tensor? c_kv_offset=None, Tensor? v=None, "
            "float epsilon=1e-5, str cache_mode='Norm', bool is_output_kv=False")
_KV_TYPES = ", int? k_cache_dtype=None, int? ckv_cache_dtype=None"


def _kv_rows(a: Arguments) -> tuple:
    """Keys with their embedding, and the norm, for each token."""
    if not a.is_output_kv:
        return made(a.kv, [0]), made(a.kv, [0])
    batch, heads, length = a.kv.shape[:3]
    width = a.gamma.shape[-1]
    return (made(a.kv, [batch, heads, length, a.kv.shape[-1] - width]),
            made(a.kv, [batch, heads, length, width]))


def _kv_types(a: Arguments) -> None:
    a.k_cache = bits(a.k_cache, a.pop("k_cache_dtype", None))
    a.ckv_cache = bits(a.ckv_cache, a.pop("ckv_cache_dtype", None))


row("npu_kv_rmsnorm_rope_cache(" + _KV_NORM % ("Tensor", "Tensor")
    + ") -> (Tensor, Tensor, Tensor, Tensor)",
    "KvRmsNormRopeCache", lambda a: (like(a.k_cache), like(a.ckv_cache), *_kv_rows(a)))
row("npu_kv_rmsnorm_rope_cache_v2(" + _KV_NORM % ("Tensor(a!)", "Tensor(b!)") + _KV_TYPES
    + ") -> (Tensor, Tensor)",
    "KvRmsNormRopeCache", _kv_rows, adapt=_kv_types, results=("k_rope", "c_kv"))
row("npu_kv_rmsnorm_rope_cache_v2_functional(" + _KV_NORM % ("Tensor", "Tensor") + _KV_TYPES
    + ") -> (Tensor, Tensor, Tensor, Tensor)",
    "KvRmsNormRopeCache", lambda a: (*_kv_rows(a), like(a.k_cache), like(a.ckv_cache)),
    adapt=_kv_types, copied=("k_cache", "ckv_cache"),
    results=("k_rope", "c_kv", "=k_cache", "=ckv_cache"))

# ---- the joint projection of query, key and value ----

_ROPE_QUANT = ("Tensor x, Tensor cos, Tensor sin, Tensor k_cache, Tensor v_cache, Tensor indices, "
               "Tensor scale_k, Tensor scale_v, int[3] size_splits, *, Tensor? offset_k=None, "
               "Tensor? offset_v=None, %sint quant_mode=0, str input_layout='BSND', "
               "bool kv_output=False, str cache_mode='contiguous') "
               "-> (Tensor, Tensor, Tensor, Tensor, Tensor)")
_DEQUANT = "Tensor? weight_scale=None, Tensor? activation_scale=None, Tensor? bias=None, "


def _rope_quant(a: Arguments) -> tuple:
    """The heads of query, key and value, and the caches."""
    width, places = a.cos.shape[-1], list(a.x.shape[:-1])
    heads = [made(a.cos, [*places, size // width, width]) for size in a.size_splits]
    return (*heads, like(a.k_cache), like(a.v_cache))


def _quant_word(a: Arguments) -> None:
    a.quant_mode = "static" if a.quant_mode == 0 else "dynamic"


for _name, _more in (("npu_rope_quant_kvcache", ""),
                     ("npu_dequant_rope_quant_kvcache", _DEQUANT)):
    row(f"{_name}({_ROPE_QUANT % _more}", "DequantRopeQuantKvcache", _rope_quant,
        adapt=_quant_word, names={"input_layout": "layout"})

_QKV_NORM = ("Tensor qkv, Tensor q_gamma, Tensor k_gamma, Tensor cos, Tensor sin, Tensor index, "
             "%s q_out, %s k_cache, %s v_cache, int[4] qkv_size, int[3] head_nums, *, "
             "Tensor? k_scale=None, Tensor? v_scale=None, Tensor? k_offset=None, "
             "Tensor? v_offset=None, float epsilon=1e-06, str cache_mode='PA_NZ', "
             "bool is_output_qkv=False) -> ")
_QKV_PARTS = ("q_out_before_quant", "k_out_before_quant", "v_out_before_quant")


def _qkv_parts(a: Arguments) -> tuple:
    """Query, key and value of each token."""
    width = a.qkv_size[3]
    return tuple(made(a.qkv, [a.qkv.shape[0], heads * width]) for heads in a.head_nums)


row("npu_qkv_rms_norm_rope_cache("
    + _QKV_NORM % ("Tensor(a!)", "Tensor(b!)", "Tensor(c!)") + "(Tensor, Tensor, Tensor)",
    "QkvRmsNormRopeCache", _qkv_parts, results=_QKV_PARTS)
row("npu_qkv_rms_norm_rope_cache_functional(" + _QKV_NORM % ("Tensor", "Tensor", "Tensor")
    + "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    "QkvRmsNormRopeCache",
    lambda a: (*_qkv_parts(a), like(a.q_out), like(a.k_cache), like(a.v_cache)),
    copied=("q_out", "k_cache", "v_cache"),
    results=(*_QKV_PARTS, "=q_out", "=k_cache", "=v_cache"))

# ---- multi-head latent attention ----

_MLA = ("Tensor token_x, Tensor weight_dq, Tensor weight_uq_qr, Tensor weight_uk, "
        "Tensor weight_dkv_kr, Tensor rmsnorm_gamma_cq, Tensor rmsnorm_gamma_ckv, "
        "Tensor rope_sin, Tensor rope_cos, ")
_MLA_SCALES = ("Tensor? dequant_scale_x=None, Tensor? dequant_scale_w_dq=None, "
               "Tensor? dequant_scale_w_uq_qr=None, Tensor? dequant_scale_w_dkv_kr=None, "
               "Tensor? quant_scale_ckv=None, Tensor? quant_scale_ckr=None, "
               "Tensor? smooth_scales_cq=None, ")
_MLA_END = ("float rmsnorm_epsilon_cq=1e-05, float rmsnorm_epsilon_ckv=1e-05, "
            'str cache_mode="PA_BSND"')


def _mla_query(a: Arguments) -> tuple:
    """Queries of the latent width, and their part with the embedding."""
    rows = a.token_x.shape[:-1]
    heads, _, latent = a.weight_uk.shape
    rope = a.rope_cos.shape[-1]
    plain = torch.bfloat16 if a.token_x.dtype == torch.int8 else a.token_x.dtype
    quantised = a.quant_scale_ckv is not None and a.token_x.dtype == torch.int8
    return (made(a.token_x, [*rows, heads, latent], torch.int8 if quantised else plain),
            made(a.token_x, [*rows, heads, rope], plain))


def _mla_scale(a: Arguments) -> torch.Tensor:
    tokens = a.token_x.numel() // a.token_x.shape[-1]
    quantised = a.quant_scale_ckv is not None and a.token_x.dtype == torch.int8
    shape = [tokens, a.weight_uk.shape[0], 1] if quantised else [1]
    return made(a.token_x, shape, torch.float32)


_MLA_1 = _MLA + "Tensor cache_index, Tensor kv_cache, Tensor kr_cache, *, " + _MLA_SCALES + _MLA_END
row("npu_mla_prolog(" + _MLA_1 + ") -> (Tensor, Tensor, Tensor, Tensor)",
    "MlaProlog", lambda a: (*_mla_query(a), like(a.kv_cache), like(a.kr_cache)))
row("npu_mla_prolog_v2(" + _MLA_1 + ") -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    "MlaPrologV2",
    lambda a: (*_mla_query(a), like(a.kv_cache), like(a.kr_cache), _mla_scale(a)))

_MLA_3 = (_MLA + "%s kv_cache, %s kr_cache, *, Tensor? cache_index=None, " + _MLA_SCALES
          + "Tensor? actual_seq_len=None, Tensor? k_nope_clip_alpha=None, " + _MLA_END
          + ", bool query_norm_flag=False, int weight_quant_mode=0, int kv_cache_quant_mode=0, "
          "int query_quant_mode=0, int ckvkr_repo_mode=0, int quant_scale_repo_mode=0, "
          "int tile_size=128, float qc_qr_scale=1.0, float kc_scale=1.0, "
          "int? token_x_dtype=None, int? weight_dq_dtype=None, int? weight_uq_qr_dtype=None, "
          "int? weight_dkv_kr_dtype=None, int? kv_cache_dtype=None")


def _mla_types(a: Arguments) -> None:
    typed(a, "token_x", "weight_dq", "weight_uq_qr", "weight_dkv_kr", "kv_cache")


def _mla_norm(a: Arguments) -> tuple:
    """The norm of the compressed queries, when it is asked for, and its scale."""
    if not a.query_norm_flag:
        return made(a.token_x, [0]), made(a.token_x, [0], torch.float32)
    rows = a.token_x.shape[:-1]
    quantised = a.weight_uq_qr.dtype == torch.int8
    tokens = a.token_x.numel() // a.token_x.shape[-1]
    return (made(a.token_x, [*rows, a.weight_dq.shape[-1]],
                 torch.int8 if quantised else a.token_x.dtype),
            made(a.token_x, [tokens, 1] if quantised else [0], torch.float32))


row("npu_mla_prolog_v3(" + _MLA_3 % ("Tensor(a!)", "Tensor(b!)")
    + ") -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    "MlaPrologV3", lambda a: (*_mla_query(a), _mla_scale(a), *_mla_norm(a)), adapt=_mla_types,
    results=("query", "query_rope", "dequant_scale_q_nope", "query_norm", "dequant_scale_q_norm"))
row("npu_mla_prolog_v3_functional(" + _MLA_3 % ("Tensor", "Tensor")
    + ") -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    "MlaPrologV3",
    lambda a: (*_mla_query(a), _mla_scale(a), *_mla_norm(a), like(a.kv_cache), like(a.kr_cache)),
    adapt=_mla_types, copied=("kv_cache", "kr_cache"),
    results=("query", "query_rope", "dequant_scale_q_nope", "query_norm", "dequant_scale_q_norm",
             "=kv_cache", "=kr_cache"))

# ---- sparse attention ----

_WINDOW = ("int pre_tokens=9223372036854775807, int next_tokens=9223372036854775807")
_INDEXED = ("Tensor? actual_seq_lengths_query=None, Tensor? actual_seq_lengths_key=None, "
            'Tensor? block_table=None, str layout_query="BSND", str layout_key="BSND", '
            "int sparse_count=2048, int sparse_mode=3, " + _WINDOW)


def _indices(a: Arguments) -> List[Any]:
    heads = a.key.shape[1] if a.layout_key == "TND" else a.key.shape[2]
    return [*a.query.shape[:-2], heads, a.sparse_count]


row("npu_lightning_indexer(Tensor query, Tensor key, Tensor weights, *, " + _INDEXED
    + ", bool return_value=False) -> (Tensor, Tensor)",
    "LightningIndexer",
    lambda a: (made(a.query, _indices(a), torch.int32),
               made(a.query, _indices(a) if a.return_value else [0])),
    names={"return_value": "return_values"})


def _indexer_types(a: Arguments) -> None:
    typed(a, "query", "key")


row("npu_quant_lightning_indexer(Tensor query, Tensor key, Tensor weights, "
    "Tensor query_dequant_scale, Tensor key_dequant_scale, int query_quant_mode, "
    "int key_quant_mode, *, " + _INDEXED + ", int? query_dtype=None, int? key_dtype=None) "
    "-> Tensor",
    "QuantLightningIndexer", lambda a: made(a.query, _indices(a), torch.int32),
    adapt=_indexer_types)


def _sparse_meta(a: Arguments) -> tuple:
    out = made(a.query, [*a.query.shape[:-1], a.value.shape[-1]])
    if not a.return_softmax_lse:
        return out, made(a.query, [0], torch.float32), made(a.query, [0], torch.float32)
    heads = a.key.shape[1] if a.layout_kv == "TND" else a.key.shape[2]
    if a.layout_query == "TND":
        shape = [heads, a.query.shape[0], a.query.shape[1] // heads]
    else:
        shape = [a.query.shape[0], heads, a.query.shape[1], a.query.shape[2] // heads]
    return out, made(a.query, shape, torch.float32), made(a.query, shape, torch.float32)


row("npu_sparse_flash_attention(Tensor query, Tensor key, Tensor value, Tensor sparse_indices, "
    "float scale_value, *, Tensor? block_table=None, Tensor? actual_seq_lengths_query=None, "
    "Tensor? actual_seq_lengths_kv=None, Tensor? query_rope=None, Tensor? key_rope=None, "
    'int sparse_block_size=1, str layout_query="BSND", str layout_kv="BSND", '
    "int sparse_mode=3, " + _WINDOW + ", int attention_mode=0, bool return_softmax_lse=False, "
    "Tensor? sinks=None) -> (Tensor, Tensor, Tensor)",
    "SparseFlashAttention", _sparse_meta)


def _quantised_keys(a: Arguments) -> None:
    typed(a, "key", "value")


row("npu_kv_quant_sparse_flash_attention(Tensor query, Tensor key, Tensor value, "
    "Tensor sparse_indices, float scale_value, int key_quant_mode, int value_quant_mode, *, "
    "Tensor? key_dequant_scale=None, Tensor? value_dequant_scale=None, Tensor? block_table=None, "
    "Tensor? actual_seq_lengths_query=None, Tensor? actual_seq_lengths_kv=None, "
    'int sparse_block_size=1, str layout_query="BSND", str layout_kv="BSND", '
    "int sparse_mode=3, " + _WINDOW + ", int attention_mode=0, int quant_scale_repo_mode=1, "
    "int tile_size=128, int rope_head_dim=64, int? key_dtype=None, int? value_dtype=None) "
    "-> Tensor",
    "KvQuantSparseFlashAttention",
    lambda a: made(a.query, [*a.query.shape[:-1], a.query.shape[-1] - a.rope_head_dim]),
    adapt=_quantised_keys)

# ---- linear attention ----

_DELTA = ("(Tensor query, Tensor key, Tensor value, %s state, *, Tensor? beta=None, "
          "float? scale=None, Tensor? actual_seq_lengths=None, Tensor? ssm_state_indices=None, "
          "Tensor? num_accepted_tokens=None, Tensor? g=None, Tensor? gk=None) -> %s")
_SCALE = {"scale": "scale_value"}

row("npu_recurrent_gated_delta_rule" + _DELTA % ("Tensor(a!)", "Tensor"),
    "RecurrentGatedDeltaRule", lambda a: like(a.value), names=_SCALE, results=("out",))
row("npu_recurrent_gated_delta_rule_functional" + _DELTA % ("Tensor", "(Tensor, Tensor)"),
    "RecurrentGatedDeltaRule", lambda a: (like(a.value), like(a.state)), names=_SCALE,
    copied=("state",))

row("npu_chunk_gated_delta_rule(Tensor query, Tensor key, Tensor value, *, Tensor? beta=None, "
    "Tensor? initial_state=None, Tensor? actual_seq_lengths=None, float? scale=None, "
    "Tensor? g=None) -> (Tensor, Tensor)",
    "ChunkGatedDeltaRule",
    lambda a: (like(a.value), like(a.initial_state)), names=_SCALE)

