"""Where elements go: scatter, gather, transpose, pad."""

from __future__ import annotations

from typing import Any

import torch

from .._graph import Constant
from .._table import Arguments, bits, like, made, row
from .._types import named

_VAR = {"self": "var"}

row("npu_scatter_nd_update(Tensor self, Tensor indices, Tensor updates) -> Tensor",
    "ScatterNdUpdate", lambda a: like(a.self), names=_VAR, copied=("self",))
row("npu_scatter_nd_update_(Tensor(a!) self, Tensor indices, Tensor updates) -> Tensor(a!)",
    "ScatterNdUpdate", lambda a: a.self, names=_VAR)


def _update(a: Arguments) -> None:
    a.reduce = "update"


row("scatter_update(Tensor self, Tensor indices, Tensor updates, int axis) -> Tensor",
    "Scatter", lambda a: like(a.self), names=_VAR, adapt=_update, copied=("self",))
row("scatter_update_(Tensor(a!) self, Tensor indices, Tensor updates, int axis) -> Tensor(a!)",
    "Scatter", lambda a: a.self, names=_VAR, adapt=_update)


def _scatter_list(a: Arguments) -> None:
    a.counts["var"] = len(a.self)


row("npu_scatter_list(Tensor[] self, Tensor indices, Tensor updates, Tensor? mask=None, "
    "str reduce='update', int axis=-2) -> Tensor[]",
    "ScatterList", lambda a: [like(each) for each in a.self],
    names={"self": "var", "indices": "indice"}, adapt=_scatter_list, copied=("self",),
    results=("=var",))
row("npu_scatter_list_(Tensor(a!)[] self, Tensor indices, Tensor updates, Tensor? mask=None, "
    "str reduce='update', int axis=-2) -> ()",
    "ScatterList", lambda a: None, names={"self": "var", "indices": "indice"},
    adapt=_scatter_list, results=())


def _quant_scatter(a: Arguments) -> None:
    wanted = a.pop("dst_type")
    if named(wanted) == "hifloat8":
        a.self = bits(a.self, wanted)
    a.round_mode = a.round_mode or "rint"


_QUANT_SCATTER = ("(%s self, Tensor indices, Tensor updates, Tensor quant_scales, "
                  "Tensor? quant_zero_points=None, int axis=-2, int quant_axis=-1, "
                  "str reduce='update', int? dst_type=None, str? round_mode='rint') -> %s")
row("npu_quant_scatter" + _QUANT_SCATTER % ("Tensor", "Tensor"),
    "QuantUpdateScatter", lambda a: like(a.self), names=_VAR, adapt=_quant_scatter,
    copied=("self",))
row("npu_quant_scatter_" + _QUANT_SCATTER % ("Tensor(a!)", "Tensor(a!)"),
    "QuantUpdateScatter", lambda a: a.self, names=_VAR, adapt=_quant_scatter)


def _gather_back(a: Arguments) -> None:
    a.data = torch.zeros([int(each) for each in a.pop("self_size")], dtype=a.grad.dtype)
    a.reduction = "add"
    a.pop("sparse_grad")


row("npu_gather_backward(Tensor grad, SymInt[] self_size, int dim, Tensor index, "
    "bool sparse_grad) -> Tensor",
    "ScatterElements", lambda a: made(a.grad, a.self_size), adapt=_gather_back,
    names={"index": "indices", "grad": "updates", "dim": "axis"})

row("npu_transpose(Tensor self, int[] perm, bool require_contiguous=True) -> Tensor",
    "Transpose", lambda a: made(a.self, [a.self.shape[each] for each in a.perm]),
    names={"self": "x", "require_contiguous": None}, constants=("perm",))

row("npu_broadcast(Tensor self, int[] size) -> Tensor",
    "BroadcastTo", lambda a: made(a.self, a.size), names={"self": "x", "size": "shape"},
    constants=("size",))

row("npu_reshape(Tensor self, int[] shape, bool can_refresh=False) -> Tensor",
    "Reshape", lambda a: made(a.self, torch.empty(a.self.shape, device="meta").reshape(
        tuple(a.shape)).shape), names={"self": "x", "can_refresh": None}, constants=("shape",))

row("npu_slice(Tensor self, int[] offsets, int[] size) -> Tensor",
    "Slice", lambda a: made(a.self, [
        whole - offset if size == -1 else size
        for whole, offset, size in zip(a.self.shape, a.offsets, a.size)]), names={"self": "x"},
    constants=("offsets", "size"))


def _pad(a: Arguments) -> None:
    a.paddings = Constant.of(a.paddings, a.input.dim(), 2)


row("npu_pad(Tensor input, int[] paddings) -> Tensor",
    "Pad", lambda a: made(a.input, [
        size + a.paddings[2 * at] + a.paddings[2 * at + 1]
        for at, size in enumerate(a.input.shape)]), names={"input": "x"}, adapt=_pad,
    constants=("paddings",))


def _sort(a: Arguments) -> None:
    a.axis = a.pop("dim")


row("npu_sort_v2(Tensor self, int dim=-1, bool descending=False) -> Tensor",
    "Sort", lambda a: like(a.self), names={"self": "x"}, adapt=_sort, results=("y1",))


def _extreme(kind: str) -> None:
    def meta(a: Arguments) -> tuple:
        shape = list(a.self.shape)
        dim = a.dim % len(shape)
        shape[dim:dim + 1] = [1] if a.keepdim else []
        return made(a.self, shape), made(a.self, shape, torch.int32)

    row(f"npu_{kind}.dim(Tensor self, int dim, bool keepdim=False) "
        "-> (Tensor values, Tensor indices)",
        f"Arg{kind.title()}WithValue", meta, results=("values", "indice"),
        names={"self": "x", "dim": "dimension", "keepdim": "keep_dims"})


_extreme("max")
_extreme("min")


def _no_result(_: Arguments, __: Any) -> None:
    return None


row("npu_prefetch(Tensor self, Tensor? dependency, int max_size, int offset=0) -> ()",
    "Cmo", lambda a: None, names={"self": "src", "dependency": None}, results=_no_result)

# ---- convolutions over tokens ----

row("npu_masked_causal_conv1d(Tensor input, Tensor weight, *, Tensor? mask=None) -> Tensor",
    "MaskedCausalConv1d", lambda a: like(a.input))

_CAUSAL = ("*, Tensor? query_start_loc=None, Tensor? cache_indices=None, "
           "Tensor? initial_state_mode=None, Tensor? bias=None, Tensor? num_accepted_tokens=None, "
           'str? activation="None", int? pad_slot_id=-1, int? run_mode=0, '
           "int? residual_connection=0, int? max_query_len=-1, "
           "Tensor? num_computed_tokens=None, Tensor? block_idx_first_scheduled_token=None, "
           "Tensor? block_idx_last_scheduled_token=None, Tensor? initial_state_idx=None, "
           'int? block_size=128, str? conv_mode="default")')


def _causal(a: Arguments) -> None:
    a.activation_mode = {"silu": 1, "swish": 2}.get(a.pop("activation"), 0)
    a.conv_mode = {"pangu": 1}.get(a.conv_mode, 0)


row("npu_fused_causal_conv1d(Tensor x, Tensor weight, Tensor(a!) conv_states, " + _CAUSAL
    + " -> Tensor",
    "FusedCausalConv1d", lambda a: like(a.x), adapt=_causal, results=("y",))
row("npu_fused_causal_conv1d_v2(Tensor(a!) x, Tensor weight, Tensor(b!) conv_states, " + _CAUSAL
    + " -> ()",
    "InplaceFusedCausalConv1d", lambda a: None, adapt=_causal, results=())


# ---- slices ----

_SLICE = ("(Tensor self, int[] begin, int[] end, int[] strides, int begin_mask=0, int end_mask=0, "
          "int ellipsis_mask=0, int new_axis_mask=0, int shrink_axis_mask=0%s) -> %s")


def _sliced(a: Arguments) -> torch.Tensor:
    """The shape by the rules of StridedSlice: bit i of a mask is about entry i."""
    index: list = []
    for at, (begin, end, stride) in enumerate(zip(a.begin, a.end, a.strides)):
        bit = 1 << at
        if a.ellipsis_mask & bit:
            index.append(Ellipsis)
        elif a.new_axis_mask & bit:
            index.append(None)
        elif a.shrink_axis_mask & bit:
            index.append(begin)
        elif stride < 0:
            raise NotImplementedError("torch_npu: npu_indexing: strides below 0 have no meta form")
        else:
            index.append(slice(None if a.begin_mask & bit else begin,
                               None if a.end_mask & bit else end, stride))
    return made(a.self, a.self[tuple(index)].shape)


_SLICE_ROW = {"kind": "StridedSlice", "names": {"self": "x"},
              "constants": ("begin", "end", "strides")}

row("npu_indexing" + _SLICE % ("", "Tensor"), meta=_sliced, **_SLICE_ROW)


def _write_slice(a: Arguments, outputs: dict) -> torch.Tensor:
    return a.out.resize_(outputs["y"].shape).copy_(outputs["y"])


row("npu_indexing.out" + _SLICE % (", *, Tensor(a!) out", "Tensor(a!)"), meta=lambda a: a.out,
    results=_write_slice, **{**_SLICE_ROW, "names": {"self": "x", "out": None}})

# ---- logits that a sampler may draw ----


def _sorted(a: Arguments) -> None:
    a.sorted_value, a.sorted_indices = torch.sort(a.pop("logits"), dim=-1, stable=True)


row("npu_top_k_top_p(Tensor logits, Tensor? p=None, Tensor? k=None) -> Tensor",
    "ApplyTopKTopPWithSorted", lambda a: like(a.logits), adapt=_sorted)
