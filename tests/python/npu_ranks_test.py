"""The backend "hccl" of torch.distributed on ranks that mpirun starts, and that do not come by it."""

import os
import subprocess
import sys
import unittest

import case
import npu_case

EXCHANGES = ("exchanges", "exchange_then_few_bits", "few_bits_in_blocks", "few_bits_then_exchange",
             "expert_products", "refused_few_bits")

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "npu_rank_program.py")
LAYER = os.path.join(HERE, "npu_layer_program.py")


class Ranks(unittest.TestCase):
    def start(self, words, *program, **environment):
        done = subprocess.run([*words, sys.executable, *program], capture_output=True, text=True,
                              timeout=1200, env=case.plain_environment(**environment), check=False)
        return done.returncode, done.stdout + done.stderr

    def passes(self, size, words, *cases):
        code, output = self.start(words, PROGRAM, *cases)
        self.assertEqual(code, 0, output)
        for each in cases:
            for rank in range(size):
                self.assertIn(f"passed {each} {rank}", output)

    def mpirun(self, size, *cases):
        self.passes(size, [*case.mpirun(), "-n", str(size)], *cases)

    def test_two_ranks(self):
        self.mpirun(2, "reductions", "moves", "peers", "groups", "training", "captured", "cores",
                    "products", "experts", "refusals", "mismatch")

    def test_exchanges_around_products(self):
        for size in (2, 4):
            with self.subTest(size=size):
                self.mpirun(size, *EXCHANGES)

    def test_three_ranks(self):
        self.mpirun(3, "reductions", "moves", "peers", "groups", "captured")

    def test_four_ranks(self):
        self.mpirun(4, "reductions", "moves", "peers", "groups", "products", "experts")

    def test_npumesh_launch_starts_them_too(self):
        command = os.environ.get("NPUMESH_COMMAND", "")
        if not os.path.exists(command):
            self.skipTest("there is no command npumesh")
        self.passes(2, [command, "launch", "-n", "2", "--"], "reductions", "peers")

    def test_a_decoder_layer_on_two_ranks_equals_plain_torch(self):
        code, output = self.start([*case.mpirun(), "-n", "2"], LAYER)
        self.assertEqual(code, 0, output)
        self.assertEqual(output.count("equal"), 2, output)

    def test_ranks_that_mpi_did_not_start_are_refused(self):
        code, output = self.start([], "-c", "import torch_npu, torch.distributed as dist\n"
                                  "dist.init_process_group('hccl', store=dist.HashStore(), rank=0, "
                                  "world_size=2)")
        self.assertNotEqual(code, 0)
        self.assertIn("start them by mpirun or npumesh launch", output)


if __name__ == "__main__":
    npu_case.main()
