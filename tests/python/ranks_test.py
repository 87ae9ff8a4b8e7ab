"""The Python package on several ranks, started by mpirun; rank_program.py is what a rank does."""

import os
import subprocess
import sys
import tempfile
import unittest

import case

if case.numpy is not None:
    import npumesh

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rank_program.py")


class Ranks(unittest.TestCase):
    def start(self, size, *words, code=0):
        """What the ranks print. Without mpirun (size 0) this is a world of one rank."""
        start = [*case.mpirun(), "-n", str(size)] if size else []
        done = subprocess.run([*start, sys.executable, PROGRAM, *words], capture_output=True,
                              text=True, timeout=1200, env=case.plain_environment(), check=False)
        output = done.stdout + done.stderr
        if code is not None:
            self.assertEqual(done.returncode, code, output)
        return output

    def test_collectives(self):
        for size in (0, 2, 3):
            with self.subTest(size=size):
                self.assertEqual(self.start(size, "collectives").count("good"), max(size, 1))

    def test_messages_groups_and_what_is_refused(self):
        for size in (2, 4):
            with self.subTest(size=size):
                self.assertEqual(self.start(size, "more").count("good"), size)

    def test_a_graph_that_communicates(self):
        self.assertEqual(self.start(2, "graph").count("good"), 2)

    def test_a_failed_graph_does_not_fail_the_next(self):
        for size in (2, 4):
            with self.subTest(size=size):
                self.assertEqual(self.start(size, "failed_graphs").count("good"), size)

    def test_ranks_that_differ_read_the_same_words(self):
        said = {line.partition("saw: ")[2] for line in self.start(2, "mismatch").splitlines()
                if "saw: " in line}
        self.assertEqual(len(said), 1, said)
        self.assertIn("count", said.pop())

    def test_an_exception_in_a_with_block_is_told(self):
        output = self.start(2, "leave", code=None)
        self.assertRegex(output, r"rank 1 saw: .*KeyError: 'what rank 0 lacks'")

    def test_an_exception_that_ends_the_program_is_told(self):
        output = self.start(2, "leave_at_exit", code=None)
        self.assertRegex(output, r"rank 1 saw: .*KeyError: 'what rank 0 lacks'")

    def test_a_world_that_is_not_closed_ends_in_order(self):
        # The two lines may come in pieces, one between the others of the other rank.
        self.assertEqual(self.start(2, "at_exit").count("size 2"), 2)

    def test_one_world_after_another(self):
        for size in (0, 2):
            with self.subTest(size=size):
                self.assertEqual(self.start(size, "worlds").count("good"), max(size, 1))

    def test_a_flight_record(self):
        with tempfile.TemporaryDirectory() as folder:
            self.start(2, "record", folder)
            said = npumesh.read_records(folder)
            self.assertEqual((said["verdict"], said["world_size"]), ("good", 2))
            self.assertEqual([rank["end"] for rank in said["ranks"]], ["orderly", "orderly"])
            with self.assertRaises(npumesh.NpumeshError) as caught:
                npumesh.read_records(os.path.join(folder, "nothing"))
            self.assertEqual(caught.exception.exit_code, 3)

    def test_a_profile(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "prof")
            self.start(2, "profile", path)
            found = [name for _, _, files in os.walk(path) for name in files]
            self.assertTrue({"rank_0.npprof", "rank_1.npprof"} <= set(found), found)


if __name__ == "__main__":
    case.main()
