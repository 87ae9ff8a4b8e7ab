"""A rank of the tests of the backend "hccl": names of cases are arguments; prints "passed CASE"."""

import os
import sys

import torch
import torch.distributed as dist

import torch_npu  # noqa: F401
from torch_npu import distributed

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.uint8,
          torch.int32, torch.int64)


def everyone(size, shape, dtype, seed):
    """The tensors of all ranks: small integers, whose sums and products all types hold."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(1, 4, shape, generator=generator).to(dtype) for _ in range(size)]


def equal(seen, expected, what):
    assert seen.dtype == expected.dtype and torch.equal(seen, expected), \
        f"{what}: expected {expected}, seen {seen}"


def reduced(op, tensors):
    stack = torch.stack([each.to(torch.float64) for each in tensors])
    wide = {dist.ReduceOp.SUM: lambda: stack.sum(0), dist.ReduceOp.AVG: lambda: stack.mean(0),
            dist.ReduceOp.PRODUCT: lambda: stack.prod(0), dist.ReduceOp.MAX: lambda: stack.amax(0),
            dist.ReduceOp.MIN: lambda: stack.amin(0)}
    if op in wide:
        value = wide[op]()
        if not tensors[0].is_floating_point():
            value = value.trunc()
        return value.to(tensors[0].dtype)
    result = tensors[0]
    for each in tensors[1:]:
        result = {dist.ReduceOp.BAND: result & each, dist.ReduceOp.BOR: result | each,
                  dist.ReduceOp.BXOR: result ^ each}[op]
    return result


def reductions(rank, size):
    ops = [dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MAX, dist.ReduceOp.MIN,
           dist.ReduceOp.AVG, dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR]
    for seed, dtype in enumerate(DTYPES):
        for op in ops:
            bits = op in ops[5:]
            if bits and dtype.is_floating_point:
                continue
            given = everyone(size, (5, 3), dtype, seed)
            expected = reduced(op, given)
            mine = given[rank].clone()
            dist.all_reduce(mine, op)
            rounds = op == dist.ReduceOp.AVG and dtype.is_floating_point
            if rounds:
                torch.testing.assert_close(mine, expected)
            else:
                equal(mine, expected, f"all_reduce {op} {dtype}")
            mine = given[rank].clone()
            dist.reduce(mine, size - 1, op)
            if rank != size - 1:
                equal(mine, given[rank], "reduce elsewhere")
            elif not rounds:
                equal(mine, expected, f"reduce {op} {dtype}")
        wide = everyone(size, (size * 2, 3), dtype, seed + 100)
        total = reduced(dist.ReduceOp.SUM, wide)
        mine = torch.empty(2, 3, dtype=dtype)
        dist.reduce_scatter_tensor(mine, wide[rank])
        equal(mine, total[2 * rank:2 * rank + 2], f"reduce_scatter_tensor {dtype}")
        parts = list(wide[rank].split([1] * (size - 1) + [size + 1]))
        mine = torch.empty_like(parts[rank])
        dist.reduce_scatter(mine, parts)
        equal(mine, total.split([1] * (size - 1) + [size + 1])[rank], "reduce_scatter")
    truth = torch.tensor([rank == 0, True, False])
    dist.all_reduce(truth)
    equal(truth, torch.tensor([True, True, False]), "all_reduce of truth")
    gaps = torch.zeros(4, 3)
    gaps.t()[1].fill_(rank + 1.0)
    view = gaps[:, 1]
    dist.all_reduce(view)
    equal(gaps[:, 1], torch.full((4,), size * (size + 1) / 2), "all_reduce of a view with gaps")
    waves = torch.full((2,), complex(rank, 1))
    dist.all_reduce(waves)
    equal(waves, torch.full((2,), complex(size * (size - 1) / 2, size)), "all_reduce of complex")
    mine = torch.full((2,), 2.0)
    dist.all_reduce(mine, dist._make_nccl_premul_sum(0.5))
    equal(mine, torch.full((2,), float(size)), "premul_sum")


def moves(rank, size):
    for seed, dtype in enumerate((*DTYPES, torch.bool, torch.complex64, torch.float8_e4m3fn)):
        given = everyone(size, (4, 3), torch.float32, seed)
        given = [(each > 1) if dtype == torch.bool else each.to(dtype) for each in given]

        def same(seen, expected, what):
            raw = torch.uint8 if dtype == torch.float8_e4m3fn else dtype
            equal(seen.view(raw), expected.view(raw), f"{what} {dtype}")

        mine = given[rank].clone()
        dist.broadcast(mine, size - 1)
        same(mine, given[size - 1], "broadcast")
        parts = [torch.empty_like(each) for each in given]
        dist.all_gather(parts, given[rank])
        for part, expected in zip(parts, given):
            same(part, expected, "all_gather")
        whole = torch.empty(4 * size, 3, dtype=dtype)
        dist.all_gather_into_tensor(whole, given[rank])
        same(whole, torch.cat([each.view(torch.uint8) for each in given]).view(dtype)
             if dtype == torch.float8_e4m3fn else torch.cat(given), "all_gather_into_tensor")
    rows = torch.arange(size * 2, dtype=torch.float32) + 100 * rank
    coming = torch.empty_like(rows)
    dist.all_to_all_single(coming, rows)
    equal(coming, torch.cat([torch.tensor([2.0 * rank, 2.0 * rank + 1]) + 100 * r
                             for r in range(size)]), "all_to_all_single")
    # Rank r sends r + 1 rows of two to each rank.
    rows = torch.full((size * (rank + 1), 2), float(rank))
    coming = torch.empty(size * (size + 1) // 2, 2)
    dist.all_to_all_single(coming, rows, [r + 1 for r in range(size)], [rank + 1] * size)
    equal(coming, torch.cat([torch.full((r + 1, 2), float(r)) for r in range(size)]),
          "all_to_all_single with sizes")
    outputs = [torch.empty(r + 1) for r in range(size)]
    dist.all_to_all(outputs, [torch.full((rank + 1,), 10.0 * rank + r) for r in range(size)])
    for r, output in enumerate(outputs):
        equal(output, torch.full((r + 1,), 10.0 * r + rank), "all_to_all")
    parts = [torch.empty(2) for _ in range(size)] if rank == 0 else None
    dist.gather(torch.full((2,), float(rank)), parts, dst=0)
    if rank == 0:
        equal(torch.stack(parts)[:, 0], torch.arange(float(size)), "gather")
    mine = torch.empty(2)
    dist.scatter(mine, [torch.full((2,), float(r)) for r in range(size)] if rank == 1 else None,
                 src=1)
    equal(mine, torch.full((2,), float(rank)), "scatter")
    sizes = [r + 1 for r in range(size)]
    whole = torch.empty(sum(sizes), 2)
    distributed.all_gather_into_tensor_uneven(whole, torch.full((rank + 1, 2), float(rank)), sizes)
    expected = torch.cat([torch.full((r + 1, 2), float(r)) for r in range(size)])
    equal(whole, expected, "all_gather_into_tensor_uneven")
    mine = torch.empty(rank + 1, 2)
    distributed.reduce_scatter_tensor_uneven(mine, expected, sizes)
    equal(mine, torch.full((rank + 1, 2), float(rank * size)), "reduce_scatter_tensor_uneven")
    dist.barrier()


def peers(rank, size):
    after, before = (rank + 1) % size, (rank - 1) % size
    if rank == 0:
        dist.send(torch.arange(3.0), 1)
        dist.recv(mine := torch.empty(3), 1)
        equal(mine, torch.arange(3.0) + 1, "send, recv")
    elif rank == 1:
        dist.recv(mine := torch.empty(3), 0)
        dist.send(mine + 1, 0)
    # All send before they receive.
    coming = torch.empty(2)
    works = [dist.isend(torch.full((2,), float(rank)), after), dist.irecv(coming, before)]
    for work in works:
        work.wait()
    equal(coming, torch.full((2,), float(before)), "isend, irecv in a ring")
    coming = torch.empty(2)
    operations = [dist.P2POp(dist.isend, torch.full((2,), 10.0 + rank), after),
                  dist.P2POp(dist.irecv, coming, before)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    equal(coming, torch.full((2,), 10.0 + before), "batch_isend_irecv")


def groups(rank, size):
    evens = list(range(0, size, 2))
    group = dist.new_group(evens)
    if rank in evens:
        mine = torch.full((2,), float(rank))
        dist.all_reduce(mine, group=group)
        equal(mine, torch.full((2,), float(sum(evens))), "all_reduce of a group")
        mine = torch.full((1,), float(rank))
        dist.broadcast(mine, evens[-1], group=group)
        equal(mine, torch.tensor([float(evens[-1])]), "broadcast in a group")
    import torch.distributed._functional_collectives as functional

    seen = functional.all_reduce(torch.full((2,), rank + 1.0), "sum", dist.group.WORLD)
    equal(seen + 0, torch.full((2,), size * (size + 1) / 2), "functional all_reduce")
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert [each["rank"] for each in objects] == list(range(size)), objects
    pg = dist.distributed_c10d._get_default_group()
    backend = pg._get_backend(torch.device("npu"))
    assert backend.get_hccl_comm_name(rank, init_comm=True), "a name for operators"
    assert dist.get_backend() == "hccl" and dist.get_rank() == rank


def training(rank, size):
    """DistributedDataParallel on halves of a batch equals one model on the whole."""
    def model():
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))

    torch.manual_seed(2)
    x, y = torch.randn(4 * size, 6), torch.randn(4 * size, 1)
    alone, shared = model(), torch.nn.parallel.DistributedDataParallel(model().npu())
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (alone, shared)]
    for _ in range(4):
        mine = slice(4 * rank, 4 * rank + 4)
        for each, optimizer, rows in zip((alone, shared), optimizers, (slice(None), mine)):
            optimizer.zero_grad()
            (each(x[rows]) - y[rows]).square().mean().backward()
            optimizer.step()
    for first, second in zip(alone.parameters(), shared.parameters()):
        torch.testing.assert_close(second.detach(), first.detach(), rtol=1e-5, atol=1e-6)


def captured(rank, size):
    """A collective inside of a captured graph."""
    x = torch.ones(3)
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y = x * 2
        dist.all_reduce(y)
        z = y + 1
    x.fill_(rank + 1.0)
    graph.replay()
    equal(z, torch.full((3,), size * (size + 1.0) + 1), "replay of a collective")


def products(rank, size):
    """Operators that communicate inside, by the group's name."""
    name = dist.distributed_c10d._get_default_group().get_hccl_comm_name(rank)
    torch.manual_seed(5)
    xs = [torch.randn(4 * size, 8).to(torch.bfloat16) for _ in range(size)]
    ws = [torch.randn(8, 6).to(torch.bfloat16) for _ in range(size)]
    wide = [x.double() @ w.double() for x, w in zip(xs, ws)]
    seen = torch_npu.npu_mm_all_reduce_base(xs[rank], ws[rank], name)
    torch.testing.assert_close(seen.double(), sum(wide), rtol=2e-2, atol=2e-2)
    seen = torch_npu.npu_mm_reduce_scatter_base(xs[rank], ws[rank], name, size)
    torch.testing.assert_close(seen.double(), sum(wide)[4 * rank:4 * rank + 4], rtol=2e-2,
                               atol=2e-2)
    seen, gathered = torch_npu.npu_all_gather_base_mm(xs[rank], ws[rank], name, size)
    equal(gathered, torch.cat(xs), "what npu_all_gather_base_mm gathers")
    torch.testing.assert_close(seen.double(), torch.cat(xs).double() @ ws[rank].double(),
                               rtol=2e-2, atol=2e-2)


def experts(rank, size):
    """Tokens travel to their experts and back: the sum of what the experts make of them."""
    name = dist.distributed_c10d._get_default_group().get_hccl_comm_name(rank)
    count, width, choices, whole = 6, 16, 2, 2 * size
    torch.manual_seed(9)
    tokens = [torch.randn(count, width).to(torch.bfloat16) for _ in range(size)]
    chosen = [torch.stack([torch.randperm(whole)[:choices] for _ in range(count)]).to(torch.int32)
              for _ in range(size)]
    scales = [torch.rand(count, choices) for _ in range(size)]
    expanded, _, index, numbers, received, _, _ = torch_npu.npu_moe_distribute_dispatch(
        tokens[rank], chosen[rank], name, size, rank, whole, global_bs=count * size)
    assert numbers.dtype == torch.int64 and numbers.shape == (2,), numbers
    # Expert e multiplies by e + 1. Tokens come expert after expert.
    ends = numbers.cumsum(0).tolist()
    made = expanded.clone()
    mine = [2 * rank, 2 * rank + 1]
    begin = 0
    for expert, end in zip(mine, ends):
        made[begin:end] *= expert + 1
        begin = end
    seen = torch_npu.npu_moe_distribute_combine(made, chosen[rank], index, received, scales[rank],
                                                name, size, rank, whole, global_bs=count * size)
    factors = ((chosen[rank].double() + 1) * scales[rank].double()).sum(-1, keepdim=True)
    torch.testing.assert_close(seen.double(), tokens[rank].double() * factors, rtol=3e-2, atol=3e-2)


def refusals(rank, size):
    def refused(kind, word, call):
        try:
            call()
        except kind as error:
            assert word in str(error), error
        else:
            raise AssertionError(f"nothing was refused: {word}")

    refused(ValueError, "rank 9", lambda: dist.distributed_c10d._get_default_group().send(
        [torch.ones(1)], 9))
    refused(ValueError, "split sizes", lambda: dist.all_to_all_single(
        torch.empty(3), torch.empty(3), [1] * size, [9] * size))
    refused(NotImplementedError, "sender", lambda: dist.recv(torch.empty(1)))
    refused(ValueError, "all_gather", lambda: dist.all_gather_into_tensor(
        torch.empty(1), torch.empty(2)))


def mismatch(rank, size):
    """Last: a group that has failed stays failed."""
    import npumesh

    try:
        dist.all_reduce(torch.ones(2 + rank))
    except npumesh.MismatchError:
        return
    raise AssertionError("different lengths were not refused")


if __name__ == "__main__":
    dist.init_process_group("hccl")
    for case in sys.argv[1:]:
        globals()[case](dist.get_rank(), dist.get_world_size())
        print(f"passed {case} {dist.get_rank()}", flush=True)
    dist.destroy_process_group()
    os.environ.pop("RANK", None)
