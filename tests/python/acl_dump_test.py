"""Dumps of operators that run by themselves: single operators and functions of aclnn, as the file of aclmdlSetDump or
aclInit says."""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import unittest

import case
from acl_client import Model, compile_add, done, taken
from case import numpy as np

if np is None:
    case.main()

import acl
import aclnn_client
from acl_op_test import Tensor

SIGNATURES = aclnn_client.signatures()


def payload(path):
    """The tensors of a dump file: inputs and outputs, in order."""
    with open(path, "rb") as file:
        data = file.read()
    return data[8 + int.from_bytes(data[:8], "little"):]


class OperatorDumps(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.session = aclnn_client.Session()

    def tearDown(self):
        self.session.close()
        self.folder.cleanup()

    def config(self, name="dumped", **more):
        place = os.path.join(self.folder.name, name)
        os.makedirs(place)
        path = place + ".json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"dump": {"dump_path": place, **more}}, file)
        return place, path

    def add(self, x, y):
        code, results = self.session.call("aclnnAdd", SIGNATURES["aclnnAdd"], [x, y, 2.0, np.zeros_like(x)])
        self.assertEqual(code, 0, self.session.words())
        return results[0]

    def negate(self, x):
        tensor = Tensor(x)
        attr = acl.op.create_attr()
        done(acl.op.compile_and_execute("Neg", [tensor.desc], [tensor.buffer], [tensor.desc], [tensor.buffer], attr, 0,
                                        0, "", self.session.stream))
        done(acl.rt.synchronize_stream(self.session.stream))
        acl.op.destroy_attr(attr)
        tensor.close()

    @staticmethod
    def files(place):
        """Dump files by the type of their operator."""
        found = {}
        for folder, _, names in os.walk(place):
            for name in names:
                if not name.startswith("manifest"):
                    found.setdefault(name.split(".")[0], []).append(os.path.join(folder, name))
        return found

    def test_they_are_on_the_disk_when_the_stream_is_synchronized(self):
        place, config = self.config(dump_mode="all", dump_op_switch="on", dump_list=[])
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        y = x * x
        self.add(x, y)
        self.assertEqual(self.files(place), {})
        done(acl.mdl.set_dump(config))
        for turn in range(1, 4):
            self.assertEqual(self.add(x, y + turn).tolist(), (x + 2 * (y + turn)).tolist())
            names = {os.path.basename(path) for paths in self.files(place).values() for path in paths}
            self.assertEqual(sorted({name.split(".")[1] for name in names}), ["aclnnAdd_0_Mul", "aclnnAdd_1_Add"])
            tasks = [int(name.split(".")[2]) for name in names]
            self.assertEqual(len(tasks), len(set(tasks)), names)  # each is a separate task
        whole = b"".join(payload(path) for paths in self.files(place).values() for path in paths)
        for array in (x, y + 1, x + 2 * (y + 1), x + 2 * (y + 3)):
            self.assertIn(array.tobytes(), whole)
        self.negate(y)
        (path,) = self.files(place)["Neg"]
        self.assertEqual(payload(path), y.tobytes() + (-y).tobytes())
        self.assertRegex(os.path.basename(path), r"^Neg\.\w+\.\d+\.0\.\d{16}$")
        done(acl.mdl.finalize_dump())
        before = self.files(place)
        self.add(x, y)
        self.negate(y)
        self.assertEqual(self.files(place), before)

    def test_models_are_not_theirs(self):
        place, config = self.config(dump_mode="all", dump_op_switch="on", dump_list=[])
        done(acl.mdl.set_dump(config))
        model = taken(acl.mdl.load_from_file(compile_add(self.folder.name, "model", [2, 2])))
        loaded = Model(model)
        done(acl.mdl.execute(model, loaded.inputs, loaded.outputs))
        loaded.close()
        self.assertEqual(self.files(place), {})

    def test_a_callback_takes_them(self):
        place, config = self.config(dump_mode="output", dump_op_switch="on", dump_list=[])
        chunks = []

        def take(chunk):
            chunks.append((chunk["file_name"], ctypes.string_at(chunk["data_buf"], chunk["buf_len"])))

        done(acl.mdl.dump_reg_callback(take, 0))
        done(acl.mdl.set_dump(config))
        x = np.arange(8, dtype=np.float32)
        self.negate(x)
        mine = [data for name, data in chunks if os.path.basename(name).startswith("Neg.")]
        self.assertTrue(b"".join(mine).endswith((-x).tobytes()))
        done(acl.mdl.finalize_dump())
        acl.mdl.dump_unreg_callback()
        self.assertEqual(self.files(place), {})

    def test_statistics_in_place_of_tensors(self):
        place, config = self.config(dump_mode="output", dump_op_switch="on", dump_list=[], dump_data="stats",
                                    dump_stats=["Max", "Min"])
        done(acl.mdl.set_dump(config))
        self.negate(np.arange(8, dtype=np.float32))
        (path,) = self.files(place)["Neg"]
        with open(path, encoding="utf-8") as file:
            heads, values = [[cell.strip() for cell in line.split(",")] for line in file.read().splitlines()[-2:]]
        row = dict(zip(heads, values))
        self.assertEqual((float(row["Max Value"]), float(row["Min Value"])), (0, -7))

    def test_one_that_fails_is_an_exception_dump(self):
        place, config = self.config(dump_scene="aic_err_norm_dump")
        done(acl.mdl.set_dump(config))
        x = np.arange(4, dtype=np.float32)
        self.add(x, x)
        self.assertEqual(self.files(place), {})
        name = "aclnnGather"
        code, _ = self.session.call(name, SIGNATURES[name], [x, 0, np.array([7], np.int64), np.zeros(1, np.float32)])
        self.assertNotEqual(code, 0)
        files = self.files(place)
        self.assertEqual(len(files), 1, files)
        (paths,) = files.values()
        self.assertIn("extra-info/data-dump/0", paths[0])

    def test_the_file_of_init_says_so_too(self):
        place, config = self.config(dump_mode="output", dump_op_switch="on", dump_list=[])
        for turn in range(2):  # aclFinalize ends it
            with self.subTest(turn=turn):
                program = os.path.abspath(__file__)
                ran = subprocess.run([sys.executable, program, "--program", config], capture_output=True, text=True)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertEqual(len(self.files(place)["Neg"]), turn + 1)


def program(config):
    """Dumps one Neg, and after aclFinalize and aclInit without a file none."""
    for file in (config, None):
        done(acl.init(file) if file else acl.init())
        done(acl.rt.set_device(0))
        stream = taken(acl.rt.create_stream())
        tensor, attr = Tensor(np.ones(3, np.float32)), acl.op.create_attr()
        done(acl.op.compile_and_execute("Neg", [tensor.desc], [tensor.buffer], [tensor.desc], [tensor.buffer], attr, 0,
                                        0, "", stream))
        done(acl.rt.synchronize_stream(stream))
        done(acl.finalize())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--program"]:
        program(sys.argv[2])
    else:
        case.main()
