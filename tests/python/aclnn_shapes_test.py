"""Functions of aclnn whose results have a shape that only the values decide, against numpy: what is in the tensor after
the run, and the shape that aclGetViewShape says then.

  aclnn_shapes_test.py [--first SEED] [--calls N]
"""

import ctypes as C
import unittest

import case
from case import numpy as np

if np is None:
    case.main()

import aclnn_client as client
from aclnn_client import LIBRARY

import acl

FIRST, CALLS = 1, 150
TYPES = ("float32", "float16", "int8", "int32", "int64", "uint8", "bool")
SIGNATURES = client.signatures()


class Shapes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = client.Session()

    @classmethod
    def tearDownClass(cls):
        cls.session.close()

    def call(self, name, *arguments, repeats=1):
        """Runs aclnn`name`; arrays are tensors, the last ones what is written. Their content and shapes after each run."""
        views = [client.View(value) if isinstance(value, np.ndarray) else None for value in arguments]
        handles = [view.handle if view else C.c_bool(value) for view, value in zip(views, arguments)]
        size, executor = C.c_uint64(), C.c_void_p()
        code = getattr(LIBRARY, name + "GetWorkspaceSize")(*handles, C.byref(size), C.byref(executor))
        self.assertEqual(code, 0, self.session.words())
        workspace, bad = acl.rt.malloc(size.value + 1, 0)
        assert bad == 0
        code = getattr(LIBRARY, name)(C.c_void_p(workspace), size, executor, C.c_void_p(self.session.stream))
        self.assertEqual(code or acl.rt.synchronize_stream(self.session.stream), 0, self.session.words())
        seen = [self.seen(view) if view and param.written else None for view, param in zip(views, SIGNATURES[name])]
        for view in filter(None, views):
            view.free()
        assert acl.rt.free(workspace) == 0
        return [array for array in seen if array is not None]

    @staticmethod
    def seen(view):
        dims, rank = C.POINTER(C.c_int64)(), C.c_uint64()
        assert LIBRARY.aclGetViewShape(view.handle, C.byref(dims), C.byref(rank)) == 0
        shape = dims[:rank.value]
        array = np.empty(shape, view.array.dtype)
        C.memmove(array.ctypes.data, view.address, array.nbytes)
        return array

    def results(self, name, *arguments):
        code, results = self.session.call(name, SIGNATURES[name], arguments)
        self.assertEqual(code, 0, self.session.words())
        return results

    def test_tensors_without_elements(self):
        """As masks that pick nothing, and results that a caller does not want, come from torch_npu."""
        x, nothing = np.arange(6, dtype="float32").reshape(2, 3), np.zeros(0, np.int64)
        got, = self.results("aclnnIndex", x, [nothing], np.zeros((0, 2, 3), "float32"))
        self.assertEqual(got.shape, (0, 2, 3))
        got, = self.results("aclnnIndexPutImpl", x.copy(), [nothing], np.ones(1, "float32"), False, False)
        np.testing.assert_array_equal(got, x)
        for bags in (0, 3):
            got, places, sizes, _ = self.results(
                "aclnnEmbeddingBag", x, np.array([0, 1, 1]), np.array([0, 2]), False, 0, False, None, False, -1,
                np.zeros((2, 3), "float32"), np.zeros(bags, np.int64), np.zeros(2, np.int64), np.zeros(2, np.int64))
            np.testing.assert_array_equal(got, [x[0] + x[1], x[1]])
            np.testing.assert_array_equal(places, [0, 0, 1][:bags])

    def test_a_convolution_with_four_pads(self):
        x = np.arange(6, dtype="float32").reshape(1, 1, 2, 3)
        got, = self.results("aclnnConvolution", x, np.ones((1, 1, 1, 1), "float32"), None, [1, 1], [1, 0, 0, 2], [1, 1],
                            False, [0, 0], 1, np.zeros((1, 1, 3, 5), "float32"), 0)
        np.testing.assert_array_equal(got[0, 0], np.pad(x[0, 0], ((1, 0), (0, 2))))

    def draw(self, seed):
        numbers = np.random.default_rng(seed)
        dtype = numbers.choice(TYPES)
        shape = [int(n) for n in numbers.integers(0 if seed % 10 == 0 else 1, 6, numbers.integers(1, 4))]
        values = numbers.integers(0, 4, shape) * (numbers.random(shape) < 0.7)
        return numbers, values.astype(dtype)

    def each(self, check):
        for seed in range(FIRST, FIRST + CALLS):
            numbers, x = self.draw(seed)
            with self.subTest(seed=seed, dtype=x.dtype.name, shape=x.shape):
                check(numbers, x)

    def same(self, seen, expected):
        self.assertEqual([(array.shape, array.tolist()) for array in seen],
                         [(array.shape, array.tolist()) for array in expected])

    def test_where_something_is(self):
        def check(_, x):
            places = np.argwhere(x)
            self.same(self.call("aclnnNonzero", x, np.zeros((x.size, x.ndim), "int64")), [places])
            self.same(self.call("aclnnNonzeroV2", x, np.zeros((x.ndim, x.size), "int64")), [places.T])

        self.each(check)

    def test_what_a_mask_chooses(self):
        def check(numbers, x):
            mask = numbers.random([n if numbers.random() < 0.7 else 1 for n in x.shape]) < 0.5
            chosen = x[np.broadcast_to(mask, x.shape)]
            self.same(self.call("aclnnMaskedSelect", x, mask, np.zeros(x.size, x.dtype)), [chosen])
            where = mask.astype("uint8") * 3
            self.same(self.call("aclnnMaskedSelect", x, where, np.zeros(x.size, x.dtype)), [chosen])

        self.each(check)

    def test_what_there_is_once(self):
        def check(numbers, x):
            if x.size == 0:
                return
            values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
            inverse = inverse.reshape(x.shape)
            blank = np.full(x.shape, -1, "int64")
            with_inverse, with_counts = (bool(numbers.integers(2)) for _ in range(2))
            seen = self.call("aclnnUnique2", x, True, with_inverse, with_counts, np.zeros(x.size, x.dtype), blank,
                             np.full(x.size, -1, "int64"))
            self.same(seen[:2], [values, inverse if with_inverse else blank])
            if with_counts:
                self.same(seen[2:], [counts])
            seen = self.call("aclnnUnique", x, True, with_inverse, np.zeros(x.size, x.dtype), blank)
            self.same(seen, [values, inverse if with_inverse else blank])

        self.each(check)

    def test_too_little_memory_is_an_error_of_the_run(self):
        kept, (self.session.stream, code) = self.session.stream, acl.rt.create_stream()  # a failed one stays failed
        self.addCleanup(setattr, self.session, "stream", kept)
        self.assertEqual(code, 0)
        x = np.ones((3, 4), "float32")
        with self.assertRaisesRegex(AssertionError, r"aclnnNonzero: .*int64\[12,2\], 192 bytes; its buffer has 32"):
            self.call("aclnnNonzero", x, np.zeros((2, 2), "int64"))

    def test_gaps_are_refused(self):
        x, out = np.ones((3, 4), "float32"), np.zeros((12, 4), "int64")[:, ::2]
        with self.assertRaisesRegex(AssertionError, "out has gaps"):
            self.call("aclnnNonzero", x, out)


if __name__ == "__main__":
    FIRST, CALLS = case.numbers(__doc__, first=FIRST, calls=CALLS)
    case.main()
