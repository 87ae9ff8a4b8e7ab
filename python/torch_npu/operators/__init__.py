"""The rows of torch.ops.npu, by what they do."""

from . import (  # noqa: F401
    attention,
    collectives,
    connections,
    elementwise,
    experts,
    norms,
    optimizers,
    products,
    quantise,
    shapes,
)
