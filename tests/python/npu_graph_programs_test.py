"""Captured graphs against eager runs of the same program: random programs of calls that make, view, write
and forget tensors, replayed with other values. With a checkout of TorchAir the engine runs them, else
torch does."""

import json
import os
import random
import tempfile
import unittest

import npu_case

if npu_case.torch is not None:
    import torch
    import torch_npu

PROGRAMS = int(os.environ.get("NPUMESH_GRAPH_PROGRAMS", "60"))
FIRST = int(os.environ.get("NPUMESH_GRAPH_PROGRAMS_FIRST", "1"))
ROWS, COLUMNS = 4, 6


class Program:
    """Random calls on variables, each a float32 matrix of 4 x 6 or a view of one. The same seed gives
    the same calls."""

    def __init__(self, seed):
        self.seed = seed
        self.random = random.Random(seed)
        self.calls = [self.call() for _ in range(self.random.randint(1, 14))]

    def call(self):
        kinds = {"unary": 4, "binary": 4, "scale": 2, "in place": 3, "rows": 2, "transposed": 1,
                 "write rows": 2, "copy": 1, "product": 2, "softmax": 1, "join": 1, "split": 1, "out": 1,
                 "forget": 3, "norm": 1, "random": 0.2, "mask": 1, "whole": 2}
        kind = self.random.choices(list(kinds), list(kinds.values()))[0]
        return kind, [self.random.random() for _ in range(4)]

    def run(self, *inputs):
        """The variables that are left, some of them views of others."""
        left = list(inputs)
        for kind, dice in self.calls:
            self.step(kind, dice, left)
        return left[len(inputs):]

    def step(self, kind, dice, left):
        x = left[int(dice[0] * len(left))]
        y = left[int(dice[1] * len(left))]
        row = int(dice[2] * (ROWS - 1))
        if kind == "unary":
            left.append([torch.tanh, torch.abs, torch.sigmoid, torch.neg][int(dice[2] * 4)](x))
        elif kind == "binary":
            left.append([torch.add, torch.mul, torch.maximum][int(dice[2] * 3)](x, y))
        elif kind == "scale":
            left.append(x * (dice[2] + 0.5) - 0.25)
        elif kind == "in place":
            # Sums of views of one matrix depend on the order of elements; a copy does not.
            [lambda: x.mul_(0.5), lambda: x.add_(y.clone()), lambda: x.tanh_()][int(dice[2] * 3)]()
        elif kind == "rows":
            left.append(x[row:row + 1].expand(ROWS, COLUMNS))
        elif kind == "transposed":
            left.append(x.t().reshape(ROWS, COLUMNS))
        elif kind == "write rows":
            if x.stride() == (COLUMNS, 1):
                x[row:row + 2].fill_(dice[3])
        elif kind == "copy":
            if x.stride() == (COLUMNS, 1):
                x.copy_(y.clone())
        elif kind == "product":
            left.append(torch.tanh(x @ y.t()) @ x)
        elif kind == "softmax":
            left.append(torch.softmax(x, -1))
        elif kind == "join":
            left.append(torch.cat([x, y])[ROWS // 2:ROWS // 2 + ROWS])
        elif kind == "split":
            halves = x.split(ROWS // 2)
            left.append(torch.cat([halves[1], halves[0]]))
        elif kind == "out":
            made = torch.empty(ROWS, COLUMNS)
            left.append(torch.add(x, y, out=made))
        elif kind == "norm":
            left.append(torch_npu.npu_rms_norm(x.contiguous(), torch.ones(COLUMNS))[0])
        elif kind == "random":
            left.append(x + torch.zeros_like(x).bernoulli_(1.0))
        elif kind == "mask":
            left.append(torch.where(x > 0, x, y))
        elif kind == "whole":
            left.append(x.view(torch.int32).view(torch.float32) if x.is_contiguous() else x.detach())
        elif kind == "forget" and len(left) > 2:
            del left[2 + int(dice[0] * (len(left) - 2))]

    def __str__(self):
        return f"seed {self.seed}: " + ", ".join(kind for kind, _ in self.calls)



class Programs(unittest.TestCase):
    def check(self, seed, parts):
        program = Program(seed)
        values = torch.Generator().manual_seed(seed)
        inputs = [torch.randn(ROWS, COLUMNS, generator=values) for _ in range(2)]
        graph = torch.npu.NPUGraph()
        try:
            program.run(*(each.clone() for each in inputs))
        except RuntimeError:
            return False  # torch itself refuses it: a write to a view of expanded rows
        with torch.no_grad(), torch.npu.graph(graph):
            seen = program.run(*inputs)
        for _ in range(3):
            for each in inputs:
                each.copy_(torch.randn(ROWS, COLUMNS, generator=values))
            given = [each.clone() for each in inputs]
            expected = program.run(*given)
            graph.replay()
            self.assertEqual(len(seen), len(expected))
            for at, (ours, plain) in enumerate(zip([*inputs, *seen], [*given, *expected])):
                torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-4,
                                           msg=lambda text: f"{program}\nvariable {at}: {text}")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "graph.json")
            graph.debug_dump(path)
            with open(path, encoding="utf-8") as file:
                parts += json.load(file)["graphs"]
        return True

    def test_replays_equal_eager_runs(self):
        parts, ran = [], 0
        for seed in range(FIRST, FIRST + PROGRAMS):
            with self.subTest(seed=seed):
                ran += self.check(seed, parts)
        self.assertGreater(ran, PROGRAMS // 2)
        engine = sum(each["calls"] for each in parts if each["by"] == "engine")
        torchs = [each for each in parts if each["by"] == "torch"]
        print(f"{ran} programs; {engine} calls by the engine, "
              f"{sum(each['calls'] for each in torchs)} by torch")
        for why in sorted({each["why"] for each in torchs}):
            print("  by torch:", why)
        if os.path.isdir(os.environ.get("NPUMESH_TORCHAIR", "")):
            self.assertGreater(engine, 0)


if __name__ == "__main__":
    npu_case.main()
