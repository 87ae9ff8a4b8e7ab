"""The rows of torch.ops.npu, by what they do."""

from . import attention, elementwise, experts, norms, products, quantise, shapes  # noqa: F401
