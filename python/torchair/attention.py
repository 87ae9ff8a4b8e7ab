"""Attention in compiled functions takes torch's decomposed form. torch chooses its kernels by the device
of tensors, and those of the simulated NPU say "cpu": it would take kernels of the CPU, which no converter
of TorchAir knows."""

import functools

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


def _decomposed(function):
    @functools.wraps(function)
    def with_products(*args, **kwargs):
        with sdpa_kernel(SDPBackend.MATH):
            return function(*args, **kwargs)

    return with_products


def install():
    """Once, after TorchAir was imported."""
    import torchair
    from torchair import npu_fx_compiler
    from torchair.inference import _cache_compiler

    # The fast path of MultiheadAttention and of the layers of a Transformer is chosen before a graph is
    # compiled, by a switch of the process.
    torch.backends.mha.set_fastpath_enabled(False)
    torchair.dynamo_export = _decomposed(torchair.dynamo_export)
    compiled = _decomposed(npu_fx_compiler._compile_graph_with_aot)
    for module in (npu_fx_compiler, _cache_compiler):
        if hasattr(module, "_compile_graph_with_aot"):
            module._compile_graph_with_aot = compiled
