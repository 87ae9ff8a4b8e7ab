"""`npumesh python`: the script, its words, its exit code, and what it finds beside it."""

import os
import subprocess
import sys
import tempfile
import unittest

import case

COMMAND = os.environ.get("NPUMESH_COMMAND", "")


def clean(**more):
    """An environment that says nothing of npumesh's packages."""
    kept = case.plain_environment(**more)
    for name in ("PYTHONPATH", "NPUMESH_LIBRARY", "NPUMESH_COMMAND", "NPUMESH_TORCHAIR"):
        if name not in more:
            kept.pop(name, None)
    return kept


class PythonCommand(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_command(self, *words, launch=(), **environment):
        done = subprocess.run([COMMAND, *launch, "python", *words], capture_output=True, text=True,
                              timeout=1200, check=False, cwd=self.folder, env=clean(**environment),
                              stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_words_after_the_script_are_the_scripts(self):
        self.write("s.py", "import sys\nprint(sys.argv[1:])\nsys.exit(9)\n")
        words = ["-h", "--torchair", "x", "--", "a b", "", "--python=y"]
        self.assertEqual(self.run_command("s.py", *words), (9, f"{words}\n", ""))
        self.assertEqual(self.run_command("--", "s.py", *words), (9, f"{words}\n", ""))
        self.assertEqual(self.run_command("--python", "python3", "--", "s.py", "--"),
                         (9, "['--']\n", ""))
        self.assertEqual(self.run_command("--vendor", "--", "s.py", "--"), (9, "['--']\n", ""))

    def test_code_and_modules(self):
        self.assertEqual(self.run_command("-c", "print(6 * 7)"), (0, "42\n", ""))
        self.write("tool.py", "print(__name__)\n")
        self.assertEqual(self.run_command("-m", "tool"), (0, "__main__\n", ""))

    def test_ranks_run_the_python_of_the_path(self):
        program = self.write("venv/python3", f'#!/bin/sh\nWHICH=venv exec {sys.executable} "$@"\n')
        os.chmod(program, 0o755)
        path = os.path.dirname(program) + os.pathsep + os.environ["PATH"]
        code = ["-c", "import os; print(os.environ.get('WHICH'))"]
        self.assertEqual(self.run_command(*code, PATH=path), (0, "venv\n", ""))
        self.assertEqual(self.run_command(*code, NPUMESH_PYTHON=program), (0, "venv\n", ""))
        launched = self.run_command(*code, launch=("launch", "-n", "2", "--"), PATH=path)
        self.assertEqual((launched[0], launched[1].count("venv")), (0, 2), launched)

    def test_the_packages_and_their_library_are_found(self):
        code, output, error = self.run_command(
            "-c", "import npumesh, npu_bridge, os\n"
            "with npumesh.World(NPUMESH_HBM_SIZE='16M') as world: print(world.size)\n"
            "print(os.path.samefile(os.environ['NPUMESH_COMMAND'], r'" + COMMAND + "'))")
        self.assertEqual((code, output, error), (0, "1\nTrue\n", ""))

    def test_what_the_user_has_in_the_path_comes_after_ours(self):
        self.write("mine/thing.py", "value = 5\n")
        self.write("mine/npumesh.py", "raise SystemExit('not this one')\n")
        code, output, _ = self.run_command("-c", "import npumesh, thing; print(thing.value)",
                                           PYTHONPATH=os.path.join(self.folder, "mine"))
        self.assertEqual((code, output), (0, "5\n"))

    def test_torchair_is_the_checkout_that_was_named(self):
        for below in ("a", "b/torchair", "c/python/torchair"):
            self.write(f"{below}/core/_backend.py", "")
            self.write(f"{below}/core/__init__.py", "")
            self.write(f"{below}/__init__.py", "import os\nplace = os.path.dirname(__file__)\n")
            named = below.split("/", maxsplit=1)[0]
            code, output, error = self.run_command("--torchair", named, "-c",
                                                   "import torchair; print(torchair.place)")
            self.assertEqual(code, 0, error)
            self.assertTrue(os.path.samefile(output.strip(), os.path.join(self.folder, below)))

    def test_torchair_may_be_in_the_path_or_missing(self):
        self.write("path/torchair/core/_backend.py", "")
        self.write("path/torchair/__init__.py", "value = 3\n")
        code, output, _ = self.run_command("-c", "import torchair; print(torchair.value)",
                                           PYTHONPATH=os.path.join(self.folder, "path"))
        self.assertEqual((code, output), (0, "3\n"))
        code, _, error = self.run_command("-c", "import torchair")
        self.assertEqual(code, 1)
        self.assertIn("ModuleNotFoundError: TorchAir is not part of npumesh", error)
        self.assertIn("npumesh python --torchair DIR", error)

    def test_what_is_not_there_is_named(self):
        for words, text in (
                (("none.py",), "npumesh python: none.py: No such file or directory"),
                (("--torchair", "none", "-c", ""), "npumesh python: --torchair none: it has no"),
                (("--python", "./none", "-c", ""), "npumesh python: --python ./none: No such"),
                (("--python", "no-such-python", "-c", ""), "no-such-python is not in PATH")):
            code, output, error = self.run_command(*words)
            self.assertEqual((code, output), (3, ""), error)
            self.assertIn(text, error)

    def test_launch_starts_ranks(self):
        if not case.mpirun():
            self.skipTest("this build has no tests with mpirun")
        self.write("r.py", "import sys, npumesh\n"
                   "with npumesh.World(NPUMESH_HBM_SIZE='16M') as world:\n"
                   "    world.barrier()\n"
                   "    print('rank', world.rank, 'of', world.size, sys.argv[1:], flush=True)\n")
        code, output, error = self.run_command(
            "r.py", "--bind", launch=("launch", "-n", "2", "--bind", "none", "--"))
        self.assertEqual(code, 0, error)
        self.assertEqual(sorted(output.splitlines()),
                         [f"[{rank}] rank {rank} of 2 ['--bind']" for rank in (0, 1)])

    def test_launch_ends_with_what_a_script_ends_with(self):
        if not case.mpirun():
            self.skipTest("this build has no tests with mpirun")
        code, _, _ = self.run_command("-c", "import sys; sys.exit(6)",
                                      launch=("launch", "-n", "2", "--"))
        self.assertEqual(code, 6)


if __name__ == "__main__":
    case.main()
