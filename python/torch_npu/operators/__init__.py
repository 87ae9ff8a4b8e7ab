"""The rows of torch.ops.npu, by what they do."""

from . import norms  # noqa: F401
