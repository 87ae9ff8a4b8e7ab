#!/usr/bin/env python3
"""How long operators take that TorchAir makes of functions of torch, beside torch itself on the CPU.

    bench_operators.py [--threads N] [--turns N] [--small] [NAME]...

Both run in turns with the same inputs; the least time of the turns counts. Results are compared, too.
Prints the ratio, ours over torch's, the worst first. --small: extents that only show that all run and
agree. Needs torch and a checkout of TorchAir, as tests/python says. Exit code 1: a result differs; 77:
something is missing.
"""

import argparse
import os
import sys
import time
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import torchair_case  # noqa: E402

if torchair_case.MISSING:
    print(f"SKIPPED: {torchair_case.MISSING}")
    sys.exit(77)

import torch  # noqa: E402
import torchair  # noqa: E402
from torch.nn import functional  # noqa: E402
from torchair.configs.compiler_config import CompilerConfig  # noqa: E402


def cases(side):
    """Name, function and inputs; matrices have `side` rows and columns."""
    part, batch = side // 4, max(side // 128, 2)
    words = 32 * side
    image = max(side // 16, 8)

    def drawn(*shape):
        return torch.randn(*shape)

    def below(bound, *shape):
        return torch.randint(0, bound, shape)

    matrix, other, vector = drawn(side, side), drawn(side, side), drawn(side)
    images = drawn(2, 32, image, image)
    halves = matrix.half(), other.half()
    yield "add", lambda a, b: a + b, matrix, other
    yield "add_broadcast", lambda a, b: a + b, matrix, drawn(side, 1)
    yield "add_half", lambda a, b: a + b, *halves
    yield "mul_bfloat16", lambda a, b: a * b, matrix.bfloat16(), other.bfloat16()
    yield "mul_int32", lambda a, b: a * b, below(99, side, side).int(), below(99, side, side).int()
    yield "add_int64", lambda a, b: a + b, below(99, side, side), below(99, side, side)
    yield "exp", torch.exp, matrix
    yield "erf", torch.erf, matrix
    yield "tanh", torch.tanh, matrix
    yield "sin", torch.sin, matrix
    yield "log", lambda a: torch.log(a.abs() + 0.1), matrix
    yield "pow", lambda a: torch.pow(a.abs() + 0.1, 1.7), matrix
    yield "gelu", functional.gelu, matrix
    yield "glu", lambda a: functional.glu(a, -1), matrix
    yield "prelu", functional.prelu, images, drawn(32)
    yield "clamp", lambda a: a.clamp(-1, 1), matrix
    yield "round", torch.round, matrix
    yield "remainder", lambda a: torch.remainder(a, 1.5), matrix
    yield "where", lambda a, b: torch.where(a > 0, a, b), matrix, other
    yield "masked_fill", lambda a: a.masked_fill(a > 0, 0.0), matrix
    yield "cast_half", lambda a: a.half(), matrix
    yield "cast_int32", lambda a: (10 * a).int(), matrix
    yield "softmax", lambda a: torch.softmax(a, -1), matrix
    yield "softmax_columns", lambda a: torch.softmax(a, 0), matrix
    yield "log_softmax", lambda a: torch.log_softmax(a, -1), matrix
    yield "logsumexp", lambda a: a.logsumexp(-1), matrix
    yield "layer_norm", lambda a, w, b: functional.layer_norm(a, (side,), w, b), matrix, vector, vector
    yield "group_norm", lambda a, w, b: functional.group_norm(a, 8, w, b), images, drawn(32), drawn(32)
    yield ("batch_norm", lambda a, m, v: functional.batch_norm(a, m, v, training=False), images,
           drawn(32), drawn(32).abs())
    yield "sum_rows", lambda a: a.sum(-1), matrix
    yield "sum_columns", lambda a: a.sum(0), matrix
    yield "sum_all", lambda a: a.sum(), matrix
    yield "max", lambda a: a.max(-1)[0], matrix
    yield "argmax", lambda a: a.argmax(-1), matrix
    yield "std", lambda a: a.std(1), matrix  # TorchAir translates std(-1) wrongly
    yield "cumsum", lambda a: a.cumsum(-1), matrix
    yield "sort", lambda a: a.sort(-1)[0], matrix
    yield "topk", lambda a: a.topk(8, -1)[0], drawn(part, words)
    yield "cross_entropy", lambda a, b: functional.cross_entropy(a, b), drawn(part, words), below(words, part)
    yield "mse", lambda a, b: functional.mse_loss(a, b), matrix, other
    yield "transpose", lambda a: a.t().contiguous() + 0, matrix
    yield "cat", lambda a, b: torch.cat([a, b], -1), matrix, other
    yield "pad", lambda a: functional.pad(a, (1, 2, 3, 4)), matrix
    yield "flip", lambda a: a.flip(-1), matrix
    yield "embedding", lambda a, i: functional.embedding(i, a), drawn(words, part), below(words, side)
    yield "gather", lambda a, i: a.gather(-1, i), matrix, below(side, side, side)
    yield "scatter_add", lambda a, i, b: a.scatter_add(0, i, b), matrix, below(side, side, side), other
    yield "one_hot", lambda i: functional.one_hot(i, side), below(side, side)
    yield "matmul", torch.matmul, drawn(part, side), matrix
    yield "bmm", torch.bmm, drawn(batch, part, part), drawn(batch, part, part)
    yield "conv", lambda a, w: functional.conv2d(a, w, padding=1), images, drawn(32, 32, 3, 3)
    yield "depthwise", lambda a, w: functional.conv2d(a, w, padding=1, groups=32), images, drawn(32, 1, 3, 3)
    yield ("transposed_conv", lambda a, w: functional.conv_transpose2d(a, w, stride=2), images,
           drawn(32, 32, 2, 2))
    yield "max_pool", lambda a: functional.max_pool2d(a, 3, 2, 1), images
    yield "avg_pool", lambda a: functional.avg_pool2d(a, 3, 2, 1), images
    yield "bilinear", lambda a: functional.interpolate(a, scale_factor=2.0, mode="bilinear"), images


def once(function, inputs):
    begin = time.perf_counter()
    function(*inputs)
    return time.perf_counter() - begin


def measure(function, inputs, turns):
    """Milliseconds of ours and of torch's. Error: AssertionError, the results differ."""
    torch._dynamo.reset()
    ours = torch.compile(function, dynamic=False,
                         backend=torchair.get_npu_backend(compiler_config=CompilerConfig()))
    torch.testing.assert_close(ours(*inputs), function(*inputs), rtol=2e-3, atol=2e-3)
    times = [(once(ours, inputs), once(function, inputs)) for _ in range(turns)]
    return [1e3 * min(each) for each in zip(*times)]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    rows, wrong = [], 0
    for name, function, *inputs in cases(32 if options.small else 1024):
        if options.names and name not in options.names:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ours, theirs = measure(function, inputs, 1 if options.small else options.turns)
        except AssertionError as error:
            wrong += 1
            print(f"{name}: DIFFERS: {error}")
            continue
        rows.append((ours / theirs, name, ours, theirs))
    for ratio, name, ours, theirs in sorted(rows, reverse=True):
        print(f"{ratio:7.2f} {name:16} ours {ours:8.3f} ms  torch {theirs:8.3f} ms")
    if not rows and not wrong:
        sys.exit(f"no case is called {' or '.join(options.names)}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
