"""Element types, their bits, DLPack, options and comparisons: what needs no library."""

import ast
import gc
import glob
import math
import os
import random
import struct
import tempfile
import unittest
import weakref

import case
from case import numpy as np

if np is not None:
    import npumesh
    from npumesh import dlpack, tensors
    from npumesh.options import flatten, of_keywords

PACKAGES = os.path.dirname(os.path.dirname(npumesh.__file__)) if np is not None else ""


class Names(unittest.TestCase):
    def test_every_spelling(self):
        for dtype in npumesh.DTYPES:
            self.assertIs(npumesh.dtype(dtype), dtype)
            self.assertIs(npumesh.dtype(dtype.name), dtype)
            if dtype.own is not None:
                self.assertIs(npumesh.dtype(np.dtype(dtype.own)), dtype)
                self.assertIs(npumesh.dtype(np.dtype(dtype.own).type), dtype)
                self.assertEqual(np.dtype(dtype.own).itemsize * 8, dtype.bits)
        for wrong in ("float", "float33", None.__class__, "U3", object()):
            with self.assertRaises(npumesh.InvalidArgumentError):
                npumesh.dtype(wrong) if wrong != "float" else npumesh.dtype("flaot32")

    def test_bytes(self):
        self.assertEqual(npumesh.bytes_of("float32", (2, 3)), 24)
        self.assertEqual(npumesh.bytes_of("int4", (3,)), 2)
        self.assertEqual(npumesh.bytes_of("float6_e3m2", (5,)), 4)
        self.assertEqual(npumesh.bytes_of("bool", ()), 1)
        self.assertEqual(npumesh.bytes_of("int4", (0, 7)), 0)


class Bits(unittest.TestCase):
    def test_bfloat16_rounds_to_the_nearest(self):
        """Against exact fractions: of the two neighbours the nearer, at a tie the even one."""
        rng = random.Random(3)
        patterns = [rng.randrange(1 << 32) for _ in range(3000)]
        patterns += [high << 16 | low for high in (0, 0x3F80, 0x3F81, 0x7F7F, 0x8000, 0xFF7F)
                     for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]
        values = np.array(patterns, np.uint32).view(np.float32)
        rounded = npumesh.to_bfloat16(values).view(np.ndarray)
        for value, bits in zip(values.tolist(), rounded.tolist()):
            if not math.isfinite(value):
                self.assertEqual(math.isnan(value), self.is_nan(bits))
                continue
            self.assertIn(bits, self.nearest(value), value)

    @staticmethod
    def is_nan(bits):
        return bits & 0x7F80 == 0x7F80 and bits & 0x7F != 0

    @staticmethod
    def nearest(value):
        low = struct.unpack("<I", struct.pack("<f", abs(value)))[0] >> 16

        def number(bits):  # 0x7F80 as the number that would follow
            return 2.0 ** 128 if bits == 0x7F80 else struct.unpack(
                "<f", struct.pack("<I", bits << 16))[0]

        below, above = abs(value) - number(low), number(low + 1) - abs(value)
        even = low if low % 2 == 0 else low + 1
        chosen = even if below == above else low if below < above else low + 1
        return [chosen | (0x8000 if math.copysign(1, value) < 0 else 0)]

    def test_bfloat16_there_and_back(self):
        bits = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
        values = npumesh.to_float32(npumesh.as_dtype(bits, "bfloat16"))
        again = npumesh.to_bfloat16(values).view(np.ndarray)
        numbers = ~np.isnan(values)
        np.testing.assert_array_equal(again[numbers], bits[numbers])
        self.assertTrue(np.isnan(npumesh.to_float32(npumesh.as_dtype(again, "bfloat16"))[~numbers])
                        .all())

    def test_float8_by_its_definition(self):
        known = {
            "float8_e4m3fn": {0x00: 0.0, 0x01: 2.0 ** -9, 0x08: 2.0 ** -6, 0x38: 1.0, 0x7E: 448.0,
                              0xB8: -1.0, 0xFE: -448.0},
            "float8_e5m2": {0x01: 2.0 ** -16, 0x04: 2.0 ** -14, 0x3C: 1.0, 0x7B: 57344.0,
                            0x7C: math.inf, 0xFC: -math.inf, 0xC0: -2.0},
            "float8_e8m0": {0: 2.0 ** -127, 127: 1.0, 254: 2.0 ** 127},
        }
        nans = {"float8_e4m3fn": {0x7F, 0xFF}, "float8_e8m0": {255},
                "float8_e5m2": {0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF}}
        for name, table in known.items():
            array = npumesh.as_dtype(np.arange(256, dtype=np.uint8), name)
            values = npumesh.to_float32(array)
            for bits, value in table.items():
                self.assertEqual(values[bits], np.float32(value), (name, bits))
            self.assertEqual(set(np.flatnonzero(np.isnan(values)).tolist()), nans[name])

    def test_arrays_of_bits(self):
        bits = npumesh.as_dtype(np.arange(6, dtype=np.uint16).reshape(2, 3), "bfloat16")
        self.assertEqual(bits.npumesh_dtype.name, "bfloat16")
        self.assertEqual(bits[1:].npumesh_dtype.name, "bfloat16")
        self.assertEqual(bits.T.npumesh_shape, (3, 2))
        self.assertEqual(bits.copy().npumesh_dtype.name, "bfloat16")
        for plain in (bits + 1, bits == bits, bits.astype(np.int32), bits.view(np.uint8)):
            self.assertIsNone(getattr(plain, "npumesh_dtype", None))
        out = np.zeros((2, 3), np.uint16).view(npumesh.BitArray)
        np.add(bits, 1, out=out)
        self.assertEqual(out.tolist(), [[1, 2, 3], [4, 5, 6]])

    def test_packed_arrays(self):
        packed = npumesh.as_dtype(np.zeros(3, np.uint8), "int4", (5,))
        self.assertEqual((packed.shape, packed.npumesh_shape), ((3,), (5,)))
        self.assertEqual(packed.copy().npumesh_shape, (5,))
        self.assertIsNone(packed[1:].npumesh_dtype)
        operand = tensors.read(packed, None, "x")
        self.assertEqual((operand.shape, operand.bytes), ((5,), 3))
        bad = npumesh.InvalidArgumentError
        for wrong in ((np.zeros(3, np.uint8), "int4"), (np.zeros(2, np.uint8), "int4", (5,)),
                      (np.zeros(3, np.uint16), "int4", (5,)), (np.zeros(3, np.uint8), "bfloat16"),
                      (np.zeros(3, np.uint16), "bfloat16", (4,))):
            with self.assertRaises(bad):
                npumesh.as_dtype(*wrong)
        with self.assertRaises(npumesh.UnsupportedError):
            npumesh.to_float32(packed)


class Dlpack(unittest.TestCase):
    def test_takes_what_numpy_gives(self):
        for name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8",
                     "uint16", "uint32", "uint64", "complex64", "complex128"):
            array = np.zeros((2, 3), name)
            tensor = dlpack.take(array)
            self.assertEqual((tensor.dtype.name, tensor.shape), (name, (2, 3)))
            self.assertEqual(tensor.address, array.ctypes.data)
            self.assertTrue(tensor.contiguous)
            self.assertFalse(dlpack.take(array.T).contiguous)
            self.assertTrue(dlpack.take(array[:1]).contiguous)

    def test_keeps_and_lets_go(self):
        array = np.zeros(4)
        gone = weakref.ref(array)
        tensor = dlpack.take(array)
        del array
        gc.collect()
        self.assertIsNotNone(gone())
        del tensor
        gc.collect()
        self.assertIsNone(gone())

    def test_gives_bits_with_their_type(self):
        bits = npumesh.to_bfloat16([[1, 2], [3, 4]])
        gone = weakref.ref(bits)
        tensor = dlpack.Imported(bits.T.__dlpack__())
        self.assertEqual((tensor.dtype.name, tensor.strides), ("bfloat16", (1, 2)))
        self.assertEqual(tensor.address, bits.ctypes.data)
        del bits
        gc.collect()
        self.assertIsNotNone(gone())  # the view keeps its base
        del tensor
        gc.collect()
        self.assertIsNone(gone())
        self.assertEqual(dlpack._exported, {})
        npumesh.to_bfloat16([1]).__dlpack__()  # a capsule that is not taken
        self.assertEqual(dlpack._exported, {})

    def test_what_is_refused(self):
        capsule = npumesh.to_bfloat16([1]).__dlpack__()
        taken = dlpack.Imported(capsule)
        with self.assertRaises(npumesh.InvalidArgumentError):
            dlpack.Imported(capsule)  # used
        del taken
        with self.assertRaises(BufferError):
            npumesh.as_dtype(np.zeros(1, np.uint8), "int4", (2,)).__dlpack__()
        fixed = npumesh.to_bfloat16([1])
        fixed.flags.writeable = False
        with self.assertRaises(BufferError):
            fixed.__dlpack__()

        class Wrong:
            def __dlpack__(self):
                return 5

        with self.assertRaises(npumesh.InvalidArgumentError):
            tensors.read(Wrong(), None, "x")


class Options(unittest.TestCase):
    def test_values_and_names(self):
        self.assertEqual(
            flatten({"a": {"b": True, "c": None}, "d.e": [1, 2], "f": 1.5, "g": "x", "h": False}),
            [("a.b", "true"), ("a.c", "none"), ("d.e", "1,2"), ("f", "1.5"), ("g", "x"),
             ("h", "false")])
        self.assertEqual(of_keywords({"a__b": 1}), [("a.b", "1")])
        self.assertEqual(flatten(None), [])
        self.assertEqual(dict(flatten(npumesh.dump_options("d", layers=["a", "b"])))
                         ["dump_config.dump_layer"], "a b")


class Comparing(unittest.TestCase):
    def test_the_same(self):
        for array in (np.float32([1, np.nan, np.inf, -np.inf, -0.0]), np.int8([-128, 127]),
                      np.array([True, False]), np.complex64([1j, np.nan]), np.float32(3),
                      np.zeros((0, 2)), npumesh.to_bfloat16([1, np.nan])):
            result = npumesh.compare(array, array.copy())
            self.assertTrue(result and result.same, result)
            self.assertEqual((result.differing, result.first, result.max_abs), (0, None, 0))
        self.assertTrue(npumesh.compare(np.float32([0.0]), np.float32([-0.0])))

    def test_random_arrays_against_plain_arithmetic(self):
        rng = random.Random(11)
        for _ in range(300):
            count = rng.randint(1, 6)
            pick = [1.0, -2.0, 0.0, 1.5, math.inf, -math.inf, math.nan, 3.25]
            expected = [rng.choice(pick) for _ in range(count)]
            seen = [value if rng.random() < 0.5 else rng.choice(pick) for value in expected]
            rtol, atol = rng.choice([0, 0.25, 1]), rng.choice([0, 0.5, 2])
            wrong = [at for at in range(count)
                     if not self.near(seen[at], expected[at], rtol, atol)]
            result = npumesh.compare(np.array(seen), np.array(expected), rtol=rtol, atol=atol)
            self.assertEqual(result.differing, len(wrong), (seen, expected, rtol, atol))
            self.assertEqual(result.first, (wrong[0],) if wrong else None)
            self.assertEqual(result.same, not wrong)
            self.assertEqual((result.nan_seen, result.nan_expected),
                             (sum(map(math.isnan, seen)), sum(map(math.isnan, expected))))

    @staticmethod
    def near(seen, expected, rtol, atol):
        if math.isnan(seen) and math.isnan(expected) or seen == expected:
            return True
        if not (math.isfinite(seen) and math.isfinite(expected)):
            return False
        return abs(seen - expected) <= atol + rtol * abs(expected)

    def test_integers_are_exact(self):
        big = np.int64([(1 << 62) + 1, -(1 << 63)])
        result = npumesh.compare(big, np.int64([1 << 62, (1 << 63) - 1]))
        self.assertEqual((result.differing, result.max_abs), (2, float((1 << 64) - 1)))
        self.assertEqual(npumesh.compare(np.uint8([255]), np.uint8([0])).max_abs, 255)
        self.assertEqual(npumesh.compare(np.array([True]), np.array([False])).max_abs, 1)

    def test_other_shapes_and_types(self):
        self.assertIn("shape", npumesh.compare(np.zeros(2), np.zeros(3)).reason)
        self.assertIn("dtype", npumesh.compare(np.zeros(2), np.zeros(2, np.int32)).reason)
        self.assertIn("dtype", npumesh.compare(npumesh.to_bfloat16([1]), np.float32([1])).reason)
        with self.assertRaises(npumesh.InvalidArgumentError):
            npumesh.compare(np.zeros(1), np.zeros(1), rtol=-1)

    def test_folders(self):
        with tempfile.TemporaryDirectory() as root:
            for side, change in (("a", 0), ("b", 1)):
                os.makedirs(f"{root}/{side}/rank_0")
                for at in range(12):
                    np.save(f"{root}/{side}/rank_0/{at}.npy", np.full(2, at + change * (at > 8)))
            np.save(f"{root}/a/rank_0/only.npy", np.zeros(1))
            result = npumesh.compare_folders(f"{root}/a", f"{root}/b")
            self.assertEqual(result.first, "rank_0/9.npy")
            self.assertEqual(list(result.files)[9:], [f"rank_0/{at}.npy" for at in (9, 10, 11)])
            self.assertEqual((result.only_seen, result.only_expected), (["rank_0/only.npy"], []))
            self.assertFalse(result)
            self.assertTrue(npumesh.compare_folders(f"{root}/b", f"{root}/b"))
            with self.assertRaises(npumesh.NotFoundError):
                npumesh.compare_folders(root + "/c", root)
            with open(f"{root}/b/rank_0/3.npy", "wb") as file:
                file.write(b"\x93NUMPY")
            with self.assertRaisesRegex(npumesh.CorruptError, "3.npy"):
                npumesh.compare_folders(f"{root}/a", f"{root}/b")


class Source(unittest.TestCase):
    def test_python_3_9_reads_every_file(self):
        files = glob.glob(os.path.join(PACKAGES, "**", "*.py"), recursive=True)
        self.assertGreater(len(files), 10)
        for path in files:
            with open(path, encoding="utf-8") as file:
                ast.parse(file.read(), path, feature_version=(3, 9))

    def test_public_functions_have_types_and_a_contract(self):
        for name in npumesh.__all__:
            self.assertTrue(getattr(npumesh, name).__doc__ or name == "DTYPES", name)
        for path in glob.glob(os.path.join(PACKAGES, "npumesh", "*.py")):
            with open(path, encoding="utf-8") as file:
                tree = ast.parse(file.read(), path)
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef):
                    self.assertIsNotNone(node.returns, f"{path}: {node.name}")
                    for argument in node.args.args + node.args.kwonlyargs:
                        typed = argument.annotation is not None or argument.arg in ("self", "cls")
                        self.assertTrue(typed, f"{path}: {node.name}({argument.arg})")


if __name__ == "__main__":
    case.main()
