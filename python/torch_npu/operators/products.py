"""Products, plain and quantised, and what is fused after them."""

from __future__ import annotations

from typing import Any, List

import torch

from .. import _engine
from .._table import Arguments, bits, group_size, int4, like, made, row, typed
from .._types import held_dtype, named, number


def _rows_by_columns(x: torch.Tensor, columns: Any, dtype: torch.dtype = None) -> torch.Tensor:
    return made(x, [*x.shape[:-1], columns], dtype)


# ---- plain ----

def _linear(a: Arguments) -> None:
    a.rows = a.input.shape[:-1] or (1,)
    a.input = a.input.reshape(-1, a.input.shape[-1])
    a.transpose_x2 = True


row("npu_linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    "MatMulV2", lambda a: _rows_by_columns(a.input, a.weight.shape[0]),
    names={"input": "x1", "weight": "x2", "rows": None},
    adapt=_linear, results=lambda a, outputs: outputs["y"].unflatten(0, a.rows))

row("npu_bmmV2(Tensor self, Tensor mat2, int[] output_sizes) -> Tensor",
    "BatchMatMulV2",
    lambda a: torch.empty(a.self.shape, dtype=a.self.dtype, device="meta").matmul(
        torch.empty(a.mat2.shape, dtype=a.self.dtype, device="meta")),
    names={"self": "x1", "mat2": "x2", "output_sizes": None})

row("npu_fused_matmul(Tensor x1, Tensor x2, *, Tensor? bias=None, Tensor? x3=None, "
    "str fused_op_type='') -> Tensor",
    "FusedMatMul", lambda a: _rows_by_columns(a.x1, a.x2.shape[-1]))


def _permuted(shape: Any, perm: Any) -> List[Any]:
    return [shape[each] for each in perm]


def _transpose_bmm_meta(a: Arguments) -> torch.Tensor:
    first = _permuted(a.input.shape, a.perm_x1 or (0, 1, 2))
    second = _permuted(a.weight.shape, a.perm_x2 or (0, 1, 2))
    out = _permuted([first[0], first[1], second[2]], a.perm_y or (1, 0, 2))
    split = a.batch_split_factor or 1
    if a.scale is not None:
        return made(a.input, [out[0], 1, out[1] * out[2]], torch.int8)
    if split > 1:
        out = [split, out[0], out[1] * out[2] // split]
    return made(a.input, out)


def _transpose_bmm(a: Arguments) -> None:
    a.perm_x1 = list(a.perm_x1 or (0, 1, 2))
    a.perm_x2 = list(a.perm_x2 or (0, 1, 2))
    a.perm_y = list(a.perm_y or (1, 0, 2))


row("npu_transpose_batchmatmul(Tensor input, Tensor weight, *, Tensor? bias=None, "
    "Tensor? scale=None, int[]? perm_x1=None, int[]? perm_x2=None, int[]? perm_y=None, "
    "int? batch_split_factor=1) -> Tensor",
    "TransposeBatchMatMul", _transpose_bmm_meta, adapt=_transpose_bmm,
    names={"input": "x1", "weight": "x2"})


def _add_lora(a: Arguments) -> None:
    a.y = a.pop("self")


_LORA = ("(%s self, Tensor x, Tensor weight_b, Tensor indices, Tensor? weight_a=None, "
         "int layer_idx=0, float scale=1e-3, int y_offset=0, int y_slice_size=-1) -> %s")
_LORA_NAMES = {"weight_a": "weightA", "weight_b": "weightB"}
# The vendor's call changes its first tensor, too, although its schema does not say so.
row("npu_batch_gather_matmul" + _LORA % ("Tensor", "Tensor"),
    "AddLora", lambda a: like(a.self), names=_LORA_NAMES, adapt=_add_lora,
    results=lambda a, outputs: a.y.clone())
row("npu_batch_gather_matmul_" + _LORA % ("Tensor(a!)", "Tensor(a!)"),
    "AddLora", lambda a: a.self, names=_LORA_NAMES, adapt=_add_lora,
    results=lambda a, outputs: a.y.copy_(outputs["y"]) if "y" in outputs else a.y)

# ---- quantised ----


def _quant_matmul(a: Arguments) -> None:
    a.dtype = number(a.pop("output_dtype"), "int8")
    sizes = a.pop("group_sizes")
    if sizes:
        a.group_size = group_size(sizes)
    typed(a, "x1", "x2", "pertoken_scale", "scale")
    for name in ("x1", "x2"):
        if isinstance(a[name], torch.Tensor):
            a[name] = int4(a[name])
    if isinstance(a.scale, torch.Tensor) and a.scale.dtype == torch.int64:
        a.scale = a.scale.view(torch.uint64)


def _packed(name: Any, tensor: torch.Tensor) -> int:
    if name is None:
        return 8 if tensor.dtype == torch.int32 else 1
    return 2 if name.startswith("float4") else 8 if name == "int4" and tensor.dtype == \
        torch.int32 else 1


def _quant_matmul_meta(a: Arguments) -> torch.Tensor:
    columns = a.x2.shape[-1]
    packed = _packed(named(a.x2_dtype), a.x2)
    if packed > 1 and not _is_packed_along_rows(a, packed):
        columns = columns * packed
    batch = torch.broadcast_shapes(a.x1.shape[:-2], a.x2.shape[:-2])
    return made(a.x1, [*batch, a.x1.shape[-2], columns], held_dtype(a.output_dtype, torch.int8))


def _is_packed_along_rows(a: Arguments, packed: int) -> bool:
    """A weight that was transposed after it was packed."""
    return a.x2.stride(-2) == 1 and a.x2.stride(-1) != 1


row("npu_quant_matmul(Tensor x1, Tensor x2, Tensor scale, *, Tensor? offset=None, "
    "Tensor? pertoken_scale=None, Tensor? bias=None, int? output_dtype=None, int? x1_dtype=None, "
    "int? x2_dtype=None, int? pertoken_scale_dtype=None, int? scale_dtype=None, "
    "int[]? group_sizes=None, Tensor? y_scale=None) -> Tensor",
    "QuantBatchMatmulV3", _quant_matmul_meta, adapt=_quant_matmul)


_GELUS = {"gelu_erf": "none", "gelu_tanh": "tanh"}


def _matmul_gelu(a: Arguments) -> None:
    """The product is float32, and is rounded after the activation."""
    if (a.approximate or "gelu_erf") not in _GELUS:
        raise ValueError(f"approximate: expected gelu_erf or gelu_tanh, seen {a.approximate!r}")
    a.approximate = _GELUS[a.approximate or "gelu_erf"]
    a.x1, a.x2 = int4(a.x1), int4(a.x2)
    a.wide = torch.bfloat16 if torch.bfloat16 in (
        a.x2_scale.dtype, None if a.bias is None else a.bias.dtype) else torch.float16
    a.pertoken_scale, a.scale = a.pop("x1_scale").float(), a.pop("x2_scale").float()
    a.dtype = number(torch.float32)
    if a.bias is not None:
        a.bias = a.bias.float()


def _activated(a: Arguments, outputs: dict) -> torch.Tensor:
    made_of = _engine.run("GeluV2", {"x": outputs["y"]}, {"approximate": a.approximate})
    return made_of["y"].to(a.wide)


def _matmul_gelu_meta(a: Arguments) -> torch.Tensor:
    packed = a.x1.dtype == torch.int32 and a.x2.shape[-2] == 8 * a.x1.shape[-1]
    columns = a.x2.shape[-1] * (8 if packed else 1)
    batch = torch.broadcast_shapes(a.x1.shape[:-2], a.x2.shape[:-2])
    bias = None if a.bias is None else a.bias.dtype
    wide = torch.bfloat16 if torch.bfloat16 in (a.x2_scale.dtype, bias) else torch.float16
    return made(a.x1, [*batch, a.x1.shape[-2], columns], wide)


row("npu_quant_matmul_gelu(Tensor x1, Tensor x2, Tensor x1_scale, Tensor x2_scale, *, "
    "Tensor? bias=None, str? approximate='gelu_erf') -> Tensor",
    "QuantBatchMatmulV3", _matmul_gelu_meta, adapt=_matmul_gelu, results=_activated,
    kinds=("QuantBatchMatmulV3", "GeluV2"), names={"approximate": None, "wide": None})


def _weight_quant(a: Arguments) -> None:
    if a.quant_scale is not None and a.quant_scale.dtype == torch.int64:
        a.quant_scale = a.quant_scale.view(torch.uint64)
    a.weight = bits(a.weight, a.pop("weight_dtype"))
    if isinstance(a.weight, torch.Tensor):
        a.weight = int4(a.weight)


def _weight_quant_meta(a: Arguments) -> torch.Tensor:
    columns = a.weight.shape[-1]
    packed = _packed(named(a.weight_dtype), a.weight)
    if packed > 1 and not (a.weight.stride(-2) == 1 and a.weight.stride(-1) != 1):
        columns = columns * packed
    return _rows_by_columns(a.x, columns, torch.int8 if a.quant_scale is not None else None)


row("npu_weight_quant_batchmatmul(Tensor x, Tensor weight, Tensor antiquant_scale, "
    "Tensor? antiquant_offset=None, Tensor? quant_scale=None, Tensor? quant_offset=None, "
    "Tensor? bias=None, int antiquant_group_size=0, int inner_precise=0, "
    "int? weight_dtype=None) -> Tensor",
    "WeightQuantBatchMatmulV2", _weight_quant_meta, adapt=_weight_quant)


row("npu_quant_matmul_dequant(Tensor x, Tensor quantized_weight, Tensor weight_scale, *, "
    "Tensor? bias=None, Tensor? x_scale=None, Tensor? x_offset=None, "
    "Tensor? smooth_scale=None, str? quant_mode='pertoken') -> Tensor",
    "QuantMatmulDequant", lambda a: _rows_by_columns(a.x, a.quantized_weight.shape[0]),
    names={"quant_mode": "x_quant_mode"})

row("npu_quant_grouped_matmul_dequant(Tensor x, Tensor quantized_weight, Tensor weight_scale, "
    "Tensor group_list, *, Tensor? bias=None, Tensor? x_scale=None, Tensor? x_offset=None, "
    "Tensor? smooth_scale=None, str? quant_mode='pertoken') -> Tensor",
    "QuantGroupedMatmulDequant", lambda a: _rows_by_columns(a.x, a.quantized_weight.shape[1]),
    names={"quant_mode": "x_quant_mode"})


def _reduce_sum(a: Arguments) -> None:
    a.dims = [0]
    a.dtype = number(torch.bfloat16)


row("npu_quant_matmul_reduce_sum(Tensor x1, Tensor x2, *, Tensor? x1_scale=None, "
    "Tensor? x2_scale=None) -> Tensor",
    "QuantMatmulReduceSum",
    lambda a: made(a.x1, [a.x1.shape[-2], a.x2.shape[-1]], torch.bfloat16), adapt=_reduce_sum,
    constants=("dims",))

_ADD_TYPES = ("int? x1_dtype=None, int? x2_dtype=None, int? x1_scale_dtype=None, "
              "int? x2_scale_dtype=None")
_ADD = ("(%s self, Tensor x1, Tensor x2, Tensor x2_scale, *, Tensor? x1_scale=None, "
        "int[]? group_sizes=None, " + _ADD_TYPES + ") -> %s")
_ADD_GMM = ("(%s self, Tensor x1, Tensor x2, Tensor x2_scale, Tensor group_list, *, "
            "Tensor? x1_scale=None, int? group_list_type=0, int[]? group_sizes=None, "
            + _ADD_TYPES + ") -> %s")


def _add(a: Arguments) -> None:
    a.group_size = group_size(a.pop("group_sizes"))
    typed(a, "x1", "x2", "x1_scale", "x2_scale")


def _added(kind: str, schema: str, name: str, names: dict) -> None:
    row(name + schema % ("Tensor", "Tensor"), kind, lambda a: like(a.self), names=names,
        adapt=_add, copied=("self",))
    row(name + "_" + schema % ("Tensor(a!)", "Tensor(a!)"), kind, lambda a: a.self, names=names,
        adapt=_add)


_added("QuantBatchMatmulInplaceAdd", _ADD, "npu_add_quant_matmul", {"self": "y"})
_added("QuantGroupedMatmulInplaceAdd", _ADD_GMM, "npu_add_quant_gmm",
       {"self": "y", "x1_scale": "scale1", "x2_scale": "scale2"})


def _transpose_quant_meta(a: Arguments) -> torch.Tensor:
    first = _permuted(a.x1.shape, a.perm_x1 or (1, 0, 2))
    second = _permuted(a.x2.shape, a.perm_x2 or (0, 1, 2))
    return made(a.x1, _permuted([first[0], first[1], second[2]], a.perm_y or (1, 0, 2)),
                held_dtype(a.dtype, torch.bfloat16))


def _transpose_quant(a: Arguments) -> None:
    a.dtype = number(a.dtype)
    a.group_size = group_size(a.pop("group_sizes"))
    a.x1 = bits(a.x1, a.pop("x1_dtype"))
    a.x2 = bits(a.x2, a.pop("x2_dtype"))


row("npu_transpose_quant_batchmatmul(Tensor x1, Tensor x2, int dtype, *, Tensor? bias=None, "
    "Tensor? x1_scale=None, Tensor? x2_scale=None, int[]? group_sizes=None, "
    "int[]? perm_x1=None, int[]? perm_x2=None, int[]? perm_y=None, int? batch_split_factor=1, "
    "int? x1_dtype=None, int? x2_dtype=None) -> Tensor",
    "TransposeQuantBatchMatMul", _transpose_quant_meta, adapt=_transpose_quant)

# ---- groups of rows ----

# The attribute `dtype` of GroupedMatmul counts the types of its result.
_GROUPED_RESULTS = {"float16": 0, "bfloat16": 1, "int32": 2, "float32": 3}


def _grouped(a: Arguments) -> None:
    wanted = named(a.pop("output_dtype"))
    quantised = a.x[0].dtype in (torch.int8, torch.int32)
    if wanted is not None and quantised:
        if wanted not in _GROUPED_RESULTS:
            raise ValueError("npu_grouped_matmul: output_dtype: expected one of "
                             f"{', '.join(_GROUPED_RESULTS)}, seen {wanted}")
        a.dtype = _GROUPED_RESULTS[wanted]
    else:
        a.dtype = -1
    if a.per_token_scale is not None:
        a.per_token_scale = a.per_token_scale[0] if len(a.per_token_scale) else None
    if a.scale is not None:
        a.scale = [each.view(torch.uint64) if each.dtype == torch.int64 else each
                   for each in a.scale]
    for name in ("x", "weight", "scale"):
        wanted = a.pop(f"{name}_dtype", None)
        if a[name] is not None and wanted is not None:
            a[name] = [bits(each, wanted) for each in a[name]]
    a.per_token_scale = bits(a.per_token_scale, a.pop("per_token_scale_dtype", None))
    a.weight = [int4(each) if isinstance(each, torch.Tensor) else each for each in a.weight]
    a.x = [int4(each) if isinstance(each, torch.Tensor) else each for each in a.x]
    a.tuning_config = list(a.get("tuning_config") or [0])
    a.group_type = -1 if a.group_type is None else a.group_type
    a.counts["y"] = _grouped_count(a)


def _grouped_count(a: Arguments) -> int:
    if a.split_item in (2, 3):
        return 1
    return len(a.weight) if len(a.weight) > 1 else len(a.x)


def _grouped_meta(a: Arguments) -> List[torch.Tensor]:
    x_type = a.x[0].dtype
    dtype = held_dtype(a.output_dtype, x_type) if x_type in (torch.int8, torch.int32) else x_type
    if x_type == torch.int8 and a.output_dtype is None:
        dtype = torch.int32 if a.scale is None else torch.int8
    group_type = -1 if a.group_type is None else a.group_type
    if group_type == 2:
        groups = len(a.group_list) if a.group_list is not None else len(a.x)
        return [made(a.x[0], [groups, a.x[0].shape[0], a.weight[0].shape[-1]], dtype)]
    columns = _grouped_columns(a)
    if a.split_item in (2, 3):
        rows = sum(each.shape[0] for each in a.x)
        return [made(a.x[0], [rows, columns[0]], dtype)]
    if len(a.x) > 1 or len(a.weight) == 1:
        return [_rows_by_columns(each, columns[min(at, len(columns) - 1)], dtype)
                for at, each in enumerate(a.x)]
    raise NotImplementedError("npu_grouped_matmul: one x for many results: their lengths are the "
                              "values of group_list")


def _grouped_columns(a: Arguments) -> List[Any]:
    return [each.shape[-1] * (8 if each.dtype == torch.int32 else 1) for each in a.weight]


_GROUPED = ("(Tensor[] x, Tensor[] weight, *, Tensor[]? bias=None, Tensor[]? scale=None, "
            "Tensor[]? offset=None, Tensor[]? antiquant_scale=None, "
            "Tensor[]? antiquant_offset=None, Tensor[]? per_token_scale=None, "
            "%s group_list=None, Tensor[]? activation_input=None, "
            "Tensor[]? activation_quant_scale=None, Tensor[]? activation_quant_offset=None, "
            "int? split_item=0, int? group_type=None, int? group_list_type=0, "
            "int? act_type=0, %s) -> Tensor[]")
row("npu_grouped_matmul" + _GROUPED % (
    "Tensor?", "int[]? tuning_config=None, int? output_dtype=None, int? x_dtype=None, "
    "int? weight_dtype=None, int? scale_dtype=None, int? per_token_scale_dtype=None"),
    "GroupedMatmul", _grouped_meta, adapt=_grouped)
row("npu_grouped_matmul.List" + _GROUPED % ("int[]?", "ScalarType? output_dtype=None"),
    "GroupedMatmul", _grouped_meta, adapt=_grouped)


def _finalize(a: Arguments) -> None:
    if a.dtype not in (None, torch.float32):
        raise ValueError("npu_grouped_matmul_finalize_routing: dtype: expected torch.float32, "
                         f"seen {a.dtype}")
    a.dtype = number(torch.float32)
    a.output_bs = a.output_bs or a.x.shape[0]
    typed(a, "x", "w", "scale", "pertoken_scale")
    if isinstance(a.w, torch.Tensor):
        a.w = int4(a.w)
    a.tuning_config = list(a.tuning_config) if a.tuning_config else None


def _finalize_columns(a: Arguments) -> Any:
    """Those of the scales, which are never packed: [E, N], [E, groups, N], or in pairs."""
    if a.scale is None:
        raise ValueError("npu_grouped_matmul_finalize_routing: scale is missing")
    return a.scale.shape[-2] if a.scale.dim() == 4 else a.scale.shape[-1]


row("npu_grouped_matmul_finalize_routing(Tensor x, Tensor w, Tensor group_list, *, "
    "Tensor? scale=None, Tensor? bias=None, Tensor? offset=None, Tensor? pertoken_scale=None, "
    "Tensor? shared_input=None, Tensor? logit=None, Tensor? row_index=None, "
    "ScalarType? dtype=None, float? shared_input_weight=1.0, int? shared_input_offset=0, "
    "int? output_bs=0, int? group_list_type=1, int[]? tuning_config=None, int? x_dtype=None, "
    "int? w_dtype=None, int? scale_dtype=None, int? pertoken_scale_dtype=None) -> Tensor",
    "GroupedMatmulFinalizeRouting",
    lambda a: made(a.x, [a.output_bs or a.x.shape[0], _finalize_columns(a)], torch.float32),
    adapt=_finalize)


def _swiglu_quant(a: Arguments) -> None:
    a.quant_dtype = number(a.quant_dtype, "int8")
    a.dequant_dtype = number(a.dequant_dtype or torch.float32)
    for name in ("weight", "weight_scale"):
        wanted = a.pop(f"{name}_dtype")
        a[name] = [bits(each, wanted) for each in a[name]]
    typed(a, "x", "x_scale")
    a.tuning_config = list(a.tuning_config or [0])


row("npu_grouped_matmul_swiglu_quant_v2(Tensor x, Tensor[] weight, Tensor[] weight_scale, "
    "Tensor x_scale, Tensor group_list, *, Tensor? smooth_scale=None, "
    "Tensor[]? weight_assist_matrix=None, Tensor? bias=None, int? dequant_mode=0, "
    "int? dequant_dtype=0, int? quant_mode=0, int? quant_dtype=1, int? group_list_type=0, "
    "int[]? tuning_config=None, int? x_dtype=None, int? weight_dtype=None, "
    "int? weight_scale_dtype=None, int? x_scale_dtype=None) -> (Tensor, Tensor)",
    "GroupedMatmulSwigluQuantV2",
    lambda a: (made(a.x, [a.x.shape[0], a.weight[0].shape[-1] // 2],
                    held_dtype(a.quant_dtype, torch.int8)),
               made(a.x, [a.x.shape[0]], torch.float32)),
    adapt=_swiglu_quant)

_FFN_RESULTS = {"float16": 0, "bfloat16": 1}


def _ffn(a: Arguments) -> None:
    index = a.pop("expert_tokens_index")
    if a.expert_tokens is not None and index is not None:
        raise ValueError("npu_ffn: expert_tokens and expert_tokens_index: expected one of them")
    a.tokens_index_flag = index is not None
    a.expert_tokens = a.expert_tokens if index is None else index
    wanted = named(a.output_dtype)
    a.output_dtype = -1
    if a.x.dtype == torch.int8 and wanted is not None:
        if wanted not in _FFN_RESULTS:
            raise ValueError(f"npu_ffn: output_dtype: expected float16 or bfloat16, seen {wanted}")
        a.output_dtype = _FFN_RESULTS[wanted]
    a.inner_precise = a.inner_precise or 0


row("npu_ffn(Tensor x, Tensor weight1, Tensor weight2, str activation, *, "
    "int[]? expert_tokens=None, int[]? expert_tokens_index=None, Tensor? bias1=None, "
    "Tensor? bias2=None, Tensor? scale=None, Tensor? offset=None, Tensor? deq_scale1=None, "
    "Tensor? deq_scale2=None, Tensor? antiquant_scale1=None, Tensor? antiquant_scale2=None, "
    "Tensor? antiquant_offset1=None, Tensor? antiquant_offset2=None, int? inner_precise=None, "
    "ScalarType? output_dtype=None) -> Tensor",
    "FFN",
    lambda a: _rows_by_columns(a.x, a.weight2.shape[-1],
                               held_dtype(a.output_dtype, torch.float16)
                               if a.x.dtype == torch.int8 else None), adapt=_ffn)
