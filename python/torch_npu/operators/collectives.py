"""Operators that communicate. A group is named as its process group says: get_hccl_comm_name."""

from __future__ import annotations

from typing import Any

import torch

from .. import _engine
from .._table import Arguments, bits, group_size, like, made, row, typed
from .._types import held_dtype, named, number

_HCOM = {"hcom": "group"}


def _comm_mode(a: Arguments) -> None:
    """How data travel on the hardware; here they travel one way."""
    a.pop("comm_mode", None)


# ---- products ----


def _mm_all_reduce(a: Arguments) -> None:
    _comm_mode(a)
    a.group_size = group_size(a.pop("group_sizes"))
    a.y_dtype = number(a.y_dtype)
    if a.y_dtype is None and a.dequant_scale is not None:
        wanted = a.dequant_scale.dtype == torch.bfloat16
        a.y_dtype = number(torch.bfloat16 if wanted else torch.float16)
    typed(a, "x1", "x2", "dequant_scale", "pertoken_scale")
    if a.dequant_scale is not None and getattr(a.dequant_scale, "dtype", "") == torch.int64:
        a.dequant_scale = a.dequant_scale.view(torch.uint64)


def _mm_all_reduce_meta(a: Arguments) -> torch.Tensor:
    dtype = a.x1.dtype
    if a.y_dtype is not None:
        dtype = held_dtype(a.y_dtype, dtype)
    elif a.dequant_scale is not None:
        dtype = torch.bfloat16 if a.dequant_scale.dtype == torch.bfloat16 else torch.float16
    return made(a.x1, [*a.x1.shape[:-1], a.x2.shape[-1]], dtype)


row("npu_mm_all_reduce_base(Tensor x1, Tensor x2, str hcom, *, str reduce_op='sum', "
    "Tensor? bias=None, Tensor? antiquant_scale=None, Tensor? antiquant_offset=None, "
    "Tensor? x3=None, Tensor? dequant_scale=None, Tensor? pertoken_scale=None, "
    "Tensor? comm_quant_scale_1=None, Tensor? comm_quant_scale_2=None, "
    "int antiquant_group_size=0, int comm_turn=0, int[]? group_sizes=None, int? y_dtype=None, "
    "int? x1_dtype=None, int? x2_dtype=None, int? dequant_scale_dtype=None, "
    "int? pertoken_scale_dtype=None, int comm_quant_mode=0, str? comm_mode=None) -> Tensor",
    "MatmulAllReduce", _mm_all_reduce_meta, names=_HCOM, adapt=_mm_all_reduce)

_GATHER_NAMES = {"self": "x1", "hcom": "group", "world_size": "rank_size",
                 "gather_output": "is_gather_out", "amax_output": "is_amax_out"}


def _unscaled(a: Arguments) -> None:
    _comm_mode(a)
    if a.x1_scale is not None or a.x2_scale is not None or a.output_dtype is not None:
        raise NotImplementedError("torch_npu: scales and output_dtype: use the quantised operator "
                                  "of the same purpose")
    for name in ("x1_scale", "x2_scale", "output_dtype"):
        a.pop(name)


def _gathered(a: Arguments, flag: Any) -> torch.Tensor:
    rows = a.self.shape[0] * a.world_size
    return made(a.self, [rows, a.self.shape[1]] if flag else [0])


row("npu_all_gather_base_mm(Tensor self, Tensor x2, str hcom, int world_size, *, "
    "Tensor? bias=None, Tensor? x1_scale=None, Tensor? x2_scale=None, int gather_index=0, "
    "bool gather_output=True, int comm_turn=0, ScalarType? output_dtype=None, "
    "str? comm_mode=None) -> (Tensor, Tensor)",
    "AllGatherMatmul",
    lambda a: (made(a.self, [a.self.shape[0] * a.world_size, a.x2.shape[1]]),
               _gathered(a, a.gather_output)),
    names=_GATHER_NAMES, adapt=_unscaled)

_TYPES = ("int? x1_dtype=None, int? x2_dtype=None, int? x1_scale_dtype=None, "
          "int? x2_scale_dtype=None, str? comm_mode=None")


def _quantised(a: Arguments) -> None:
    _comm_mode(a)
    a.group_size = group_size(a.pop("group_sizes"))
    a.y_dtype = number(a.self.dtype if a.y_dtype is None else a.y_dtype)
    a.x1 = bits(a.pop("self"), a.pop("x1_dtype"))
    typed(a, "x2", "x1_scale", "x2_scale")


row("npu_all_gather_quant_mm(Tensor self, Tensor x2, str hcom, int world_size, *, "
    "Tensor? bias=None, Tensor? x1_scale=None, Tensor? x2_scale=None, Tensor? quant_scale=None, "
    "int block_size=0, int gather_index=0, bool gather_output=True, int comm_turn=0, "
    "int[]? group_sizes=None, bool amax_output=False, int? y_dtype=None, " + _TYPES
    + ") -> (Tensor, Tensor, Tensor)",
    "AllGatherMatmulV2",
    lambda a: (made(a.self, [a.self.shape[0] * a.world_size, a.x2.shape[1]],
                    held_dtype(a.y_dtype, a.self.dtype)),
               _gathered(a, a.gather_output), made(a.self, [0], torch.float32)),
    names=_GATHER_NAMES, adapt=_quantised)

row("npu_mm_reduce_scatter_base(Tensor self, Tensor x2, str hcom, int world_size, *, "
    "str reduce_op='sum', Tensor? bias=None, Tensor? x1_scale=None, Tensor? x2_scale=None, "
    "int comm_turn=0, ScalarType? output_dtype=None, str? comm_mode=None) -> Tensor",
    "MatmulReduceScatter",
    lambda a: made(a.self, [a.self.shape[0] // a.world_size, a.x2.shape[1]]),
    names=_GATHER_NAMES, adapt=_unscaled)

row("npu_quant_mm_reduce_scatter(Tensor self, Tensor x2, str hcom, int world_size, *, "
    "str reduce_op='sum', Tensor? bias=None, Tensor? x1_scale=None, Tensor? x2_scale=None, "
    "Tensor? quant_scale=None, int block_size=0, int comm_turn=0, int[]? group_sizes=None, "
    "bool amax_output=False, int? y_dtype=None, " + _TYPES + ") -> (Tensor, Tensor)",
    "MatmulReduceScatterV2",
    lambda a: (made(a.self, [a.self.shape[0] // a.world_size, a.x2.shape[1]],
                    held_dtype(a.y_dtype, a.self.dtype)), made(a.self, [0], torch.float32)),
    names=_GATHER_NAMES, adapt=_quantised)


def _axes(default: tuple) -> Any:
    def adapt(a: Arguments) -> None:
        _comm_mode(a)
        a.all2all_axes = list(a.all2all_axes or default)
        a.y_dtype = number(a.x1.dtype)

    return adapt


row("npu_all_to_all_matmul(Tensor x1, Tensor x2, str hcom, int world_size, Tensor? bias=None, "
    "int[]? all2all_axes=None, bool all2all_out_flag=True, str? comm_mode=None) "
    "-> (Tensor, Tensor)",
    "AlltoAllMatmul",
    lambda a: (made(a.x1, [a.x1.shape[0] // a.world_size, a.x2.shape[1]]),
               made(a.x1, [a.x1.shape[0] // a.world_size, a.x1.shape[1] * a.world_size]
                    if a.all2all_out_flag else [0])),
    names={**_HCOM, "all2all_out_flag": "alltoall_out_flag"}, adapt=_axes((-2, -1)))

row("npu_matmul_all_to_all(Tensor x1, Tensor x2, str hcom, int world_size, Tensor? bias=None, "
    "int[]? all2all_axes=None, str? comm_mode=None) -> Tensor",
    "MatmulAlltoAll",
    lambda a: made(a.x1, [a.x1.shape[0] * a.world_size, a.x2.shape[1] // a.world_size]),
    names=_HCOM, adapt=_axes((-1, -2)))

# ---- products of few bits beside an exchange ----

# The engine's AlltoAllMatmul and MatmulAlltoAll know no scales: one operator exchanges, another one
# multiplies. Quant modes of operands: scales of columns, of rows, of 32 elements each (MX), and
# of rows, made after the exchange.
_BY_COLUMN, _BY_ROW, _BY_BLOCK, _BY_JOINED_ROW = 2, 3, 6, 7


def _exchanged(blocks: torch.Tensor, a: Arguments) -> torch.Tensor:
    """Rows in a block for each rank become those that the ranks have for this one."""
    raw = blocks.view(torch.uint8) if blocks.element_size() == 1 else blocks
    outputs = _engine.run("HcomAllToAll", {"x": raw}, {"group": a.hcom})
    return outputs["y"].view(blocks.dtype)


def _joined(x: torch.Tensor, a: Arguments) -> torch.Tensor:
    """The columns of all ranks, of this rank's block of rows."""
    blocks = _exchanged(x.contiguous(), a).unflatten(0, (a.world_size, -1))
    return blocks.transpose(0, 1).flatten(1)


def _parted(y: torch.Tensor, a: Arguments) -> torch.Tensor:
    """The rows of all ranks, of this rank's block of columns."""
    blocks = y.unflatten(1, (a.world_size, -1)).transpose(0, 1)
    return _exchanged(blocks.flatten(0, 1), a)


def _expect(fits: bool, what: str, expected: Any, seen: Any) -> None:
    if not fits:
        raise ValueError(f"torch_npu: {what}: expected {expected}, seen {seen}")


def _few_bits(a: Arguments, axes: list, left_mode: int) -> None:
    """What both calls have in common. MX scales of x2 have its columns in front, so that it is
    multiplied as what it is the transpose of."""
    _comm_mode(a)
    ranks = _engine.ranks_of(a.hcom) or a.world_size
    _expect(a.world_size == ranks > 0, "world_size", f"the ranks of {a.hcom}", a.world_size)
    told, mode = list(a.pop("all2all_axes") or axes), a.pop("common_quant_mode")
    _expect(told == axes, "all2all_axes", axes, told)
    _expect(not mode, "common_quant_mode", 0, mode)
    left = left_mode if a.x1_quant_mode is None else a.x1_quant_mode
    right = _BY_COLUMN if a.x2_quant_mode is None else a.x2_quant_mode
    a.by_block = left == right == _BY_BLOCK
    _expect(a.by_block or (left, right) == (left_mode, _BY_COLUMN), "quant modes of x1 and x2",
            f"{left_mode} and {_BY_COLUMN}, or {_BY_BLOCK} of both", f"{left} and {right}")
    a.group_size = group_size(a.pop("group_sizes"))
    a.y_dtype = number(a.y_dtype, "float32")
    if a.by_block:
        a.x2, a.transpose_x2 = a.x2.t(), True
    typed(a, "x2", "x2_scale")


def _quantise_rows(a: Arguments) -> None:
    """x1 in few bits, and its scales. A scale that is given smooths columns of later integers."""
    wanted = a.x1_quant_dtype
    if wanted is None:
        wanted = torch.int8 if a.x2.dtype == torch.int8 else torch.float8_e5m2
    ports, attrs = {"x": a.x1}, {"dst_type": number(wanted)}
    if named(wanted) == "int8":
        quantised = _engine.run("DynamicQuant", {**ports, "smooth_scales": a.x1_scale}, attrs)
    else:
        _expect(a.x1_scale is None, f"x1_scale beside {named(wanted)}", None, "a tensor")
        attrs["col_block_size"] = a.x1.shape[1]
        quantised = _engine.run("DynamicBlockQuant", ports, attrs)
    a.x1, a.x1_scale = bits(quantised["y"], wanted), quantised["scale"].flatten()


def _exchange_first(a: Arguments) -> None:
    _few_bits(a, [-2, -1], _BY_JOINED_ROW)
    rows, columns = a.x1.shape
    _expect(rows % a.world_size == 0, "rows of x1", f"a multiple of {a.world_size}", rows)
    a.x1 = _joined(a.x1, a)
    a.all2all_out = a.x1 if a.all2all_out_flag else a.x1.new_empty(0)
    if not a.by_block:
        _quantise_rows(a)
        return
    _expect(columns % 64 == 0, "columns of x1", "a multiple of 64", columns)
    if a.x1_scale is not None:
        a.x1_scale = _joined(a.x1_scale.flatten(1), a).unflatten(1, (-1, 2))
    typed(a, "x1", "x1_scale")


_FEW_BITS = ("Tensor? bias=None, Tensor? x1_scale=None, Tensor? x2_scale=None, "
             "Tensor? common_scale=None, Tensor? x1_offset=None, Tensor? x2_offset=None, "
             "int? x1_quant_mode=None, int? x2_quant_mode=None, int? common_quant_mode=None, "
             "int[]? group_sizes=None, int[]? all2all_axes=None, int? comm_quant_dtype=None, %s"
             "int? x1_dtype=None, int? x2_dtype=None, int? x1_scale_dtype=None, "
             "int? x2_scale_dtype=None, int? output_scale_dtype=None, int? comm_scale_dtype=None, "
             "int? y_dtype=None, str? comm_mode=None) -> ")
# What travels has no scales, so that comm_quant_dtype says nothing.
_FEW_BITS_NAMES = {"y_dtype": "dtype", **dict.fromkeys((
    "hcom", "world_size", "x1_quant_mode", "x2_quant_mode", "comm_quant_dtype", "by_block"))}

row("npu_all_to_all_quant_matmul(Tensor x1, Tensor x2, str hcom, int world_size, "
    "bool all2all_out_flag=True, " + _FEW_BITS % "int? x1_quant_dtype=None, " + "(Tensor, Tensor)",
    "QuantBatchMatmulV4",
    lambda a: (made(a.x1, [a.x1.shape[0] // a.world_size, a.x2.shape[1]],
                    held_dtype(a.y_dtype, torch.float32)),
               made(a.x1, [a.x1.shape[0] // a.world_size, a.x1.shape[1] * a.world_size]
                    if a.all2all_out_flag else [0])),
    names={**_FEW_BITS_NAMES, **dict.fromkeys((
        "all2all_out_flag", "all2all_out", "x1_quant_dtype", "x1_dtype", "x1_scale_dtype"))},
    adapt=_exchange_first, results=lambda a, outputs: (outputs["y"], a.all2all_out))


def _multiply_first(a: Arguments) -> None:
    columns = a.x2.shape[1]
    _few_bits(a, [-1, -2], _BY_ROW)
    _expect(a.x1_scale is not None, "x1_scale", "a tensor", None)
    _expect(columns % a.world_size == 0, "columns of x2", f"a multiple of {a.world_size}", columns)
    typed(a, "x1", "x1_scale")


row("npu_quant_matmul_all_to_all(Tensor x1, Tensor x2, str hcom, int world_size, "
    + _FEW_BITS % "" + "Tensor",
    "QuantBatchMatmulV4",
    lambda a: made(a.x1, [a.x1.shape[0] * a.world_size, a.x2.shape[1] // a.world_size],
                   held_dtype(a.y_dtype, torch.float32)),
    names=_FEW_BITS_NAMES, adapt=_multiply_first,
    results=lambda a, outputs: _parted(outputs["y"], a))

# ---- experts ----


def _send_lists(a: Arguments) -> None:
    _comm_mode(a)
    a.send_counts, a.recv_counts = list(a.send_counts), list(a.recv_counts)


_GMM = ("Tensor gmm_x, Tensor gmm_weight, %sstr hcom, int ep_world_size, int[] send_counts, "
        "int[] recv_counts, %s*, Tensor? send_counts_tensor=None, "
        "Tensor? recv_counts_tensor=None, Tensor? mm_x=None, Tensor? mm_weight=None, ")
_TRANS = "bool trans_gmm_weight=False, bool trans_mm_weight=False, "


def _gmm_columns(weight: torch.Tensor, transposed: bool) -> Any:
    return weight.shape[-2] if transposed else weight.shape[-1]


def _mm(a: Arguments) -> torch.Tensor:
    if a.mm_x is None:
        return made(a.gmm_x, [0])
    return made(a.mm_x, [a.mm_x.shape[0], _gmm_columns(a.mm_weight, a.trans_mm_weight)])


row("npu_alltoallv_gmm(" + _GMM % ("", "") + _TRANS
    + "bool permute_out_flag=False, str? comm_mode=None) -> (Tensor, Tensor, Tensor)",
    "AlltoAllvGroupedMatMul",
    lambda a: (made(a.gmm_x, [sum(a.recv_counts),
                              _gmm_columns(a.gmm_weight, a.trans_gmm_weight)]), _mm(a),
               made(a.gmm_x, [sum(a.recv_counts), a.gmm_x.shape[1]] if a.permute_out_flag
                    else [0])),
    names=_HCOM, adapt=_send_lists)

row("npu_gmm_alltoallv(" + _GMM % ("", "") + _TRANS + "str? comm_mode=None) -> (Tensor, Tensor)",
    "GroupedMatMulAlltoAllv",
    lambda a: (made(a.gmm_x, [sum(a.recv_counts),
                              _gmm_columns(a.gmm_weight, a.trans_gmm_weight)]), _mm(a)),
    names=_HCOM, adapt=_send_lists)

_QUANT_GMM = "Tensor gmm_x_scale, Tensor gmm_weight_scale, "
_QUANT_MM = "Tensor? mm_x_scale=None, Tensor? mm_weight_scale=None, "
_OPERANDS = ("gmm_x", "gmm_weight", "mm_x", "mm_weight")
_QUANT_MODES = "".join(f"int? {each}_quant_mode=None, " for each in _OPERANDS)
_QUANT_TYPES = "".join(
    f"int? {side}_x{of}_dtype=None, int? {side}_weight{of}_dtype=None, "
    for side in ("gmm", "mm") for of in ("", "_scale"))


def _quant_send_lists(a: Arguments) -> None:
    _send_lists(a)
    a.group_size = group_size(a.group_size)
    a.y_dtype = number(a.pop("gmm_y_dtype"))
    a.mm_dtype = number(a.pop("mm_y_dtype"), "float16")
    for each in ("mm_x_quant_mode", "mm_weight_quant_mode"):
        _expect(a["g" + each] is not None, "g" + each, 1, None)
        a[each] = a["g" + each] if a[each] is None else a[each]
    typed(a, *_OPERANDS, *(f"{each}_scale" for each in _OPERANDS))


def _quant_gmm_meta(a: Arguments) -> tuple:
    mm_dtype = held_dtype(a.mm_y_dtype, torch.float16)
    mm = [0] if a.mm_x is None else [a.mm_x.shape[0], a.mm_weight.shape[-1]]
    return (made(a.gmm_x, [sum(a.recv_counts), a.gmm_weight.shape[-1]],
                 held_dtype(a.gmm_y_dtype, torch.float16)), made(a.gmm_x, mm, mm_dtype))


row("npu_alltoallv_quant_gmm(" + _GMM % (_QUANT_GMM, "int gmm_y_dtype, ") + _QUANT_MM
    + _QUANT_MODES + "bool permute_out_flag=False, int[]? group_size=None, " + _QUANT_TYPES
    + "int? mm_y_dtype=None, str? comm_mode=None) -> (Tensor, Tensor, Tensor)",
    "AlltoAllvQuantGroupedMatMul",
    lambda a: (*_quant_gmm_meta(a), made(a.gmm_x, [sum(a.recv_counts), a.gmm_x.shape[1]]
                                         if a.permute_out_flag else [0])),
    names=_HCOM, adapt=_quant_send_lists)

row("npu_quant_gmm_alltoallv(" + _GMM % (_QUANT_GMM, "int gmm_y_dtype, ") + _QUANT_MM
    + "Tensor? comm_quant_scale=None, " + _QUANT_MODES + "int? comm_quant_mode=None, "
    "int[]? group_size=None, " + _QUANT_TYPES + "int? comm_quant_dtype=None, "
    "int? mm_y_dtype=None, str? comm_mode=None) -> (Tensor, Tensor)",
    "QuantGroupedMatMulAlltoAllv", _quant_gmm_meta,
    names={**_HCOM, "comm_quant_dtype": None}, adapt=_quant_send_lists)

_REDUCED = ("(Tensor x, Tensor scales, str hcom, int world_size, str reduce_op='sum', "
            "int? output_dtype=None, int? x_dtype=None, int? scales_dtype=None) -> Tensor")


def _quant_reduce(a: Arguments) -> None:
    a.output_dtype = number(a.output_dtype, "bfloat16")
    typed(a, "x", "scales")


row("npu_quant_all_reduce" + _REDUCED, "QuantAllReduce",
    lambda a: like(a.x, held_dtype(a.output_dtype, torch.bfloat16)), names=_HCOM,
    adapt=_quant_reduce)
row("npu_quant_reduce_scatter" + _REDUCED, "QuantReduceScatter",
    lambda a: made(a.x, [a.x.shape[0] // a.world_size, *a.x.shape[1:]],
                   held_dtype(a.output_dtype, torch.bfloat16)), names=_HCOM, adapt=_quant_reduce)

_EP = "str group_ep, int ep_world_size, int ep_rank_id, int moe_expert_num, *, "
_TP = ('str group_tp="", int tp_world_size=0, int tp_rank_id=0, int expert_shard_type=0, '
       "int shared_expert_num=1, int shared_expert_rank_num=0, ")
_KINDS = "int zero_expert_num=0, int copy_expert_num=0, int const_expert_num=0"


def _dispatch(a: Arguments) -> None:
    """The second form knows the type of what it sends."""
    a.x = bits(a.x, a.pop("x_dtype", None))
    a.scales = bits(a.scales, a.pop("scales_dtype", None))
    if "y_dtype" in a:
        plain = a.x.dtype if isinstance(a.x, torch.Tensor) else torch.int8
        a.y_dtype = number(a.y_dtype) if a.y_dtype is not None else number(
            plain if a.quant_mode == 0 else torch.int8)


def _dispatch_meta(a: Arguments) -> tuple:
    tokens, width = a.x.shape
    choices = a.expert_ids.shape[1]
    most = a.global_bs if a.global_bs else tokens * a.ep_world_size
    shared = a.ep_rank_id < a.shared_expert_rank_num
    experts_here = 1 if shared else a.moe_expert_num // (a.ep_world_size
                                                         - a.shared_expert_rank_num)
    if shared:
        rows = most * a.shared_expert_num // a.shared_expert_rank_num
    else:
        rows = most * min(choices, experts_here)
    dtype = a.x.dtype if a.quant_mode == 0 else held_dtype(a.get("y_dtype"), torch.int8)
    whole = a.ep_world_size * experts_here
    return (made(a.x, [rows, width], dtype), made(a.x, [rows], torch.float32),
            made(a.x, [max(tokens * choices, rows * 128)], torch.int32),
            made(a.x, [experts_here], torch.int64), made(a.x, [whole], torch.int32),
            made(a.x, [max(a.tp_world_size, 1)], torch.int32),
            made(a.x, [rows], torch.float32))


_DISPATCH = ("(Tensor x, Tensor expert_ids, " + _EP + "Tensor? scales=None, "
             "Tensor? x_active_mask=None, Tensor? expert_scales=None, %s" + _TP
             + "int quant_mode=0, int global_bs=0, int expert_token_nums_type=1%s) -> ("
             + ", ".join(["Tensor"] * 7) + ")")
row("npu_moe_distribute_dispatch" + _DISPATCH % ("", ""), "MoeDistributeDispatch",
    _dispatch_meta, adapt=_dispatch)
row("npu_moe_distribute_dispatch_v2" + _DISPATCH % (
    "Tensor? elastic_info=None, Tensor? performance_info=None, ",
    ', str comm_alg="", ' + _KINDS
    + ", int? y_dtype=None, int? x_dtype=None, int? scales_dtype=None"),
    "MoeDistributeDispatchV2", _dispatch_meta, adapt=_dispatch)


def _combined(a: Arguments) -> torch.Tensor:
    dtype = a.expand_x.dtype if a.expand_x.dtype.is_floating_point else torch.bfloat16
    return made(a.expand_x, [a.expert_ids.shape[0], a.expand_x.shape[1]], dtype)


row("npu_moe_distribute_combine(Tensor expand_x, Tensor expert_ids, Tensor expand_idx, "
    "Tensor ep_send_counts, Tensor expert_scales, " + _EP + "Tensor? tp_send_counts=None, "
    "Tensor? x_active_mask=None, Tensor? activation_scale=None, Tensor? weight_scale=None, "
    "Tensor? group_list=None, Tensor? expand_scales=None, Tensor? shared_expert_x=None, " + _TP
    + "int global_bs=0, int out_dtype=0, int comm_quant_mode=0, int group_list_type=0) -> Tensor",
    "MoeDistributeCombine", _combined)

_CONSTANT = ("Tensor? elastic_info=None, Tensor? ori_x=None, "
             "Tensor? const_expert_alpha_1=None, Tensor? const_expert_alpha_2=None, "
             "Tensor? const_expert_v=None, ")
row("npu_moe_distribute_combine_v2(Tensor expand_x, Tensor expert_ids, "
    "Tensor assist_info_for_combine, Tensor ep_send_counts, Tensor expert_scales, " + _EP
    + "Tensor? tp_send_counts=None, Tensor? x_active_mask=None, Tensor? expand_scales=None, "
    "Tensor? shared_expert_x=None, " + _CONSTANT + "Tensor? performance_info=None, " + _TP
    + 'int global_bs=0, int comm_quant_mode=0, str comm_alg="", ' + _KINDS + ") -> Tensor",
    "MoeDistributeCombineV2", _combined)

row("npu_moe_distribute_combine_add_rms_norm(Tensor expand_x, Tensor expert_ids, "
    "Tensor expand_idx, Tensor ep_send_counts, Tensor expert_scales, Tensor residual_x, "
    "Tensor gamma, " + _EP + "Tensor? tp_send_counts=None, Tensor? x_active_mask=None, "
    "Tensor? activation_scale=None, Tensor? weight_scale=None, Tensor? group_list=None, "
    "Tensor? expand_scales=None, Tensor? shared_expert_x=None, " + _CONSTANT + _TP
    + "int global_bs=0, int out_dtype=0, int comm_quant_mode=0, int group_list_type=0, "
    'str comm_alg="", float norm_eps=1e-06, ' + _KINDS + ") -> (Tensor, Tensor, Tensor)",
    "MoeDistributeCombineAddRmsNorm",
    lambda a: (like(a.residual_x),
               made(a.residual_x, [*a.residual_x.shape[:-1], 1], torch.float32),
               like(a.residual_x)),
    names={"expand_idx": "assist_info_for_combine"})

row("_npu_distribute_barrier(Tensor x_ref, str group, int world_size, *, Tensor? time_out=None, "
    "Tensor? elastic_info=None) -> Tensor",
    "DistributeBarrier", lambda a: like(a.x_ref), copied=("x_ref",))
