#!/usr/bin/env python3
"""How long single nodes of ONNX take, beside ONNX Runtime.

    bench_onnx_nodes.py [--turns N] [--small] [NAME]...

Both run in turns on one thread with the same input; the least time of the turns counts, which of npumesh has two copies
in it, of the input and of the result. Results are compared, too. Prints the ratio, ours over ONNX Runtime's, the worst
first. --small: extents that only show that all run and agree. Exit code 1: a result differs; 77: onnxruntime is
missing.
"""

import argparse
import os
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before npumesh reads it
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from in_venv import run_in_venv  # noqa: E402

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
except ImportError as error:
    run_in_venv()
    print(f"SKIPPED: {error}")
    sys.exit(77)

import npumesh  # noqa: E402

FLOAT = onnx.TensorProto.FLOAT


def resize(mode, places, *scales):
    return "Resize", {"": None, "scales": np.float32([1, 1, *scales])}, {
        "mode": mode, "coordinate_transformation_mode": places, "nearest_mode": "floor"}


def cases(small):
    """Name, shape of the input, and the node: its type, the constants that follow the input, its attributes."""
    side, channels = (12, 8) if small else (112, 64)
    image, little = (1, channels, side, side), (1, 4 * channels, side // 4, side // 4)
    rows = (channels, 16 * channels)
    drawn = np.random.default_rng(1)
    channel = drawn.random((channels, 1, 1), np.float32)
    vector = drawn.random(channels, np.float32)
    for mode, places in (("nearest", "asymmetric"), ("linear", "half_pixel"), ("linear", "align_corners"),
                         ("cubic", "half_pixel")):
        yield f"{mode}_{places}", little, resize(mode, places, 2, 2)
        yield f"{mode}_{places}_smaller", image, resize(mode, places, 0.5, 0.5)
    yield "prelu", image, ("PRelu", {"w": channel}, {})
    yield "leaky_relu", image, ("LeakyRelu", {}, {})
    yield "hard_swish", image, ("HardSwish", {}, {})
    yield "clip", image, ("Clip", {"a": np.float32(0), "b": np.float32(6)}, {})
    yield "mul_channel", image, ("Mul", {"w": channel}, {})
    yield "instance_norm", image, ("InstanceNormalization", {"w": vector, "b": vector}, {})
    yield "layer_norm", rows, ("LayerNormalization", {"w": np.ones(rows[1], np.float32)}, {})
    yield "lrn", image, ("LRN", {}, {"size": 5})
    yield "pad", image, ("Pad", {"p": np.int64([0, 0, 1, 1, 0, 0, 1, 1])}, {})
    yield "pad_reflect", image, ("Pad", {"p": np.int64([0, 0, 1, 1, 0, 0, 1, 1])}, {"mode": "reflect"})
    yield "depth_to_space", image, ("DepthToSpace", {}, {"blocksize": 2})
    yield "transpose", image, ("Transpose", {}, {"perm": [0, 2, 3, 1]})
    yield "mean_of_image", image, ("ReduceMean", {}, {"axes": [2, 3]})
    yield "max_of_channels", image, ("ReduceMax", {}, {"axes": [1]})
    yield "global_average", image, ("GlobalAveragePool", {}, {})
    yield "max_pool", image, ("MaxPool", {}, {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]})
    yield "softmax_channels", image, ("Softmax", {}, {"axis": 1})
    yield "softmax_rows", rows, ("Softmax", {}, {"axis": -1})
    yield "transposed_conv", little, (
        "ConvTranspose", {"w": drawn.random((4 * channels, channels, 2, 2), np.float32)}, {"strides": [2, 2]})
    yield "erf", image, ("Erf", {}, {})
    yield "cumsum", rows, ("CumSum", {"axis": np.int64(1)}, {})


def write(path, shape, node):
    kind, constants, attributes = node
    graph = helper.make_graph(
        [helper.make_node(kind, ["x", *constants], ["y"], **attributes)], "node",
        [helper.make_tensor_value_info("x", FLOAT, shape)], [helper.make_tensor_value_info("y", FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items() if value is not None])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def once(call):
    begin = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - begin)


def measure(world, path, shape, turns):
    """Milliseconds of ours and of ONNX Runtime's. Error: AssertionError, the results differ."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    theirs = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    ours = world.load(path)
    x = np.random.default_rng(2).standard_normal(shape, np.float32)
    expected = theirs.run(None, {"x": x})[0]
    np.testing.assert_allclose(ours.run(x)[0], expected, rtol=1e-3, atol=1e-4)
    times = [(once(lambda: ours.run(x)), once(lambda: theirs.run(None, {"x": x}))) for _ in range(turns)]
    return [min(each) for each in zip(*times)]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--turns", type=int, default=21)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    rows, wrong = [], 0
    with tempfile.TemporaryDirectory() as folder, npumesh.World(NPUMESH_HBM_SIZE="2G") as world:
        path = os.path.join(folder, "node.onnx")
        for name, shape, node in cases(options.small):
            if options.names and name not in options.names:
                continue
            write(path, shape, node)
            try:
                ours, theirs = measure(world, path, shape, 1 if options.small else options.turns)
            except AssertionError as error:
                wrong += 1
                print(f"{name}: differs: {error}")
                continue
            rows.append((ours / theirs, name, ours, theirs))
    print("ours / theirs  ours ms  theirs ms  node")
    for ratio, name, ours, theirs in sorted(rows, reverse=True):
        print(f"{ratio:13.2f} {ours:8.3f} {theirs:10.3f}  {name}")
    sys.exit(1 if wrong or not rows else 0)


main()
