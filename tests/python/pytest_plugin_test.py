"""npumesh.pytest: a project's tests on several ranks, and with torch_npu in the place of a mock."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

import case
from docs_test import PAGE, blocks_in

RANKS = '''
import os
import numpy as np
import pytest

def test_one(npumesh_world):
    assert npumesh_world.size == 1

@pytest.mark.npumesh(ranks=3)
@pytest.mark.parametrize("count", [1, 5])
def test_sum(npumesh_world, count, tmp_path):
    total = npumesh_world.all.all_reduce(np.full(count, npumesh_world.rank, np.float32))
    assert total.tolist() == [3.0] * count

@pytest.mark.npumesh(ranks=2)
def test_skipped(npumesh_world):
    pytest.skip("not today")

@pytest.mark.npumesh(ranks=2)
def test_wrong_on_one(npumesh_world):
    assert npumesh_world.rank == 0
    npumesh_world.barrier()

@pytest.mark.npumesh(ranks=2)
def test_differ(npumesh_world):
    npumesh_world.all.all_reduce(np.ones(2 + npumesh_world.rank, np.float32))

@pytest.mark.npumesh(ranks=2)
def test_killed(npumesh_world):
    if npumesh_world.rank == 1:
        os.kill(os.getpid(), 9)
    npumesh_world.barrier()

@pytest.mark.npumesh(ranks=2, timeout=5)
def test_sleeps(npumesh_world):
    import time
    time.sleep(600)

class TestMore:
    @pytest.mark.npumesh(ranks=2)
    def test_in_a_class(self, npumesh_world, capsys):
        assert npumesh_world.all.all_gather(np.int32(npumesh_world.rank)).tolist() == [0, 1]
'''

# What projects put in the place of torch_npu, and a module that imports torch_npu when it is collected.
MOCKING = '''
import sys
from unittest.mock import MagicMock
sys.modules["torch_npu"] = MagicMock()
'''
MOCKED = '''
import torch
import torch_npu

def test_there():
    x = torch.tensor([[1.0, 2.0]]).npu()
    assert torch_npu.npu_swiglu(x).cpu().shape == (1, 1)

def test_not_there():
    torch_npu.npu_of_next_year(1)
'''


def words_of(done):
    return done.stdout + done.stderr


class Plugin(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def pytest(self, *words, **files):
        for name, text in files.items():
            with open(os.path.join(self.folder, name + ".py"), "w", encoding="utf-8") as file:
                file.write(text)
        return subprocess.run([sys.executable, "-m", "pytest", "-p", "npumesh.pytest", *words], cwd=self.folder,
                              env=case.plain_environment(), capture_output=True, text=True, timeout=900,
                              check=False, stdin=subprocess.DEVNULL)

    def test_ranks(self):
        done = self.pytest("-v", "-rs", test_ranks=RANKS)
        said = words_of(done)
        self.assertEqual(done.returncode, 1, said)
        self.assertIn("4 failed, 4 passed, 1 skipped", said)
        self.assertIn("not today", said)
        for line in ("rank 1 of 2: assert 1 == 0",
                     "rank 0 of 2: npumesh.errors.PeerLostError: rank 1 failed: test_wrong_on_one: assert 1 == 0",
                     "rank 1 of 2: ended by SIGKILL", "rank 0, 1 of 2: ended by SIGKILL"):
            self.assertIn(line, said)
        # The rank that is the cause stands before those that lost it.
        self.assertLess(said.index("rank 1 of 2: assert 1 == 0"), said.index("rank 1 failed: test_wrong_on_one"))
        self.assertIn("count differs: rank 1 has 3", said)

    def test_the_example_of_the_page(self):
        with open(PAGE, encoding="utf-8") as file:
            (_, code, _), = blocks_in(file.read(), "python_pytest_plugin")
        done = self.pytest(test_ranks=code)
        self.assertEqual(done.returncode, 0, words_of(done))

    def test_a_wrong_mark_is_told(self):
        said = words_of(self.pytest(test_ranks='import pytest\n@pytest.mark.npumesh(ranks="four")\n'
                                               'def test_it(npumesh_world): pass\n'))
        self.assertIn("mark npumesh: ranks is 'four'; expected a number from 1 on", said)

    def test_torch_npu_in_the_place_of_a_mock(self):
        if importlib.util.find_spec("torch") is None:
            self.skipTest("torch is not installed (launch/install_deps --torch)")
        done = self.pytest("--npumesh-torch-npu", conftest=MOCKING, test_npu=MOCKED)
        said = words_of(done)
        self.assertEqual(done.returncode, 1, said)
        self.assertIn("1 failed, 1 passed", said)
        self.assertIn("npumesh: torch_npu lacks npu_of_next_year (1 test, first test_npu.py::test_not_there)", said)
        self.assertIn("torch_npu: of npumesh, ", said)
        # Without the option the mock takes everything, also what there is not.
        without = self.pytest("-k", "not_there")
        self.assertIn("1 passed", words_of(without))


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        case.run_in_venv()
    if importlib.util.find_spec("pytest") is None:
        print("SKIPPED: pytest is not installed (python3-pytest)")
        sys.exit(case.SKIPPED)
    case.main()
