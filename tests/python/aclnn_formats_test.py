"""Tensors of aclnn in private formats and of four bits: what aclnnTransMatmulWeight and aclnnNpuFormatCast store, element by element, and
products of matrices with such weights, against numpy.

  aclnn_formats_test.py [--first SEED] [--cases N]
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

FIRST, CASES = 1, 200
ND, NZ, NC1HWC0, FRACTAL_Z = 2, 29, 3, 4
INT4 = 29  # a data type
SIGNATURES = client.signatures()


def blocks(plain, inner=None):
    """FRACTAL_NZ of the last two dimensions, as docs/private_formats.md says it."""
    inner = inner or (32 if plain.itemsize == 1 else 16)
    *outer, rows, columns = plain.shape
    tall, wide = -(-rows // 16) * 16, -(-columns // inner) * inner
    padded = np.zeros((*outer, tall, wide), plain.dtype)
    padded[..., :rows, :columns] = plain
    cut = padded.reshape(*outer, tall // 16, 16, wide // inner, inner)
    last = cut.ndim - 4
    return np.ascontiguousarray(cut.transpose(*range(last), last + 2, last, last + 1, last + 3))


class Stored:
    """A tensor over memory of so many elements, with any strides and format."""

    def __init__(self, dtype, shape, strides=None, fmt=ND, storage=None, elements=None, memory=None):
        self.dtype = np.dtype(dtype)
        shape = list(shape)
        packed = [int(np.prod(shape[i + 1:], dtype=np.int64)) for i in range(len(shape))]
        storage = list(storage if storage is not None else [int(np.prod(shape, dtype=np.int64))])
        self.elements = elements or int(np.prod(shape, dtype=np.int64))
        self.mine = memory is None
        if self.mine:
            memory, code = acl.rt.malloc(max(1, self.elements * self.dtype.itemsize), 0)
            assert code == 0
        self.memory = memory
        longs = lambda values: (C.c_int64 * max(1, len(values)))(*values)
        handle = LIBRARY.aclCreateTensor(longs(shape), C.c_uint64(len(shape)), client.DTYPES[self.dtype.name],
                                         longs(strides or packed), C.c_int64(0), fmt, longs(storage),
                                         C.c_uint64(len(storage)), C.c_void_p(memory))
        assert handle
        self.handle = C.c_void_p(handle)

    def write(self, array):
        data = np.ascontiguousarray(array)
        C.memmove(self.memory, data.ctypes.data, data.nbytes)
        return self

    def read(self, count=None):
        data = np.empty(count or self.elements, self.dtype)
        C.memmove(data.ctypes.data, self.memory, data.nbytes)
        return data

    def format(self):
        fmt = C.c_int32()
        assert LIBRARY.aclGetFormat(self.handle, C.byref(fmt)) == 0
        return fmt.value

    def close(self):
        assert LIBRARY.aclDestroyTensor(self.handle) == 0
        if self.mine:
            assert acl.rt.free(self.memory) == 0


class Formats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = client.Session()

    @classmethod
    def tearDownClass(cls):
        cls.session.close()

    def call(self, name, *arguments):
        size, executor = C.c_uint64(), C.c_void_p()
        code = getattr(LIBRARY, name + "GetWorkspaceSize")(*arguments, C.byref(size), C.byref(executor))
        if code != 0:
            return code
        workspace, bad = acl.rt.malloc(size.value + 1, 0)
        assert bad == 0
        code = getattr(LIBRARY, name)(C.c_void_p(workspace), size, executor, C.c_void_p(self.session.stream))
        code = code or acl.rt.synchronize_stream(self.session.stream)
        assert acl.rt.free(workspace) == 0
        return code

    def weight_elements(self, shape, dtype):
        sizes = (C.c_int64 * len(shape))(*shape)
        array = C.c_void_p(LIBRARY.aclCreateIntArray(sizes, C.c_uint64(len(shape))))
        elements = C.c_uint64()
        code = LIBRARY.aclnnCalculateMatmulWeightSizeV2(array, client.DTYPES[np.dtype(dtype).name], C.byref(elements))
        self.assertEqual(code, 0, self.session.words())
        assert LIBRARY.aclDestroyIntArray(array) == 0
        return elements.value

    def test_weights_of_products(self):
        for seed in range(FIRST, FIRST + CASES):
            random = np.random.default_rng(seed)
            dtype = random.choice(["float16", "float32"])
            batch = [int(random.integers(1, 4))] * int(random.integers(0, 2))
            m, k, n = (int(number) for number in random.choice([1, 1, 2, 15, 16, 17, *range(1, 50)], 3))
            transposed = bool(random.integers(2))  # stored (n, k), seen as (k, n), as linear layers are
            plain = random.integers(-4, 5, [*batch, n, k] if transposed else [*batch, k, n]).astype(dtype)
            x = random.integers(-4, 5, [*batch, m, k]).astype(dtype)
            with self.subTest(seed=seed, shape=plain.shape, dtype=dtype, transposed=transposed):
                elements = self.weight_elements(plain.shape, dtype)
                expected = blocks(plain)
                self.assertEqual(elements, expected.size)
                weight = Stored(dtype, plain.shape, elements=elements).write(plain)
                self.assertEqual(self.call("aclnnTransMatmulWeight", weight.handle), 0, self.session.words())
                self.assertEqual(weight.format(), NZ)
                self.assertEqual(weight.read().tobytes(), expected.tobytes())
                seen = weight
                if transposed:
                    strides = [n * k] * len(batch) + [1, k]
                    seen = Stored(dtype, [*batch, k, n], strides, NZ, memory=weight.memory, elements=elements)
                given, out = Stored(dtype, x.shape).write(x), Stored(dtype, [*batch, m, n])
                name = random.choice(["aclnnMatmul", "aclnnBatchMatMul" if batch else "aclnnMm",
                                      "aclnnBatchMatMulWeightNz" if batch else "aclnnMatmulWeightNz"])
                code = self.call(name, given.handle, seen.handle, out.handle, C.c_int8(1))
                self.assertEqual(code, 0, self.session.words())
                right = x.astype(np.float64) @ (np.swapaxes(plain, -1, -2) if transposed else plain)
                self.assertEqual(out.read().tolist(), right.astype(dtype).ravel().tolist())
                for tensor in {seen, weight, given, out}:
                    tensor.close()

    def test_casts_there_and_back(self):
        for seed in range(FIRST, FIRST + CASES):
            random = np.random.default_rng(seed)
            dtype = random.choice(["float16", "float32", "int8", "int32"])
            shape = [int(number) for number in random.integers(1, 40, random.integers(2, 5))]
            plain = random.integers(-100, 100, shape).astype(dtype)
            with self.subTest(seed=seed, shape=shape, dtype=dtype):
                source = Stored(dtype, shape).write(plain)
                dims, rank, fmt = C.POINTER(C.c_int64)(), C.c_uint64(), C.c_int()
                code = LIBRARY.aclnnNpuFormatCastCalculateSizeAndFormat(source.handle, NZ, 1, C.byref(dims),
                                                                         C.byref(rank), C.byref(fmt))
                self.assertEqual((code, fmt.value), (0, NZ))
                storage = dims[:rank.value]
                expected = blocks(plain)
                self.assertEqual(storage, list(expected.shape))
                stored = Stored(dtype, shape, fmt=NZ, storage=storage, elements=expected.size)
                self.assertEqual(self.call("aclnnNpuFormatCast", source.handle, stored.handle), 0, self.session.words())
                self.assertEqual(stored.read().tobytes(), expected.tobytes())
                back = Stored(dtype, shape)
                self.assertEqual(self.call("aclnnNpuFormatCast", stored.handle, back.handle), 0, self.session.words())
                self.assertEqual(back.read().tobytes(), plain.tobytes())
                for tensor in (source, stored, back):
                    tensor.close()

    def test_the_inner_block_is_that_of_the_storage(self):
        plain = np.arange(5 * 70, dtype=np.float32).reshape(5, 70)
        for inner in (2, 4, 8, 16, 32):
            expected = blocks(plain, inner)
            source = Stored("float32", plain.shape).write(plain)
            stored = Stored("float32", plain.shape, fmt=NZ, storage=expected.shape, elements=expected.size)
            self.assertEqual(self.call("aclnnNpuFormatCast", source.handle, stored.handle), 0, self.session.words())
            self.assertEqual(stored.read().tobytes(), expected.tobytes())
            source.close()
            stored.close()

    def test_images(self):
        random = np.random.default_rng(7)
        plain = random.integers(-9, 9, (2, 19, 3, 5)).astype(np.float16)
        padded = np.zeros((2, 32, 3, 5), np.float16)
        padded[:, :19] = plain
        expected = padded.reshape(2, 2, 16, 3, 5).transpose(0, 1, 3, 4, 2)
        source = Stored("float16", plain.shape, fmt=0).write(plain)
        stored = Stored("float16", plain.shape, fmt=NC1HWC0, elements=expected.size)
        self.assertEqual(self.call("aclnnNpuFormatCast", source.handle, stored.handle), 0, self.session.words())
        self.assertEqual(stored.read().tobytes(), np.ascontiguousarray(expected).tobytes())
        out = Stored("float16", plain.shape)
        self.assertEqual(self.call("aclnnNeg", stored.handle, out.handle), 0, self.session.words())
        self.assertEqual(out.read().tolist(), (-plain).ravel().tolist())
        for tensor in (source, stored, out):
            tensor.close()

    def test_weights_of_four_bits(self):
        """Packed two to a byte, stored as they are multiplied or transposed, at any place in a larger tensor."""
        for seed in range(FIRST, FIRST + CASES // 2):
            random = np.random.default_rng(seed)
            m, k, n = int(random.integers(1, 9)), 2 * int(random.integers(1, 20)), 2 * int(random.integers(1, 20))
            transposed, begin = bool(random.integers(2)), int(random.integers(0, 3))
            with self.subTest(seed=seed, m=m, k=k, n=n, transposed=transposed, begin=begin):
                weight = random.integers(-8, 8, (k, n))
                stored = np.concatenate([np.zeros(begin, int), (weight.T if transposed else weight).ravel()]) & 15
                stored = np.append(stored, 0)[:(len(stored) + 1) // 2 * 2]
                packed = (stored[0::2] | stored[1::2] << 4).astype(np.uint8)
                x = random.integers(-4, 5, (m, k)).astype(np.float16)
                scale = random.choice([0.5, 1, 2], n).astype(np.float16)
                tensors = [Stored("float16", x.shape).write(x), Stored("uint8", [packed.size]).write(packed),
                           Stored("float16", [1, n]).write(scale), Stored("float16", [m, n])]
                longs = lambda values: (C.c_int64 * len(values))(*values)  # noqa: E731
                view = C.c_void_p(LIBRARY.aclCreateTensor(
                    longs([k, n]), C.c_uint64(2), INT4, longs([1, k] if transposed else [n, 1]), C.c_int64(begin), ND,
                    longs([k * n + begin]), C.c_uint64(1), C.c_void_p(tensors[1].memory)))
                code = self.call("aclnnWeightQuantBatchMatmulV2", tensors[0].handle, view, tensors[2].handle, None,
                                 None, None, None, C.c_int32(0), tensors[3].handle)
                self.assertEqual(code, 0, self.session.words())
                self.assertEqual(tensors[3].read().tolist(), (x @ (weight * scale)).astype(np.float16).ravel().tolist())
                assert LIBRARY.aclDestroyTensor(view) == 0
                for tensor in tensors:
                    tensor.close()

    def test_what_does_not_fit_is_refused(self):
        def refused(words, *tensors):
            self.assertEqual(self.call("aclnnNpuFormatCast", *[tensor.handle for tensor in tensors]), 161002)
            self.assertIn(words, self.session.words())
            for tensor in tensors:
                tensor.close()

        refused("no gaps", Stored("float32", [4, 8], [16, 1], NZ, elements=64), Stored("float32", [4, 8]))
        refused("is not taken", Stored("float32", [4, 8], fmt=19), Stored("float32", [4, 8]))
        refused("scalar", Stored("float32", [], fmt=NZ, elements=256), Stored("float32", []))
        refused("no device memory of 1024 bytes", Stored("float32", [4, 8], fmt=NZ), Stored("float32", [4, 8]))
        for storage in ([1, 1, 16, 0], [2, 1, 16, 16], [1, 16, 16]):
            refused("is stored as", Stored("float32", [4, 8], fmt=NZ, storage=storage, elements=512),
                    Stored("float32", [4, 8]))
        refused("FRACTAL_Z of shape", Stored("float32", [4, 8], fmt=FRACTAL_Z, elements=4096),
                Stored("float32", [4, 8]))


if __name__ == "__main__":
    FIRST, CASES = case.numbers(__doc__, first=FIRST, cases=CASES)
    case.main()
