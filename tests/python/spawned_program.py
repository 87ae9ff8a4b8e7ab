"""Two ranks of torch.multiprocessing.spawn, which are told their rank by the first argument alone, as public
scripts write it: spawned_program.py PORT. For the vendor's wheel and for npumesh's own package."""

import os
import sys

import torch
import torch_npu  # noqa: F401
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, size, port):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = port
    torch.npu.set_device(rank)
    dist.init_process_group("hccl", rank=rank, world_size=size)
    x = torch.full((4,), float(rank + 1), device="npu")
    dist.all_reduce(x)
    assert x.cpu().tolist() == [3.0] * 4
    dist.destroy_process_group()
    print(f"rank {rank} is done")


if __name__ == "__main__":
    mp.spawn(work, args=(2, sys.argv[1]), nprocs=2)
    assert "RANK" not in os.environ
