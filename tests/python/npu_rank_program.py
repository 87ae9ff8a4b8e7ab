"""A rank of the tests of the backend "hccl": names of cases are arguments; prints "passed CASE"."""

import os
import sys
import warnings

import torch
import torch.distributed as dist
from torch._subclasses import FakeTensorMode
from torch.utils import _pytree

import npumesh
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
    options = torch_npu._C._distributed_c10d.ProcessGroupHCCL.Options()
    options.hccl_config = {"hccl_buffer_size": 200}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = dist.new_group(evens, pg_options=options)
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


def cores(rank, size):
    """Collectives of one captured graph, whose vector cores a card does not have together."""
    os.environ["NPUMESH_CARD"], os.environ["NPUMESH_CARD_CHECK"] = "ascend910b1", "fail"

    def capture(first, second, ordered=False):
        graph = torch.npu.NPUGraph()
        sides = [torch.npu.Stream(), torch.npu.Stream()]
        for side, limit in zip(sides, (first, second)):
            if limit is not None:
                torch.npu.set_stream_limit(side, vector_num=limit)
        parts = [torch.full((3,), rank + 1.0), torch.full((3,), rank + 1.0)]
        with torch.npu.graph(graph):
            main = torch.npu.current_stream()
            for side, part in zip(sides, parts):
                side.wait_stream(sides[0] if ordered and side is sides[1] else main)
                with torch.npu.stream(side):
                    dist.all_reduce(part)
            for side in sides:
                main.wait_stream(side)
        graph.replay()
        for part in parts:
            equal(part, torch.full((3,), size * (size + 1) / 2), "a replay beside limits of cores")

    for taken in ((32, 16), (32, 24, True), (32, None), (None, None)):
        capture(*taken)
    try:
        capture(32, 24)
    except RuntimeError as error:
        said = str(error)
    else:
        raise AssertionError("32 + 24 of 48 vector cores were taken")
    for words in ("507034", "rule collective-cores", "32 + 24 > 48", __file__):
        assert words in said, said
    for name in ("NPUMESH_CARD", "NPUMESH_CARD_CHECK"):
        del os.environ[name]


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


# ---- operators that exchange and multiply ----

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


def known(operator, *args, **words):
    """What a call returns, after a look whether the meta function says the same."""
    seen = operator(*args, **words)
    with FakeTensorMode() as mode:
        fake, fake_words = _pytree.tree_map_only(torch.Tensor, mode.from_tensor, (args, words))
        said = operator(*fake, **fake_words)
    for one, other in zip(_pytree.tree_leaves(seen), _pytree.tree_leaves(said), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape), \
            f"{operator}: {one.dtype} {one.shape}, said {other.dtype} {other.shape}"
    return seen


def close(seen, expected, bound=1e-5):
    if seen.dtype != torch.float32:
        bound = 1e-2
    torch.testing.assert_close(seen.double(), expected, rtol=bound, atol=bound)


def few_bits(dtype, *shape):
    """Numbers of few bits, and what they stand for."""
    if dtype == "hifloat8":  # from 8 to 15: as many eighths; the top bit is the sign
        codes, signs = torch.randint(8, 16, shape), torch.randint(0, 2, shape)
        return (codes + 128 * signs).to(torch.uint8), codes.double() / 8 * (1 - 2 * signs)
    values = torch.randint(-9, 10, shape) if dtype == torch.int8 else torch.randn(shape)
    return values.to(dtype), values.to(dtype).double()


def joined(xs, rank):
    """The columns of all ranks, of this rank's block of rows."""
    return torch.cat([x.chunk(len(xs))[rank] for x in xs], 1)


def parted(ys, rank):
    """The rows of all ranks, of this rank's block of columns."""
    return torch.cat([y.chunk(len(ys), 1)[rank] for y in ys])


def exchanges(rank, size):
    name = dist.distributed_c10d._get_default_group().get_hccl_comm_name(rank)
    torch.manual_seed(6)
    xs = [torch.randn(3 * size, 8).to(torch.bfloat16) for _ in range(size)]
    before = [torch.randn(8 * size, 6).to(torch.bfloat16) for _ in range(size)]
    after = [torch.randn(8, 2 * size).to(torch.bfloat16) for _ in range(size)]
    seen, gathered = known(torch_npu.npu_all_to_all_matmul, xs[rank], before[rank], name, size)
    equal(gathered, joined(xs, rank), "what npu_all_to_all_matmul exchanges")
    close(seen, joined(xs, rank).double() @ before[rank].double())
    seen = known(torch_npu.npu_matmul_all_to_all, xs[rank], after[rank], name, size)
    close(seen, parted([x.double() @ w.double() for x, w in zip(xs, after)], rank))


def exchange_then_few_bits(rank, size):
    """Rows of all ranks are quantised after they have come."""
    name = dist.distributed_c10d._get_default_group().get_hccl_comm_name(rank)
    torch.manual_seed(7)
    operator = torch_npu.npu_all_to_all_quant_matmul
    for dtype, largest, number in ((E4M3, 448, 24), (E5M2, 57344, None), (torch.int8, 127, None)):
        xs = [torch.randn(3 * size, 8).to(torch.float16) for _ in range(size)]
        xs[0][0] = 0
        weights = [few_bits(dtype, 8 * size, 6) for _ in range(size)]
        scales, biases = torch.rand(size, 6) + 0.1, torch.randn(size, 6)
        smooth = torch.rand(8 * size).half() + 0.5 if dtype == torch.int8 else None
        for flag, y_dtype in ((True, None), (False, 15)):
            seen, gathered = known(
                operator, xs[rank], weights[rank][0], name, size, flag, bias=biases[rank],
                x1_scale=smooth, x2_scale=scales[rank], x1_quant_mode=7, x2_quant_mode=2,
                group_sizes=[0, 0, 0], x1_quant_dtype=number, y_dtype=y_dtype)
            x = joined(xs, rank)
            equal(gathered, x if flag else x.new_empty(0), "what npu_all_to_all_quant_matmul gives")
            x = x.float() if smooth is None else x.float() * smooth.float()
            own = x.abs().amax(1, keepdim=True) / largest
            x = torch.where(own == 0, 0, x / own)
            x = (x.round() if dtype == torch.int8 else x.to(dtype)).double()
            total, bias = x @ weights[rank][1], biases[rank].double()
            both = own.double() * scales[rank].double()
            # Beside integers the bias comes last.
            close(seen, total * both + bias if dtype == torch.int8 else (total + bias) * both)


def mx_scales(*shape):
    """Powers of two, one for each 32 elements of a row, in pairs; and as factors of elements."""
    codes = torch.randint(124, 131, (*shape, 2))
    return codes.to(torch.uint8), (codes.double() - 127).exp2().flatten(1).repeat_interleave(32, 1)


def few_bits_in_blocks(rank, size):
    """MX: both operands come with scales of blocks, and those of x1 travel too."""
    name = dist.distributed_c10d._get_default_group().get_hccl_comm_name(rank)
    torch.manual_seed(8)
    e8m0 = torch_npu.float8_e8m0fnu
    words = {"x1_quant_mode": 6, "x2_quant_mode": 6, "x1_scale_dtype": e8m0, "x2_scale_dtype": e8m0,
             "group_sizes": [1, 1, 32]}
    for first in (True, False):
        depth = 64 * size if first else 96
        xs = [few_bits(E4M3, 2 * size, 64 if first else depth) for _ in range(size)]
        x_scales = [mx_scales(2 * size, 1 if first else 2) for _ in range(size)]
        weights = [few_bits(E5M2, 2 * size, depth) for _ in range(size)]
        w_scales = [mx_scales(2 * size, -(-depth // 64)) for _ in range(size)]
        biases = torch.randn(size, 2 * size)
        real_xs = [x[1] * scale[1][:, :x[1].shape[1]] for x, scale in zip(xs, x_scales)]
        real_ws = [w[1] * scale[1][:, :depth] for w, scale in zip(weights, w_scales)]
        given = (xs[rank][0], weights[rank][0].t(), name, size)
        words.update(bias=biases[rank], x1_scale=x_scales[rank][0], x2_scale=w_scales[rank][0])
        if first:
            seen, gathered = known(torch_npu.npu_all_to_all_quant_matmul, *given, **words)
            equal(gathered.double(), joined([x[1] for x in xs], rank), "what is exchanged")
            expected = joined(real_xs, rank) @ real_ws[rank].t() + biases[rank].double()
        else:
            seen = known(torch_npu.npu_quant_matmul_all_to_all, *given, **words)
            expected = parted([x @ w.t() + bias.double() for x, w, bias in
                               zip(real_xs, real_ws, biases)], rank)
        close(seen, expected, 1e-4)


def few_bits_then_exchange(rank, size):
    name = dist.distributed_c10d._get_default_group().get_hccl_comm_name(rank)
    torch.manual_seed(9)
    for left, right, y_dtype in ((E4M3, E5M2, None), (E5M2, E4M3, 5), (torch.int8, torch.int8, 15),
                                 ("hifloat8", "hifloat8", 6)):
        types = {"x1_dtype": torch_npu.hifloat8, "x2_dtype": torch_npu.hifloat8} \
            if left == "hifloat8" else {}
        xs = [few_bits(left, 3, 8) for _ in range(size)]
        weights = [few_bits(right, 8, 2 * size) for _ in range(size)]
        rows, columns = torch.rand(size, 3) + 0.1, torch.rand(size, 2 * size) + 0.1
        biases = torch.randn(size, 2 * size)
        seen = known(torch_npu.npu_quant_matmul_all_to_all, xs[rank][0], weights[rank][0], name,
                     size, biases[rank], rows[rank], columns[rank], x1_quant_mode=3,
                     x2_quant_mode=2, y_dtype=y_dtype, **types)
        assert seen.dtype == {None: torch.float32, 5: torch.float16, 6: torch.float32,
                              15: torch.bfloat16}[y_dtype], seen.dtype
        made = []
        for r in range(size):
            both, bias = rows[r].double()[:, None] * columns[r].double(), biases[r].double()
            total = xs[r][1] @ weights[r][1]
            made.append(total * both + bias if left == torch.int8 else (total + bias) * both)
        close(seen, parted(made, rank))


def expert_products(rank, size):
    """Rows travel to experts of other ranks and are multiplied there, or travel back after that."""
    name = dist.distributed_c10d._get_default_group().get_hccl_comm_name(rank)
    torch.manual_seed(10)
    for dtype in (torch.bfloat16, torch.int8, E4M3, "hifloat8"):
        # counts[r, s, e]: rows that rank r has for expert e of rank s.
        counts = torch.randint(0, 4, (size, size, 2))
        weights = [few_bits(dtype, 2, 8, 6) for _ in range(size)]
        tokens = [few_bits(dtype, int(counts[r].sum()), 8) for r in range(size)]
        sent, received = counts[rank].flatten().tolist(), counts[:, rank].flatten().tolist()

        def rows_of(kind, r, s, e):
            """The rows that rank r has for an expert; kind 0: as they are stored."""
            return tokens[r][kind].split(counts[r].flatten().tolist())[2 * s + e]

        to, back, types, scales, words, factor = expert_words(dtype)
        shared = few_bits(dtype, 5, 4), few_bits(dtype, 4, 3)
        mm = torch.empty(0, dtype=torch.float16)
        if dtype != E4M3:
            words.update(mm_x=shared[0][0], mm_weight=shared[1][0])
            mm = shared[0][1] @ shared[1][1] * (1 if dtype == torch.bfloat16 else 0.375)
        seen = known(to, tokens[rank][0], weights[rank][0], *scales, name, size, sent, received,
                     *types, permute_out_flag=True, **words)
        # By expert, then by the rank that it belongs to.
        mine = torch.cat([rows_of(0, r, rank, e) for e in range(2) for r in range(size)])
        close(seen[0], torch.cat([rows_of(1, r, rank, e) @ weights[rank][1][e] * factor
                                  for e in range(2) for r in range(size)]))
        close(seen[1], mm.double())
        same = torch.equal(seen[2].view(torch.uint8), mine.view(torch.uint8))
        assert same and seen[2].dtype == mine.dtype, f"rows of experts, {dtype}"
        seen = known(back, mine, weights[rank][0], *scales, name, size, received, sent, *types,
                     **words)
        close(seen[0], torch.cat([rows_of(1, rank, s, e) @ weights[s][1][e] * factor
                                  for s in range(size) for e in range(2)]))
        close(seen[1], mm.double())


def expert_words(dtype):
    """For operands of a type: the operators, types and scales of calls, their other words, and the
    product of the scales."""
    if dtype == torch.bfloat16:
        return torch_npu.npu_alltoallv_gmm, torch_npu.npu_gmm_alltoallv, (), (), {}, 1
    words = {"gmm_x_quant_mode": 1, "gmm_weight_quant_mode": 1}
    if dtype != E4M3:
        words.update(mm_x_scale=torch.tensor([1.5]), mm_weight_scale=torch.tensor([0.25]),
                     mm_y_dtype=5)
    if dtype == "hifloat8":
        words.update({f"{each}_dtype": torch_npu.hifloat8
                      for each in ("gmm_x", "gmm_weight", "mm_x", "mm_weight")})
    return (torch_npu.npu_alltoallv_quant_gmm, torch_npu.npu_quant_gmm_alltoallv,
            (torch.bfloat16,), (torch.tensor([0.5]), torch.tensor([0.25])), words, 0.125)


def refused(kind, word, call):
    try:
        call()
    except kind as error:
        assert word in str(error), error
    else:
        raise AssertionError(f"nothing was refused: {word}")


def refused_few_bits(rank, size):
    """All ranks refuse alike, before they meet."""
    group = dist.distributed_c10d._get_default_group()
    name = group.get_hccl_comm_name(rank)
    x, w, rows, columns = (torch.ones(4, 8), torch.ones(8, 4).to(E4M3), torch.ones(4),
                           torch.ones(4))
    before, after = torch_npu.npu_all_to_all_quant_matmul, torch_npu.npu_quant_matmul_all_to_all
    words = {"x1_scale": rows, "x2_scale": columns}
    for word, more in (("world_size", {"world_size": size + 1}), ("6 of both", {"x1_quant_mode": 0}),
                       ("common_quant_mode", {"common_quant_mode": 1}),
                       ("all2all_axes", {"all2all_axes": [0, 1]})):
        given = {"world_size": size, **words, **more}
        refused(ValueError, word, lambda: before(x, w, name, **given))
        refused(ValueError, word, lambda: after(x.to(E4M3), w, name, **given))
    refused(ValueError, "rows of x1", lambda: before(x[:3], w, name, size, x2_scale=columns))
    refused(ValueError, "columns of x2", lambda: after(x.to(E4M3), w[:, :3], name, size, **words))
    refused(ValueError, "x1_scale", lambda: after(x.to(E4M3), w, name, size, x2_scale=columns))
    if size == 2:
        refused(ValueError, "x1_scale beside float8_e5m2", lambda: before(
            x, torch.ones(16, 4).to(E4M3), name, size, **words))
    refused(npumesh.UnsupportedError, "npu_quant_matmul_all_to_all: output_scale_dtype",
            lambda: after(x.to(E4M3), w, name, size, output_scale_dtype=6, **words))
    experts = (x.to(E4M3), torch.ones(1, 8, 4).to(E4M3), torch.ones(1), torch.ones(1), name, size,
               [4] + [0] * (size - 1), [4 if rank == 0 else 0] + [0] * (size - 1), 5)
    refused(ValueError, "gmm_x_quant_mode", lambda: torch_npu.npu_alltoallv_quant_gmm(*experts))
    refused(npumesh.UnsupportedError, "gmm_x_quant_mode 6", lambda: (
        torch_npu.npu_alltoallv_quant_gmm(*experts, gmm_x_quant_mode=6, gmm_weight_quant_mode=6)))


def refusals(rank, size):
    refused(ValueError, "rank 9", lambda: dist.distributed_c10d._get_default_group().send(
        [torch.ones(1)], 9))
    refused(ValueError, "split sizes", lambda: dist.all_to_all_single(
        torch.empty(3), torch.empty(3), [1] * size, [9] * size))
    refused(NotImplementedError, "sender", lambda: dist.recv(torch.empty(1)))
    refused(ValueError, "all_gather", lambda: dist.all_gather_into_tensor(
        torch.empty(1), torch.empty(2)))


def mismatch(rank, size):
    """Last: a group that has failed stays failed."""
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
