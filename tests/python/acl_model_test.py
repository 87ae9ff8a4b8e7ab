"""pyACL with offline models of `npumesh atc`: programs as clients write them, against numpy."""

import tempfile
import unittest

import case
from acl_client import Model, compile_add, done, taken
from case import numpy as np

import acl

GEARS = "ascend_mbatch_shape_data"


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.fixed = compile_add(cls.folder, "fixed", (2, 3))
        cls.batches = compile_add(cls.folder, "batches", (-1, 3), "--dynamic_batch_size=1,2,4")
        cls.x = np.arange(6, dtype=np.float32).reshape(2, 3)
        cls.w = np.full((2, 3), 0.5, np.float32)

    def setUp(self):
        done(acl.init())
        done(acl.rt.set_device(0))

    def tearDown(self):
        done(acl.rt.reset_device(0))
        done(acl.finalize())

    def expect_sum(self, model):
        model.feed(self.x, self.w)
        done(acl.mdl.execute(model.id, model.inputs, model.outputs))
        self.assertTrue(np.array_equal(model.output((2, 3)), self.x + self.w))
        model.close()

    def test_model_from_a_file(self):
        self.expect_sum(Model(taken(acl.mdl.load_from_file(self.fixed))))

    def test_model_from_memory(self):
        with open(self.fixed, "rb") as file:
            data = file.read()
        self.expect_sum(Model(taken(
            acl.mdl.load_from_mem(acl.util.bytes_to_ptr(data), len(data)))))

    def test_model_in_memory_of_the_program(self):
        work, weights = taken(acl.mdl.query_size(self.fixed))
        places = [taken(acl.rt.malloc(max(size, 1), 0)) for size in (work, weights)]
        self.expect_sum(Model(taken(acl.mdl.load_from_file_with_mem(
            self.fixed, places[0], work, places[1], weights))))
        for place in places:
            done(acl.rt.free(place))

    def test_model_by_options(self):
        LOAD_TYPE, PATH, FROM_FILE = 1, 2, 1
        handle = acl.mdl.create_config_handle()
        done(acl.mdl.set_config_opt(handle, LOAD_TYPE, FROM_FILE))
        done(acl.mdl.set_config_opt(handle, PATH, self.fixed))
        self.expect_sum(Model(taken(acl.mdl.load_with_config(handle))))
        done(acl.mdl.destroy_config_handle(handle))

    def test_execution_on_a_stream(self):
        model = Model(taken(acl.mdl.load_from_file(self.fixed)))
        stream = taken(acl.rt.create_stream())
        for turn in range(5):
            model.feed(self.x * turn, self.w)
            done(acl.mdl.execute_async(model.id, model.inputs, model.outputs, stream))
            done(acl.rt.synchronize_stream(stream))
            self.assertTrue(np.array_equal(model.output((2, 3)), self.x * turn + self.w))
        done(acl.rt.destroy_stream(stream))
        model.close()

    def test_description(self):
        model = Model(taken(acl.mdl.load_from_file(self.fixed)))
        self.assertEqual(
            (acl.mdl.get_num_inputs(model.desc), acl.mdl.get_num_outputs(model.desc)), (2, 1))
        for index, name in enumerate(("x", "w")):
            dims = taken(acl.mdl.get_input_dims(model.desc, index))
            self.assertEqual((dims["dimCount"], dims["dims"]), (2, [2, 3]))
            self.assertEqual(acl.mdl.get_input_name_by_index(model.desc, index), name)
            self.assertEqual(taken(acl.mdl.get_input_index_by_name(model.desc, name)), index)
            self.assertEqual(acl.mdl.get_input_data_type(model.desc, index), acl.ACL_FLOAT)
            self.assertEqual(acl.mdl.get_input_size_by_index(model.desc, index), 24)
        self.assertEqual(taken(acl.mdl.get_output_dims(model.desc, 0))["dims"], [2, 3])
        self.assertEqual(taken(acl.mdl.get_cur_output_dims(model.desc, 0))["dims"], [2, 3])
        self.assertEqual(acl.mdl.get_output_size_by_index(model.desc, 0), 24)
        model.close()

    def test_batches(self):
        model = Model(taken(acl.mdl.load_from_file(self.batches)))
        self.assertEqual(taken(acl.mdl.get_dynamic_batch(model.desc)),
                         {"batchCount": 3, "batch": [1, 2, 4]})
        gears = taken(acl.mdl.get_input_index_by_name(model.desc, GEARS))
        for batch in (4, 1, 2):
            x = np.arange(3 * batch, dtype=np.float32).reshape(batch, 3)
            model.feed(x, x)
            done(acl.mdl.set_dynamic_batch_size(model.id, model.inputs, gears, batch))
            done(acl.mdl.execute(model.id, model.inputs, model.outputs))
            self.assertEqual(taken(acl.mdl.get_cur_output_dims(model.desc, 0))["dims"],
                             [batch, 3])
            self.assertTrue(np.array_equal(model.output((batch, 3)), 2 * x))
        self.assertNotEqual(
            acl.mdl.set_dynamic_batch_size(model.id, model.inputs, gears, 3), 0)
        model.close()

    def test_models_in_threads(self):
        results = {}

        def work(number):
            context = taken(acl.rt.create_context(0))
            model = Model(taken(acl.mdl.load_from_file(self.fixed)))
            for turn in range(5):
                model.feed(self.x * number, self.w * turn)
                done(acl.mdl.execute(model.id, model.inputs, model.outputs))
                results[number, turn] = np.array_equal(model.output((2, 3)),
                                                       self.x * number + self.w * turn)
            model.close()
            done(acl.rt.destroy_context(context))

        threads = [taken(acl.util.start_thread(work, number)) for number in range(4)]
        for thread in threads:
            done(acl.util.stop_thread(thread))
        self.assertEqual(len(results), 20)
        self.assertTrue(all(results.values()), results)

    def test_descriptions_of_tensors(self):
        desc = acl.create_tensor_desc(acl.ACL_FLOAT, [2, 3, 4], acl.ACL_FORMAT_ND)
        self.assertEqual(acl.get_tensor_desc_type(desc), acl.ACL_FLOAT)
        self.assertEqual(acl.get_tensor_desc_num_dims(desc), 3)
        self.assertEqual(taken(acl.get_tensor_desc_dim_v2(desc, 2)), 4)
        self.assertEqual(acl.get_tensor_desc_size(desc), 96)
        self.assertEqual(acl.get_tensor_desc_element_count(desc), 24)
        self.assertIsNone(acl.set_tensor_desc_name(desc, "of mine"))
        self.assertEqual(acl.get_tensor_desc_name(desc), "of mine")
        self.assertIsNone(acl.destroy_tensor_desc(desc))

    def test_what_is_refused(self):
        self.assertNotEqual(acl.mdl.load_from_file("/no/such/model.om")[1], 0)
        self.assertIn("/no/such/model.om", acl.get_recent_err_msg())
        self.assertNotEqual(acl.mdl.unload(12345), 0)
        model = Model(taken(acl.mdl.load_from_file(self.fixed)))
        dims, code = acl.mdl.get_input_dims(model.desc, 7)
        self.assertEqual((dims, code != 0), ({}, True))
        self.assertNotEqual(acl.mdl.get_input_index_by_name(model.desc, "y")[1], 0)
        self.assertNotEqual(acl.mdl.execute(model.id, model.outputs, model.outputs), 0)
        model.close()


if __name__ == "__main__":
    case.main()
