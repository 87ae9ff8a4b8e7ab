"""The rows of torch.ops.npu, by what they do."""

from . import attention, elementwise, norms, shapes  # noqa: F401
