#!/usr/bin/env python3
"""What NPUMESH_CARD costs: runs of a session, and replays of captured graphs where torch is there, each with a card and
without one, in turns. The replays are those of one graph, so that both have the same memory.

  bench_card.py MODEL [--turns N]

MODEL is a graph without open dimensions. NPUMESH_LIBRARY and PYTHONPATH say which library and packages. Prints the medians of
all turns in time of the process, which others on the machine disturb less, and by how many percent the one with a card is
slower; a share below the noise, that of one half of the calls without a card, says nothing.
"""

import argparse
import os
import random
import statistics
import time

import numpy as np

import npumesh

try:
    import torch
    import torch_npu
except ImportError:
    torch = None

CARD = "ascend910b3"
SECONDS = 0.002  # of a turn, about
SESSIONS = 6  # of the same graph: the memory that one gets makes it faster or slower


def with_card(card, make):
    """What `make` makes while NPUMESH_CARD is `card`."""
    os.environ.pop("NPUMESH_CARD", None)
    if card:
        os.environ["NPUMESH_CARD"] = card
    try:
        return make()
    finally:
        os.environ.pop("NPUMESH_CARD", None)


def calls_in_a_turn(call):
    call()
    started = time.perf_counter()
    call()
    return max(1, round(SECONDS / (time.perf_counter() - started)))


def compare(name, off, on, turns):
    """Both are lists of calls that do the same, as many of one as of the other, an even number."""
    count = calls_in_a_turn(off[0])
    times = {call: [] for call in (*off, *on)}
    for turn in range(turns):
        for call in random.Random(turn).sample(list(times), len(times)):
            started = time.process_time()
            for _ in range(count):
                call()
            times[call].append((time.process_time() - started) / count)

    def median(calls):
        return statistics.median(each for call in calls for each in times[call])

    base, checked, halves = median(off), median(on), (median(off[::2]), median(off[1::2]))
    print(f"{name:26} off {base * 1e6:9.2f} us   on {checked * 1e6:9.2f} us   {checked / base - 1:+6.2%}"
          f"   noise {abs(halves[0] / halves[1] - 1):5.2%}")


def run_of(world, model):
    session = world.load(model)
    arrays = [np.ones(port.shape, port.dtype.own) for port in session.inputs]
    out = [np.empty_like(each) for each in session.run(*arrays)]
    return lambda: session.run(*arrays, out=out)


def stack(layers, width, rows):
    """A captured stack of products and additions, whose weights are inputs of the graph."""
    weights = [torch.randn(width, width) / width**0.5 for _ in range(layers)]
    x = torch.randn(rows, width)
    graph = torch.npu.NPUGraph()
    with torch.no_grad(), torch.npu.graph(graph):
        y = x
        for weight in weights:
            y = torch.relu(y @ weight) + x
    graph.held = weights, x
    return graph


def attention(calls):
    """Captured calls of attention that has its lengths as a list."""
    query = torch.ones(1, 1, 256, dtype=torch.float16, device="npu")
    cache = torch.ones(1, 64, 256, dtype=torch.float16, device="npu")
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        for _ in range(calls):
            torch.ops.npu.npu_fused_infer_attention_score(query, cache, cache, num_heads=2, input_layout="BSH", scale=0.1,
                                                          actual_seq_lengths_kv=[60])
    graph.held = query, cache
    return graph


def replays(graph, kept):
    def replay():
        graph._watch = kept
        graph.replay()

    return replay


def main():
    words = argparse.ArgumentParser()
    words.add_argument("model")
    words.add_argument("--turns", type=int, default=201)
    words = words.parse_args()

    def compare_replays(name, make):
        graph = with_card(CARD, make)
        if graph._watch is None:
            raise RuntimeError("the graph was captured without a card")
        compare(name, *([replays(graph, kept) for _ in range(2)] for kept in (None, graph._watch)), words.turns)

    with npumesh.World() as world:
        compare("run", *([with_card(card, lambda: run_of(world, words.model)) for _ in range(SESSIONS)] for card in ("", CARD)),
                words.turns)
        if torch is None:
            return
        for layers, width, rows in ((4, 64, 1), (32, 256, 8), (32, 512, 8)):
            compare_replays(f"replay, {layers} layers of {width}", lambda: stack(layers, width, rows))
        compare_replays("replay, 16 attentions", lambda: attention(16))


if __name__ == "__main__":
    main()
