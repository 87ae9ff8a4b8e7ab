"""pyACL and single operators: programs as clients write them, `npumesh atc --singleop`, products of matrices, and what
is refused. tests/mpi/acl/operator_calls.py has the operators themselves."""

import ctypes
import json
import os
import random
import subprocess
import tempfile
import unittest

import case
from acl_client import INVALID_PARAM, UNSUPPORTED, atc, compile_add, done, read, taken, write
from case import numpy as np

import acl

REPEATED, UNREADABLE, UNPARSED, NOT_FOUND = 100002, 100014, 100013, 100024
REFUSED = 207000
CAPTURED = 107027
FLOAT, HALF, INT8, INT32, INT64, ABSENT = 0, 1, 2, 3, 9, -1
ND, NZ = 2, 29
HOST, HOST_INDEPENDENT = 1, 2
DTYPES = {"float32": FLOAT, "float16": HALF, "int8": INT8, "int32": INT32, "int64": INT64, "bool": 12}
LIBRARY = ctypes.CDLL(os.environ["NPUMESH_ACL_LIBRARY"])


class Tensor:
    """A description and a buffer of device memory with these values."""

    def __init__(self, array, dims=None, fmt=ND):
        array = np.asarray(array)
        self.dtype, self.shape = array.dtype, array.shape
        self.desc = acl.create_tensor_desc(DTYPES[array.dtype.name], list(array.shape if dims is None else dims), fmt)
        assert self.desc
        self.memory = taken(acl.rt.malloc(max(array.nbytes, 1), 0))
        write(self.memory, array)
        self.buffer = acl.create_data_buffer(self.memory, array.nbytes)

    def read(self, shape=None):
        return read(self.memory, self.dtype, self.shape if shape is None else shape)

    def dims(self):
        return dims_of(self.desc)

    def close(self):
        acl.destroy_tensor_desc(self.desc)
        done(acl.destroy_data_buffer(self.buffer))
        done(acl.rt.free(self.memory))


class Absent(Tensor):
    def __init__(self):
        self.desc = acl.create_tensor_desc(ABSENT, [], -1)
        self.buffer = acl.create_data_buffer(0, 0)
        self.memory = 0

    def close(self):
        acl.destroy_tensor_desc(self.desc)
        done(acl.destroy_data_buffer(self.buffer))


def dims_of(desc):
    return [taken(acl.get_tensor_desc_dim_v2(desc, axis)) for axis in range(acl.get_tensor_desc_num_dims(desc))]


def words(op, inputs, outputs, attr):
    return (op, [each.desc for each in inputs], [each.buffer for each in inputs], [each.desc for each in outputs],
            [each.buffer for each in outputs], attr)


def attributes(**values):
    attr = acl.op.create_attr()
    for name, value in values.items():
        kind = {bool: "bool", int: "int", float: "float", str: "string", list: "list_int"}[type(value)]
        done(getattr(acl.op, f"set_attr_{kind}")(attr, name, value))
    return attr


class Client(unittest.TestCase):
    def setUp(self):
        done(acl.init())
        done(acl.rt.set_device(0))
        self.stream = taken(acl.rt.create_stream())
        self.tensors = []

    def tearDown(self):
        for tensor in self.tensors:
            tensor.close()
        acl.rt.destroy_stream(self.stream)
        done(acl.rt.reset_device(0))
        done(acl.finalize())

    def tensor(self, *words_of_it, **more):
        self.tensors.append(Tensor(*words_of_it, **more))
        return self.tensors[-1]

    def absent(self):
        self.tensors.append(Absent())
        return self.tensors[-1]

    def compute(self, op, inputs, outputs, v2=False, **attrs):
        function = acl.op.compile_and_execute_v2 if v2 else acl.op.compile_and_execute
        attr = attributes(**attrs)
        done(function(*words(op, inputs, outputs, attr), 0, 0, "", self.stream))
        done(acl.rt.synchronize_stream(self.stream))
        acl.op.destroy_attr(attr)

    def refuse(self, op, inputs, outputs, code, text, function=None, attr=None):
        attr = attributes() if attr is None else attr
        if function is None:
            seen = acl.op.compile_and_execute(*words(op, inputs, outputs, attr), 0, 0, "", self.stream)
        else:
            seen = function(*words(op, inputs, outputs, attr), self.stream)
        told = acl.get_recent_err_msg()
        self.assertEqual(seen, code, told)
        self.assertIn(text, told)


class Operators(Client):
    def setUp(self):
        super().setUp()
        self.x, self.w = np.arange(6, dtype=np.float32).reshape(2, 3), np.full((3,), 0.5, np.float32)

    def three(self):
        return self.tensor(self.x), self.tensor(self.w), self.tensor(np.zeros((2, 3), np.float32))

    def test_an_operator_has_to_be_made_before(self):
        x, w, y = self.three()
        self.refuse("Add", [x, w], [y], NOT_FOUND, "npumesh atc --singleop", acl.op.execute_v2)
        self.refuse("Add", [x, w], [y], NOT_FOUND, "aclopCompileAndExecute", acl.op.execute)
        attr = attributes()
        _, code = acl.op.create_handle("Add", [x.desc, w.desc], [y.desc], attr)
        self.assertEqual(code, NOT_FOUND)
        done(acl.op.compile("Add", [x.desc, w.desc], [y.desc], attr, 0, 0, ""))
        done(acl.op.execute_v2(*words("Add", [x, w], [y], attr), self.stream))
        done(acl.rt.synchronize_stream(self.stream))
        self.assertTrue(np.array_equal(y.read(), self.x + self.w))
        write(y.memory, np.zeros((2, 3), np.float32))
        handle = taken(acl.op.create_handle("Add", [x.desc, w.desc], [y.desc], attr))
        acl.op.destroy_attr(attr)
        for turn in range(3):
            write(x.memory, self.x * turn)
            done(acl.op.execute_with_handle(handle, [x.buffer, w.buffer], [y.buffer], self.stream))
            done(acl.rt.synchronize_stream(self.stream))
            self.assertTrue(np.array_equal(y.read(), self.x * turn + self.w))
        self.assertEqual(acl.op.execute_with_handle(handle, [x.buffer], [y.buffer], self.stream), INVALID_PARAM)
        self.assertIn("1 inputs and 1 outputs, the operator was described with 2 and 1", acl.get_recent_err_msg())
        acl.op.destroy_handle(handle)
        self.assertEqual(acl.op.execute_with_handle(handle, [x.buffer, w.buffer], [y.buffer], self.stream),
                         INVALID_PARAM)

    def test_an_operator_compiled_with_open_dimensions_takes_all(self):
        x, w, y = self.three()
        attr = attributes()
        rows = [acl.create_tensor_desc(FLOAT, dims, ND) for dims in ([-1, 3], [3], [-1, 3])]
        done(acl.op.compile("Add", rows[:2], rows[2:], attr, 0, 0, ""))
        for rows_of_x in (1, 2):
            part = self.tensor(self.x[:rows_of_x])
            done(acl.op.execute_v2(*words("Add", [part, w], [y], attr), self.stream))
            done(acl.rt.synchronize_stream(self.stream))
            self.assertTrue(np.array_equal(y.read((rows_of_x, 3)), self.x[:rows_of_x] + self.w))
            self.assertEqual(y.dims(), [rows_of_x, 3])
        self.refuse("Add", [w, w], [w], NOT_FOUND, "operator Add", acl.op.execute)
        other = self.tensor(self.x[:, :2])
        self.refuse("Add", [other, other], [other], NOT_FOUND, "operator Add", acl.op.execute)
        for desc in rows:
            acl.destroy_tensor_desc(desc)
        acl.op.destroy_attr(attr)

    def test_only_so_many_operators_are_kept(self):
        done(acl.op.set_max_op_queue_num(2))
        for turn in range(2):
            for size in range(1, 5):
                x, y = self.tensor(self.x.reshape(-1)[:size]), self.tensor(np.zeros(size, np.float32))
                self.compute("Neg", [x], [y])
                self.assertTrue(np.array_equal(y.read(), -self.x.reshape(-1)[:size]), turn)
        self.assertEqual(acl.op.set_max_op_queue_num(0), INVALID_PARAM)
        done(acl.op.set_max_op_queue_num(20000))

    def test_an_output_may_be_an_input(self):
        x, w, _ = self.three()
        self.compute("Add", [x, w], [x])
        self.assertTrue(np.array_equal(x.read(), self.x + self.w))

    def test_lists_by_place_by_name_and_by_port(self):
        parts = [self.tensor(self.x + turn) for turn in range(3)]
        y = self.tensor(np.zeros((6, 3), np.float32))
        expected = np.concatenate([self.x + turn for turn in range(3)])
        for way in ("place", "name", "port"):
            for number, part in enumerate(parts):
                acl.set_tensor_desc_name(part.desc, f"x{number}" if way == "name" else "")
                if way == "port":
                    done(acl.set_tensor_dynamic_input(part.desc, "x"))
            self.compute("ConcatD", parts, [y], concat_dim=0, N=3)
            self.assertTrue(np.array_equal(y.read(), expected), way)
            write(y.memory, np.zeros((6, 3), np.float32))

    def test_optional_inputs_are_absent_or_left_out(self):
        x, m = self.tensor(self.x), self.tensor(np.ones((3, 2), np.float32))
        y = self.tensor(np.zeros((2, 2), np.float32))
        for more in ([], [self.absent()], [self.absent(), self.absent()]):
            self.compute("MatMulV2", [x, m, *more], [y])
            self.assertTrue(np.array_equal(y.read(), self.x @ np.ones((3, 2), np.float32)), len(more))

    def test_values_that_decide_shapes(self):
        """As constants, in host memory, in device memory; the last is only known when the stream comes to it."""
        x, shape = self.tensor(self.x), np.array([3, 2], np.int64)
        for way in ("constant", "host", "device"):
            s, y = self.tensor(shape), self.tensor(np.zeros((2, 3), np.float32), dims=[6])
            data = shape.tobytes()
            if way == "constant":
                done(acl.set_tensor_const(s.desc, acl.util.bytes_to_ptr(data), len(data)))
            if way == "host":
                done(acl.set_tensor_place_ment(s.desc, HOST))
                done(acl.update_data_buffer(s.buffer, acl.util.bytes_to_ptr(data), len(data)))
            self.compute("Reshape", [x, s], [y], v2=True)
            self.assertEqual(y.dims(), [3, 2], way)
            self.assertTrue(np.array_equal(y.read((3, 2)), self.x.reshape(3, 2)), way)

    def test_host_memory_is_read_by_the_call(self):
        x, w, y = self.three()
        data = bytearray(self.w.tobytes())
        kept = (ctypes.c_char * len(data)).from_buffer(data)
        done(acl.set_tensor_place_ment(w.desc, HOST_INDEPENDENT))
        done(acl.update_data_buffer(w.buffer, ctypes.addressof(kept), len(data)))
        event = taken(acl.rt.create_notify(0))
        done(acl.rt.wait_and_reset_notify(event, self.stream, 0))
        attr = attributes()
        done(acl.op.compile_and_execute(*words("Add", [x, w], [y], attr), 0, 0, "", self.stream))
        data[:] = bytes(len(data))
        other = taken(acl.rt.create_stream())
        done(acl.rt.record_notify(event, other))
        done(acl.rt.synchronize_stream(self.stream))
        self.assertTrue(np.array_equal(y.read(), self.x + self.w))
        done(acl.rt.destroy_stream(other))
        done(acl.rt.destroy_notify(event))

    def test_shapes_that_only_a_run_tells(self):
        x, y = self.tensor(self.x), self.tensor(np.zeros((6, 2), np.int64))
        self.compute("NonZero", [x], [y], v2=True)
        self.assertEqual(y.dims(), [5, 2])
        self.assertTrue(np.array_equal(y.read((5, 2)), np.argwhere(self.x)))
        attr = attributes()
        done(LIBRARY.aclmdlRICaptureBegin(ctypes.c_void_p(self.stream), 0))
        self.assertEqual(acl.op.execute_v2(*words("NonZero", [x], [y], attr), self.stream), CAPTURED)
        graph = ctypes.c_void_p()
        done(LIBRARY.aclmdlRICaptureEnd(ctypes.c_void_p(self.stream), ctypes.byref(graph)))
        done(LIBRARY.aclmdlRIDestroy(graph))
        acl.op.destroy_attr(attr)

    def test_operators_in_a_capture(self):
        x, w, y = self.three()
        attr = attributes()
        done(acl.op.compile("Add", [x.desc, w.desc], [y.desc], attr, 0, 0, ""))
        done(LIBRARY.aclmdlRICaptureBegin(ctypes.c_void_p(self.stream), 2))
        done(acl.op.execute_v2(*words("Add", [x, w], [y], attr), self.stream))
        graph = ctypes.c_void_p()
        done(LIBRARY.aclmdlRICaptureEnd(ctypes.c_void_p(self.stream), ctypes.byref(graph)))
        self.assertEqual(y.read().tolist(), np.zeros((2, 3)).tolist())
        for turn in range(3):
            write(x.memory, self.x * turn)
            done(LIBRARY.aclmdlRIExecuteAsync(graph, ctypes.c_void_p(self.stream)))
            done(acl.rt.synchronize_stream(self.stream))
            self.assertTrue(np.array_equal(y.read(), self.x * turn + self.w))
        done(LIBRARY.aclmdlRIDestroy(graph))
        acl.op.destroy_attr(attr)

    def test_inference_tells_shapes_without_running(self):
        x, s = self.tensor(self.x), self.tensor(np.array([3, -1], np.int64))
        y = acl.create_tensor_desc(HALF, [], ND)
        attr = attributes()
        done(acl.op.infer_shape("Reshape", [x.desc, s.desc], [x.buffer, s.buffer], 1, [y], attr))
        self.assertEqual((dims_of(y), acl.get_tensor_desc_type(y)), ([3, 2], FLOAT))
        acl.destroy_tensor_desc(y)
        acl.op.destroy_attr(attr)

    def test_operators_that_write_to_inputs(self):
        var, value = self.tensor(self.x), self.tensor(self.x * 3)
        self.compute("Assign", [var, value], [var])
        self.assertTrue(np.array_equal(var.read(), self.x * 3))

    def test_casts(self):
        x, y = self.tensor(np.array([1.5, -2.5, 300.0], np.float32)), self.tensor(np.zeros(3, np.int32))
        self.assertEqual(acl.op.cast(x.desc, x.buffer, y.desc, y.buffer, 0, self.stream), NOT_FOUND)
        attr = attributes(dst_type=INT32)
        done(acl.op.compile("Cast", [x.desc], [y.desc], attr, 0, 0, ""))
        done(acl.op.cast(x.desc, x.buffer, y.desc, y.buffer, 0, self.stream))
        done(acl.rt.synchronize_stream(self.stream))
        self.assertEqual(y.read().tolist(), [1, -2, 300])
        write(y.memory, np.zeros(3, np.int32))
        handle = taken(acl.op.create_handle_for_cast(x.desc, y.desc, 0))
        done(acl.op.execute_with_handle(handle, [x.buffer], [y.buffer], self.stream))
        done(acl.rt.synchronize_stream(self.stream))
        self.assertEqual(y.read().tolist(), [1, -2, 300])
        acl.op.destroy_handle(handle)
        acl.op.destroy_attr(attr)
        self.assertEqual(acl.op.cast(x.desc, x.buffer, 0, y.buffer, 0, self.stream), INVALID_PARAM)

    def test_what_clients_write_that_a_card_does_not_look_at(self):
        """Attributes of other releases are passed over; an output is memory for as many elements."""
        x = self.tensor(self.x)
        flat = self.tensor(np.zeros(6, np.float32))
        self.compute("Neg", [x], [flat], no_such=1)
        self.assertTrue(np.array_equal(flat.read(), -self.x.reshape(6)))

    def test_private_formats(self):
        """A matrix in FRACTAL_NZ: blocks of 16 columns, in each all rows, padded to 16."""
        plain = np.arange(40, dtype=np.float16).reshape(2, 20)
        padded = np.zeros((16, 32), np.float16)
        padded[:2, :20] = plain
        stored = self.tensor(padded.reshape(1, 16, 2, 16).transpose(2, 0, 1, 3), fmt=NZ)
        done(acl.set_tensor_origin_shape(stored.desc, [2, 20]))
        done(acl.set_tensor_origin_format(stored.desc, ND))
        y = self.tensor(np.zeros((2, 20), np.float16))
        self.compute("Neg", [stored], [y])
        self.assertTrue(np.array_equal(y.read(), -plain))
        back = self.tensor(np.ones((2, 1, 16, 16), np.float16), fmt=NZ)
        self.compute("Neg", [y], [back])
        self.assertTrue(np.array_equal(back.read(), padded.reshape(1, 16, 2, 16).transpose(2, 0, 1, 3)))
        unknown = self.tensor(np.zeros((2, 1, 16, 16), np.float16), fmt=NZ)
        self.refuse("Neg", [unknown], [y], INVALID_PARAM, "aclSetTensorOriginShape")

    def test_what_does_not_fit_is_named(self):
        x, w, y = self.three()
        wide = self.tensor(np.zeros((3, 3), np.float32))
        half = self.tensor(np.zeros((2, 3), np.float16))
        small = self.tensor(np.zeros(2, np.float32), dims=[2, 3])
        for op, inputs, outputs, code, text in (
                ("Addd", [x, w], [y], UNSUPPORTED, 'operator "Addd" is not there; similar names: Add'),
                ("If", [x], [y], UNSUPPORTED, "a part of graphs"),
                ("", [x], [y], INVALID_PARAM, "opType is empty"),
                ("Add", [x], [y], INVALID_PARAM, 'input "x2" is not connected'),
                ("Add", [x, w, w], [y], INVALID_PARAM, "3 inputs are given, expected (x1, x2)"),
                ("Add", [x, w], [y, y], INVALID_PARAM, "2 outputs are given, expected (y)"),
                ("MatMulV2", [x, x], [y], INVALID_PARAM, 'node "MatMulV2" (MatMulV2): x1 [2,3] and x2 [2,3]'),
                ("Add", [x, w], [wide], INVALID_PARAM, "output 0 is described as float32[3,3], the operator gives float32[2,3]"),
                ("Add", [x, w], [half], INVALID_PARAM, "output 0 is described as float16[2,3], the operator gives float32[2,3]"),
                ("Add", [x, w], [small], INVALID_PARAM, "output 0 is [2,3], 24 bytes; its buffer has 8"),
                ("Add", [small, w], [y], INVALID_PARAM, "input 0 is [2,3], 24 bytes; its buffer has 8")):
            with self.subTest(op=op, text=text):
                self.refuse(op, inputs, outputs, code, text)
        self.refuse("Cast", [x], [y], INVALID_PARAM, '"dst_type"')
        open_dims = self.tensor(self.x, dims=[-1, 3])
        self.refuse("Neg", [open_dims], [y], INVALID_PARAM, "a run needs all dimensions")
        self.assertEqual(acl.op.compile_and_execute(*words("Neg", [x], [y], 77), 0, 0, "", self.stream), INVALID_PARAM)
        attr = attributes()
        for engine, flag, path, code in ((7, 0, "", INVALID_PARAM), (0, 7, "", INVALID_PARAM),
                                         (0, 0, "kernels", UNSUPPORTED)):
            self.assertEqual(acl.op.compile_and_execute(*words("Neg", [x], [y], attr), engine, flag, path,
                                                        self.stream), code)
        acl.op.destroy_attr(attr)
        # A stream goes on after what was refused.
        self.compute("Neg", [x], [y])
        self.assertTrue(np.array_equal(y.read(), -self.x))

    def test_what_fails_when_it_runs_is_told_by_the_stream(self):
        x, index = self.tensor(self.x), self.tensor(np.array([7], np.int64))
        axis, y = self.tensor(np.array([0], np.int64)), self.tensor(np.zeros((1, 3), np.float32))
        attr = attributes()
        done(acl.op.compile_and_execute(*words("GatherV2", [x, index, axis], [y], attr), 0, 0, "", self.stream))
        self.assertNotEqual(acl.rt.synchronize_stream(self.stream), 0)
        self.assertIn("GatherV2", acl.get_recent_err_msg())
        acl.op.destroy_attr(attr)

    def test_attributes_of_all_kinds(self):
        attr = acl.op.create_attr()
        done(acl.op.set_attr_bool(attr, "b", 1))
        done(acl.op.set_attr_float(attr, "f", 0.5))
        done(acl.op.set_attr_string(attr, "s", "text"))
        done(acl.op.set_attr_list_bool(attr, "lb", [1, 0]))
        done(acl.op.set_attr_list_float(attr, "lf", [0.5]))
        done(acl.op.set_attr_list_string(attr, "ls", ["a", "b"]))
        done(acl.op.set_attr_list_list_int(attr, "ll", [[1, 2], [], [3]]))
        done(acl.op.set_attr_data_type(attr, "t", HALF)[-1])
        done(acl.op.set_attr_list_data_type(attr, "lt", [HALF, FLOAT])[-1])
        self.assertEqual(acl.op.set_attr_int(attr, "", 1), INVALID_PARAM)
        self.assertEqual(acl.op.set_attr_int(77, "i", 1), INVALID_PARAM)
        self.assertEqual(LIBRARY.aclopSetAttrListInt(ctypes.c_void_p(attr), b"i", -1, None), INVALID_PARAM)
        self.assertEqual(LIBRARY.aclopSetAttrListInt(ctypes.c_void_p(attr), b"i", 2, None), INVALID_PARAM)
        self.assertEqual(LIBRARY.aclopSetAttrString(ctypes.c_void_p(attr), b"i", None), INVALID_PARAM)
        strings = (ctypes.c_char_p * 1)(None)
        self.assertEqual(LIBRARY.aclopSetAttrListString(ctypes.c_void_p(attr), b"i", 1, strings), INVALID_PARAM)
        acl.op.destroy_attr(attr)
        self.assertEqual(acl.op.set_attr_int(attr, "i", 1), INVALID_PARAM)

    def test_graphs_are_written_as_text(self):
        x, w, y = self.three()
        attr = attributes()
        descs = [(ctypes.c_void_p * 2)(x.desc, w.desc), (ctypes.c_void_p * 1)(y.desc)]

        def dump(op, path, option=None):
            return LIBRARY.aclGenGraphAndDumpForOp(op, 2, descs[0], None, 1, descs[1], None, ctypes.c_void_p(attr), 0,
                                                   path, option)

        LIBRARY.aclCreateGraphDumpOpt.restype = ctypes.c_void_p
        option = ctypes.c_void_p(LIBRARY.aclCreateGraphDumpOpt())
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(dump(b"Add", folder.encode(), option), 0)
            path = os.path.join(folder, "ge_proto_Add.txt")
            with open(path, encoding="utf-8") as file:
                self.assertIn('type: "Add"', file.read())
            self.assertEqual(dump(b"Add", os.path.join(folder, "own.txt").encode()), 0)
            self.assertTrue(os.path.exists(os.path.join(folder, "own.txt")))
            self.assertNotEqual(dump(b"Add", os.path.join(folder, "no", "such", "place.txt").encode()), 0)
            self.assertEqual(dump(b"Addd", folder.encode()), UNSUPPORTED)
            self.assertEqual(dump(b"Add", None), INVALID_PARAM)
        self.assertEqual(LIBRARY.aclDestroyGraphDumpOpt(option), 0)
        self.assertEqual(LIBRARY.aclDestroyGraphDumpOpt(option), INVALID_PARAM)
        acl.op.destroy_attr(attr)

    def test_kernels_of_a_program_are_refused(self):
        for code in (acl.op.create_kernel("Add", "id", "name", 0, 0, 0, 0), acl.op.unregister_compile_func("Add"),
                     acl.op.set_kernel_args(0, "id", 1, 0, 0), acl.op.set_kernel_workspace_sizes(0, 0, 0),
                     LIBRARY.aclopRegisterCompileFunc(b"Add", None),
                     LIBRARY.aclopUpdateParams(b"Add", 0, None, 0, None, None)):
            self.assertEqual(code, REFUSED)
        self.assertIn("compiled device code", acl.get_recent_err_msg())

    def test_wrong_calls_in_any_order_end_with_a_code(self):
        dice = random.Random(int(os.environ.get("NPUMESH_TEST_SEED", "1")))
        live = {"attr": [], "handle": [], "desc": [], "buffer": []}
        dead = [0, 8, 2 ** 40 + 16]
        memory = taken(acl.rt.malloc(1 << 16, 0))
        data = bytes(range(64))

        def some(kind):
            return dice.choice(dead + live[kind] * 4 + live[dice.choice(list(live))])

        def many(kind):
            return [some(kind) for _ in range(dice.randrange(4))]

        def kill(kind, function):
            victim = some(kind)
            function(victim)
            if victim in live[kind]:
                live[kind].remove(victim)
                dead.append(victim)

        def operator():
            return dice.choice(["Add", "Neg", "Cast", "ConcatD", "MatMulV2", "Reshape", "NonZero", "GEMM", "Assign",
                                "Split", "ReduceSum", "Tile", "Nothing", ""])

        def call():
            inputs, outputs = many("desc"), many("desc")
            return (operator(), inputs, [some("buffer") for _ in inputs], outputs, [some("buffer") for _ in outputs],
                    some("attr"))

        def infer(op, inputs, buffers, outputs, _, attr):
            return acl.op.infer_shape(op, inputs, buffers, len(outputs), outputs, attr)

        def handle():
            made, code = acl.op.create_handle(operator(), many("desc"), many("desc"), some("attr"))
            if code == 0:
                live["handle"].append(made)

        calls = [
            lambda: live["attr"].append(acl.op.create_attr()),
            lambda: live["desc"].append(acl.create_tensor_desc(dice.choice([0, 0, 0, 1, 3, 9, -1, 77]), [
                dice.choice([1, 2, 3, 3, -1, 0]) for _ in range(dice.randrange(3))], dice.choice([2, 2, 2, 29, 0, -1]))),
            lambda: live["buffer"].append(acl.create_data_buffer(dice.choice([0, memory, memory + 4096]),
                                                                 dice.choice([0, 4, 4096, 4096, 4096]))),
            lambda: kill("attr", acl.op.destroy_attr), lambda: kill("handle", acl.op.destroy_handle),
            lambda: kill("desc", acl.destroy_tensor_desc), lambda: kill("buffer", acl.destroy_data_buffer),
            lambda: acl.op.set_attr_int(some("attr"), dice.choice(["axis", "dst_type", "concat_dim", "N"]),
                                        dice.randrange(-3, 9)),
            lambda: acl.op.set_attr_list_int(some("attr"), dice.choice(["axes", "shape"]), [dice.randrange(-3, 9)]),
            lambda: acl.set_tensor_const(some("desc"), acl.util.bytes_to_ptr(data), dice.choice([4, 8, 24, 64])),
            lambda: acl.set_tensor_place_ment(some("desc"), dice.randrange(3)),
            lambda: acl.set_tensor_desc_name(some("desc"), dice.choice(["", "x0", "x1", "x", "\u00e9"])),
            lambda: acl.set_tensor_origin_shape(some("desc"), [dice.randrange(4), 3]),
            lambda: acl.op.compile_and_execute(*call(), 0, 0, "", self.stream),
            lambda: acl.op.compile_and_execute_v2(*call(), 0, 0, "", self.stream),
            lambda: acl.op.execute_v2(*call(), self.stream), lambda: acl.op.execute(*call(), self.stream),
            lambda: infer(*call()), handle,
            lambda: acl.op.execute_with_handle(some("handle"), many("buffer"), many("buffer"), self.stream),
            lambda: acl.op.compile(operator(), many("desc"), many("desc"), some("attr"), 0, 0, ""),
            lambda: acl.op.cast(some("desc"), some("buffer"), some("desc"), some("buffer"), 0, self.stream),
            lambda: acl.op.load(acl.util.bytes_to_ptr(data), len(data)),
        ]
        for _ in range(int(os.environ.get("NPUMESH_TEST_CALLS", "3000"))):
            dice.choice(calls)()
        acl.rt.synchronize_stream(self.stream)
        done(acl.rt.free(memory))


class Products(Client):
    """aclblas*: C = alpha A B + beta C."""

    def make(self, m, n, k, dtype, result, a_turned=False, b_turned=False):
        attr = acl.op.create_attr()
        done(acl.op.set_attr_bool(attr, "transpose_a", int(a_turned)))
        done(acl.op.set_attr_bool(attr, "transpose_b", int(b_turned)))
        shapes = [([k, m] if a_turned else [m, k], dtype), ([n, k] if b_turned else [k, n], dtype), ([m, n], result),
                  ([], result), ([], result)]
        descs = [acl.create_tensor_desc(kind, dims, ND) for dims, kind in shapes]
        done(acl.op.compile("GEMM", descs, [descs[2]], attr, 0, 0, ""))
        for desc in descs:
            acl.destroy_tensor_desc(desc)
        acl.op.destroy_attr(attr)

    def numbers(self, shape, dtype, seed):
        return np.random.RandomState(seed).randint(-4, 5, shape).astype(dtype)

    def gemm(self, trans, m, n, k, dtype, result, alpha, beta, host=False):
        a = self.numbers((k, m) if trans[0] else (m, k), dtype, 1)
        b = self.numbers((n, k) if trans[1] else (k, n), dtype, 2)
        c = self.numbers((m, n), result, 3)
        ta, tb, tc = self.tensor(a), self.tensor(b), self.tensor(c)
        factors = np.array([alpha, beta], result)
        size = factors.itemsize
        tf = self.tensor(factors)
        place = factors.ctypes.data if host else tf.memory
        code = LIBRARY.aclblasGemmEx(*trans, 0, m, n, k, ctypes.c_void_p(place), ctypes.c_void_p(ta.memory), -1,
                                     DTYPES[np.dtype(dtype).name], ctypes.c_void_p(tb.memory), -1,
                                     DTYPES[np.dtype(dtype).name], ctypes.c_void_p(place + size),
                                     ctypes.c_void_p(tc.memory), -1, DTYPES[np.dtype(result).name], 0,
                                     ctypes.c_void_p(self.stream))
        if code == 0:
            done(acl.rt.synchronize_stream(self.stream))
            wide = (a.T if trans[0] else a).astype(np.float64) @ (b.T if trans[1] else b).astype(np.float64)
            self.assertTrue(np.array_equal(tc.read(), (alpha * wide + beta * c.astype(np.float64)).astype(result)))
        return code

    def test_all_types_and_transpositions(self):
        for dtype, result in (("float16", "float16"), ("float16", "float32"), ("float32", "float32"),
                              ("int8", "int32"), ("int8", "float32")):
            for turned in range(4):
                trans = (turned & 1, turned >> 1)
                self.make(3, 5, 7, DTYPES[dtype], DTYPES[result], *trans)
                for host in (False, True):
                    with self.subTest(dtype=dtype, result=result, trans=trans, host=host):
                        done(self.gemm(trans, 3, 5, 7, dtype, result, 2, -1, host))

    def test_a_product_has_to_be_made_before(self):
        self.assertEqual(self.gemm((0, 0), 2, 2, 2, "float32", "float32", 1, 0), NOT_FOUND)
        self.assertIn("operator GEMM", acl.get_recent_err_msg())

    def test_vectors_and_short_names(self):
        self.make(3, 1, 4, HALF, HALF)
        self.make(3, 1, 4, INT8, INT32)
        a, x = self.numbers((3, 4), "float16", 1), self.numbers((4, 1), "float16", 2)
        for dtype, result, gemv, gemm in (("float16", "float16", "aclblasHgemv", "aclblasHgemm"),
                                          ("int8", "int32", "aclblasS8gemv", "aclblasS8gemm")):
            ta, tx = self.tensor(a.astype(dtype)), self.tensor(x.astype(dtype))
            one, zero = self.tensor(np.array(1, result)), self.tensor(np.array(0, result))
            place = {name: ctypes.c_void_p(tensor.memory) for name, tensor in
                     (("a", ta), ("x", tx), ("one", one), ("zero", zero))}
            for name in (gemv, gemm, "aclblasGemvEx"):
                y = self.tensor(np.zeros((3, 1), result))
                stream, at = ctypes.c_void_p(self.stream), ctypes.c_void_p(y.memory)
                if name == gemv:
                    code = getattr(LIBRARY, name)(0, 3, 4, place["one"], place["a"], -1, place["x"], -1,
                                                  place["zero"], at, -1, 0, stream)
                elif name == gemm:
                    code = getattr(LIBRARY, name)(0, 0, 0, 3, 1, 4, place["one"], place["a"], -1, place["x"], -1,
                                                  place["zero"], at, -1, 0, stream)
                else:
                    kinds = DTYPES[dtype], DTYPES[result]
                    code = LIBRARY.aclblasGemvEx(0, 3, 4, place["one"], place["a"], -1, kinds[0], place["x"], -1,
                                                 kinds[0], place["zero"], at, -1, kinds[1], 0, stream)
                done(code)
                done(acl.rt.synchronize_stream(self.stream))
                self.assertTrue(np.array_equal(y.read(), (a @ x).astype(result)), name)

    def test_handles(self):
        self.make(3, 5, 7, HALF, HALF)
        self.make(3, 1, 7, HALF, HALF)
        self.make(3, 5, 7, INT8, INT32)
        self.make(3, 1, 7, INT8, INT32)
        for name, numbers, dtype, result in (
                ("GemmEx", (0, 0, 0, 3, 5, 7, HALF, HALF, HALF, 0), "float16", "float16"),
                ("Hgemm", (0, 0, 0, 3, 5, 7, 0), "float16", "float16"),
                ("S8gemm", (0, 0, 0, 3, 5, 7, 0), "int8", "int32"),
                ("GemvEx", (0, 3, 7, HALF, HALF, HALF, 0), "float16", "float16"),
                ("Hgemv", (0, 3, 7, 0), "float16", "float16"),
                ("S8gemv", (0, 3, 7, 0), "int8", "int32")):
            with self.subTest(name=name):
                handle = ctypes.c_void_p()
                create = getattr(LIBRARY, f"aclblasCreateHandleFor{name}")
                done(create(*numbers, ctypes.byref(handle)))
                columns = 5 if "gemm" in name.lower() else 1
                a, b = self.numbers((3, 7), dtype, 1), self.numbers((7, columns), dtype, 2)
                c = self.numbers((3, columns), result, 3)
                tensors = [self.tensor(each) for each in (a, b, c, np.array(1, result), np.array(2, result))]
                done(acl.op.execute_with_handle(handle.value, [each.buffer for each in tensors], [tensors[2].buffer],
                                                self.stream))
                done(acl.rt.synchronize_stream(self.stream))
                wide = a.astype(np.float64) @ b.astype(np.float64) + 2 * c.astype(np.float64)
                self.assertTrue(np.array_equal(tensors[2].read(), wide.astype(result)))
                acl.op.destroy_handle(handle.value)

    def test_a_matrix_in_blocks(self):
        """A in FRACTAL_NZ."""
        attr = acl.op.create_attr()
        done(acl.op.set_attr_bool(attr, "transpose_a", 0))
        done(acl.op.set_attr_bool(attr, "transpose_b", 0))
        a = self.numbers((2, 20), "float16", 1)
        padded = np.zeros((16, 32), np.float16)
        padded[:2, :20] = a
        stored = self.tensor(padded.reshape(1, 16, 2, 16).transpose(2, 0, 1, 3), fmt=NZ)
        done(acl.set_tensor_origin_shape(stored.desc, [2, 20]))
        b, c = self.tensor(self.numbers((20, 3), "float16", 2)), self.tensor(np.zeros((2, 3), np.float16))
        one = self.tensor(np.array(1, np.float16))
        done(acl.op.compile("GEMM", [stored.desc, b.desc, c.desc, one.desc, one.desc], [c.desc], attr, 0, 0, ""))
        done(LIBRARY.aclblasGemmEx(2, 0, 0, 2, 3, 20, ctypes.c_void_p(one.memory), ctypes.c_void_p(stored.memory), -1,
                                   HALF, ctypes.c_void_p(b.memory), -1, HALF, ctypes.c_void_p(one.memory),
                                   ctypes.c_void_p(c.memory), -1, HALF, 0, ctypes.c_void_p(self.stream)))
        done(acl.rt.synchronize_stream(self.stream))
        self.assertTrue(np.array_equal(c.read(), (a.astype(np.float64) @ b.read().astype(np.float64)).astype("float16")))
        acl.op.destroy_attr(attr)

    def test_what_is_refused(self):
        place = self.tensor(np.zeros(64, np.float32))
        p, none, stream = ctypes.c_void_p(place.memory), None, ctypes.c_void_p(self.stream)
        good = [0, 0, 0, 2, 2, 2, p, p, -1, FLOAT, p, -1, FLOAT, p, p, -1, FLOAT, 0, stream]
        for position, wrong, text in ((3, 0, "m, n and k are 0, 2 and 2"), (0, 3, "transA and transB"),
                                      (1, 9, "transA and transB"), (2, 1, "transC is 1"), (8, 2, "expected -1"),
                                      (11, 0, "expected -1"), (15, 0, "expected -1"), (17, 1, "type is 1"),
                                      (6, none, "null"), (7, none, "null"), (14, none, "null")):
            given = list(good)
            given[position] = wrong
            self.assertEqual(LIBRARY.aclblasGemmEx(*given), INVALID_PARAM, text)
            self.assertIn(text, acl.get_recent_err_msg())
        self.assertEqual(LIBRARY.aclblasCreateHandleForHgemm(0, 0, 0, 2, 2, 2, 0, None), INVALID_PARAM)


class OfflineOperators(Client):
    """`npumesh atc --singleop`, aclopSetModelDir and aclopLoad."""

    ADD = {"op": "Add", "input_desc": [{"format": "ND", "shape": [2, 3], "type": "float"},
                                       {"format": "ND", "shape": [3], "type": "float"}],
           "output_desc": [{"format": "ND", "shape": [2, 3], "type": "float"}]}
    NEG = {"op": "Neg", "name": "negated", "input_desc": [{"format": "ND", "shape": [-1], "type": "float16"}],
           "output_desc": [{"format": "ND", "shape": [-1], "type": "fp16"}]}
    SUM = {"op": "ReduceSum", "input_desc": [{"format": "ND", "shape": [2, 3], "type": "float"},
                                             {"format": "ND", "shape": [1], "type": "int64", "is_const": True,
                                              "const_value": [1]}],
           "output_desc": [{"format": "ND", "shape": [2], "type": "float"}],
           "attr": [{"name": "keep_dims", "type": "bool", "value": False}]}

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name

    def compile(self, name, *entries, flags=()):
        listed = os.path.join(self.folder, name + ".json")
        with open(listed, "w", encoding="utf-8") as file:
            json.dump(entries, file)
        target = os.path.join(self.folder, name)
        atc(f"--singleop={listed}", f"--output={target}", "--soc_version=Ascend910B1", *flags)
        return target

    def sum(self, axis):
        x, y = self.tensor(np.arange(6, dtype=np.float32).reshape(2, 3)), self.tensor(np.zeros(2, np.float32))
        axes = self.tensor(np.array([axis], np.int64))
        data = np.array([axis], np.int64).tobytes()
        done(acl.set_tensor_const(axes.desc, acl.util.bytes_to_ptr(data), len(data)))
        return [x, axes], [y]

    def test_a_folder_of_operators(self):
        target = self.compile("ops", self.ADD, self.NEG, self.SUM)
        self.assertEqual(sorted(os.listdir(target)), ["0_Add_0_2_2_3_0_2_3_0_2_2_3.om",
                                                      "2_ReduceSum_0_2_2_3_9_2_1_0_2_2.om", "negated.om"])
        deep = os.path.join(target, "one", "two", "three")
        os.makedirs(deep)
        os.rename(os.path.join(target, "negated.om"), os.path.join(target, "one", "two", "negated.om"))
        compile_add(target, "whole", (2, 3))
        done(acl.op.set_model_dir(target))
        self.assertEqual(acl.op.set_model_dir(target), REPEATED)
        x, w = self.tensor(np.ones((2, 3), np.float32)), self.tensor(np.ones(3, np.float32))
        y, attr = self.tensor(np.zeros((2, 3), np.float32)), attributes()
        done(acl.op.execute_v2(*words("Add", [x, w], [y], attr), self.stream))
        done(acl.rt.synchronize_stream(self.stream))
        self.assertEqual(y.read().tolist(), [[2.0] * 3] * 2)
        for size in (1, 7):
            h = self.tensor(np.ones(size, np.float16))
            done(acl.op.execute(*words("Neg", [h], [h], attr), self.stream))
            done(acl.rt.synchronize_stream(self.stream))
            self.assertEqual(h.read().tolist(), [-1.0] * size)
        self.refuse("Add", [w, w], [w], NOT_FOUND, "operator Add", acl.op.execute)
        inputs, outputs = self.sum(1)
        done(acl.op.execute_v2(*words("ReduceSum", inputs, outputs, attr), self.stream))  # keep_dims is false
        done(acl.rt.synchronize_stream(self.stream))
        self.assertEqual(outputs[0].read().tolist(), [3.0, 12.0])
        self.refuse("ReduceSum", *self.sum(0), NOT_FOUND, "ReduceSum", acl.op.execute_v2)  # another constant
        kept = acl.op.create_attr()
        done(acl.op.set_attr_bool(kept, "keep_dims", 1))
        self.refuse("ReduceSum", inputs, outputs, NOT_FOUND, "ReduceSum", acl.op.execute_v2, kept)
        acl.op.destroy_attr(attr)
        acl.op.destroy_attr(kept)

    def test_an_operator_from_memory(self):
        target = self.compile("one", self.NEG, flags=["--op_select_implmode=high_precision",
                                                      "--precision_mode=force_fp16"])
        with open(os.path.join(target, "negated.om"), "rb") as file:
            content = file.read()
        done(acl.op.load(acl.util.bytes_to_ptr(content), len(content)))
        h, attr = self.tensor(np.ones(5, np.float16)), attributes()
        done(acl.op.execute(*words("Neg", [h], [h], attr), self.stream))
        done(acl.rt.synchronize_stream(self.stream))
        self.assertEqual(h.read().tolist(), [-1.0] * 5)
        acl.op.destroy_attr(attr)

    def test_what_cannot_be_loaded(self):
        self.assertEqual(acl.op.set_model_dir(os.path.join(self.folder, "absent")), UNREADABLE)
        self.assertIn("absent", acl.get_recent_err_msg())
        self.assertEqual(LIBRARY.aclopSetModelDir(None), INVALID_PARAM)
        self.assertEqual(acl.op.load(0, 0), INVALID_PARAM)
        self.assertEqual(acl.op.load(acl.util.bytes_to_ptr(b"none"), 4), UNPARSED)
        whole = compile_add(self.folder, "graph", (2,))
        with open(whole, "rb") as file:
            content = file.read()
        self.assertEqual(acl.op.load(acl.util.bytes_to_ptr(content), len(content)), INVALID_PARAM)
        self.assertIn("a model, not a single operator", acl.get_recent_err_msg())
        broken = os.path.join(self.folder, "broken")
        os.makedirs(broken)
        with open(os.path.join(broken, "x.om"), "wb") as file:
            file.write(content[:-1])
        self.assertEqual(acl.op.set_model_dir(broken), UNPARSED)
        self.assertIn("x.om", acl.get_recent_err_msg())
        empty = os.path.join(self.folder, "empty")
        os.makedirs(empty)
        done(acl.op.set_model_dir(empty))  # what failed may be tried again

    def test_a_single_operator_runs_as_any_model(self):
        target = self.compile("run", self.ADD)
        ran = subprocess.run([os.environ["NPUMESH_COMMAND"], "run",
                              os.path.join(target, "0_Add_0_2_2_3_0_2_3_0_2_2_3.om")], capture_output=True, text=True,
                             env=case.plain_environment())
        self.assertEqual(ran.returncode, 0, ran.stderr)


if __name__ == "__main__":
    case.main()
