"""rank_program.py CASE [ARGUMENT]: a rank of ranks_test.py; ends with the code of its error."""

import os
import random
import sys

import case
import npumesh
from air_text import AirText
from case import numpy as np


def values(rank, dtype, shape, seed=0):
    """Small integers, so that sums and products of a few ranks are exact in every type."""
    rng = np.random.default_rng(1000 * seed + rank)
    return rng.integers(1, 3, shape).astype(dtype)


def must(condition, what):
    if not condition:
        raise AssertionError(what)


def same(seen, expected):
    must(np.asarray(seen).dtype == np.asarray(expected).dtype, "dtype")
    np.testing.assert_array_equal(seen, expected)


def spread(array):
    """The same values with gaps between."""
    wide = np.zeros([2 * dim for dim in array.shape], array.dtype)
    part = wide[(..., *(slice(None, None, 2) for _ in array.shape))]
    part[...] = array
    return part


REDUCTIONS = {
    "sum": lambda all_: np.sum(all_, axis=0, dtype=all_.dtype),
    "prod": lambda all_: np.prod(all_, axis=0, dtype=all_.dtype),
    "max": lambda all_: np.max(all_, axis=0),
    "min": lambda all_: np.min(all_, axis=0),
}
TYPES = ("int8", "int16", "int32", "int64", "float16", "float32", "uint8", "uint64", "float64")


def collectives(world):
    group, rank, size = world.all, world.rank, world.size
    must((group.rank, group.size) == (rank, size), "group")
    rng = random.Random(5)  # the same on all ranks
    for step in range(40):
        dtype = rng.choice(TYPES[:6])
        shape = tuple(rng.randint(1, 5) for _ in range(rng.randint(0, 3)))
        op = rng.choice(sorted(REDUCTIONS))
        root = rng.randrange(size)
        blocks = (size, *shape)
        everyone = np.stack([values(r, dtype, shape, step) for r in range(size)])
        wide = np.stack([values(r, dtype, blocks, step + 500) for r in range(size)])
        place = {0: lambda a: a, 1: spread, 2: lambda a: on_device(world, a)}[rng.randrange(3)]
        mine, many = place(np.array(everyone[rank])), place(np.array(wide[rank]))
        reduced = REDUCTIONS[op](everyone)
        same(group.all_reduce(mine, op), reduced)
        got = group.reduce(mine, root=root, op=op)
        same(got, reduced) if rank == root else must(got is None, "reduce")
        same(group.all_gather(mine), everyone)
        same(group.reduce_scatter(many, op), REDUCTIONS[op](wide)[rank])
        same(group.all_to_all(many), wide[:, rank])
        filled = place(np.array(everyone[rank]))
        must(group.broadcast(filled, root) is filled, "broadcast")
        same(filled, everyone[root])
        out = place(np.zeros(shape, dtype))
        must(group.all_reduce(mine, op, out=out) is out, "out")
        same(out, reduced)
        same(mine, everyone[rank])
        group.all_reduce(mine, op, out=mine)  # in place
        same(mine, reduced)


def on_device(world, array):
    memory = world.alloc(array.shape, array.dtype)
    memory[...] = array
    return memory


def more(world):
    group, rank, size = world.all, world.rank, world.size
    # Blocks of different lengths: rank r sends s + 2 r numbers to rank s.
    blocks = [np.full(to + 2 * rank, 100 * rank + to, np.int64) for to in range(size)]
    for source, got in enumerate(group.all_to_all_v(blocks)):
        same(got, np.full(rank + 2 * source, 100 * source + rank, np.int64))
    # Around a circle.
    following, before = (rank + 1) % size, (rank - 1) % size
    mine, other = np.arange(7) + rank, np.zeros(7, np.int64)
    if rank % 2 == 0:
        group.send(mine, following)
        must(group.recv(other, before) is other, "recv")
    else:
        group.recv(other, before)
        group.send(mine, following)
    same(other, np.arange(7) + before)
    # bfloat16, without a type of numpy.
    got = group.all_reduce(npumesh.to_bfloat16([1.5, -2]))
    must(npumesh.to_float32(got).tolist() == [1.5 * size, -2.0 * size], "bfloat16")
    # Groups of some ranks, in another order.
    order = list(reversed(range(size)))
    with world.group(order, "reversed") as turned:
        must(turned.rank == size - 1 - rank, "order")
        same(turned.all_gather(np.int32(rank)), np.array(order, np.int32))
    with world.group([rank], "alone") as alone:
        same(alone.all_reduce(np.float32([3])), np.float32([3]))
    world.barrier()
    for wrong in (lambda: group.all_reduce(mine, "mean"),
                  lambda: group.all_to_all(np.zeros((size + 1, 2), np.int32)),
                  lambda: group.all_to_all(np.int32(3)),
                  lambda: group.all_to_all_v([mine]),
                  lambda: group.all_to_all_v([mine] * (size - 1) + [mine.astype(np.int8)]),
                  lambda: group.all_gather(mine, out=np.zeros((size, 6), np.int64)),
                  lambda: group.all_reduce(mine, out=np.zeros(7, np.int32)),
                  lambda: group.send(mine, 1 << 40),
                  lambda: alone.barrier(),
                  lambda: world.group([])):
        try:
            wrong()
        except npumesh.InvalidArgumentError:
            continue
        raise AssertionError("this was to be refused")
    world.barrier()


def graph(world):
    model = AirText("sum")
    x = model.data("x", "int32", (4,))
    model.output(model.op("HcomAllReduce", {"x": x}, "int32", (4,),
                          {"reduction": "sum", "group": "hccl_world_group"}))
    with world.load(model.text()) as session:
        for step in range(5):
            out = session.run(np.arange(4, dtype=np.int32) * (world.rank + step))[0]
            factor = sum(rank + step for rank in range(world.size))
            same(out, np.arange(4, dtype=np.int32) * factor)
        memory = world.alloc(4, "int32")
        memory[...] = 1
        before = session.stats.input_bytes_copied
        same(session.run(memory)[0], np.full(4, world.size, np.int32))
        must(session.stats.input_bytes_copied == before, "memory of alloc was copied")


def sum_of(world, shape, other=None):
    """A graph that sums x over all ranks, and then adds a tensor of shape `other`."""
    model = AirText("sum")
    x = model.data("x", "int32", shape)
    total = model.op("HcomAllReduce", {"x": x}, "int32", shape,
                     {"reduction": "sum", "group": "hccl_world_group"})
    if other:
        total = model.op("Add", {"x1": total, "x2": model.data("y", "int32", other)}, "int32", shape)
    model.output(total)
    return world.load(model.text())


def failed_graphs(world):
    rank, size = world.rank, world.size
    for step in range(6):
        # On all ranks, then on one rank while the others wait for it.
        fails = step % 2 == 0 or rank == step % size
        try:
            with sum_of(world, (4,), (3,) if fails else (4,)) as session:
                numbers = np.ones(4, np.int32)
                session.run(numbers, np.ones(3, np.int32) if fails else numbers)
            raise AssertionError("this was to fail")
        except npumesh.NpumeshError as error:
            must("Add" in str(error), str(error))
            must(fails or "rank" in str(error), str(error))
        with sum_of(world, (2,)) as session:
            got = session.run(np.array([step, rank], np.int32))[0]
            same(got, np.array([step * size, sum(range(size))], np.int32))
        same(world.all.all_reduce(np.int32([step])), np.int32([step * size]))


def mismatch(world):
    try:
        world.all.all_reduce(np.zeros(4 + world.rank, np.float32))
    except npumesh.MismatchError as error:
        print(f"rank {world.rank} saw: {str(error).splitlines()[0]}")
        must((error.code, error.exit_code) == (7, 5), "codes")
        return
    raise AssertionError("no mismatch")


def leave(world):
    """Rank 0 leaves with an exception; the others learn its words."""
    if world.rank == 0:
        raise KeyError("what rank 0 lacks")
    try:
        world.barrier()
    except npumesh.PeerLostError as error:
        print(f"rank {world.rank} saw: {error}")
        return
    raise AssertionError("no error")


def main():
    name = sys.argv[1]
    options = dict(case.SMALL)
    if name == "record":
        with npumesh.World(options, record=sys.argv[2]) as world:
            world.all.all_reduce(np.float32([1]))
        return
    if name == "leave_at_exit":
        leave(npumesh.World(options))
        return
    if name == "at_exit":
        sys.stdout.write(f"size {npumesh.World(options).all.all_reduce(np.int32(1))}\n")
        return
    if name == "worlds":
        for turn in range(3):
            with npumesh.World(options) as world:
                total = world.all.all_reduce(np.int32([turn, 1])).tolist()
                must(total == [turn * world.size, world.size], "sum")
        print(f"rank {os.environ.get('OMPI_COMM_WORLD_RANK', 0)} good")
        return
    if name == "profile":
        with npumesh.World(options) as world, world.profile(sys.argv[2]):
            graph(world)
        return
    with npumesh.World(options) as world:
        globals()[name](world)
    print(f"rank {os.environ.get('OMPI_COMM_WORLD_RANK', 0)} good")


if __name__ == "__main__":
    try:
        main()
    except npumesh.NpumeshError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
