"""What TorchAir and torch's compiler ask of the memory of captured graphs.

Tensors of a capture live as long as its graph, so a pool has no state to return to.
"""

from __future__ import annotations

import ctypes
import sys
import types
from typing import Any, Mapping, Optional, Sequence

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .npu.capturing import hold


def _npu_getOption(option_type: str) -> Optional[bytes]:  # noqa: N802
    """What torch.npu.set_option, or an attribute of torch.npu.matmul, conv or config, has set. None: no
    call has."""
    from . import npu

    return npu.option(option_type)


# `torch_npu._C._distributed_c10d`, which programs import as a module.
_distributed_c10d = types.ModuleType(__name__ + "._distributed_c10d")
__path__: list = []
sys.modules[_distributed_c10d.__name__] = _distributed_c10d


def _npu_getCheckpointState(device: Any, pool: Any) -> Any:  # noqa: N802
    """The state of a pool is its name."""
    return pool


def _npu_setCheckpointPoolState(device: Any, state: Any, stale_storages: Sequence[int],  # noqa: N802
                                storages_to_add: Sequence[int]) -> None:
    """Nothing: no tensor takes the memory of another one."""


def _construct_storage_from_data_pointer(data_ptr: int, device: Any,
                                         nbytes: int) -> torch.UntypedStorage:
    """Memory that its caller keeps, as a storage."""
    with _disable_current_modes():
        if nbytes == 0:
            return torch.UntypedStorage(0)
        memory = (ctypes.c_char * nbytes).from_address(data_ptr)
        return torch.frombuffer(memory, dtype=torch.uint8).untyped_storage()


def _construct_NPU_Tensor_From_Storage_And_Metadata(  # noqa: N802
        metadata: Mapping[str, Any], storage: torch.UntypedStorage) -> torch.Tensor:
    """A tensor over a storage; `metadata` has size, stride, dtype, storage_offset, npu_format."""
    with _disable_current_modes():
        tensor = torch.empty(0, dtype=metadata["dtype"])
        tensor.set_(storage, metadata["storage_offset"], tuple(metadata["size"]),
                    tuple(metadata["stride"]))
    if "npu_format" in metadata:
        tensor._npu_format = metadata["npu_format"]
    hold(tensor)
    return tensor
