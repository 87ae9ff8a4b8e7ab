"""torch.distributed over npumesh: the backend "hccl", and what torch_npu.distributed has besides."""

from __future__ import annotations

import os
from typing import Any, List, Optional, Sequence

import torch
import torch.distributed as dist

from .group import ProcessGroupHCCL, default_group_size, of
from .start import install

__all__ = ["ProcessGroupHCCL", "all_gather_into_tensor_uneven", "is_hccl_available",
           "reduce_scatter_tensor_uneven"]


def is_hccl_available() -> bool:
    return True


def _split(sizes: Optional[Sequence[int]], whole: int, ranks: int) -> List[int]:
    """Rows of each rank. Errors: ValueError."""
    if sizes is None:
        if whole % ranks:
            raise ValueError(f"torch_npu: {whole} rows do not split evenly over {ranks} ranks; "
                             "give the sizes")
        return [whole // ranks] * ranks
    if len(sizes) != ranks or sum(sizes) != whole:
        raise ValueError(f"torch_npu: split sizes: expected {ranks} numbers with the sum {whole}, "
                         f"seen {list(sizes)}")
    return [int(each) for each in sizes]


def all_gather_into_tensor_uneven(output: torch.Tensor, input: torch.Tensor,
                                  output_split_sizes: Optional[Sequence[int]] = None,
                                  group: Any = None, async_op: bool = False) -> Any:
    """`output` becomes the rows of all ranks; rank r has output_split_sizes[r] of them."""
    pg = of(group)
    sizes = _split(output_split_sizes, output.shape[0], pg.size())
    work = pg.allgather([list(output.split(sizes))], [input])
    return work if async_op else work.wait() and None


def reduce_scatter_tensor_uneven(output: torch.Tensor, input: torch.Tensor,
                                 input_split_sizes: Optional[Sequence[int]] = None,
                                 op: Any = dist.ReduceOp.SUM, group: Any = None,
                                 async_op: bool = False) -> Any:
    """`output` becomes this rank's rows, input_split_sizes[rank] of them, of the reduction."""
    pg = of(group)
    sizes = _split(input_split_sizes, input.shape[0], pg.size())
    total = input.clone()
    options = dist.AllreduceOptions()
    options.reduceOp = op if isinstance(op, dist.ReduceOp) else dist.ReduceOp(op)
    work = pg.allreduce([total], options)
    work.wait()
    output.copy_(total.split(sizes)[pg.rank()].reshape(output.shape))
    return work if async_op else None


def local_size() -> int:
    """Ranks of this host, as the launcher says."""
    return int(os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE", default_group_size()))


install()
