"""TorchAir's module _npu_graph_executor: what it asks of tensors in the memory of an NPU."""

from typing import List

import torch


def GetNpuStorageSizes(tensor: torch.Tensor) -> List[int]:  # noqa: N802
    """The sizes of the memory, in the format that it has: the format of a simulated NPU is the
    tensor's own."""
    return list(tensor.shape)
