"""Offline models in pyACL: what programs do with them, what is refused, and wrong calls in any order."""

import ctypes
import json
import os
import random
import tempfile
import threading
import unittest

from acl_client import DEVICE_TO_HOST, INVALID_PARAM, UNSUPPORTED, Buffers, atc, done, taken
from case import numpy as np

import acl
import npumesh

os.environ.setdefault("NPUMESH_NUM_THREADS", "1")  # what a model needs is that of one thread
NO_FILE, NO_MODEL, NO_BATCH, DAMAGED = 145002, 145003, 145013, 545002


def open_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def tensors_of(data):
    """The tensors of a dump file: what stands behind its description, whose length varies with the addresses in it."""
    size = int.from_bytes(data[:8], "little")
    assert 8 + size < len(data)
    return data[8 + size:]


@unittest.skipIf(np is None, "numpy is not installed (python3-numpy)")
class Models(unittest.TestCase):
    """y = Relu(x w + b), with an open first dimension unless the command closes it."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        numbers = np.random.RandomState(7)
        cls.weights = numbers.standard_normal((6, 4)).astype(np.float32)
        cls.bias = numbers.standard_normal((4,)).astype(np.float32)
        graph = npumesh.Graph("layer")
        x = graph.input("x", (-1, 6))
        graph.output(graph.op("Relu", graph.op("Add", graph.op("MatMul", x, cls.weights), cls.bias)))
        cls.graph = cls.file("layer.air")
        graph.save(cls.graph)
        cls.static = cls.compile("static", "--input_shape=x:3,6")
        cls.open = cls.compile("open")
        cls.batches = cls.compile("batches", "--dynamic_batch_size=1,2,5")
        cls.dims = cls.compile("dims", "--dynamic_dims=4;7")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def file(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def compile(cls, name, *flags):
        atc("--model", cls.graph, "--output", cls.file(name), *flags)
        return cls.file(name + ".om")

    def setUp(self):
        done(acl.init())
        done(acl.rt.set_device(0))

    def tearDown(self):
        done(acl.rt.reset_device(0))
        done(acl.finalize())

    def expected(self, x):
        return np.maximum(x @ self.weights + self.bias, 0)

    def draw(self, rows):
        return np.random.RandomState(rows).standard_normal((rows, 6)).astype(np.float32)

    def described(self, model):
        desc = acl.mdl.create_desc()
        done(acl.mdl.get_desc(desc, model))
        return desc

    def test_a_static_model_says_what_it_is(self):
        model = taken(acl.mdl.load_from_file(self.static))
        desc = self.described(model)
        self.assertEqual(acl.mdl.get_num_inputs(desc), 1)
        self.assertEqual(acl.mdl.get_num_outputs(desc), 1)
        self.assertEqual(acl.mdl.get_input_size_by_index(desc, 0), 3 * 6 * 4)
        self.assertEqual(acl.mdl.get_output_size_by_index(desc, 0), 3 * 4 * 4)
        self.assertEqual(taken(acl.mdl.get_input_dims(desc, 0))["dims"], [3, 6])
        self.assertEqual(taken(acl.mdl.get_output_dims(desc, 0))["dims"], [3, 4])
        self.assertEqual(acl.mdl.get_input_name_by_index(desc, 0), "x")
        self.assertEqual(acl.mdl.get_input_data_type(desc, 0), acl.ACL_FLOAT)
        self.assertEqual(taken(acl.mdl.get_input_index_by_name(desc, "x")), 0)
        self.assertEqual(acl.mdl.get_input_index_by_name(desc, "nothing")[-1], INVALID_PARAM)
        work, weights = taken(acl.mdl.query_size(self.static))
        self.assertGreaterEqual(work, 3 * 4 * 4)
        self.assertGreaterEqual(weights, (6 * 4 + 4) * 4)
        done(acl.mdl.destroy_desc(desc))
        done(acl.mdl.unload(model))
        self.assertEqual(acl.mdl.unload(model), NO_MODEL)

    def test_it_computes_on_streams_and_when_captured(self):
        model = taken(acl.mdl.load_from_file(self.static))
        inputs, outputs = Buffers([3 * 6 * 4]), Buffers([3 * 4 * 4])
        x = self.draw(3)
        inputs.write(0, x)
        done(acl.mdl.execute(model, inputs.dataset, outputs.dataset))
        first = outputs.read(0, np.float32, (3, 4))
        np.testing.assert_allclose(first, self.expected(x), rtol=1e-5, atol=1e-6)
        stream = taken(acl.rt.create_stream())
        outputs.write(0, np.zeros((3, 4), np.float32))
        done(acl.mdl.execute_async(model, inputs.dataset, outputs.dataset, stream))
        done(acl.rt.synchronize_stream(stream))
        self.assertTrue((outputs.read(0, np.float32, (3, 4)) == first).all())
        outputs.write(0, np.zeros((3, 4), np.float32))
        library = ctypes.CDLL(os.environ["NPUMESH_ACL_LIBRARY"])
        self.assertEqual(library.aclmdlRICaptureBegin(ctypes.c_void_p(stream), 0), 0)
        self.assertEqual(acl.mdl.execute(model, inputs.dataset, outputs.dataset), 107030)
        done(acl.mdl.execute_async(model, inputs.dataset, outputs.dataset, stream))
        captured = ctypes.c_void_p()
        self.assertEqual(library.aclmdlRICaptureEnd(ctypes.c_void_p(stream), ctypes.byref(captured)), 0)
        self.assertFalse(outputs.read(0, np.float32, (3, 4)).any())
        for _ in range(3):
            self.assertEqual(library.aclmdlRIExecuteAsync(captured, ctypes.c_void_p(stream)), 0)
        done(acl.rt.synchronize_stream(stream))
        self.assertTrue((outputs.read(0, np.float32, (3, 4)) == first).all())
        self.assertEqual(library.aclmdlRIDestroy(captured), 0)
        done(acl.rt.destroy_stream(stream))
        done(acl.mdl.unload(model))
        inputs.close()
        outputs.close()

    def test_gears_of_batches(self):
        model = taken(acl.mdl.load_from_file(self.batches))
        desc = self.described(model)
        self.assertEqual(acl.mdl.get_num_inputs(desc), 2)
        index = taken(acl.mdl.get_input_index_by_name(desc, "ascend_mbatch_shape_data"))
        self.assertEqual(index, 1)
        self.assertEqual(acl.mdl.get_input_size_by_index(desc, 0), 5 * 6 * 4)
        self.assertEqual(taken(acl.mdl.get_dynamic_batch(desc))["batch"], [1, 2, 5])
        inputs = Buffers([acl.mdl.get_input_size_by_index(desc, i) for i in range(2)])
        outputs = Buffers([acl.mdl.get_output_size_by_index(desc, 0)])
        for rows in (5, 1, 2):
            x = self.draw(rows)
            inputs.write(0, x)
            done(acl.mdl.set_dynamic_batch_size(model, inputs.dataset, index, rows))
            self.assertEqual(taken(acl.mdl.get_cur_output_dims(desc, 0))["dims"], [rows, 4])
            done(acl.mdl.execute(model, inputs.dataset, outputs.dataset))
            np.testing.assert_allclose(outputs.read(0, np.float32, (rows, 4)), self.expected(x), rtol=1e-5, atol=1e-6)
        self.assertEqual(acl.mdl.set_dynamic_batch_size(model, inputs.dataset, index, 3), NO_BATCH)
        self.assertIn("expected one of 1; 2; 5", acl.get_recent_err_msg())
        self.assertEqual(acl.mdl.set_dynamic_batch_size(model, inputs.dataset, 0, 1), INVALID_PARAM)
        self.assertEqual(acl.mdl.set_dynamic_hw_size(model, inputs.dataset, index, 1, 1), INVALID_PARAM)
        inputs.write(1, np.array([4], np.int64))
        self.assertEqual(acl.mdl.execute(model, inputs.dataset, outputs.dataset), INVALID_PARAM)
        self.assertIn("has no shapes 4", acl.get_recent_err_msg())
        done(acl.mdl.destroy_desc(desc))
        done(acl.mdl.unload(model))
        inputs.close()
        outputs.close()

    def test_gears_of_dimensions(self):
        model = taken(acl.mdl.load_from_file(self.dims))
        desc = self.described(model)
        self.assertEqual(taken(acl.mdl.get_input_dynamic_gear_count(desc, 0)), 2)
        inputs = Buffers([acl.mdl.get_input_size_by_index(desc, i) for i in range(2)])
        outputs = Buffers([acl.mdl.get_output_size_by_index(desc, 0)])
        x = self.draw(4)
        inputs.write(0, x)
        done(acl.mdl.set_input_dynamic_dims(model, inputs.dataset, 1, {"name": "", "dimCount": 2, "dims": [4, 6]}))
        done(acl.mdl.execute(model, inputs.dataset, outputs.dataset))
        np.testing.assert_allclose(outputs.read(0, np.float32, (4, 4)), self.expected(x), rtol=1e-5, atol=1e-6)
        for dims in ([5, 6], [4, 5], [4], [4, 6, 1]):
            wrong = {"name": "", "dimCount": len(dims), "dims": dims}
            self.assertEqual(acl.mdl.set_input_dynamic_dims(model, inputs.dataset, 1, wrong), INVALID_PARAM, dims)
        done(acl.mdl.destroy_desc(desc))
        done(acl.mdl.unload(model))
        inputs.close()
        outputs.close()

    def test_open_dimensions_are_described_and_outputs_get_memory(self):
        model = taken(acl.mdl.load_from_file(self.open))
        desc = self.described(model)
        self.assertEqual(acl.mdl.get_output_size_by_index(desc, 0), 0)
        inputs = Buffers([9 * 6 * 4])
        outputs = acl.mdl.create_dataset()
        buffer = acl.create_data_buffer(0, 0)
        acl.mdl.add_dataset_buffer(outputs, buffer)
        self.assertEqual(acl.mdl.execute(model, inputs.dataset, outputs), INVALID_PARAM)
        self.assertIn("aclmdlSetDatasetTensorDesc", acl.get_recent_err_msg())
        x = self.draw(9)
        inputs.write(0, x)
        shape = acl.create_tensor_desc(acl.ACL_FLOAT, [9, 6], 2)
        library = ctypes.CDLL(os.environ["NPUMESH_ACL_LIBRARY"])
        set_shape = library.aclmdlSetDatasetTensorDesc
        self.assertEqual(set_shape(ctypes.c_void_p(inputs.dataset), ctypes.c_void_p(shape), ctypes.c_size_t(0)), 0)
        acl.destroy_tensor_desc(shape)
        done(acl.mdl.execute(model, inputs.dataset, outputs))
        memory, size = acl.get_data_buffer_addr(buffer), acl.get_data_buffer_size_v2(buffer)
        self.assertEqual(size, 9 * 4 * 4)
        data = ctypes.create_string_buffer(size)
        done(acl.rt.memcpy(ctypes.addressof(data), size, memory, size, DEVICE_TO_HOST))
        np.testing.assert_allclose(np.frombuffer(data.raw, np.float32).reshape(9, 4), self.expected(x), rtol=1e-5,
                                   atol=1e-6)
        done(acl.rt.free(memory))
        done(acl.destroy_data_buffer(buffer))
        done(acl.mdl.destroy_dataset(outputs))
        done(acl.mdl.destroy_desc(desc))
        done(acl.mdl.unload(model))
        inputs.close()

    def test_what_cannot_be_loaded_is_named(self):
        self.assertEqual(acl.mdl.load_from_file(self.file("absent.om"))[-1], NO_FILE)
        with open(self.static, "rb") as file:
            content = bytearray(file.read())
        content[600] ^= 4
        damaged = self.file("damaged.om")
        with open(damaged, "wb") as file:
            file.write(content)
        self.assertEqual(acl.mdl.load_from_file(damaged)[-1], DAMAGED)
        self.assertIn("the offline model is damaged", acl.get_recent_err_msg())
        foreign = self.file("foreign.om")
        with open(foreign, "wb") as file:
            file.write(b"IMOD" + (256).to_bytes(4, "little") + bytes(248) + bytes(64))
        self.assertEqual(acl.mdl.load_from_file(foreign)[-1], UNSUPPORTED)
        self.assertIn("npumesh atc", acl.get_recent_err_msg())
        work, weights = taken(acl.mdl.query_size(self.static))
        memory = taken(acl.rt.malloc(work, 0))
        answer = acl.mdl.load_from_file_with_mem(self.static, memory, work - 1, 0, 0)
        self.assertEqual(answer[-1], INVALID_PARAM)
        self.assertIn(f"workSize is {work - 1}, the model needs {work}", acl.get_recent_err_msg())
        model = taken(acl.mdl.load_from_file_with_mem(self.static, memory, work, 0, 0))
        done(acl.mdl.unload(model))
        done(acl.rt.free(memory))

    def test_a_file_is_a_bundle_of_one(self):
        library = ctypes.CDLL(os.environ["NPUMESH_ACL_LIBRARY"])
        bundle, model, count = ctypes.c_uint32(), ctypes.c_uint32(), ctypes.c_size_t()
        path = self.static.encode()
        self.assertEqual(library.aclmdlBundleInitFromFile(path, None, 0, ctypes.byref(bundle)), 0)
        self.assertEqual(library.aclmdlBundleGetModelNum(bundle, ctypes.byref(count)), 0)
        self.assertEqual(count.value, 1)
        self.assertEqual(library.aclmdlBundleGetModelId(bundle, 0, ctypes.byref(model)), INVALID_PARAM)
        self.assertEqual(library.aclmdlBundleLoadModel(bundle, 1, ctypes.byref(model)), INVALID_PARAM)
        self.assertEqual(library.aclmdlBundleLoadModel(bundle, 0, ctypes.byref(model)), 0)
        first = model.value
        self.assertEqual(library.aclmdlBundleGetModelId(bundle, 0, ctypes.byref(model)), 0)
        self.assertEqual(model.value, first)
        self.assertEqual(acl.mdl.get_num_inputs(self.described(first)), 1)
        self.assertEqual(library.aclmdlBundleUnloadModel(bundle, 77), INVALID_PARAM)
        self.assertEqual(library.aclmdlBundleUnloadModel(bundle, first), 0)
        self.assertEqual(acl.mdl.unload(first), NO_MODEL)
        self.assertEqual(library.aclmdlBundleLoadModelWithMem(bundle, 0, None, 0, None, 0, ctypes.byref(model)), 0)
        self.assertEqual(library.aclmdlBundleUnload(bundle), 0)
        self.assertEqual(acl.mdl.unload(model.value), NO_MODEL)
        self.assertEqual(library.aclmdlBundleUnload(bundle), INVALID_PARAM)
        library.aclmdlBundleCreateQueryInfo.restype = ctypes.c_void_p
        query = ctypes.c_void_p(library.aclmdlBundleCreateQueryInfo())
        work, weights = ctypes.c_size_t(), ctypes.c_size_t()
        ask = (query, ctypes.c_size_t(0), ctypes.byref(work), ctypes.byref(weights))
        self.assertEqual(library.aclmdlBundleGetSize(*ask), INVALID_PARAM)
        self.assertEqual(library.aclmdlBundleQueryInfoFromFile(path, query), 0)
        self.assertEqual(library.aclmdlBundleGetSize(*ask), 0)
        self.assertEqual((work.value, weights.value), taken(acl.mdl.query_size(self.static)))
        self.assertEqual(library.aclmdlBundleDestroyQueryInfo(query), 0)

    def test_a_bundle_of_several_models(self):
        library = ctypes.CDLL(os.environ["NPUMESH_ACL_LIBRARY"])
        atc("--model", f"{self.static};{self.batches};{self.dims}", "--output", self.file("bundle"))
        path = self.file("bundle.om")
        with open(path, "rb") as file:
            content = file.read()
        x = self.draw(3)
        for way in ("file", "memory"):
            bundle, model, count = ctypes.c_uint32(), ctypes.c_uint32(), ctypes.c_size_t()
            if way == "file":
                self.assertEqual(library.aclmdlBundleLoadFromFile(path.encode(), ctypes.byref(bundle)), 0)
            else:
                self.assertEqual(library.aclmdlBundleLoadFromMem(content, ctypes.c_size_t(len(content)),
                                                                 ctypes.byref(bundle)), 0)
            self.assertEqual(library.aclmdlBundleGetModelNum(bundle, ctypes.byref(count)), 0)
            self.assertEqual(count.value, 3)
            models = []
            for index in range(3):
                self.assertEqual(library.aclmdlBundleGetModelId(bundle, ctypes.c_size_t(index), ctypes.byref(model)), 0)
                models.append(model.value)
            self.assertEqual(library.aclmdlBundleGetModelId(bundle, ctypes.c_size_t(3), ctypes.byref(model)),
                             INVALID_PARAM)
            self.assertEqual([acl.mdl.get_num_inputs(self.described(each)) for each in models], [1, 2, 2])
            inputs, outputs = Buffers([3 * 6 * 4]), Buffers([3 * 4 * 4])
            inputs.write(0, x)
            done(acl.mdl.execute(models[0], inputs.dataset, outputs.dataset))
            np.testing.assert_allclose(outputs.read(0, np.float32, (3, 4)), self.expected(x), rtol=1e-5, atol=1e-6)
            inputs.close()
            outputs.close()
            self.assertEqual(library.aclmdlBundleUnload(bundle), 0)
            self.assertEqual([acl.mdl.unload(each) for each in models], [NO_MODEL] * 3)
        bundle = ctypes.c_uint32()
        self.assertEqual(library.aclmdlBundleInitFromFile(path.encode(), None, ctypes.c_size_t(0),
                                                          ctypes.byref(bundle)), 0)
        self.assertEqual(library.aclmdlBundleLoadModel(bundle, ctypes.c_size_t(2), ctypes.byref(model)), 0)
        self.assertEqual(acl.mdl.get_num_inputs(self.described(model.value)), 2)
        self.assertEqual(library.aclmdlBundleLoadModel(bundle, ctypes.c_size_t(3), ctypes.byref(model)), INVALID_PARAM)
        self.assertIn("index is 3 of 3 models", acl.get_recent_err_msg())
        self.assertEqual(library.aclmdlBundleUnload(bundle), 0)
        library.aclmdlBundleCreateQueryInfo.restype = ctypes.c_void_p
        query = ctypes.c_void_p(library.aclmdlBundleCreateQueryInfo())
        self.assertEqual(library.aclmdlBundleQueryInfoFromFile(path.encode(), query), 0)
        self.assertEqual(library.aclmdlBundleGetQueryModelNum(query, ctypes.byref(count)), 0)
        self.assertEqual(count.value, 3)
        work, weights = ctypes.c_size_t(), ctypes.c_size_t()
        for index, single in enumerate((self.static, self.batches, self.dims)):
            self.assertEqual(library.aclmdlBundleGetSize(query, ctypes.c_size_t(index), ctypes.byref(work),
                                                         ctypes.byref(weights)), 0)
            self.assertEqual((work.value, weights.value), taken(acl.mdl.query_size(single)))
        self.assertEqual(library.aclmdlBundleGetSize(query, ctypes.c_size_t(3), ctypes.byref(work),
                                                     ctypes.byref(weights)), INVALID_PARAM)
        self.assertEqual(library.aclmdlBundleDestroyQueryInfo(query), 0)
        self.assertEqual(acl.mdl.load_from_file(path)[-1], UNSUPPORTED)
        self.assertIn("a bundle of 3 models; aclmdlBundleLoadFromFile", acl.get_recent_err_msg())
        for cut in (255, 300, len(content) - 1):
            self.assertNotEqual(library.aclmdlBundleLoadFromMem(content[:cut], ctypes.c_size_t(cut),
                                                                ctypes.byref(bundle)), 0)
        for at in (5, 156, 262, 270):
            damaged = bytearray(content)
            damaged[at] ^= 1
            self.assertNotEqual(library.aclmdlBundleLoadFromMem(bytes(damaged), ctypes.c_size_t(len(damaged)),
                                                                ctypes.byref(bundle)), 0, at)

    def test_memory_of_the_program_is_where_a_model_lies(self):
        """Weights and activations lie in it, and nothing else is allocated but what `execute` copies."""
        used = lambda: self.total - taken(acl.rt.get_mem_info(1))[0]  # noqa: E731
        self.total = taken(acl.rt.get_mem_info(1))[1]
        work, weights = taken(acl.mdl.query_size(self.static))
        self.assertEqual((work % 512, weights % 512, work > 0, weights >= 6 * 4 * 4), (0, 0, True, True))
        places = [taken(acl.rt.malloc(size, 0)) for size in (work, weights)]
        for place, size in zip(places, (work, weights)):
            done(acl.rt.memset(place, size, 0xa5, size))
        inputs, outputs = Buffers([3 * 6 * 4]), Buffers([3 * 4 * 4])
        before = used()
        model = taken(acl.mdl.load_from_file_with_mem(self.static, places[0], work, places[1], weights))
        x = self.draw(3)
        inputs.write(0, x)
        done(acl.mdl.execute(model, inputs.dataset, outputs.dataset))
        np.testing.assert_allclose(outputs.read(0, np.float32, (3, 4)), self.expected(x), rtol=1e-5, atol=1e-6)
        self.assertEqual(used(), before)
        held = ctypes.string_at(places[1], weights)
        self.assertIn(self.bias.tobytes(), held)
        self.assertNotEqual(ctypes.string_at(places[0], work), b"\xa5" * work)
        done(acl.mdl.unload(model))
        own = taken(acl.mdl.load_from_file(self.static))
        done(acl.mdl.execute(own, inputs.dataset, outputs.dataset))
        self.assertGreater(used(), before)
        done(acl.mdl.unload(own))
        host = ctypes.create_string_buffer(work)
        for place, word in ((ctypes.addressof(host), "are not all device memory"), (places[0] + 8, "workPtr")):
            answer = acl.mdl.load_from_file_with_mem(self.static, place, work, 0, 0)
            self.assertEqual(answer[-1], INVALID_PARAM)
            self.assertIn(word, acl.get_recent_err_msg())
        inputs.close()
        outputs.close()
        for place in places:
            done(acl.rt.free(place))

    def test_gears_in_memory_of_the_program(self):
        work, weights = taken(acl.mdl.query_size(self.batches))
        places = [taken(acl.rt.malloc(size, 0)) for size in (work, weights)]
        model = taken(acl.mdl.load_from_file_with_mem(self.batches, places[0], work, places[1], weights))
        desc = self.described(model)
        inputs = Buffers([acl.mdl.get_input_size_by_index(desc, i) for i in range(2)])
        outputs = Buffers([acl.mdl.get_output_size_by_index(desc, 0)])
        for batch in (1, 5, 2, 5):
            x = self.draw(batch)
            inputs.write(0, x)
            done(acl.mdl.set_dynamic_batch_size(model, inputs.dataset, 1, batch))
            done(acl.mdl.execute(model, inputs.dataset, outputs.dataset))
            np.testing.assert_allclose(outputs.read(0, np.float32, (batch, 4)), self.expected(x), rtol=1e-5, atol=1e-6)
        done(acl.mdl.destroy_desc(desc))
        done(acl.mdl.unload(model))
        inputs.close()
        outputs.close()
        for place in places:
            done(acl.rt.free(place))

    def test_buffers_that_do_not_fit_are_named(self):
        model = taken(acl.mdl.load_from_file(self.static))
        good, small = Buffers([3 * 6 * 4]), Buffers([3 * 6 * 4 - 4])
        result, short, none = Buffers([3 * 4 * 4]), Buffers([3 * 4 * 4 - 4]), Buffers([])
        for inputs, outputs, word in ((small, result, 'input 0 "x" is float32[3,6], 72 bytes; its buffer has 68'),
                                      (good, short, "is float32[3,4], 48 bytes; its buffer has 44"),
                                      (none, result, "the input dataset has 0 buffers, the model needs 1"),
                                      (good, none, "the output dataset has 0 buffers, the model needs 1")):
            self.assertEqual(acl.mdl.execute(model, inputs.dataset, outputs.dataset), INVALID_PARAM, word)
            self.assertIn(word, acl.get_recent_err_msg())
        done(acl.mdl.execute(model, good.dataset, result.dataset))
        for each in (good, small, result, short, none):
            each.close()
        self.assertEqual(acl.mdl.execute(model, good.dataset, result.dataset), INVALID_PARAM)
        self.assertIn("or was destroyed", acl.get_recent_err_msg())
        done(acl.mdl.unload(model))

    def test_several_models_in_several_threads(self):
        failures = []

        def work(rows, path):
            try:
                done(acl.rt.set_device(0))
                model = taken(acl.mdl.load_from_file(path))
                inputs, outputs = Buffers([3 * 6 * 4]), Buffers([3 * 4 * 4])
                for turn in range(20):
                    x = self.draw(3) + rows + turn
                    inputs.write(0, x)
                    done(acl.mdl.execute(model, inputs.dataset, outputs.dataset))
                    np.testing.assert_allclose(outputs.read(0, np.float32, (3, 4)), self.expected(x), rtol=1e-4,
                                               atol=1e-4)
                done(acl.mdl.unload(model))
                inputs.close()
                outputs.close()
                done(acl.rt.reset_device(0))
            except BaseException as failure:  # told by the thread that asserts
                failures.append(failure)

        threads = [threading.Thread(target=work, args=(i, self.static)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_dumps_as_a_file_says(self):
        place = self.file("dumped")
        os.makedirs(place)
        config = self.file("dump.json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"dump": {"dump_path": place, "dump_mode": "output", "dump_list": []}}, file)
        done(acl.mdl.init_dump())
        done(acl.mdl.set_dump(config))
        model = taken(acl.mdl.load_from_file(self.static))
        inputs, outputs = Buffers([3 * 6 * 4]), Buffers([3 * 4 * 4])
        done(acl.mdl.execute(model, inputs.dataset, outputs.dataset))
        done(acl.mdl.unload(model))
        done(acl.mdl.finalize_dump())
        names = [name for _, _, files in os.walk(place) for name in files]
        self.assertTrue(any("MatMul" in name or "Relu" in name for name in names), names)
        self.assertNotEqual(acl.mdl.set_dump(self.file("absent.json")), 0)
        inputs.close()
        outputs.close()

    def dumped(self, config, callback=None):
        """Runs a model that dumps as the file says."""
        if callback is not None:
            done(acl.mdl.dump_reg_callback(callback, 0))
        done(acl.mdl.set_dump(config))
        model = taken(acl.mdl.load_from_file(self.static))
        inputs, outputs = Buffers([3 * 6 * 4]), Buffers([3 * 4 * 4])
        done(acl.mdl.execute(model, inputs.dataset, outputs.dataset))
        done(acl.mdl.unload(model))
        done(acl.mdl.finalize_dump())
        acl.mdl.dump_unreg_callback()
        inputs.close()
        outputs.close()

    def dump_config(self, name, **more):
        place = self.file(name)
        os.makedirs(place, exist_ok=True)
        config = self.file(name + ".json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"dump": {"dump_path": place, **more}}, file)
        return place, config

    @staticmethod
    def without_time(name):
        return ".".join(os.path.basename(name).split(".")[:-1])

    def test_a_callback_takes_the_files_of_a_dump(self):
        place, config = self.dump_config("told", dump_mode="all", dump_list=[])
        told = {}

        def take(chunk):
            data = told.setdefault(chunk["file_name"], [b"", 0])
            self.assertEqual(chunk["offset"], len(data[0]))
            data[0] += ctypes.string_at(chunk["data_buf"], chunk["buf_len"])
            data[1] += chunk["is_last_chunk"]

        self.dumped(config, take)
        self.assertEqual([files for _, _, files in os.walk(place) if files], [])
        self.assertTrue(told)
        self.assertEqual({last for _, last in told.values()}, {1})
        self.dumped(config)
        written = {os.path.join(folder, name) for folder, _, names in os.walk(place)
                   for name in names if not name.startswith("manifest")}
        self.assertEqual(sorted(map(self.without_time, told)),
                         sorted(map(self.without_time, written)))
        self.assertTrue(all(name.startswith(place) for name in told))
        read = [open_bytes(name) for name in written]
        self.assertEqual(sorted(tensors_of(data) for data, _ in told.values()), sorted(map(tensors_of, read)))
        self.assertEqual(acl.mdl.dump_reg_callback(take, 1), INVALID_PARAM)

    def test_paths_of_dumps_are_those_of_the_files(self):
        library = ctypes.CDLL(os.environ["NPUMESH_ACL_LIBRARY"])
        library.acldumpGetPath.restype = ctypes.c_char_p

        def paths():
            return [library.acldumpGetPath(kind) for kind in range(1, 6)]

        self.assertEqual(paths(), [None] * 5)
        place, config = self.dump_config("paths", dump_mode="all", dump_list=[])
        done(acl.mdl.set_dump(config))
        self.assertEqual(paths(), [None, None, None, place.encode(), None])
        done(acl.mdl.finalize_dump())
        self.assertEqual(paths(), [None] * 5)
        done(acl.op.start_dump_args(1, place))
        self.assertEqual(paths(), [None, None, None, place.encode(), None])
        done(acl.op.stop_dump_args(1))
        self.assertEqual(acl.op.stop_dump_args(1), INVALID_PARAM)
        self.assertEqual(acl.op.start_dump_args(2, place), INVALID_PARAM)
        self.assertEqual(acl.op.start_dump_args(1, place + "/absent"), INVALID_PARAM)
        self.assertEqual(library.acldumpGetPath(6), None)

    def test_a_program_saves_tensors_as_an_exception_dump(self):
        library = ctypes.CDLL(os.environ["NPUMESH_ACL_LIBRARY"])
        path = ctypes.create_string_buffer(4096)
        self.assertNotEqual(library.acldumpGetExceptionInfoPath(path, ctypes.c_size_t(4096)), 0)
        place, config = self.dump_config("saved", dump_scene="aic_err_brief_dump")
        done(acl.mdl.set_dump(config))
        done(library.acldumpGetExceptionInfoPath(path, ctypes.c_size_t(4096)))
        folder = path.value.decode()
        self.assertEqual(folder, place + "/extra-info/data-dump/0/")
        self.assertEqual(library.acldumpGetExceptionInfoPath(path, ctypes.c_size_t(len(folder))),
                         INVALID_PARAM)
        self.assertEqual(library.acldumpGetPath(1) != 0, True)

        class Tensor(ctypes.Structure):
            _fields_ = [("role", ctypes.c_int), ("size", ctypes.c_size_t), ("format", ctypes.c_int32),
                        ("dtype", ctypes.c_int32), ("address", ctypes.c_void_p),
                        ("kind", ctypes.c_int), ("placement", ctypes.c_int),
                        ("offset", ctypes.c_uint32), ("rank", ctypes.c_uint32),
                        ("origin_rank", ctypes.c_uint32), ("dims", ctypes.c_uint64 * 25),
                        ("origin", ctypes.c_uint64 * 25)]

        rows = np.arange(6, dtype=np.float32).reshape(2, 3)
        memory = Buffers([24, 24])
        memory.write(0, rows)
        memory.write(1, rows * 2)

        def tensor(index, role, dims=(2, 3)):
            made = Tensor(role=role, size=24, format=2, dtype=0, address=memory.memory[index], kind=2,
                          rank=len(dims), origin_rank=len(dims))
            made.dims[:len(dims)] = made.origin[:len(dims)] = dims
            return made

        def save(name, *tensors):
            given = (Tensor * max(len(tensors), 1))(*tensors)
            return library.acldumpSaveExceptionInfo(name, b"stage=forward", given,
                                                    ctypes.c_size_t(len(tensors)))

        done(save(b"part/mine", tensor(1, 1), tensor(0, 0)))
        names = os.listdir(os.path.join(folder, "part"))
        self.assertRegex(names[0], r"^mine\.custom\.\d{17}$")
        with open(os.path.join(folder, "part", names[0]), "rb") as file:
            content = file.read()
        head = 8 + int.from_bytes(content[:8], "little")
        self.assertIn(b"stage=forward", content[8:head])
        self.assertEqual(content[head:], rows.tobytes() + (rows * 2).tobytes())  # input, output

        for wrong in (b"", b"/absolute", b"../up", b"a/../../b"):
            self.assertEqual(save(wrong, tensor(0, 0)), INVALID_PARAM)
        self.assertEqual(save(b"nothing"), INVALID_PARAM)
        self.assertEqual(save(b"wide", tensor(0, 0, (2, 4))), INVALID_PARAM)
        host = tensor(0, 0)
        host.address = ctypes.addressof(host)
        self.assertEqual(save(b"host", host), INVALID_PARAM)
        deep = tensor(0, 0)
        deep.rank = 26
        self.assertEqual(save(b"deep", deep), INVALID_PARAM)
        done(acl.mdl.finalize_dump())
        memory.close()

    def test_a_subscription_tells_the_operators_as_they_run(self):
        model = taken(acl.mdl.load_from_file(self.static))
        readable, writable = os.pipe()
        config = acl.prof.create_subscribe_config(1, 0xff, writable)
        self.assertNotEqual(config, 0)
        self.assertNotEqual(acl.prof.model_subscribe(model + 1, config), 0)
        self.assertEqual(acl.prof.model_subscribe(model, 0), INVALID_PARAM)
        done(acl.prof.model_subscribe(model, config))
        self.assertEqual(acl.prof.model_subscribe(model, config), INVALID_PARAM)
        inputs, outputs = Buffers([3 * 6 * 4]), Buffers([3 * 4 * 4])
        runs = 5
        for _ in range(runs):
            done(acl.mdl.execute(model, inputs.dataset, outputs.dataset))
        done(acl.prof.model_unsubscribe(model))
        self.assertEqual(acl.prof.model_unsubscribe(model), INVALID_PARAM)
        done(acl.mdl.execute(model, inputs.dataset, outputs.dataset))
        with os.fdopen(readable, "rb") as pipe:
            told = pipe.read()  # its other end is closed
        size = taken(acl.prof.get_op_desc_size())
        address = acl.util.bytes_to_ptr(told)
        count = taken(acl.prof.get_op_num(address, len(told)))
        self.assertEqual(count * size, len(told))
        self.assertEqual(count % runs, 0)
        self.assertGreater(count, 0)
        names = []
        end = 0
        for i in range(count):
            at = (address, len(told), i)
            self.assertEqual(acl.prof.get_model_id(*at), model)
            self.assertEqual(acl.prof.get_op_end(*at),
                             acl.prof.get_op_start(*at) + acl.prof.get_op_duration(*at))
            self.assertGreaterEqual(acl.prof.get_op_end(*at), end)
            end = acl.prof.get_op_end(*at)
            kind = taken(acl.prof.get_op_type_v2(*at))
            self.assertEqual(taken(acl.prof.get_op_type_len(*at)), len(kind) + 1)
            name = taken(acl.prof.get_op_name_v2(*at))
            self.assertEqual(taken(acl.prof.get_op_name_len(*at)), len(name) + 1)
            names.append((kind, name))
        self.assertEqual(names, names[:count // runs] * runs)
        self.assertTrue(any("MatMul" in kind for kind, _ in names), names)
        for wrong in ((address, len(told) - 1, 0), (address, len(told), count), (0, size, 0)):
            self.assertNotEqual(acl.prof.get_op_type_v2(*wrong)[-1], 0)
            self.assertEqual(acl.prof.get_op_start(*wrong), 0)
            self.assertEqual(acl.prof.get_model_id(*wrong), 0)
        zeros = bytes(size)
        self.assertEqual(acl.prof.get_op_end(acl.util.bytes_to_ptr(zeros), size, 0), 0)
        done(acl.prof.destroy_subscribe_config(config))
        self.assertEqual(acl.prof.destroy_subscribe_config(config), INVALID_PARAM)
        done(acl.mdl.unload(model))
        inputs.close()
        outputs.close()

    def test_a_subscription_whose_reader_has_gone_ends(self):
        model = taken(acl.mdl.load_from_file(self.static))
        readable, writable = os.pipe()
        config = acl.prof.create_subscribe_config(0, 0xff, writable)
        done(acl.prof.model_subscribe(model, config))
        os.close(readable)
        inputs, outputs = Buffers([3 * 6 * 4]), Buffers([3 * 4 * 4])
        for _ in range(3):
            done(acl.mdl.execute(model, inputs.dataset, outputs.dataset))
        done(acl.prof.model_unsubscribe(model))
        done(acl.prof.destroy_subscribe_config(config))
        done(acl.mdl.unload(model))
        inputs.close()
        outputs.close()

    def test_wrong_calls_in_any_order_end_with_a_code(self):
        dice = random.Random(int(os.environ.get("NPUMESH_TEST_SEED", "1")))
        live = {"dataset": [], "buffer": [], "desc": [], "tensor": []}
        dead = [0, 8, 2 ** 40 + 16]
        models = [0, 77]

        def handle(kind):
            return dice.choice(dead + live[kind] * 2 + live[dice.choice(list(live))])

        def kill(kind, function):
            victim = handle(kind)
            function(victim)
            if victim in live[kind]:
                live[kind].remove(victim)
                dead.append(victim)

        def unload():
            victim = dice.choice(models)
            if acl.mdl.unload(victim) == 0 and dice.random() < 0.5:
                models.remove(victim)

        def load():
            model, code = acl.mdl.load_from_file(dice.choice([self.static, self.batches, self.graph, "/absent"]))
            if code == 0:
                models.append(model)

        calls = [
            load, unload,
            lambda: live["dataset"].append(acl.mdl.create_dataset()),
            lambda: live["desc"].append(acl.mdl.create_desc()),
            lambda: live["buffer"].append(acl.create_data_buffer(dice.choice([0, memory]), dice.choice([0, 72, 4096]))),
            lambda: live["tensor"].append(acl.create_tensor_desc(dice.randrange(-2, 50), [dice.randrange(-2, 9)] * 2, 2)),
            lambda: kill("dataset", acl.mdl.destroy_dataset), lambda: kill("desc", acl.mdl.destroy_desc),
            lambda: kill("buffer", acl.destroy_data_buffer), lambda: kill("tensor", acl.destroy_tensor_desc),
            lambda: acl.mdl.add_dataset_buffer(handle("dataset"), handle("buffer")),
            lambda: acl.mdl.get_desc(handle("desc"), dice.choice(models)),
            lambda: acl.mdl.get_num_inputs(handle("desc")),
            lambda: acl.mdl.get_input_dims(handle("desc"), dice.randrange(4)),
            lambda: acl.mdl.get_cur_output_dims(handle("desc"), dice.randrange(4)),
            lambda: acl.mdl.get_output_size_by_index(handle("desc"), dice.randrange(4)),
            lambda: acl.mdl.get_input_name_by_index(handle("desc"), dice.randrange(4)),
            lambda: acl.mdl.set_dynamic_batch_size(dice.choice(models), handle("dataset"), dice.randrange(3), 2),
            lambda: acl.mdl.execute(dice.choice(models), handle("dataset"), handle("dataset")),
            lambda: acl.mdl.execute_async(dice.choice(models), handle("dataset"), handle("dataset"), 0),
            lambda: acl.get_tensor_desc_size(handle("tensor")),
            lambda: acl.get_data_buffer_addr(handle("buffer")),
        ]
        memory = taken(acl.rt.malloc(4096, 0))
        for _ in range(int(os.environ.get("NPUMESH_TEST_CALLS", "3000"))):
            dice.choice(calls)()
        acl.rt.synchronize_device()
        for model in set(models):
            acl.mdl.unload(model)
        done(acl.rt.free(memory))


if __name__ == "__main__":
    unittest.main()
