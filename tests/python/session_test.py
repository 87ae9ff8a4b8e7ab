"""Loading and running models from Python: what is taken, what comes back, what is refused."""

import array
import ctypes
import gc
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import unittest

import case
from air_text import AirText
from case import numpy as np

if np is not None:
    import npumesh


def add_model(dtype="float32", shape=(2, 2)):
    graph = AirText("add")
    x = graph.data("x", dtype, shape)
    w = graph.data("w", dtype, shape)
    return graph.output(graph.op("Add", {"x1": x, "x2": w}, dtype, shape, name="sum")).text()


def echo_model(dtype, shape):
    graph = AirText("echo")
    return graph.output(graph.data("x", dtype, shape)).text()


def assign_model():
    """cache = cache + x; y = 2 * x."""
    graph = AirText("assign")
    cache = graph.data("cache", "int32", (3,), kind="RefData")
    x = graph.data("x", "int32", (3,))
    total = graph.op("Add", {"x1": cache, "x2": x}, "int32", (3,))
    changed = graph.op("Assign", {"ref": cache, "value": total}, "int32", (3,))
    return graph.output(changed, graph.op("Add", {"x1": x, "x2": x}, "int32", (3,))).text()


def field(number, value):
    """A field of a protobuf message: a number, or bytes."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def onnx_neg():
    """An ONNX model: y = -x of float32[2]."""
    tensor = field(1, field(1, 1) + field(2, field(1, field(1, 2))))  # float32, [2]
    node = field(1, b"x") + field(2, b"y") + field(4, b"Neg")
    graph = (field(1, node) + field(2, b"g") + field(11, field(1, b"x") + field(2, tensor))
             + field(12, field(1, b"y") + field(2, tensor)))
    return field(1, 8) + field(7, graph) + field(8, field(2, 17))


class OnlyDlpack:
    """A tensor of another library: nothing but DLPack."""

    def __init__(self, values, device=(1, 0)):
        self.values, self.device = values, device

    def __dlpack__(self, **keywords):
        return self.values.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.device


class WorldCase(unittest.TestCase):
    def setUp(self):
        self.world = npumesh.World(case.SMALL)
        self.addCleanup(self.world.close)

    def load(self, model, *arguments, **keywords):
        return self.world.load(model, *arguments, **keywords)

    def refused(self, kind, words, call, *arguments, **keywords):
        """The call raises `kind`, with one line that has all the words."""
        with self.assertRaises(kind) as caught:
            call(*arguments, **keywords)
        text = str(caught.exception)
        self.assertNotIn("\n", text)
        for word in words:
            self.assertIn(word, text)
        return caught.exception


class Package(unittest.TestCase):
    def test_the_version_is_that_of_the_library(self):
        self.assertEqual(npumesh.__version__, npumesh.version())
        self.assertRegex(npumesh.__version__, r"^\d+\.\d+\.\d+$")
        with self.assertRaisesRegex(AttributeError, "no attribute 'nothing'"):
            npumesh.nothing

    def test_torch_npu_says_which_torch_it_needs(self):
        """Without torch, with one that is too old, and with one that does not load."""
        for body, said in (("__version__ = '1.13.1'", "found 1.13.1"),
                           ("raise OSError('libtorch.so: no such file')", "OSError: libtorch.so")):
            with tempfile.TemporaryDirectory() as folder:
                os.mkdir(os.path.join(folder, "torch"))
                with open(os.path.join(folder, "torch", "__init__.py"), "w",
                          encoding="utf-8") as file:
                    file.write(body + "\n")
                words = os.pathsep.join([folder, *sys.path])
                done = subprocess.run([sys.executable, "-c", "import torch_npu"], text=True,
                                      capture_output=True, check=False,
                                      env={**os.environ, "PYTHONPATH": words})
            last = done.stderr.strip().splitlines()[-1]
            self.assertIn("ImportError: torch_npu of npumesh needs torch 2.6 or later, ", last)
            self.assertIn(said, last)


class Binding(WorldCase):
    def setUp(self):
        super().setUp()
        self.model = self.load(add_model())
        self.x = np.arange(4, dtype=np.float32).reshape(2, 2)
        self.w = np.full((2, 2), 10, np.float32)
        self.sum = self.x + self.w

    def gives_sum(self, *arguments, **keywords):
        outputs = self.model.run(*arguments, **keywords)
        self.assertEqual(len(outputs), 1)
        self.assertEqual(outputs[0].dtype, np.float32)
        np.testing.assert_array_equal(outputs[0], self.sum)

    def test_by_position_name_and_mapping(self):
        x, w = self.x, self.w
        self.gives_sum(x, w)
        self.gives_sum(x, w=w)
        self.gives_sum(w=w, x=x)
        self.gives_sum({"w": w, "x": x})
        self.gives_sum({1: w, 0: x})
        self.gives_sum({"x": x}, w=w)
        np.testing.assert_array_equal(self.model(x, w)[0], self.sum)

    def test_other_memory_than_numpy(self):
        x = array.array("f", self.x.ravel())
        self.gives_sum(memoryview(x).cast("B").cast("f", (2, 2)), self.w)
        self.gives_sum(memoryview(self.x.tobytes()).cast("f", (2, 2)), self.w)
        self.gives_sum(((ctypes.c_float * 2) * 2)((0, 1), (2, 3)), self.w)
        self.gives_sum(OnlyDlpack(self.x.copy()), OnlyDlpack(self.w.copy()))
        self.gives_sum([[0, 1], [2, 3]], 10 * np.ones((2, 2), np.float32))
        self.gives_sum(((0.0, 1.0), (2.0, 3.0)), self.w)

    def test_arrays_that_are_not_contiguous(self):
        wide = np.zeros((4, 6), np.float32)
        wide[::2, ::3] = self.x
        self.gives_sum(wide[::2, ::3], self.w)
        self.gives_sum(self.x.T.copy().T, np.asfortranarray(self.w))
        self.gives_sum(self.x[::-1, ::-1].copy()[::-1, ::-1], self.w)
        self.gives_sum(self.x.astype(">f4"), self.w)
        self.gives_sum(np.broadcast_to(np.float32([0, 2]), (2, 2)).T + np.float32([[0, 1]]), self.w)
        self.gives_sum(self.x, np.broadcast_to(np.float32(10), (2, 2)))
        self.gives_sum(OnlyDlpack(self.x.T.copy().T), self.w)
        packed = np.zeros(17, np.uint8)
        packed[1:] = self.x.view(np.uint8).ravel()
        self.gives_sum(packed[1:].view(np.float32).reshape(2, 2), self.w)  # not aligned

    def test_read_only_arrays(self):
        self.x.flags.writeable = False
        self.gives_sum(self.x, self.w)

    def test_a_scalar_for_a_declared_scalar(self):
        graph = AirText()
        x = graph.data("x", "float32", ())
        model = self.load(graph.output(graph.op("Neg", {"x": x}, "float32", ())).text())
        for value in (2, 2.0, np.float32(2), np.full((), 2, np.float32), True + True):
            outputs = model.run(value)
            self.assertEqual(outputs[0].shape, ())
            self.assertEqual(outputs[0][()], -2)

    def test_what_is_no_input(self):
        bad = npumesh.InvalidArgumentError
        x, w, run = self.x, self.w, self.model.run
        self.refused(bad, ["model", "2 inputs", "3 were given"], run, x, w, x)
        self.refused(bad, ['no input "z"', "x, w"], run, x, z=w)
        self.refused(bad, ["2 inputs", "position 2"], run, {0: x, 2: w})
        self.refused(bad, ["2 inputs", "position -1"], run, {0: x, -1: w})
        self.refused(bad, ['input 0 "x"', "twice"], run, x, x=x)
        self.refused(bad, ['"x"', "float64"], run, x.astype(np.float64), w)
        self.refused(bad, ['"w"', "3"], run, x, np.zeros((2, 3), np.float32))
        self.refused(bad, ['"x"', "seen dict"], run, {"x": {}, "w": w})
        self.refused(bad, ['"x"', "do not fit"], run, [[1j, 0], [0, 0]], w)
        self.refused(bad, ['"x"', "<U1"], run, np.full((2, 2), "a"), w)
        self.refused(bad, ['"x"', "host", "(2, 0)"], run, OnlyDlpack(x, (2, 0)), w)
        self.refused(npumesh.NpumeshError, ['"w"'], run, x)
        self.gives_sum(x, w)  # the session goes on

    def test_numbers_must_fit(self):
        model = self.load(echo_model("int8", (2,)))
        np.testing.assert_array_equal(model.run([-128, 127])[0], np.int8([-128, 127]))
        self.refused(npumesh.InvalidArgumentError, ["int8"], model.run, [0, 128])
        self.refused(npumesh.InvalidArgumentError, ["int8"], model.run, [0, 1.5])


class Outputs(WorldCase):
    def setUp(self):
        super().setUp()
        self.model = self.load(add_model())
        self.x = np.arange(4, dtype=np.float32).reshape(2, 2)

    def test_outlive_session_and_world(self):
        outputs = self.model.run(self.x, self.x)
        self.world.close()
        gc.collect()
        np.testing.assert_array_equal(outputs[0], 2 * self.x)
        outputs[0][...] = 7  # it is the program's memory
        del outputs

    def test_given_arrays_are_filled_without_a_copy(self):
        y = np.zeros((2, 2), np.float32)
        for out in (y, [y], (y,), {0: y}, {"sum:0": y}):
            y[...] = -1
            self.assertIs(self.model.run(self.x, self.x, out=out)[0], y)
            np.testing.assert_array_equal(y, 2 * self.x)
        stats = self.model.stats
        self.assertEqual(stats.runs, 5)
        self.assertEqual((stats.input_bytes_copied, stats.output_bytes_copied), (0, 0))

    def test_given_arrays_of_other_kinds(self):
        wide = np.zeros((4, 6), np.float32)
        self.model.run(self.x, self.x, out=wide[::2, ::3])
        np.testing.assert_array_equal(wide[::2, ::3], 2 * self.x)
        self.assertEqual(np.count_nonzero(wide), 3)
        other_end = np.zeros((2, 2), ">f4")
        self.model.run(self.x, self.x, out=other_end)
        np.testing.assert_array_equal(other_end, 2 * self.x)
        plain = array.array("f", [0] * 4)
        self.model.run(self.x, self.x, out=memoryview(plain).cast("B").cast("f", (2, 2)))
        self.assertEqual(plain.tolist(), [0, 2, 4, 6])
        tensor = OnlyDlpack(np.zeros((2, 2), np.float32))
        self.model.run(self.x, self.x, out=tensor)
        np.testing.assert_array_equal(tensor.values, 2 * self.x)

    def test_given_arrays_that_do_not_fit(self):
        bad, run, x = npumesh.InvalidArgumentError, self.model.run, self.x
        self.refused(bad, ["output 0"], run, x, x, out=np.zeros((2, 1), np.float32))
        self.refused(bad, ["output 0", "(4,)"], run, x, x, out=np.zeros(4, np.float32))
        self.refused(bad, ["output 0", "(3, 2)"], run, x, x, out=np.zeros((3, 2), np.float32))
        self.refused(bad, ["output 0", "float32"], run, x, x, out=np.zeros((2, 2), np.int32))
        self.refused(bad, ["1 outputs", "output 1"], run, x, x, out=[None, np.zeros(1)])
        self.refused(bad, ['no output "y"', "sum:0"], run, x, x, out={"y": np.zeros(1)})
        fixed = np.zeros((2, 2), np.float32)
        fixed.flags.writeable = False
        self.refused(bad, ["output 0", "read-only"], run, x, x, out=fixed)
        self.refused(bad, ["output 0", "read-only"], run, x, x, out=bytes(16))

    def test_an_output_over_an_input(self):
        x = self.x.copy()
        self.model.run(x, x, out=x)
        np.testing.assert_array_equal(x, 2 * self.x)

    def test_ports(self):
        inputs, outputs = self.model.inputs, self.model.outputs
        self.assertEqual([port.name for port in inputs], ["x", "w"])
        self.assertEqual(inputs[1].index, 1)
        self.assertEqual(inputs[0].shape, (2, 2))
        self.assertEqual(inputs[0].dtype, npumesh.dtype("float32"))
        self.assertEqual((inputs[0].bytes, inputs[0].ref, inputs[0].host), (16, False, False))
        self.assertEqual(outputs[0].name, "sum:0")

    def test_shapes_that_a_run_decides(self):
        graph = AirText()
        x = graph.data("x", "float32", (-1, 3))
        model = self.load(graph.output(graph.op("Neg", {"x": x}, "float32", (-1, 3))).text())
        self.assertEqual(model.inputs[0].shape, (-1, 3))
        self.assertEqual(model.prepare(npumesh.Spec((4, 3), "float32"))[0].shape, (4, 3))
        for rows in (1, 0, 5):
            y = model.run(np.ones((rows, 3), np.float32))[0]
            self.assertEqual(y.shape, (rows, 3))
            np.testing.assert_array_equal(y, -np.ones((rows, 3)))
            self.assertEqual(model.outputs[0].shape, (rows, 3))
        self.refused(npumesh.InvalidArgumentError, ['"x"'], model.run, np.ones((2, 2), np.float32))

    def test_prepare_refuses_what_run_would(self):
        self.assertEqual(self.model.prepare(self.x, w=self.x)[0].shape, (2, 2))
        self.assertEqual(self.model.stats.runs, 0)
        self.refused(npumesh.InvalidArgumentError, ['"x"'], self.model.prepare,
                     npumesh.Spec((2, 2), "int32"), self.x)


class InPlace(WorldCase):
    def setUp(self):
        super().setUp()
        self.model = self.load(assign_model())
        self.cache = np.int32([1, 2, 3])
        self.x = np.int32([10, 20, 30])

    def test_ports_say_which(self):
        self.assertEqual([port.ref for port in self.model.inputs], [True, False])

    def test_writes_the_array_when_it_may(self):
        for in_place in (True, "cache", ["cache"], 0, (0,)):
            cache = self.cache.copy()
            changed, double = self.model.run(cache, self.x, in_place=in_place)
            np.testing.assert_array_equal(cache, [11, 22, 33])
            np.testing.assert_array_equal(changed, [11, 22, 33])
            np.testing.assert_array_equal(double, [20, 40, 60])

    def test_an_array_with_gaps(self):
        wide = np.zeros(6, np.int32)
        wide[::2] = self.cache
        self.model.run(wide[::2], self.x, in_place="cache")
        np.testing.assert_array_equal(wide, [11, 0, 22, 0, 33, 0])

    def test_leaves_the_array_otherwise_and_keeps_the_content(self):
        cache = self.cache.copy()
        self.model.run(cache, self.x)
        np.testing.assert_array_equal(cache, self.cache)
        np.testing.assert_array_equal(self.model.read_ref("cache"), [11, 22, 33])
        self.assertEqual(self.model.run(x=self.x)[0].tolist(), [21, 42, 63])
        self.assertEqual(self.model.run({"x": self.x, "cache": None})[0].tolist(), [31, 62, 93])
        np.testing.assert_array_equal(self.model.read_ref(0), [31, 62, 93])

    def test_what_cannot_be_written(self):
        bad, run = npumesh.InvalidArgumentError, self.model.run
        self.cache.flags.writeable = False
        self.refused(bad, ['"cache"', "read-only"], run, self.cache, self.x, in_place=True)
        self.refused(bad, ['"cache"', "not given"], run, x=self.x, in_place="cache")
        self.refused(bad, ["no input"], run, self.cache, self.x, in_place="none")
        self.refused(bad, ['"cache"'], run, [1, 2, 3], self.x, in_place="cache")
        self.refused(bad, ['"cache"', "read-only"], run, bytes(12), self.x, in_place="cache")
        self.refused(npumesh.NpumeshError, ['"cache"'], self.load(assign_model()).run, x=self.x)
        self.refused(npumesh.NpumeshError, [], self.model.read_ref, "x")


class Types(WorldCase):
    """A tensor of each type goes through a graph and is the same bits."""

    def echo(self, dtype, shape):
        rng = np.random.default_rng(len(dtype.name) + sum(shape))
        size = npumesh.bytes_of(dtype, shape)
        data = rng.integers(0, 2 if dtype.name == "bool" else 256, size, dtype=np.uint8)
        own = npumesh.dtypes.numpy_type(dtype)
        if dtype.packed:
            values = npumesh.as_dtype(data, dtype, shape)
        elif own is not None:
            values = data.view(own).reshape(shape)
        else:
            bits = data.view(npumesh.dtypes.bits_type(dtype)).reshape(shape)
            values = npumesh.as_dtype(bits, dtype)
        model = self.load(echo_model(dtype.name, shape))
        out = model.run(values)[0]
        self.assertEqual(model.inputs[0].dtype, dtype)
        self.assertEqual(getattr(out, "npumesh_shape", out.shape), shape)
        self.assertEqual(out.dtype, values.dtype)
        self.assertEqual(getattr(out, "npumesh_dtype", None),
                         getattr(values, "npumesh_dtype", None))
        self.assertEqual(out.tobytes(), values.tobytes())
        out[...] = 0
        self.assertIs(model.run(out, out=out)[0], out)
        model.close()

    def test_every_type(self):
        for dtype in npumesh.DTYPES:
            for shape in ((2, 3), (5,), (), (0, 4)):
                with self.subTest(dtype=dtype.name, shape=shape):
                    self.echo(dtype, shape)

    def test_the_library_has_the_same_types(self):
        library = npumesh._library.library()
        known = {dtype.number: dtype for dtype in npumesh.DTYPES}
        for number in range(-2, 64):
            name = library.npumesh_dtype_name(number).decode()
            bits = library.npumesh_dtype_bits(number)
            if number in known:
                self.assertEqual((known[number].name, known[number].bits), (name, bits))

    def test_the_library_has_the_same_codes(self):
        kinds = [kind for kind in vars(npumesh.errors).values() if isinstance(kind, type)
                 and issubclass(kind, npumesh.NpumeshError) and kind is not npumesh.NpumeshError]
        self.assertEqual(sorted(kind.code for kind in kinds), list(range(1, 11)))
        for kind in kinds:
            code = npumesh._library.library().npumesh_exit_code(kind.code)
            self.assertEqual(kind.exit_code, code, kind)

    def test_bfloat16_as_numbers_and_as_bits(self):
        graph = AirText()
        x = graph.data("x", "bfloat16", (3,))
        graph.output(graph.op("Add", {"x1": x, "x2": x}, "bfloat16", (3,)))
        model = self.load(graph.text())
        for values in ([1, 2.5, -3], npumesh.to_bfloat16([1, 2.5, -3])):
            out = model.run(values)[0]
            self.assertEqual(npumesh.to_float32(out).tolist(), [2, 5, -6])
        self.refused(npumesh.InvalidArgumentError, ['"x"', "uint16"], model.run,
                     np.zeros(3, np.uint16))

    def test_bfloat16_by_dlpack(self):
        model = self.load(echo_model("bfloat16", (2, 2)))
        values = npumesh.to_bfloat16([[1, 2], [3, 4]])
        out = model.run(OnlyDlpack(values))[0]
        self.assertEqual(out.tobytes(), values.tobytes())


class Loading(WorldCase):
    def test_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "add.air")
            npumesh.save_air(add_model(), path)
            with self.load(path) as model:
                self.assertEqual(model.name, path)
                ones = np.ones((2, 2), np.float32)
                self.assertEqual(model.run(ones, ones)[0][0, 0], 2)
            error = self.refused(npumesh.NotFoundError, ["nothing.air"], self.load,
                                 os.path.join(folder, "nothing.air"))
            self.assertEqual((error.code, error.exit_code), (2, 3))
            self.assertIsInstance(error, LookupError)
            os.symlink(path, path + ".link")
            self.refused(npumesh.InvalidArgumentError, ["symbolic link"], npumesh.save_air,
                         add_model(), path + ".link")

    def test_bytes_of_all_kinds(self):
        content = add_model()
        for model in (content, bytearray(content), memoryview(content)):
            self.load(model).close()

    def test_bytes_that_are_no_model(self):
        error = self.refused(npumesh.NpumeshError, ["mine.air"], self.load, b"\xff\x01",
                             name="mine.air")
        self.assertEqual(error.exit_code, 3)
        self.refused(npumesh.NpumeshError, ["model"], self.load, add_model()[:-20])

    def test_an_onnx_model(self):
        x = np.float32([1, -2])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "neg.onnx")
            with open(path, "wb") as file:
                file.write(onnx_neg())
            for model in (self.load(path), self.load(onnx_neg())):
                self.assertEqual([port.shape for port in model.inputs], [(2,)])
                self.assertEqual(model.run(x)[0].tolist(), [-1, 2])
            with open(path, "wb") as file:
                file.write(onnx_neg()[:-9])
            self.refused(npumesh.NpumeshError, ["neg.onnx"], self.load, path)

    def test_a_file_of_another_tool_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "weights.bin")
            with open(path, "wb") as file:
                file.write(b"\x89HDF\r\n\x1a\n" + bytes(64))
            self.refused(npumesh.UnsupportedError, ["weights.bin", "HDF5"], self.load, path)

    def test_what_is_neither_path_nor_bytes(self):
        for wrong in (123, None, [1, 2], 1.5):
            self.refused(TypeError, ["the path of a model, or its bytes", type(wrong).__name__],
                         self.load, wrong)

    def test_texts_do_not_begin_with_functions_of_c(self):
        model = self.load(add_model())
        error = self.refused(npumesh.InvalidArgumentError, ["input 0"], model.run,
                             np.zeros((3, 2), np.float32), np.zeros((2, 2), np.float32))
        self.assertNotIn("npumesh_run", str(error))

    def test_outputs_of_a_static_graph_have_shapes_before_a_run(self):
        graph = AirText("neg")
        text = graph.output(graph.op("Neg", {"x": graph.data("x", "float32", (2, 3))}, "float32",
                                     (2, 3))).text()
        self.assertEqual(self.load(text).outputs[0].shape, (2, 3))

    def test_an_operator_that_is_not_there(self):
        graph = AirText()
        x = graph.data("x", "float32", (2,))
        model = graph.output(graph.op("Flummox", {"x": x}, "float32", (2,))).text()
        with self.assertRaisesRegex(npumesh.UnsupportedError, "Flummox: 1 node"):
            self.load(model)

    def test_options(self):
        self.load(add_model(), {"ge_config.oo_level": "O1"}, threads=1).close()
        self.load(add_model(), {"debug": {"run_eagerly": True}}, parameters=[False, True]).close()
        self.load(add_model(), ge_config__oo_level="O3", groups={"tp": [0]}).close()
        bad = npumesh.InvalidArgumentError
        self.refused(bad, ["oo_levle"], self.load, add_model(), {"ge_config.oo_levle": "O1"})
        self.refused(bad, ["oo_level"], self.load, add_model(), ge_config__oo_level="O7")
        self.refused(bad, ["npumesh.threads"], self.load, add_model(), threads=0)
        with self.assertRaises(TypeError):
            self.load(add_model(), {"debug.run_eagerly": object()})
        with self.assertRaises(TypeError):
            self.load(add_model(), {1: "O1"})

    def test_frozen_parameters(self):
        model = self.load(add_model(), {"experimental_config.frozen_parameter": True},
                          parameters=[False, True])
        x = np.ones((2, 2), np.float32)
        weights = 3 * x
        self.assertEqual(model.run(x, weights)[0][0, 0], 4)
        self.assertEqual(model.run(x)[0][0, 0], 4)

    def test_closed_things_say_so(self):
        model = self.load(add_model())
        self.assertIn("2 inputs", repr(model))
        model.close()
        model.close()
        self.assertIn("closed", repr(model))
        self.refused(npumesh.InvalidArgumentError, ["closed"], model.run)
        self.refused(npumesh.InvalidArgumentError, ["closed"], lambda: model.stats)
        other = self.load(add_model())
        self.world.close()
        self.world.close()
        self.assertIn("closed", repr(self.world))
        self.refused(npumesh.InvalidArgumentError, ["closed"], other.run)
        self.refused(npumesh.InvalidArgumentError, ["closed"], self.load, add_model())
        self.refused(npumesh.InvalidArgumentError, ["closed"], lambda: self.world.rank)

    def test_a_session_that_is_dropped_is_closed(self):
        before = self.world.info.memory_used
        for _ in range(20):
            self.load(add_model("float32", (256, 256))).run(
                np.ones((256, 256), np.float32), np.ones((256, 256), np.float32))
        gc.collect()
        self.load(add_model()).close()
        self.assertLess(self.world.info.memory_used - before, 4 * 256 * 256 * 4)

    def test_worlds_follow_each_other(self):
        self.world.close()
        for _ in range(3):
            with npumesh.World(case.SMALL) as world:
                self.assertEqual((world.rank, world.size, world.local_rank), (0, 1, 0))
                self.assertEqual(world.info.memory_bytes, 64 << 20)
        self.refused(npumesh.InvalidArgumentError, ["NPUMESH_HBM_SIZE"], npumesh.World,
                     NPUMESH_HBM_SIZE="much")
        self.refused(npumesh.InvalidArgumentError, ["precision_mode"], npumesh.World,
                     precision_mode="coarse")
        with npumesh.World(case.SMALL, precision_mode="force_fp32") as world:
            self.assertEqual(world.size, 1)

    def test_a_forked_process_leaves_the_world_alone(self):
        model = self.load(add_model())
        child = os.fork()
        if child == 0:
            try:
                model.run()
            except npumesh.InvalidArgumentError:
                del model
                gc.collect()
                self.world.close()
                os._exit(0)
            os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(model.run([[1, 1], [1, 1]], [[1, 1], [1, 1]])[0][1, 1], 2)


class Growth(WorldCase):
    def resident(self):
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    def calls(self, model, count):
        x = np.ones((64, 64), np.float32)
        y = np.empty((64, 64), np.float32)
        for at in range(count):
            model.run(x, x)
            model.run(x[::-1], w=OnlyDlpack(x), out=y)
            model.run(array_of(x), npumesh.to_bfloat16(0) if at < 0 else x)
            with self.assertRaises(npumesh.InvalidArgumentError):
                model.run(x, x, x)
            model.outputs, model.stats, self.world.info

    def test_a_thousand_calls_take_no_more_memory(self):
        model = self.load(add_model("float32", (64, 64)))
        self.calls(model, 300)
        gc.collect()
        before, device = self.resident(), self.world.info.memory_used
        self.calls(model, 1000)
        gc.collect()
        # An output that stays would be 16 KiB a call: 48 MB.
        self.assertLess(self.resident() - before, 2 << 20)
        self.assertEqual(self.world.info.memory_used, device)


def array_of(values):
    return memoryview(array.array("f", values.ravel())).cast("B").cast("f", values.shape)


class Threads(WorldCase):
    def test_sessions_on_many_threads(self):
        failures = []

        def work(seed):
            try:
                with self.load(add_model("int32", (100,))) as model:
                    x = np.arange(100, dtype=np.int32)
                    for step in range(30):
                        out = model.run(x, np.full(100, seed * step, np.int32))[0]
                        np.testing.assert_array_equal(out, x + seed * step)
            except Exception as error:  # shown below, on the thread that judges
                failures.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(failures, [])

    def test_one_session_on_many_threads(self):
        model = self.load(add_model("int32", (100,)))
        wrong = []

        def work(seed):
            x = np.full(100, seed, np.int32)
            for _ in range(50):
                if (model.run(x, x)[0] != 2 * seed).any():
                    wrong.append(seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual((wrong, model.stats.runs), ([], 200))


class RandomCalls(WorldCase):
    """Random graphs with inputs and outputs in random forms, against arithmetic of numpy."""

    OPS = {
        "Add": np.add if np is not None else None,
        "Sub": np.subtract if np is not None else None,
        "Mul": np.multiply if np is not None else None,
        "Maximum": np.maximum if np is not None else None,
        "Neg": np.negative if np is not None else None,
    }

    def build(self, rng, shape):
        graph = AirText("random")
        count = rng.randint(1, 4)
        values = [graph.data(f"in{at}", "int32", shape) for at in range(count)]
        program = []
        for _ in range(rng.randint(1, 8)):
            kind = rng.choice(sorted(self.OPS))
            picks = [rng.randrange(len(values)) for _ in range(1 if kind == "Neg" else 2)]
            names = ["x"] if kind == "Neg" else ["x1", "x2"]
            values.append(graph.op(kind, {name: values[at] for name, at in zip(names, picks)},
                                   "int32", shape))
            program.append((kind, picks))
        outputs = [rng.randrange(len(values)) for _ in range(rng.randint(1, 3))]
        return graph.output(*(values[at] for at in outputs)), program, outputs

    def oracle(self, inputs, program, outputs):
        values = list(inputs)
        with np.errstate(all="ignore"):
            for kind, picks in program:
                values.append(self.OPS[kind](*(values[at] for at in picks)))
        return [values[at] for at in outputs]

    def form(self, rng, values):
        kind = rng.randrange(8)
        if kind == 0:
            wide = np.zeros([2 * dim + 1 for dim in values.shape], np.int32)
            part = wide[tuple(slice(1, None, 2) for _ in values.shape)]
            part[...] = values
            return part
        if kind == 1:
            return np.asfortranarray(values)
        if kind == 2:
            return values.astype(">i4")
        if kind == 3:
            return OnlyDlpack(np.array(values))
        if kind == 4:
            return memoryview(np.array(values))
        if kind == 5:
            return values.tolist()
        if kind == 6:
            shifted = np.zeros(values.nbytes + 1, np.uint8)[1:].view(np.int32)
            shifted = shifted.reshape(values.shape)
            shifted[...] = values
            return shifted
        return values

    def bind(self, rng, inputs):
        """Positional arguments and keywords."""
        split = rng.randint(0, len(inputs))
        if rng.random() < 0.3:
            keys = [at if rng.random() < 0.5 else f"in{at}" for at in range(len(inputs))]
            pairs = list(zip(keys, inputs))
            rng.shuffle(pairs)
            return (dict(pairs),), {}
        return tuple(inputs[:split]), {f"in{at}": inputs[at] for at in range(split, len(inputs))}

    def memory(self, rng, shape):
        kind = rng.randrange(4)
        if kind == 0:
            return None
        if kind == 1:
            return np.zeros([3 * dim for dim in shape], np.int32)[tuple(slice(None, None, 3)
                                                                      for _ in shape)]
        return np.zeros(shape, ">i4" if kind == 2 else np.int32)

    def test_random_calls(self):
        seed = int(os.environ.get("NPUMESH_TEST_SEED", random.SystemRandom().randrange(1 << 30)))
        rng = random.Random(seed)
        with self.subTest(seed=seed):
            for _ in range(60):
                self.one_graph(rng)

    def one_graph(self, rng):
        shape = tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 3)))
        graph, program, outputs = self.build(rng, shape)
        with self.load(graph.text()) as model:
            for _ in range(3):
                inputs = [np.array(np.random.default_rng(rng.randrange(1 << 30)).integers(
                    -(1 << 31), 1 << 31, shape), np.int32) for _ in range(graph.inputs)]
                kept = [each.copy() for each in inputs]
                expected = self.oracle(inputs, program, outputs)
                arguments, keywords = self.bind(rng, [self.form(rng, each) for each in inputs])
                out = [self.memory(rng, shape) for _ in outputs]
                got = model.run(*arguments, **keywords, out=rng.choice([out, dict(enumerate(out))]))
                for seen, want, memory in zip(got, expected, out):
                    np.testing.assert_array_equal(seen, want)
                    if memory is not None:
                        self.assertIs(seen, memory)
                for each, before in zip(inputs, kept):
                    np.testing.assert_array_equal(each, before)


if __name__ == "__main__":
    case.main()
