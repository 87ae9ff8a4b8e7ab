"""npu_bridge: scripts that start and end a system through a session of TensorFlow."""

import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

import case

TESTS = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.join(os.path.dirname(os.path.dirname(TESTS)), "python")
STAND_IN = os.path.join(PACKAGES, "npu_bridge", "stand_in")

# A session for the system, before a training.
HEAD = """
import tensorflow as tf
from npu_bridge.npu_init import *

start, end = npu_ops.initialize_system(), npu_ops.shutdown_system(name="end")
config = tf.ConfigProto(allow_soft_placement=True)
npu = config.graph_options.rewrite_options.custom_optimizers.add()
npu.name = "NpuOptimizer"
npu.parameter_map["use_off_line"].b = True
config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
"""
BEFORE = HEAD + """
before = tf.Session(config=config)
assert before.run(start) is None
# One write, because mpirun joins what its ranks write.
print(f"rank {get_rank_id()} of {get_rank_size()} "
      f"local {get_local_rank_id()} of {get_local_rank_size()}\\n", end="", flush=True)
before.run(end)
before.close()
"""


def groups_script(size):
    return HEAD + f"""
import numpy as np
from npu_bridge.system import SYSTEM
from hccl.manage import api

with tf.Session(config=config) as session:
    session.run([start])
    last = list(reversed(range({size})))
    api.create_group("turned", {size}, last)
    rank = api.get_rank_id()
    assert api.get_rank_id("turned") == {size} - 1 - rank
    assert api.get_local_rank_id("turned") == {size} - 1 - rank
    assert api.get_rank_size("turned") == api.get_local_rank_size("turned") == {size}
    assert api.get_world_rank_from_group_rank("turned", 0) == {size} - 1
    assert api.get_group_rank_from_world_rank(0, "turned") == {size} - 1
    assert SYSTEM.world.all.all_reduce(np.int32(1)) == {size}
    for wrong in (lambda: api.create_group("turned", {size}, last),
                  lambda: api.create_group("other", {size} + 1, last),
                  lambda: api.get_rank_size("other"),
                  lambda: api.destroy_group("hccl_world_group"),
                  lambda: api.get_world_rank_from_group_rank("turned", {size}),
                  lambda: api.get_group_rank_from_world_rank({size}, "turned")):
        try:
            wrong()
        except ValueError as error:
            continue
        raise AssertionError("this was to be refused")
    api.destroy_group("turned")
    session.run({{"end": end}})
print("good\\n", end="", flush=True)
"""


class Scripts(unittest.TestCase):
    def run_script(self, script, size=0, path=(STAND_IN, PACKAGES), code=0):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "script.py")
            with open(file, "w", encoding="utf-8") as stream:
                stream.write(script)
            start = [*case.mpirun(), "-n", str(size)] if size else []
            done = subprocess.run(
                [*start, sys.executable, file], cwd=folder, text=True, capture_output=True,
                timeout=1200, check=False,
                # On some hosts Open MPI 5 says that an interface reaches no other.
                env=case.plain_environment(PYTHONPATH=os.pathsep.join(path), OMPI_MCA_btl="^tcp",
                                           **case.SMALL))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_a_system_before_the_training(self):
        self.assertEqual(self.run_script(BEFORE), "rank 0 of 1 local 0 of 1\n")

    def test_on_two_ranks(self):
        if not case.mpirun():
            self.skipTest("this build has no tests with mpirun")
        lines = sorted(self.run_script(BEFORE, 2).splitlines())
        self.assertEqual(lines, [f"rank {rank} of 2 local {rank} of 2" for rank in range(2)])

    def test_groups(self):
        for size in (0, 2) if case.mpirun() else (0,):
            with self.subTest(size=size):
                self.assertEqual(self.run_script(groups_script(max(size, 1)), size).split(),
                                 ["good"] * max(size, 1))

    def test_options_reach_the_system(self):
        good = HEAD + """
import os
os.mkdir("dump")
npu.parameter_map["enable_dump"].b = True
npu.parameter_map["dump_path"].s = tf.compat.as_bytes("dump")
npu.parameter_map["graph_run_mode"].i = 0
npu.parameter_map["precision_mode"].s = "force_fp32"
with tf.Session(config=config) as session:
    session.run(start)
    session.run(start)  # the same options again
    npu.parameter_map["graph_run_mode"].i = 1
    try:
        session.run(start)
    except ValueError as error:
        print(error)
    session.run(end)
"""
        output = self.run_script(good)
        self.assertIn("graph_run_mode was 0 before, seen 1", output)
        for name, field, value, words in (
                ("graph_run_mode", "i", "7", "session.graph_run_mode"),
                ("dump_pth", "s", "'x'", "session.dump_path"),
                ("enable_dump", "b", "True", "dump_path"),
                ("precision_mode", "s", "'coarse'", "precision_mode")):
            bad = HEAD + f"""
npu.parameter_map["{name}"].{field} = {value}
tf.Session(config=config).run(start)
"""
            self.assertIn(words, self.run_script(bad, code=1))

    def test_order(self):
        for script, words in (
                ("tf.Session().run(end)", "there is no system"),
                ("get_rank_size()", "there is no system"),
                ("s = tf.Session()\ns.run(start)\ns.run(end)\nget_rank_id()", "there is no system"),
                ("s = tf.Session()\ns.close()\ns.run(start)", "closed Session"),
                ("tf.Session().run(5)", "seen int"),
                ("tf.Session().run(start, feed_dict={1: 2})", "feed_dict"),
                ("npu.parameter_map['x'].b = 1", "field b: seen 1"),
                ("npu.parameter_map['x'].i = True", "field i: seen True"),
                ("npu.parameter_map['x'].z = 1", "no field z")):
            with self.subTest(script=script):
                self.assertIn(words, self.run_script(HEAD + script, code=1))

    def test_a_system_starts_again_and_need_not_be_ended(self):
        self.run_script(HEAD + "s = tf.Session()\nfor op in (start, end, start): s.run(op)\n")

    def test_without_tensorflow_in_the_path(self):
        script = "from npu_bridge.npu_init import *\nimport tensorflow as tf\n" + BEFORE
        self.assertIn("rank 0 of 1", self.run_script(script, path=(PACKAGES,)))

    def test_an_installed_tensorflow_comes_first(self):
        """Here one of a few lines: the stand-in must make room, and its operations must run."""
        with tempfile.TemporaryDirectory() as folder:
            package = os.path.join(folder, "tensorflow")
            os.makedirs(os.path.join(package, "core", "protobuf"))
            files = {
                "__init__.py": "from . import compat\nint64 = 'int64'\nbuilder = 'another'\n"
                               "class Session:\n"
                               "    def run(self, fetch):\n"
                               "        return fetch()\n",
                "compat.py": "class v1:\n"
                             "    @staticmethod\n"
                             "    def py_func(call, inputs, kind, name):\n"
                             "        assert (inputs, kind, name) == ([], 'int64', name)\n"
                             "        return call\n",
                "core/__init__.py": "",
                "core/protobuf/__init__.py": "",
                "core/protobuf/rewriter_config_pb2.py": "class RewriterConfig:\n    OFF = 2\n",
            }
            for name, content in files.items():
                with open(os.path.join(package, name), "w", encoding="utf-8") as file:
                    file.write(content)
            script = """
import tensorflow as tf
import tensorflow.compat
from npu_bridge.npu_init import *
assert tf.builder == "another" and RewriterConfig.OFF == 2
assert tf.Session().run(npu_ops.initialize_system()) == 0
print(get_rank_size())
assert tf.Session().run(npu_ops.shutdown_system("end")) == 0
"""
            self.assertEqual(self.run_script(script, path=(STAND_IN, PACKAGES, folder)), "1\n")

    def test_the_scripts_of_the_vendors_page(self):
        """As printed; the page is not part of this repository."""
        pages = glob.glob(os.path.join(os.environ.get("NPUMESH_SHARED_DIR", ""), "seeds", "003_*"))
        if not pages:
            self.skipTest("the page of initialize_system is not in NPUMESH_SHARED_DIR")
        with open(pages[0], encoding="utf-8") as file:
            text = file.read()
        scripts = re.findall(r"^import tensorflow as tf$.*?(?:^init_sess\.close\(\)$|\Z)", text,
                             re.M | re.S)
        self.assertEqual(len(scripts), 2)
        for script in scripts:
            self.assertIn("npu_shutdown", script)
            for size in (0, 2) if case.mpirun() else (0,):
                self.assertEqual(self.run_script(script, size), "")


if __name__ == "__main__":
    unittest.main()
