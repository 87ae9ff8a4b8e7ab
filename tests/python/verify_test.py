"""`npumesh verify`: outputs of kernels that are right, and with each kind of mistake, beside the operator.

    verify_test.py [--first N] [--faults N]

The kernels are numpy's, in float64. --faults of each kind and as many without a mistake are drawn from seed --first on.
"""

import json
import os
import subprocess
import tempfile
import unittest

import case
from case import numpy as np

COMMAND = os.environ.get("NPUMESH_COMMAND", "npumesh")
FIRST, FAULTS = case.numbers(__doc__, first=1, faults=4)


def tensor(array):
    return {"format": "ND", "shape": list(array.shape), "type": str(array.dtype)}


class Case:
    """An operator with drawn inputs, and its output by numpy."""

    def __init__(self, random):
        self.random, self.attrs, kind = random, [], random.choice(["add", "mul", "matmul", "softmax", "gelu", "mean"])
        shape = tuple(int(n) for n in random.integers(6, 12, random.integers(2, 4)))
        array = lambda *dims: random.standard_normal(dims).astype("float32")  # noqa: E731
        x = array(*shape)
        wide = x.astype("float64")
        self.inputs = [x]
        if kind in ("add", "mul"):
            y = array(*shape)
            self.inputs.append(y)
            self.type, self.output = ("Add", wide + y) if kind == "add" else ("Mul", wide * y)
        elif kind == "matmul":
            m, k, n = shape[0], 33, shape[1]
            self.inputs = [array(m, k), array(k, n)]
            self.type, self.output = "MatMulV2", self.inputs[0].astype("float64") @ self.inputs[1]
        elif kind == "softmax":
            e = np.exp(wide - wide.max(-1, keepdims=True))
            self.type, self.output = "SoftmaxV2", e / e.sum(-1, keepdims=True)
            self.attrs = [{"name": "axes", "type": "list_int", "value": [-1]}]
        elif kind == "gelu":
            self.type = "Gelu"
            inner = np.sqrt(2 / np.pi) * (wide + 0.044715 * wide ** 3)
            self.output = 0.5 * wide * (1 + np.tanh(inner))
        else:
            self.type, self.output = "Sigmoid", 1 / (1 + np.exp(-wide))
        self.output = self.output.astype("float32")

    def described(self):
        return [{"op": self.type, "input_desc": [tensor(x) for x in self.inputs],
                 "output_desc": [tensor(self.output)], "attr": self.attrs}]


def factor(c):
    return c.output * np.float32(c.random.choice([0.5, 1.131, 2, -1]))


def transposed(c):
    axes = np.roll(np.arange(c.output.ndim), int(c.random.integers(1, c.output.ndim)))
    return np.ascontiguousarray(c.output.transpose(axes)).reshape(c.output.shape)


def shifted(c):
    axis, by = int(c.random.integers(c.output.ndim)), int(c.random.choice([-1, 1]))
    return np.roll(c.output, by, axis)


def permuted(c):
    axis = int(c.random.integers(c.output.ndim))
    size = c.output.shape[axis]
    order = np.arange(size)
    while (order == np.arange(size)).all() or any((order == np.roll(np.arange(size), n)).all() for n in range(-3, 4)):
        order = c.random.permutation(size)
    return np.take(c.output, order, axis)


def zero_shard(c):
    y, axis = c.output.copy(), int(c.random.integers(c.output.ndim))
    part = [slice(None)] * y.ndim
    half = y.shape[axis] // 2
    part[axis] = slice(half, None) if c.random.integers(2) else slice(0, half)
    y[tuple(part)] = 0
    return y


def cut(c):
    if c.random.integers(2):
        return c.output.astype("float16").astype("float32")
    bits = c.output.view("uint32")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype("uint32").view("float32")


KINDS = {"factor": factor, "permuted": transposed, "shifted": shifted, "reordered": permuted, "zero_part": zero_shard,
         "cut_type": cut}


class Verify(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def put(self, c, output):
        with open(self.path("op.json"), "w") as file:
            json.dump(c.described(), file)
        os.makedirs(self.path("inputs"), exist_ok=True)
        for i, x in enumerate(c.inputs):
            np.save(self.path("inputs", f"{i}.npy"), x)
        np.save(self.path("mine.npy"), output)

    def verify(self, *words):
        done = subprocess.run([COMMAND, "verify", self.path("op.json"), *words, "--json"], capture_output=True, text=True)
        return done.returncode, json.loads(done.stdout)

    def judged(self, c, output):
        self.put(c, output)
        return self.verify("--inputs", self.path("inputs"), "--against", self.path("mine.npy"))

    def test_what_is_right_is_not_blamed(self):
        for seed in range(FIRST, FIRST + FAULTS * len(KINDS)):
            with self.subTest(seed=seed):
                c = Case(np.random.default_rng(seed))
                code, said = self.judged(c, c.output)
                self.assertEqual((code, said["verdict"], said["golden"]), (0, "same", "float64"), said)
                self.assertEqual(said["operator"], c.type)
                self.assertEqual([x["shape"] for x in said["inputs"]], [list(x.shape) for x in c.inputs])

    def test_each_kind_is_named(self):
        for kind, plant in KINDS.items():
            for seed in range(FIRST, FIRST + FAULTS):
                with self.subTest(kind=kind, seed=seed):
                    c = Case(np.random.default_rng(seed))
                    code, said = self.judged(c, plant(c))
                    self.assertEqual((code, said["verdict"]), (1, "differ"), said)
                    self.assertEqual(said["outputs"][0]["pattern"]["kind"], kind, said["outputs"][0])

    def test_what_is_written_is_what_is_compared(self):
        c = Case(np.random.default_rng(FIRST))
        self.put(c, c.output)
        code, drawn = self.verify("--write", self.path("case"), "--seed", "7")
        self.assertEqual((code, drawn["verdict"]), (0, "computed"))
        code, said = self.verify("--inputs", self.path("case", "inputs"), "--against", self.path("case", "golden"))
        self.assertEqual((code, said["verdict"]), (0, "same"))
        self.assertEqual([x["sha256"] for x in said["inputs"]], [x["sha256"] for x in drawn["inputs"]])
        self.assertEqual(said["outputs"][0]["sha256"], drawn["goldens"][0]["sha256"])
        self.assertEqual(said["outputs"][0]["max_abs"], 0)

    def test_bad_input_is_one_line(self):
        c = Case(np.random.default_rng(FIRST))
        self.put(c, c.output)
        for words, expected, code in (
                ((), "expected --against, --write, or both", 3),
                (("--against", self.path("none.npy")), "none.npy", 3),
                (("--inputs", self.path("none"), "--against", self.path("mine.npy")), "none", 3)):
            done = subprocess.run([COMMAND, "verify", self.path("op.json"), *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(expected, done.stderr)
        np.save(self.path("inputs", "0.npy"), np.zeros((3,), "float32"))
        done = subprocess.run([COMMAND, "verify", self.path("op.json"), "--inputs", self.path("inputs"), "--against",
                               self.path("mine.npy")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("input 0 is float32[3], expected", done.stderr)


if __name__ == "__main__":
    case.main()
