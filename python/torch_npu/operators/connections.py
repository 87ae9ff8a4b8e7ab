"""Connections between layers by several streams (mHC), of torch's operators, which have gradients.

x is [..., n, D]: n streams of width D of each token. Matrices of a token are [..., n, n].
"""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import torch

from .._table import composed


def _nothing(like: torch.Tensor) -> torch.Tensor:
    return like.new_empty(0, dtype=torch.float32)


# ---- into a layer ----


def _sizes(x: torch.Tensor, phi: torch.Tensor, alpha: torch.Tensor) -> List[Any]:
    """How the products with phi are cut: what each stream gives to the layer, what it gets of it,
    and, unless alpha has two elements, how streams are mixed."""
    n, width = x.shape[-2:]
    sizes = [n, n, n * n][:alpha.numel()]
    if alpha.numel() not in (2, 3) or phi.shape != (sum(sizes), n * width):
        raise RuntimeError(f"npu_mhc_pre: alpha {list(alpha.shape)} and phi {list(phi.shape)} for x "
                           f"{list(x.shape)}; expected [2] and [{2 * n}, {n * width}], or [3] and "
                           f"[{n * n + 2 * n}, {n * width}]")
    return sizes


def _check_shape(name: str, tensor: torch.Tensor, shape: Any) -> None:
    if tensor.shape != torch.Size(shape):
        raise RuntimeError(f"npu_mhc: {name} shape must be {list(shape)}, seen {list(tensor.shape)}")


class _Hf32(torch.autograd.Function):
    """Rounds to the 10 bits after the point that products of HF32 take, halves away from 0."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return ((((x.contiguous().view(torch.int32) >> 12) + 1) >> 1) << 13).view(torch.float32)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad


def _weighted(flat: torch.Tensor, gamma: Optional[torch.Tensor]) -> torch.Tensor:
    return flat if gamma is None else flat * gamma.flatten()


def _pre(x: torch.Tensor, phi: torch.Tensor, alpha: torch.Tensor, bias: torch.Tensor, *,
         gamma: Optional[torch.Tensor] = None, norm_eps: float = 1e-6, hc_eps: float = 1e-6,
         out_flag: int = 0, inner_precise: int = 0) -> Tuple[torch.Tensor, ...]:
    """h_in, h_post, h_res, and with `out_flag` inv_rms, h_mix and h_pre."""
    sizes = _sizes(x, phi, alpha)
    flat = x.float().flatten(-2)
    inv_rms = torch.rsqrt(flat.square().mean(-1, keepdim=True) + norm_eps)
    left, right = _weighted(flat, gamma), phi.float()
    if inner_precise == 1:
        left, right = _Hf32.apply(left), _Hf32.apply(right)
    h_mix = left @ right.t()
    cut = [part * a + b for part, a, b in
           zip((h_mix * inv_rms).split(sizes, -1), alpha, bias.split(sizes))]
    h_pre = cut[0].sigmoid() + hc_eps
    h_res = cut[2].unflatten(-1, (sizes[0], sizes[0])) if len(cut) == 3 else _nothing(x)
    h_in = (h_pre.unsqueeze(-1) * x.float()).sum(-2).to(x.dtype)
    more = (inv_rms.squeeze(-1), h_mix, h_pre) if out_flag else (_nothing(x),) * 3
    return (h_in, 2 * cut[1].sigmoid(), h_res, *more)


def _pre_backward(x: torch.Tensor, phi: torch.Tensor, alpha: torch.Tensor,
                  grad_h_in: torch.Tensor, grad_h_post: torch.Tensor, grad_h_res: torch.Tensor,
                  inv_rms: torch.Tensor, h_mix: torch.Tensor, h_pre: torch.Tensor,
                  h_post: torch.Tensor, gamma: Optional[torch.Tensor] = None,
                  hc_eps: float = 1e-6,
                  grad_x_post: Optional[torch.Tensor] = None) -> Tuple[torch.Tensor, ...]:
    """The gradients by x, to which grad_x_post is added, phi, alpha, bias and gamma, of which zeros
    stand for one that is missing."""
    sizes = _sizes(x, phi, alpha)
    wide, grad_in, inv = x.float(), grad_h_in.float().unsqueeze(-2), inv_rms.unsqueeze(-1)
    flat, sigmoid = wide.flatten(-2), h_pre - hc_eps
    cut = [(grad_in * wide).sum(-1) * sigmoid * (1 - sigmoid),
           grad_h_post * h_post * (1 - h_post / 2), *(each.flatten(-2) for each in [grad_h_res][:len(sizes) - 2])]
    by_bias = torch.cat(cut, -1).flatten(0, -2)
    by_alpha = torch.stack([(grad * part).sum() for grad, part in
                            zip(cut, (h_mix * inv).split(sizes, -1))])
    by_norm = torch.cat([grad * a for grad, a in zip(cut, alpha)], -1)
    by_mix = by_norm * inv
    by_weighted = by_mix @ phi
    by_phi = by_mix.flatten(0, -2).t() @ _weighted(flat, gamma).flatten(0, -2)
    by_inv = (by_norm * h_mix).sum(-1, keepdim=True)
    by_flat = _weighted(by_weighted, gamma) - by_inv * inv ** 3 * flat / flat.shape[-1]
    by_x = by_flat.reshape(x.shape) + h_pre.unsqueeze(-1) * grad_in
    by_x = by_x if grad_x_post is None else by_x + grad_x_post
    by_gamma = (by_weighted * flat).flatten(0, -2).sum(0).reshape(x.shape[-2:])
    by_gamma = torch.zeros_like(by_gamma) if gamma is None else by_gamma
    return by_x.to(x.dtype), by_phi, by_alpha, by_bias.sum(0), by_gamma


composed("npu_mhc_pre(Tensor x, Tensor phi, Tensor alpha, Tensor bias, *, Tensor? gamma=None, "
         "float norm_eps=1e-6, float hc_eps=1e-6, int out_flag=0, int inner_precise=0) -> (Tensor, "
         "Tensor, Tensor, Tensor, Tensor, Tensor)", _pre)
composed("npu_mhc_pre_backward(Tensor x, Tensor phi, Tensor alpha, Tensor grad_h_in, "
         "Tensor grad_h_post, Tensor grad_h_res, Tensor inv_rms, Tensor h_mix, Tensor h_pre, "
         "Tensor h_post, Tensor? gamma=None, float hc_eps=1e-6, Tensor? grad_x_post=None) -> "
         "(Tensor, Tensor, Tensor, Tensor, Tensor)", _pre_backward)

# ---- out of a layer ----


def _check_streams(x: torch.Tensor, h_res: Optional[torch.Tensor], h_out: torch.Tensor,
                   h_post: torch.Tensor) -> None:
    *tokens, n, width = x.shape
    if h_res is not None:
        _check_shape("h_res", h_res, (*tokens, n, n))
    _check_shape("h_out", h_out, (*tokens, width))
    _check_shape("h_post", h_post, (*tokens, n))


def _post(x: torch.Tensor, h_res: Optional[torch.Tensor], h_out: torch.Tensor,
          h_post: torch.Tensor) -> torch.Tensor:
    """Stream j is the sum of the streams i times h_res[i, j], and the layer's result times
    h_post[j]. Without h_res a stream is itself."""
    _check_streams(x, h_res, h_out, h_post)
    wide = x.float()
    mixed = wide if h_res is None else h_res.transpose(-1, -2) @ wide
    return (mixed + h_post.unsqueeze(-1) * h_out.float().unsqueeze(-2)).to(x.dtype)


def _post_backward(grad_y: torch.Tensor, x: torch.Tensor, h_res: Optional[torch.Tensor],
                   h_out: torch.Tensor, h_post: torch.Tensor) -> Tuple[torch.Tensor, ...]:
    """The gradients by x, h_res, h_out and h_post. Zeros stand for that of a missing h_res."""
    _check_streams(x, h_res, h_out, h_post)
    if grad_y.shape != x.shape:
        raise RuntimeError("npu_mhc: grad_y shape must be the same as x shape, "
                           f"{list(x.shape)}, seen {list(grad_y.shape)}")
    grad = grad_y.float()
    by_x = grad if h_res is None else h_res @ grad
    by_res = x.float() @ grad.transpose(-1, -2)
    by_res = torch.zeros_like(by_res) if h_res is None else by_res
    by_out = (grad * h_post.unsqueeze(-1)).sum(-2)
    by_post = (grad * h_out.float().unsqueeze(-2)).sum(-1)
    return by_x.to(x.dtype), by_res, by_out.to(h_out.dtype), by_post


composed("npu_mhc_post(Tensor x, Tensor? h_res, Tensor h_out, Tensor h_post) -> Tensor", _post)
composed("npu_mhc_post_backward(Tensor grad_y, Tensor x, Tensor? h_res, Tensor h_out, "
         "Tensor h_post) -> (Tensor, Tensor, Tensor, Tensor)", _post_backward)

# ---- matrices whose rows and columns sum to one ----


def _sinkhorn(x: torch.Tensor, *, eps: float = 1e-6, num_iters: int = 20,
              out_flag: int = 0) -> Tuple[torch.Tensor, ...]:
    """Softmax of rows, then columns and rows divided by their sums in turn. With `out_flag` also
    the matrices [2 * num_iters, n, n, *tokens] and the sums [2 * num_iters, n, *tokens] of all
    steps; the first step, the softmax, has no sums: 1."""
    if num_iters < 1:
        raise RuntimeError(f"npu_mhc_sinkhorn: num_iters: expected 1 or more, seen {num_iters}")
    y = x.softmax(-1) + eps
    norms, sums = [y], [torch.ones_like(y[..., 0])]
    for step in range(1, 2 * num_iters):
        total = y.sum(-2 if step % 2 else -1, keepdim=True) + eps
        y = y / total
        norms.append(y)
        sums.append(total.squeeze(-2 if step % 2 else -1))
    if not out_flag:
        return y, _nothing(x), _nothing(x)
    tokens = list(range(1, x.dim() - 1))
    norm, total = torch.stack(norms), torch.stack(sums)
    return (y, norm.permute(0, -2, -1, *tokens).contiguous(),
            total.permute(0, -1, *tokens).contiguous())


def _sinkhorn_backward(grad_y: torch.Tensor, norm: torch.Tensor,
                       total: torch.Tensor) -> torch.Tensor:
    """What npu_mhc_sinkhorn with out_flag 1 has given, and the gradient by x."""
    tokens = list(range(3, norm.dim()))
    norms, sums = norm.permute(0, *tokens, 1, 2), total.permute(0, *(t - 1 for t in tokens), 1)
    grad = grad_y
    for step in range(norms.shape[0] - 1, 0, -1):
        along = -2 if step % 2 else -1
        through = (grad * norms[step]).sum(along, keepdim=True)
        grad = (grad - through) / sums[step].unsqueeze(along)
    first = norms[0] - (norms[0].sum(-1, keepdim=True) - 1) / norms.shape[-1]  # without eps
    return first * (grad - (grad * first).sum(-1, keepdim=True))


composed("npu_mhc_sinkhorn(Tensor x, *, float eps=1e-6, SymInt num_iters=20, int out_flag=0) -> "
         "(Tensor, Tensor, Tensor)", _sinkhorn)
composed("npu_mhc_sinkhorn_backward(Tensor grad_y, Tensor norm, Tensor sum) -> Tensor",
         _sinkhorn_backward)
