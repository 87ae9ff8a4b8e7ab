"""Dumps, profiles, records, comparisons and questions about operators from Python."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import case
from air_text import AirText
from case import numpy as np

if np is not None:
    import npumesh


def two_steps():
    """y = -(x + x)."""
    graph = AirText("steps")
    x = graph.data("x", "float32", (3,))
    double = graph.op("Add", {"x1": x, "x2": x}, "float32", (3,), name="double")
    return graph.output(graph.op("Neg", {"x": double}, "float32", (3,), name="turn")).text()


def files_below(folder):
    return sorted(name for _, _, names in os.walk(folder) for name in names)


class Tools(unittest.TestCase):
    def setUp(self):
        self.world = npumesh.World(case.SMALL)
        self.addCleanup(self.world.close)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def made(self, name):
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        return path

    def dumped(self, name, values, **keywords):
        path = self.made(name)
        with self.world.load(two_steps(), dump=path, **keywords) as model:
            model.run(np.float32(values))
        return path

    def test_dumps_that_part(self):
        first = self.dumped("first", [1, 2, 3])
        self.assertTrue(any(name.startswith("Add.double.") for name in files_below(first)))
        same = self.dumped("same", [1, 2, 3])
        other = self.dumped("other", [1, 2, 4])
        out = self.made("out")
        self.assertEqual(npumesh.compare_dumps(same, first, out=out)["verdict"], "same")
        said = npumesh.compare_dumps(other, first, out=out)
        self.assertEqual((said["verdict"], said["exit_code"]), ("differ", 1))
        self.assertEqual(said["comparisons"][0]["first"]["operator"], "x")
        near = npumesh.compare_dumps(other, first, out=out, rtol=1, step=0)
        self.assertEqual(near["verdict"], "same")
        with self.assertRaises(npumesh.NpumeshError) as caught:
            npumesh.compare_dumps(first, os.path.join(self.folder, "nothing"), out=out)
        self.assertEqual(caught.exception.exit_code, 3)
        with self.assertRaises(npumesh.NotFoundError):
            with_command("/nothing/npumesh", lambda: npumesh.compare_dumps(first, first))
        with self.assertRaises(npumesh.WaitTimeoutError):
            npumesh.compare_dumps(first, first, out=out, timeout=1e-6)

    def test_a_dump_of_some_operators(self):
        path = self.made("some")
        options = npumesh.dump_options(path, mode="output", steps="1", layers=["turn"])
        with self.world.load(two_steps(), options) as model:
            for _ in range(3):
                model.run(np.zeros(3, np.float32))
        dumped = [name for name in files_below(path) if name.startswith(("Add.", "Neg."))]
        self.assertEqual(len(dumped), 1)
        self.assertTrue(dumped[0].startswith("Neg.turn."))

    def test_the_vendors_configuration(self):
        path = self.made("vendor")
        config = {"dump": {"dump_path": path, "dump_mode": "output", "dump_list": []}}
        self.world.set_dump(config)
        with self.world.load(two_steps()) as model:
            model.run(np.zeros(3, np.float32))
        count = len(files_below(path))
        self.assertGreater(count, 1)
        self.world.set_dump(None)
        with self.world.load(two_steps()) as model:
            model.run(np.zeros(3, np.float32))
        self.assertEqual(len(files_below(path)), count)
        file = os.path.join(self.folder, "dump.json")
        with open(file, "w", encoding="utf-8") as stream:
            json.dump(config, stream)
        self.world.set_dump(file)
        with self.world.load(two_steps()) as model:
            model.run(np.zeros(3, np.float32))
        self.assertGreater(len(files_below(path)), count)
        with self.assertRaises(npumesh.NpumeshError):
            self.world.set_dump(file + ".not")
        with self.assertRaisesRegex(npumesh.NpumeshError, "dump_mode"):
            self.world.set_dump({"dump": {"dump_path": path, "dump_mode": "some"}})

    def test_a_dump_path_that_is_missing(self):
        with self.assertRaisesRegex(npumesh.NpumeshError, "dump_path"):
            self.world.load(two_steps(), dump=os.path.join(self.folder, "missing"))

    def test_folders_of_eager_dumps(self):
        folders = []
        for name, values in (("a", [1, 2, 3]), ("b", [1, 2, 3]), ("c", [1, 2, 5])):
            folders.append(self.made(name))
            with self.world.load(two_steps(), {"debug.data_dump.type": "npy",
                                               "debug.data_dump.path": folders[-1]}) as model:
                model.run(np.float32(values))
        a, b, c = folders
        same = npumesh.compare_folders(a, b)
        self.assertTrue(same, same)
        self.assertEqual(len(same.files), 5)
        differ = npumesh.compare_folders(c, a)
        self.assertIn("double-Add.INPUT", differ.first)
        self.assertIn("1 of 3 elements differ", differ.files[differ.first].reason)

    def test_profiles(self):
        path = os.path.join(self.folder, "prof")
        with self.world.profile(path):
            self.world.load(two_steps()).run(np.zeros(3, np.float32))
            with self.assertRaisesRegex(npumesh.InvalidArgumentError, "profile"):
                with self.world.profile(path):
                    pass
        self.assertIn("rank_0.npprof", files_below(path))
        with self.assertRaises(ZeroDivisionError):
            with self.world.profile(path + "2"):
                raise ZeroDivisionError
        with self.world.profile(path + "3"):  # the one before has ended
            pass

    def test_operators(self):
        types = npumesh.operators()
        self.assertEqual(list(types), sorted(types))
        self.assertGreater(len(types), 300)
        for kind in types:
            told = npumesh.operator(kind)
            self.assertEqual(told.type, kind)
            for field in told.inputs + told.outputs:
                self.assertIn(field.kind, ("required", "optional", "dynamic"))
            for field in told.attrs:
                self.assertTrue(field.kind.startswith("VT_"), field)


class Finding(unittest.TestCase):
    """Which library the package takes."""

    def ask(self, **environment):
        done = subprocess.run(
            [sys.executable, "-m", "npumesh"], env={**os.environ, **environment}, text=True,
            capture_output=True, timeout=1200, check=False)
        self.assertEqual(done.returncode, 0 if done.stdout else 3, done.stderr)
        return done.stdout.strip().partition(": ")[2], done.stderr

    def test_the_one_that_is_named(self):
        named = os.environ["NPUMESH_LIBRARY"]
        self.assertEqual(self.ask()[0], named)
        self.assertIn("NPUMESH_LIBRARY", self.ask(NPUMESH_LIBRARY="/nothing/libnpumesh.so")[1])

    def test_another_library_is_no_npumesh(self):
        self.assertIn("is no libnpumesh.so", self.ask(NPUMESH_LIBRARY="libc.so.6")[1])

    def test_beside_the_package(self):
        package = os.path.dirname(npumesh.__file__)
        with tempfile.TemporaryDirectory() as prefix:
            home = os.path.join(prefix, "lib", "python3", "dist-packages")
            os.makedirs(home)
            library = os.path.join(prefix, "lib", "libnpumesh.so.1")
            os.symlink(os.environ["NPUMESH_LIBRARY"], library)
            os.mkdir(os.path.join(home, "npumesh"))
            for name in os.listdir(package):
                if name.endswith(".py"):
                    os.symlink(os.path.join(package, name), os.path.join(home, "npumesh", name))
            path, complaint = self.ask(PYTHONPATH=home, NPUMESH_LIBRARY="")
            self.assertEqual(path, library, complaint)


def with_command(path, call):
    before = os.environ.get("NPUMESH_COMMAND")
    os.environ["NPUMESH_COMMAND"] = path
    try:
        return call()
    finally:
        if before is None:
            del os.environ["NPUMESH_COMMAND"]
        else:
            os.environ["NPUMESH_COMMAND"] = before


if __name__ == "__main__":
    case.main()
