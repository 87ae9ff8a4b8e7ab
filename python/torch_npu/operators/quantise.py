"""Quantisation: values to few bits and back."""

from __future__ import annotations

from typing import Any

import torch

from .. import _types
from .._table import Arguments, bits, int4, like, made, row, typed
from .._types import held_dtype, held_shape, named, number
from .norms import mx_scales, mx_values


def _to(default: str = "int8") -> Any:
    """An adapt: the number of the type that is asked for."""

    def adapt(a: Arguments) -> None:
        a.dst_type = number(a.pop("dst_type"), default)

    return adapt


# ---- with given scales ----


def _quantize(a: Arguments) -> None:
    """div_mode divides by scales along an axis; the other form multiplies by them."""
    dtype = a.pop("dtype")
    name = named(dtype)
    if not a.div_mode:
        a.scale, a.offset = a.pop("scales"), a.pop("zero_points")
        a.axis = min(a.axis, -1)
        a.dst_type = number(dtype)
        a.round_mode = "round"
        return
    words = {"int8": "torch.qint8", "uint8": "torch.quint8", "int32": "torch.qint32",
             "hifloat8": "torch.hifloat8", "float8_e5m2": "torch.float8_e5m2",
             "float8_e4m3fn": "torch.float8_e4m3fn"}
    if name not in words:
        raise ValueError(f"npu_quantize: dtype: expected one of {', '.join(words)}, seen {name}")
    a.dtype = words[name]
    rank = a.self.dim()
    axis = a.axis + rank if a.axis < 0 else a.axis
    if not 0 <= axis < rank:
        raise ValueError(f"npu_quantize: axis: expected {-rank} to {rank - 1}, seen {a.axis}")
    a.axis = axis
    for scales in ("scales", "zero_points"):
        if a[scales] is not None:
            if a[scales].dim() != 1:
                raise ValueError(f"npu_quantize: {scales}: expected one dimension, seen "
                                 f"{list(a[scales].shape)}")
            shape = [1] * rank
            shape[axis] = -1
            a[scales] = a[scales].reshape(shape)


row("npu_quantize(Tensor self, Tensor scales, Tensor? zero_points, int dtype, int axis=1, "
    "bool div_mode=True) -> Tensor",
    lambda a: "Quantize" if a.div_mode else "AscendQuantV2",
    lambda a: made(a.self, held_shape(a.self.shape, a.dtype), held_dtype(a.dtype, torch.int8)),
    kinds=("Quantize", "AscendQuantV2"), names={"self": "x", "div_mode": None}, adapt=_quantize)


def _unquantised(a: Arguments) -> None:
    given = a.pop("src_dtype")
    a.x = bits(a.x, given) if given is not None else int4(a.x)
    if isinstance(a.x, torch.Tensor) and a.x.dtype == torch.uint8:
        a.x = bits(a.x, _types.hifloat8)
    a.dst_type = number(a.pop("dst_dtype"), "float16")


def _unquantised_meta(a: Arguments) -> torch.Tensor:
    shape = list(a.x.shape)
    if a.x.dtype == torch.int32:
        shape[-1] *= 8
    return made(a.x, shape, held_dtype(a.dst_dtype, torch.float16))


row("npu_anti_quant(Tensor x, Tensor scale, *, Tensor? offset=None, int? dst_dtype=None, "
    "int? src_dtype=None) -> Tensor",
    "AscendAntiQuantV2", _unquantised_meta, adapt=_unquantised)


def _group_quant(a: Arguments) -> None:
    a.dst_type = number(a.pop("dst_dtype"), "int8")


row("npu_group_quant(Tensor x, Tensor scale, Tensor group_index, *, Tensor? offset=None, "
    "ScalarType? dst_dtype=None) -> Tensor",
    "GroupQuant",
    lambda a: made(a.x, held_shape(a.x.shape, a.dst_dtype), held_dtype(a.dst_dtype, torch.int8)),
    adapt=_group_quant)

row("npu_trans_quant_param(Tensor scale, Tensor? offset=None, int? round_mode=0) -> Tensor",
    "TransQuantParamV2",
    lambda a: made(a.scale, _wider(a.scale, a.offset), torch.int64),
    results=lambda a, outputs: outputs["y"].view(torch.int64))


def _wider(scale: torch.Tensor, offset: Any) -> list:
    if offset is None or offset.numel() == 1:
        return list(scale.shape)
    return list(offset.shape) if scale.numel() == 1 else list(scale.shape)


row("npu_dequant_bias(Tensor x, Tensor weight_scale, Tensor? activation_scale, Tensor? bias, *, "
    "ScalarType? output_dtype=None) -> Tensor",
    "DequantBias", lambda a: like(a.x, held_dtype(a.output_dtype, torch.float16)),
    names={"activation_scale": "activate_scale"},
    adapt=lambda a: a.update(output_dtype=number(a.output_dtype, "float16")))

# ---- with scales of the values ----


def _is_dynamic_plain(a: Arguments) -> bool:
    return a.quant_mode == "pertoken" and a.dst_type_max == 0.0


def _dynamic(symmetric: bool) -> Any:
    def adapt(a: Arguments) -> None:
        a.dst_type = number(a.dst_type, "int8")
        a.plain = symmetric and _is_dynamic_plain(a)
        if a.plain:
            a.pop("quant_mode")
            a.pop("dst_type_max")
        else:
            a.is_symmetrical = symmetric

    return adapt


def _dynamic_scale(a: Arguments) -> torch.Tensor:
    rows = list(a.input.shape[:-1])
    shape = {"pertensor": [1], "perchannel": [*rows[:-1], a.input.shape[-1]]}.get(
        a.quant_mode, rows)
    return made(a.input, shape, torch.float32)


def _dynamic_values(a: Arguments) -> torch.Tensor:
    return made(a.input, held_shape(a.input.shape, a.dst_type),
                held_dtype(a.dst_type, torch.int8))


_DYNAMIC = ("(Tensor input, *, Tensor? smooth_scales=None, Tensor? group_index=None, "
            'int? dst_type=None, str quant_mode="pertoken", float dst_type_max=0.0) -> %s')
row("npu_dynamic_quant" + _DYNAMIC % "(Tensor, Tensor)",
    lambda a: "DynamicQuant" if a.plain else "DynamicQuantV2",
    lambda a: (_dynamic_values(a), _dynamic_scale(a)), kinds=("DynamicQuant", "DynamicQuantV2"),
    names={"input": "x", "plain": None}, adapt=_dynamic(True), results=("y", "scale"))
row("npu_dynamic_quant_asymmetric" + _DYNAMIC % "(Tensor, Tensor, Tensor)",
    "DynamicQuantV2",
    lambda a: (_dynamic_values(a), _dynamic_scale(a), _dynamic_scale(a)),
    names={"input": "x", "plain": None}, adapt=_dynamic(False))


def _rotate(a: Arguments) -> None:
    a.dst_dtype = number(a.dst_dtype, "int8")


row("npu_rotate_quant(Tensor x, Tensor rotation, *, float alpha=0.0, int? dst_dtype=None) "
    "-> (Tensor, Tensor)",
    "RotateQuant",
    lambda a: (made(a.x, held_shape(a.x.shape, a.dst_dtype), held_dtype(a.dst_dtype, torch.int8)),
               made(a.x, list(a.x.shape[:-1]), torch.float32)),
    names={"dst_dtype": "y_dtype"}, adapt=_rotate)

_ROUND = 'str round_mode="rint", '


def _mx_adapt(a: Arguments) -> None:
    a.dst_type = number(a.dst_type)


row("npu_dynamic_mx_quant(Tensor input, *, int axis=-1, " + _ROUND + "int dst_type=296, "
    "int block_size=32, int? scale_alg=0, float dst_type_max=0.0, float max_low_bound=0.0) "
    "-> (Tensor, Tensor)",
    "DynamicMxQuant",
    lambda a: (mx_values(a.input, a.dst_type), mx_scales(a.input, a.axis, a.block_size)),
    names={"input": "x", "block_size": "blocksize"}, adapt=_mx_adapt)

row("npu_dynamic_mx_quant_with_dual_axis(Tensor input, *, " + _ROUND + "int dst_type=296, "
    "int scale_alg=0, float? dst_type_max=0.0) -> (Tensor, Tensor, Tensor, Tensor)",
    "DynamicMxQuantWithDualAxis",
    lambda a: (mx_values(a.input, a.dst_type), mx_scales(a.input, -1),
               mx_values(a.input, a.dst_type), mx_scales(a.input, -2)),
    names={"input": "x"}, adapt=_mx_adapt)

row("npu_dynamic_block_mx_quant(Tensor input, *, " + _ROUND + "int dst_type=296, "
    "int scale_alg=0, float dst_type_max=0.0) -> (Tensor, Tensor, Tensor)",
    "DynamicBlockMxQuant",
    lambda a: (mx_values(a.input, a.dst_type), mx_scales(a.input, -1), mx_scales(a.input, -2)),
    names={"input": "x"}, adapt=_mx_adapt)


def _dual_meta(a: Arguments) -> tuple:
    first = list(a.input.shape)
    first[-1] = _blocks(first[-1], 512)
    return (mx_values(a.input, _types.float4_e2m1fn_x2), made(a.input, first, torch.float32),
            mx_scales(a.input))


row("npu_dynamic_dual_level_mx_quant(Tensor input, *, Tensor? smooth_scale=None, "
    'str round_mode="rint") -> (Tensor, Tensor, Tensor)',
    "DynamicDualLevelMxQuant", _dual_meta, names={"input": "x"})


def _grouped_mx_scales(a: Arguments) -> torch.Tensor:
    rows, columns = a.x.shape
    groups = a.group_index.shape[0]
    return made(a.x, [rows // (2 * a.blocksize) + groups, columns, 2], torch.uint8)


row("npu_grouped_dynamic_mx_quant(Tensor x, Tensor group_index, *, " + _ROUND
    + "int dst_type=23, int blocksize=32, int? scale_alg=0, float? dst_type_max=0.0) "
    "-> (Tensor, Tensor)",
    "GroupedDynamicMxQuant",
    lambda a: (mx_values(a.x, a.dst_type), _grouped_mx_scales(a)), adapt=_mx_adapt)


def _blocks(size: Any, block: int) -> Any:
    return (size + block - 1) // block


row("npu_dynamic_block_quant(Tensor x, *, float min_scale=0.0, " + _ROUND + "int dst_type=1, "
    "int row_block_size=1, int col_block_size=128, float dst_type_max=0.0) "
    "-> (Tensor y, Tensor scale)",
    "DynamicBlockQuant",
    lambda a: (like(a.x, held_dtype(a.dst_type, torch.int8)),
               made(a.x, [*a.x.shape[:-2], _blocks(a.x.shape[-2], a.row_block_size),
                          _blocks(a.x.shape[-1], a.col_block_size)], torch.float32)),
    adapt=_to())

row("npu_grouped_dynamic_block_quant(Tensor x, Tensor group_list, *, float min_scale=0.0, "
    + _ROUND + "int dst_type=291, int row_block_size=1, int col_block_size=128, "
    "int group_list_type=0, float dst_type_max=0.0) -> (Tensor, Tensor)",
    "GroupedDynamicBlockQuant",
    lambda a: (like(a.x, held_dtype(a.dst_type, torch.int8)),
               made(a.x, [*a.x.shape[:-2],
                          a.x.shape[-2] // a.row_block_size + a.group_list.shape[0],
                          _blocks(a.x.shape[-1], a.col_block_size)], torch.float32)),
    adapt=_to())

row("npu_anti_mx_quant(Tensor x, Tensor mxscale, *, int? axis=-1, int? dst_type=15, "
    "int? src_type=292) -> Tensor",
    "AntiMxQuant",
    lambda a: made(a.x, [*a.x.shape[:-1], a.x.shape[-1] * _types.holder(named(a.src_type))[1]],
                   held_dtype(a.dst_type, torch.bfloat16)),
    adapt=lambda a: a.update(x=bits(a.x, a.pop("src_type")), dst_type=number(a.dst_type),
                             mxscale=bits(a.mxscale, _types.float8_e8m0fnu)))


def _quant_max(a: Arguments) -> None:
    a.dst_type = number(a.pop("dst_dtype"))


row("npu_quant_max(Tensor x, Tensor scale, *, " + _ROUND + "int dst_dtype=291, "
    "Tensor? group_list=None) -> (Tensor, Tensor)",
    "QuantMax",
    lambda a: (like(a.x, held_dtype(a.dst_dtype, torch.int8)), made(a.x, [1])), adapt=_quant_max)

# ---- after an activation ----

_ROUNDS = ("rint", "round", "floor", "ceil", "trunc")


def _dequant_swiglu(a: Arguments) -> None:
    a.dst_type = number(a.dst_type, "int8")
    a.round_mode = _ROUNDS[a.round_mode or 0]
    a.activate_dim = -1 if a.activate_dim is None else a.activate_dim
    a.quant_mode = "dynamic" if a.quant_mode == 1 else "static"


def _swiglu_values(a: Arguments) -> torch.Tensor:
    shape = list(a.x.shape)
    dim = -1 if a.activate_dim is None else a.activate_dim
    shape[dim] = shape[dim] // 2
    return made(a.x, shape)


def _dequant_swiglu_meta(a: Arguments) -> tuple:
    values = _swiglu_values(a)
    return (made(a.x, held_shape(values.shape, a.dst_type), held_dtype(a.dst_type, torch.int8)),
            made(a.x, values.shape[:-1], torch.float32))


row("npu_dequant_swiglu_quant(Tensor x, *, Tensor? weight_scale=None, "
    "Tensor? activation_scale=None, Tensor? bias=None, Tensor? quant_scale=None, "
    "Tensor? quant_offset=None, Tensor? group_index=None, bool activate_left=False, "
    "int quant_mode=0, int? dst_type=None, int? round_mode=None, int? activate_dim=None, "
    "int swiglu_mode=0, float clamp_limit=7.0, float glu_alpha=1.702, float glu_bias=1.0) "
    "-> (Tensor, Tensor)",
    "DequantSwigluQuant", _dequant_swiglu_meta, adapt=_dequant_swiglu)


def _swiglu_mx_meta(a: Arguments) -> tuple:
    values = _swiglu_values(a)
    return mx_values(values, a.dst_type), mx_scales(values, a.axis)


row("npu_swiglu_mx_quant(Tensor x, *, Tensor? group_index=None, int activate_dim=-1, "
    "bool activate_left=False, int swiglu_mode=0, float clamp_limit=7.0, float glu_alpha=1.702, "
    "float glu_bias=1.0, int group_mode=0, int axis=-1, int dst_type=296, "
    'str round_mode="rint", int scale_alg=0, float max_dtype_value=0) -> (Tensor, Tensor)',
    "SwigluMxQuant", _swiglu_mx_meta, adapt=_mx_adapt)


def _gelu_quant_meta(a: Arguments) -> tuple:
    scales = list(a.self.shape[:-1]) if a.quant_mode == "dynamic" else [1]
    return (like(a.self, held_dtype(a.dst_type, torch.int8)),
            made(a.self, scales, torch.float32))


row("npu_gelu_quant(Tensor self, *, Tensor? input_scale=None, Tensor? input_offset=None, "
    "str approximate='none', str quant_mode='dynamic', int? dst_type=None, "
    "str round_mode='rint') -> (Tensor, Tensor)",
    "GeluQuant", _gelu_quant_meta, names={"self": "x"}, adapt=_to())


def _kronecker(a: Arguments) -> None:
    a.dst_dtype = number(a.dst_dtype, "int4")
    if a.dst_dtype == number(torch.int32):
        a.dst_dtype = number(_types.int4)


def _kronecker_meta(a: Arguments) -> tuple:
    wanted = _types.int4 if named(a.dst_dtype) in (None, "int32") else a.dst_dtype
    if wanted == _types.int4:
        return (made(a.x, held_shape(a.x.shape, wanted), torch.int32),
                made(a.x, a.x.shape[:1], torch.float32))
    batch, rows, columns = a.x.shape
    return (made(a.x, held_shape([batch, rows * columns], wanted), torch.uint8),
            made(a.x, [batch, (rows * columns + 63) // 64, 2], torch.uint8))


row("npu_kronecker_quant(Tensor x, Tensor kronecker_p1, Tensor kronecker_p2, "
    "float? clip_ratio=None, int? dst_dtype=None, float? dst_type_max=None) "
    "-> (Tensor out, Tensor quant_scale)",
    "FlatQuant", _kronecker_meta, adapt=_kronecker)

# ---- convolutions of int8 ----


def _quant_conv(a: Arguments) -> None:
    for name in ("strides", "dilations"):
        a[name] = [1, 1, *_pair(a[name])]
    above, left = _pair(a.pads)
    a.pads = [above, above, left, left]
    a.output_dtype = number(a.output_dtype, "float16")
    typed(a, "input", "weight")
    a.data_format = "NCHW"


def _pair(numbers: Any) -> list:
    return [numbers, numbers] if isinstance(numbers, int) else [numbers[0], numbers[-1]]


def _quant_conv_meta(a: Arguments) -> torch.Tensor:
    shape = [a.input.shape[0], a.weight.shape[0]]
    for side in range(2):
        reach = _pair(a.dilations)[side] * (a.weight.shape[2 + side] - 1) + 1
        room = a.input.shape[2 + side] + 2 * _pair(a.pads)[side] - reach
        shape.append(room // _pair(a.strides)[side] + 1)
    return made(a.input, shape, held_dtype(a.output_dtype, torch.float16))


row("npu_quant_conv2d(Tensor input, Tensor weight, Tensor scale, int[2] strides=1, "
    "int[2] pads=0, int[2] dilations=1, int groups=1, int offset_x=0, " + _ROUND
    + "int? output_dtype=None, Tensor? bias=None, Tensor? offset=None, int? input_dtype=None, "
    "int? weight_dtype=None) -> Tensor",
    "QuantConv2D", _quant_conv_meta,
    names={"input": "x", "weight": "filter", "output_dtype": "dtype"}, adapt=_quant_conv)


# ---- a gated activation ----


def _swiglu_quant(a: Arguments) -> None:
    if a.quant_mode not in (0, 1):
        raise ValueError(f"quant_mode: expected 0 (static) or 1 (dynamic), seen {a.quant_mode}")
    a.quant_mode = ("static", "dynamic")[a.quant_mode]
    a.dst_type = number(a.dst_type, "int8")


def _swiglu_quant_meta(a: Arguments) -> tuple:
    """Two elements of int4 lie in one of int8."""
    width = a.x.shape[-1] // (4 if named(a.dst_type) == "int4" else 2)
    return (made(a.x, [*a.x.shape[:-1], width], torch.int8),
            made(a.x, a.x.shape[:-1], torch.float32))


row("npu_swiglu_quant(Tensor x, *, Tensor? smooth_scales=None, Tensor? offsets=None, "
    "Tensor? group_index=None, bool activate_left=False, int quant_mode=0, int group_list_type=0, "
    "ScalarType? dst_type=None) -> (Tensor, Tensor)",
    "SwiGluQuant", _swiglu_quant_meta, adapt=_swiglu_quant,
    results=lambda a, outputs: (outputs["y"].view(torch.int8), outputs["scale"]))

# ---- packed weights ----


def _int4pack(a: Arguments) -> None:
    if a.weight.dtype != torch.int32 or a.weight.shape[-1] % 8 != 0:
        raise ValueError("weight: expected int32 whose last dimension is a multiple of 8, seen "
                         f"{a.weight.dtype} {list(a.weight.shape)}")
    a.scale = torch.ones(1)
    a.x = a.pop("weight").float()
    a.dst_type = number(_types.int4)


row("npu_convert_weight_to_int4pack(Tensor weight, int inner_k_tiles=0) -> Tensor",
    "AscendQuantV2", lambda a: made(a.weight, [*a.weight.shape[:-1], a.weight.shape[-1] // 8]),
    names={"inner_k_tiles": None}, adapt=_int4pack)
