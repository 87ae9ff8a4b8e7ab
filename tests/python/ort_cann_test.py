"""ONNX Runtime's own provider for Ascend, unmodified, over npumesh's libraries: random models as whole graphs, which it
has compiled over GE's interface and runs as offline models, and operator by operator, against its provider for
processors. Skipped where that wheel is missing (launch/install_deps --torch).

  ort_cann_test.py [--first SEED] [--models N]

What the provider itself gets wrong is not drawn: as operators, paddings that differ at begin and end (it gives ONNX's
order to an operator with another), integer Div, and Reshape (it copies without waiting for the stream).
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import unittest

PLACE = os.environ.get("NPUMESH_ORT_CANN", "")
FIRST, MODELS, SKIPPED = 1, 60, 77
CHILD = "--child"


def environment():
    """The libraries and the wheel, which has to be found before the program begins."""
    seen = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMIX_"))}
    seen.pop("NPUMESH_LIBRARY", None)
    seen.pop("NPUMESH_ACL_LIBRARY", None)
    seen.update(LD_LIBRARY_PATH=os.path.join(os.environ["NPUMESH_VENDOR_HOME"], "lib64"), PYTHONPATH=PLACE,
                OMP_NUM_THREADS="1", NPUMESH_DEVICE_COUNT="1")
    return seen


class Drawn:
    """A chain of operators over an image or a matrix; `whole` may draw what only a graph has."""

    def __init__(self, seed, whole):
        self.random, self.numbers = random.Random(seed), numpy.random.default_rng(seed)
        self.whole, self.nodes, self.constants = whole, [], []
        self.shape = [self.random.randrange(1, 4), self.random.choice([2, 4, 6]), self.random.randrange(6, 12),
                      self.random.randrange(6, 12)]
        self.input, self.value = list(self.shape), "x"
        for _ in range(self.random.randrange(2, 7)):
            self.random.choice([self.elementwise, self.binary, self.convolution, self.pool, self.product, self.softmax,
                                *([self.reshape, self.reduce, self.transpose, self.concat] if whole else [])])()
        self.name = f"drawn_{seed}_{int(whole)}"  # the provider keeps compiled models by name

    def op(self, kind, *inputs, **attributes):
        made = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [made], **attributes))
        self.value = made

    def constant(self, shape, dtype="float32", values=None):
        if values is None:
            values = self.numbers.standard_normal(shape)
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(numpy.asarray(values, dtype), name))
        return name

    def elementwise(self):
        kinds = ["Relu", "Abs", "Neg", "Exp", "Sin", "Reciprocal"]
        kind = self.random.choice(kinds + ["Sigmoid", "Tanh", "Erf"] if self.whole else kinds)
        if kind in ("Exp", "Reciprocal"):  # of numbers that are neither large nor near zero
            self.op("Sin", self.value)
        if kind == "Reciprocal":
            self.op("Exp", self.value)
        self.op(kind, self.value)

    def binary(self):
        dims = [1 if self.random.random() < 0.4 else n for n in self.shape]
        kind = self.random.choice(["Add", "Sub", "Mul"])
        self.op(kind, self.value, self.constant(dims if self.whole else self.shape))

    def convolution(self):
        if len(self.shape) != 4:
            return self.product()
        groups = self.random.choice([g for g in (1, 2) if self.shape[1] % g == 0])
        kernel, strides, dilations = ([self.random.randrange(1, 4) for _ in range(2)],
                                      [self.random.randrange(1, 3) for _ in range(2)],
                                      [self.random.randrange(1, 3) for _ in range(2)])
        for axis in range(2):
            kernel[axis] = min(kernel[axis], (self.shape[2 + axis] - 1) // dilations[axis] + 1)
        before = [self.random.randrange(2) for _ in range(2)]
        pads = before + ([self.random.randrange(2) for _ in range(2)] if self.whole else before)
        if not self.whole and before[0] != before[1]:
            pads = [before[0]] * 4
        outputs = groups * self.random.randrange(1, 4)
        self.op("Conv", self.value, self.constant([outputs, self.shape[1] // groups, *kernel]),
                *([self.constant([outputs])] if self.random.random() < 0.5 else []), kernel_shape=kernel,
                strides=strides, dilations=dilations, pads=pads, group=groups)
        image = [(self.shape[2 + a] + pads[a] + pads[2 + a] - dilations[a] * (kernel[a] - 1) - 1) // strides[a] + 1
                 for a in range(2)]
        self.shape = [self.shape[0], outputs, *image]

    def pool(self):
        if len(self.shape) != 4 or min(self.shape[2:]) < 2:
            return self.elementwise()
        self.op(self.random.choice(["MaxPool", "AveragePool"]), self.value, kernel_shape=[2, 2], strides=[1, 1])
        self.shape = [*self.shape[:2], self.shape[2] - 1, self.shape[3] - 1]

    def product(self):
        columns = self.random.randrange(1, 9)
        shape = [self.shape[-1], columns] if self.whole else [*self.shape[:-2], self.shape[-1], columns]
        self.op("MatMul", self.value, self.constant(shape))
        self.shape = [*self.shape[:-1], columns]

    def softmax(self):
        self.op("Softmax", self.value, axis=-1)

    def reshape(self):
        self.shape = [self.shape[0], int(numpy.prod(self.shape[1:]))]
        self.op("Reshape", self.value, self.constant([2], "int64", self.shape))

    def reduce(self):
        self.op(self.random.choice(["ReduceMean", "ReduceMax", "ReduceL2"]), self.value, axes=[-1], keepdims=1)
        self.shape = [*self.shape[:-1], 1]

    def transpose(self):
        order = list(range(len(self.shape)))
        self.random.shuffle(order)
        self.op("Transpose", self.value, perm=order)
        self.shape = [self.shape[axis] for axis in order]

    def concat(self):
        self.op("Concat", self.value, self.constant([*self.shape[:-1], 3]), axis=-1)
        self.shape = [*self.shape[:-1], self.shape[-1] + 3]

    def model(self):
        info = helper.make_tensor_value_info
        graph = helper.make_graph(self.nodes, self.name, [info("x", TensorProto.FLOAT, self.input)],
                                  [info(self.value, TensorProto.FLOAT, self.shape)], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()


class OrtCann(unittest.TestCase):
    @staticmethod
    def session(model, *providers):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        return onnxruntime.InferenceSession(model, options, providers=[*providers, "CPUExecutionProvider"])

    def compare(self, whole):
        kinds = set()
        for seed in range(FIRST, FIRST + MODELS):
            drawn = Drawn(seed, whole)
            model = drawn.model()
            x = numpy.random.default_rng(seed).standard_normal(drawn.input).astype("float32")
            with self.subTest(seed=seed, whole=whole, nodes=[node.op_type for node in drawn.nodes]):
                expected = self.session(model).run(None, {"x": x})[0]
                npu = self.session(model, ("CANNExecutionProvider", {"device_id": 0, "enable_cann_graph": str(int(whole))}))
                self.assertEqual(npu.get_providers()[0], "CANNExecutionProvider")
                for _ in range(2):
                    seen = npu.run(None, {"x": x})[0]
                    self.assertEqual(seen.shape, expected.shape)
                    scale = max(1.0, float(numpy.abs(expected).max(initial=0)))
                    numpy.testing.assert_allclose(seen, expected, rtol=2e-4, atol=2e-5 * scale)
            kinds |= {node.op_type for node in drawn.nodes}
        self.assertGreater(len(kinds), 6, kinds)

    def test_models_as_graphs(self):
        self.compare(whole=True)

    def test_models_operator_by_operator(self):
        self.compare(whole=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=FIRST)
    parser.add_argument("--models", type=int, default=MODELS)
    parser.add_argument(CHILD, action="store_true", help=argparse.SUPPRESS)
    given, words = parser.parse_known_args()
    if not given.child:
        if not os.path.isfile(os.path.join(PLACE, "onnxruntime", "capi", "libonnxruntime_providers_cann.so")):
            print(f"SKIPPED: there is no ONNX Runtime for Ascend at {PLACE!r} (launch/install_deps --torch)")
            sys.exit(SKIPPED)
        with tempfile.TemporaryDirectory() as folder:  # where the provider keeps what it has compiled
            sys.exit(subprocess.call([sys.executable, os.path.abspath(__file__), CHILD, *sys.argv[1:]],
                                     env=environment(), cwd=folder))
    FIRST, MODELS = given.first, given.models
    sys.argv[1:] = words
    import numpy
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    onnxruntime.set_default_logger_severity(4)
    unittest.main()
