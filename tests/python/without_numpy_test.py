"""The package where numpy is not installed: tensors are memoryviews."""

import array
import os
import sys
import unittest

sys.modules["numpy"] = None  # as if it were missing

import npumesh  # noqa: E402
from air_text import AirText  # noqa: E402

SMALL = {"NPUMESH_HBM_SIZE": "64M"}


def floats(values, shape):
    return memoryview(array.array("f", values)).cast("B").cast("f", shape)


class WithoutNumpy(unittest.TestCase):
    def setUp(self):
        self.world = npumesh.World(SMALL)
        self.addCleanup(self.world.close)

    def add(self):
        graph = AirText("add")
        x, w = graph.data("x", "float32", (2, 2)), graph.data("w", "float32", (2, 2))
        graph.output(graph.op("Add", {"x1": x, "x2": w}, "float32", (2, 2)))
        return self.world.load(graph.text())

    def test_runs_a_model(self):
        self.assertNotIn("compare", npumesh.__all__)
        x = floats([1, 2, 3, 4], (2, 2))
        out = self.add().run(x, w=x)[0]
        self.assertEqual(out.tolist(), [[2, 4], [6, 8]])
        self.world.close()
        self.assertEqual(out[1, 1], 8)  # the memory is the program's

    def test_fills_given_memory(self):
        x, y = floats([1, 2, 3, 4], (2, 2)), floats([0] * 4, (2, 2))
        self.assertIs(self.add().run(x, x, out=y)[0], y)
        self.assertEqual(y.tolist(), [[2, 4], [6, 8]])

    def test_memory_with_gaps_is_copied_and_not_written(self):
        wide = memoryview(array.array("f", range(8)))[::2]
        graph = AirText()
        graph.output(graph.data("x", "float32", (4,)))
        model = self.world.load(graph.text())
        self.assertEqual(model.run(wide)[0].tolist(), [0, 2, 4, 6])
        with self.assertRaises(npumesh.InvalidArgumentError):
            model.run(wide, out=wide)

    def test_lists_need_numpy(self):
        with self.assertRaisesRegex(npumesh.InvalidArgumentError, '"x".*seen list'):
            self.add().run([[1, 2], [3, 4]], floats([0] * 4, (2, 2)))

    def test_every_type(self):
        for dtype in npumesh.DTYPES:
            for shape in ((4,), (), (0, 3)):
                with self.subTest(dtype=dtype.name, shape=shape):
                    graph = AirText()
                    graph.output(graph.data("x", dtype.name, shape))
                    model = self.world.load(graph.text())
                    self.assertEqual(model.inputs[0].dtype, dtype)
                    value = npumesh.tensors.empty(shape, dtype)
                    if value.format != dtype.format or dtype.name not in (
                            "float32", "int8", "int32", "uint8", "int16", "uint16", "uint32",
                            "int64", "uint64", "float64", "bool") or shape == (0, 3):
                        continue  # a memoryview does not say what this is
                    self.assertEqual(model.run(value)[0].tolist(), value.tolist())

    def test_collectives(self):
        group = self.world.all
        self.assertEqual(group.all_reduce(floats([1, 2], (2,))).tolist(), [1, 2])
        self.assertEqual(group.all_gather(floats([1, 2], (2,))).tolist(), [[1, 2]])
        self.assertEqual([each.tolist() for each in group.all_to_all_v([floats([5], (1,))])], [[5]])

    def test_questions(self):
        self.assertIn("MatMulV2", npumesh.operators())
        add = npumesh.operator("Add")
        self.assertEqual([field.name for field in add.inputs], ["x1", "x2"])
        self.assertEqual(add.outputs[0].kind, "required")
        with self.assertRaisesRegex(npumesh.NotFoundError, "Add"):
            npumesh.operator("Addd")
        with self.assertRaises(ValueError):
            npumesh.operator("A\0dd")
        self.assertRegex(npumesh.version(), r"^\d+\.\d+\.\d+$")
        self.assertTrue(os.environ.get("NPUMESH_LIBRARY") in (None, npumesh.library_path()))


if __name__ == "__main__":
    unittest.main()
