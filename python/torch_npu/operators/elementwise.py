"""Activations, rotary embeddings, casts."""

from __future__ import annotations

import torch

from .. import _types
from .._table import Arguments, bits, like, made, row
from .._types import held_dtype, held_shape, named, number


def _halved(x: torch.Tensor, dim: int, dtype: torch.dtype = None) -> torch.Tensor:
    shape = list(x.shape)
    shape[dim] = shape[dim] // 2
    return made(x, shape, dtype)


# ---- activations ----

row("npu_swiglu(Tensor self, int dim=-1) -> Tensor",
    "SwiGlu", lambda a: _halved(a.self, a.dim), names={"self": "x"})

row("npu_swiglu_backward(Tensor grad_output, Tensor self, int dim=-1) -> Tensor",
    "SwiGluGrad", lambda a: like(a.self), names={"grad_output": "y_grad", "self": "x"})

row("npu_geglu(Tensor self, int dim=-1, int approximate=1, bool activate_left=False) "
    "-> (Tensor, Tensor)",
    "GeGluV2", lambda a: (_halved(a.self, a.dim), _halved(a.self, a.dim)), names={"self": "x"})

row("npu_clipped_swiglu(Tensor x, *, Tensor? group_index=None, int dim=-1, float alpha=1.702, "
    "float limit=7.0, float bias=1.0, bool interleaved=True) -> Tensor",
    "ClippedSwiglu", lambda a: _halved(a.x, a.dim))

row("npu_gelu_mul(Tensor input, *, str approximate='none') -> Tensor",
    "GeluMul", lambda a: _halved(a.input, -1), names={"input": "x"})

row("npu_fast_gelu(Tensor self) -> Tensor", "FastGelu", lambda a: like(a.self),
    names={"self": "x"})
row("fast_gelu(Tensor self) -> Tensor", "FastGelu", lambda a: like(a.self), names={"self": "x"})
row("npu_fast_gelu_backward(Tensor grad, Tensor self) -> Tensor",
    "FastGeluGrad", lambda a: like(a.self), names={"grad": "dy", "self": "x"})

row("npu_gelu(Tensor self, *, str approximate='none') -> Tensor",
    "GeluV2", lambda a: like(a.self), names={"self": "x"})
row("npu_gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
    "GeluGradV2", lambda a: like(a.self), names={"grad_output": "dy", "self": "x"})

row("npu_silu(Tensor self) -> Tensor", "Swish", lambda a: like(a.self), names={"self": "x"})
row("npu_silu_(Tensor(a!) self) -> Tensor(a!)", "Swish", lambda a: a.self, names={"self": "x"},
    results=lambda a, outputs: a.self.copy_(outputs["y"]))
row("npu_silu_backward(Tensor grad_output, Tensor x0, Tensor x1) -> Tensor",
    "SwishGrad", lambda a: like(a.x0), names={"grad_output": "grad", "x0": "x", "x1": "y"})
row("npu_mish(Tensor self) -> Tensor", "Mish", lambda a: like(a.self), names={"self": "x"})
row("npu_mish_backward(Tensor grad, Tensor input) -> Tensor", "MishGrad",
    lambda a: like(a.input), names={"input": "x"})

row("npu_masked_softmax_with_rel_pos_bias(Tensor x, Tensor? atten_mask, Tensor relative_pos_bias, "
    "float scale_value=1.0, int inner_precision_mode=0) -> Tensor",
    "MaskedSoftmaxWithRelPosBias", lambda a: like(a.x))

_SCALE = "Scalar scale%s, bool fixed_triu_mask%s"


def _scale(a: Arguments) -> None:
    a.scale = float(a.scale)


row("npu_scaled_masked_softmax(Tensor x, Tensor mask, " + _SCALE % ("=1", "=False") + ") -> Tensor",
    "ScaledMaskedSoftmax", lambda a: like(a.x), adapt=_scale)
row("npu_scaled_masked_softmax_backward(Tensor y_grad, Tensor y, Tensor mask, "
    + _SCALE % ("", "") + ") -> Tensor",
    "ScaledMaskedSoftmaxGrad", lambda a: like(a.y_grad), adapt=_scale)

# ---- losses ----

_LOSS = ('str reduction=\'mean\', int ignore_index=-100, float label_smoothing=0.0, '
         'float lse_square_scale_for_zloss=0.0')

row("npu_cross_entropy_loss(Tensor input, Tensor target, Tensor? weight=None, " + _LOSS
    + ", bool return_zloss=False) -> (Tensor, Tensor, Tensor, Tensor)",
    "CrossEntropyLoss",
    lambda a: (made(a.input, [a.input.shape[0] if a.reduction == "none" else 1]), like(a.input),
               made(a.input, [0]), made(a.input, [0])))
row("npu_cross_entropy_loss_backward(Tensor grad_loss, Tensor log_prob, Tensor target, "
    "Tensor? weight=None, Tensor? grad_zloss=None, Tensor? lse_for_zloss=None, " + _LOSS
    + ") -> Tensor",
    "CrossEntropyLossGrad", lambda a: like(a.log_prob, a.grad_loss.dtype))

row("npu_softmax_cross_entropy_with_logits(Tensor self, Tensor labels) -> Tensor",
    "SoftmaxCrossEntropyWithLogits", lambda a: made(a.self, a.self.shape[:-1]),
    names={"self": "features"}, results=("loss",))

# ---- rotary embeddings ----

_MODES = {"half": 0, "interleave": 1, "quarter": 2, "interleave-half": 3}


def _rotary_mode(name: str) -> int:
    if name not in _MODES:
        raise ValueError(f"rotary_mode: expected one of {', '.join(_MODES)}, seen {name!r}")
    return _MODES[name]


def _is_plain_half(a: Arguments) -> bool:
    return a.rotary_mode == "half" and a.get("rotate") is None


def _rotary(a: Arguments) -> None:
    """The halves have an operator of their own; the other forms are modes of another one."""
    plain = _is_plain_half(a)
    first, second = ("r1", "r2") if plain else ("cos", "sin")
    a[first], a[second] = a.pop("r1"), a.pop("r2")
    mode = _rotary_mode(a.pop("rotary_mode"))
    if not plain:
        a.mode = mode
    a.plain = plain


def _rotary_kind(grad: str) -> dict:
    return {"kind": lambda a: ("RotaryMul" if a.plain else "RotaryPositionEmbedding") + grad,
            "kinds": ("RotaryMul" + grad, "RotaryPositionEmbedding" + grad)}


row("npu_rotary_mul(Tensor self, Tensor r1, Tensor r2, str rotary_mode='half', "
    "Tensor? rotate=None) -> Tensor",
    meta=lambda a: like(a.self), names={"self": "x", "plain": None}, adapt=_rotary,
    **_rotary_kind(""))

row("npu_rotary_mul_backward(Tensor grad, Tensor self, Tensor r1, Tensor r2, "
    "str rotary_mode='half') -> (Tensor, Tensor, Tensor)",
    meta=lambda a: (like(a.self), like(a.r1), like(a.r2)),
    names={"self": "x", "grad": "dy", "plain": None}, adapt=_rotary, **_rotary_kind("Grad"))

row("npu_rotary_position_embedding(Tensor x, Tensor cos, Tensor sin, int mode=0) -> Tensor",
    "RotaryPositionEmbedding", lambda a: like(a.x))


def _by_positions(a: Arguments) -> None:
    """Heads of all tokens in rows, whose number follows from the shapes."""
    a.numQHeads, a.numKHeads = (a[name].numel() // (a.positions.shape[-1] * a.headSize)
                                if a.positions.shape[-1] else 0 for name in ("queryIn", "keyIn"))


def _mrope(a: Arguments) -> None:
    modes = {"half": True, "interleave": False}
    if (a.rotary_mode or "half") not in modes:
        raise ValueError(f"rotary_mode: expected half or interleave, seen {a.rotary_mode!r}")
    caches = {"default": 0, "interleave": 1}
    if (a.cache_mode or "default") not in caches:
        raise ValueError(f"cache_mode: expected default or interleave, seen {a.cache_mode!r}")
    a.isNeoxStyle = modes[a.pop("rotary_mode") or "half"]
    a.cacheMode = caches[a.pop("cache_mode") or "default"]
    a.mropeSection = list(a.pop("mrope_section") or [0, 0, 0])
    a.queryIn, a.keyIn, a.headSize = a.pop("query"), a.pop("key"), a.pop("head_size")
    _by_positions(a)


row("npu_mrope(Tensor positions, Tensor query, Tensor key, Tensor cos_sin_cache, int head_size, *, "
    "int[]? mrope_section=None, str? rotary_mode='half', str? cache_mode='default') "
    "-> (Tensor, Tensor)",
    "RopeWithSinCosCache", lambda a: (like(a.query), like(a.key)), adapt=_mrope,
    names={"cos_sin_cache": "cosSinCache"})


def _rotated_in_place(a: Arguments) -> None:
    a.positions = a.positions.flatten()
    a.queryIn, a.keyIn, a.headSize = a.query, a.key, a.pop("head_size")
    _by_positions(a)


def _write_rotated(a: Arguments, outputs: dict) -> None:
    a.query.copy_(outputs["queryOut"])
    a.key.copy_(outputs["keyOut"])


row("_npu_rotary_embedding(Tensor positions, Tensor(a!) query, Tensor(b!) key, int head_size, "
    "Tensor cos_sin_cache, bool is_neox_style) -> ()",
    "RopeWithSinCosCache", lambda a: None, adapt=_rotated_in_place, results=_write_rotated,
    names={"query": None, "key": None, "cos_sin_cache": "cosSinCache",
           "is_neox_style": "isNeoxStyle"})

_LAYOUTS = {"BSH": 1, "BSND": 1, "SBND": 2, "BNSD": 3, "TND": 4}


def _apply_rotary(a: Arguments) -> None:
    if a.layout not in _LAYOUTS:
        raise ValueError(f"layout: expected one of {', '.join(_LAYOUTS)}, seen {a.layout!r}")
    a.layout = _LAYOUTS[a.layout]


row("npu_apply_rotary_pos_emb(Tensor query, Tensor key, Tensor cos, Tensor sin, "
    "str layout='BSND', str rotary_mode='half') -> (Tensor, Tensor)",
    "ApplyRotaryPosEmb", lambda a: (like(a.query), like(a.key)), adapt=_apply_rotary,
    copied=("query", "key"))

row("npu_interleave_rope(Tensor x, Tensor cos, Tensor sin) -> Tensor",
    "InterleaveRope", lambda a: like(a.x))

# ---- casts ----


def _cast(a: Arguments) -> None:
    a.self = bits(a.self, a.pop("input_dtype", None))
    a.dst_type = number(a.pop("dtype"))


def _cast_meta(a: Arguments) -> torch.Tensor:
    shape = list(a.self.shape)
    given = named(a.get("input_dtype"))
    if given is not None:
        shape[-1:] = [each * _types.holder(given)[1] for each in shape[-1:]]
    return made(a.self, held_shape(shape, a.dtype), held_dtype(a.dtype, torch.float32))


row("npu_dtype_cast(Tensor self, int dtype, int? input_dtype=None) -> Tensor",
    "Cast", _cast_meta, names={"self": "x"}, adapt=_cast)
row("_npu_dtype_cast(Tensor self, ScalarType dtype) -> Tensor",
    "Cast", _cast_meta, names={"self": "x"}, adapt=_cast)


def _cast_back(a: Arguments) -> None:
    a.x = bits(a.pop("grad"), a.pop("grad_dtype", None))
    wanted = a.pop("input_dtype", None)
    given = a.pop("dtype")
    a.dst_type = number(given if wanted is None else wanted)


def _cast_back_meta(a: Arguments) -> torch.Tensor:
    wanted = a.get("input_dtype")
    return _cast_meta(Arguments({"self": a.grad, "input_dtype": a.get("grad_dtype"),
                                 "dtype": a.dtype if wanted is None else wanted}))


row("npu_dtype_cast_backward(Tensor grad, ScalarType dtype, int? grad_dtype=None, "
    "int? input_dtype=None) -> Tensor",
    "Cast", _cast_back_meta, adapt=_cast_back)
row("_npu_dtype_cast_backward(Tensor grad, ScalarType dtype) -> Tensor",
    "Cast", _cast_back_meta, adapt=_cast_back)
