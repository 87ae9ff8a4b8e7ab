"""What torch.distributed does above collectives, with the vendor's wheel on two ranks of torchrun: each case is
compared with the CPU or with what it has to give, and says that it is done."""

import os
import tempfile

import torch
import torch_npu  # noqa: F401
import torch.distributed as dist
import torch.distributed.checkpoint
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor import Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
DATA = torch.randn(4, 8, generator=torch.Generator().manual_seed(5))
CASES = []


def case(function):
    CASES.append(function)
    return function


def full(count, value):
    return torch.full((count,), float(value), device="npu")


@case
def sends_in_batches():
    got = torch.zeros(3, device="npu")
    pair = [dist.P2POp(dist.isend, full(3, RANK), 1 - RANK), dist.P2POp(dist.irecv, got, 1 - RANK)]
    for work in dist.batch_isend_irecv(pair):
        work.wait()
    assert got.cpu().tolist() == [1.0 - RANK] * 3


@case
def gathers_unequal_parts():
    parts = [torch.zeros(count, device="npu") for count in (2, 3)]
    dist.all_gather(parts, full((2, 3)[RANK], RANK))
    assert [part.cpu().tolist() for part in parts] == [[0.0] * 2, [1.0] * 3]


@case
def exchanges_unequal_parts():
    gives, takes = (([2, 3], [2, 1]), ([1, 4], [3, 4]))[RANK]
    got = torch.zeros(sum(takes), device="npu")
    dist.all_to_all_single(got, torch.arange(5.0, device="npu") + 10 * RANK, takes, gives)
    assert got.cpu().tolist() == ([0, 1, 10], [2, 3, 4, 11, 12, 13, 14])[RANK]


@case
def scatters_and_gathers():
    part = torch.zeros(2, device="npu")
    dist.scatter(part, [full(2, rank) for rank in range(SIZE)] if RANK == 0 else None, src=0)
    assert part.cpu().tolist() == [float(RANK)] * 2
    parts = [torch.zeros(2, device="npu") for _ in range(SIZE)] if RANK == 0 else None
    dist.gather(part, parts, dst=0)
    assert RANK != 0 or [each.cpu().tolist() for each in parts] == [[0.0] * 2, [1.0] * 2]


@case
def reduces_and_scatters():
    values, part = torch.arange(4.0, device="npu"), torch.zeros(2, device="npu")
    dist.reduce_scatter_tensor(part, values)
    assert part.cpu().tolist() == [4.0 * RANK, 4.0 * RANK + 2]
    dist.reduce_scatter_tensor(part, values, op=dist.ReduceOp.AVG)
    assert part.cpu().tolist() == [2.0 * RANK, 2.0 * RANK + 1]


@case
def reduces_every_type():
    for dtype in (torch.float16, torch.bfloat16, torch.int8, torch.int32, torch.int64, torch.uint8):
        values = torch.ones(3, dtype=dtype, device="npu")
        dist.all_reduce(values)
        assert values.cpu().tolist() == [2] * 3, dtype


@case
def carries_objects():
    found = [None] * SIZE
    dist.all_gather_object(found, {"rank": RANK})
    assert found == [{"rank": 0}, {"rank": 1}]
    told = [RANK, "x"]
    dist.broadcast_object_list(told, 1)
    assert told == [1, "x"]


@case
def splits_groups():
    alone = [dist.new_group([rank]) for rank in range(SIZE)]
    values = full(2, RANK)
    dist.all_reduce(values, group=alone[RANK])
    assert values.cpu().tolist() == [float(RANK)] * 2
    both = dist.new_group([0, 1])
    dist.all_reduce(values, group=both)
    assert values.cpu().tolist() == [1.0] * 2


def model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8),
                               torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))


def losses(network, data, average):
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    found = []
    for _ in range(3):
        loss = network(data).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(average(loss.detach().clone()))
    return found


def over_ranks(loss):
    dist.all_reduce(loss)
    return loss.item() / SIZE


def trains_as_one(network):
    """Each rank has half of the data, so the mean of their losses is that of the CPU with all."""
    expected = losses(model(), DATA, torch.Tensor.item)
    got = losses(network, DATA[2 * RANK:2 * RANK + 2].npu(), over_ranks)
    torch.testing.assert_close(torch.tensor(got), torch.tensor(expected), rtol=0, atol=1e-5)


@case
def shards_all_parameters():
    trains_as_one(FullyShardedDataParallel(model().npu(), device_id=torch.device("npu", RANK),
                                           use_orig_params=True))


@case
def shards_each_layer():
    network = model().npu()
    for layer in network:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer)
    trains_as_one(fully_shard(network))


@case
def is_parallel_in_tensors():
    alone = model()
    split = parallelize_module(model().npu(), init_device_mesh("npu", (SIZE,)),
                               {"0": ColwiseParallel(), "2": RowwiseParallel()})
    results = alone(DATA), split(DATA.npu())
    torch.testing.assert_close(results[1].detach().cpu(), results[0].detach(), rtol=1e-4, atol=1e-5)
    for result in results:
        result.pow(2).mean().backward()
    torch.testing.assert_close(split[0].weight.grad.full_tensor().cpu(), alone[0].weight.grad, rtol=1e-4, atol=1e-5)


@case
def moves_shards():
    values = torch.arange(24.0).reshape(4, 6)
    mesh = init_device_mesh("npu", (SIZE,))
    rows = distribute_tensor(values.npu(), mesh, [Shard(0)])
    assert torch.equal(rows.redistribute(mesh, [Shard(1)]).full_tensor().cpu(), values)
    assert torch.equal(rows.sum(0).full_tensor().cpu(), values.sum(0))


@case
def saves_and_loads():
    place = [tempfile.mkdtemp() if RANK == 0 else None]
    dist.broadcast_object_list(place, 0)
    saved = fully_shard(model().npu()).state_dict()
    torch.distributed.checkpoint.save(saved, checkpoint_id=place[0])
    fresh = fully_shard(torch.nn.Sequential(*[layer for layer in model()]).npu())
    with torch.no_grad():
        for parameter in fresh.parameters():
            parameter.zero_()
    loaded = fresh.state_dict()
    torch.distributed.checkpoint.load(loaded, checkpoint_id=place[0])
    for name, value in saved.items():
        assert torch.equal(loaded[name].full_tensor().cpu(), value.full_tensor().cpu()), name


def main():
    torch.npu.set_device(RANK)
    dist.init_process_group("hccl")
    for each in CASES:
        each()
        print(f"rank {RANK} {each.__name__}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
