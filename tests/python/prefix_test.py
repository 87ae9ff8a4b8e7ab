"""The layout that pip installs (pyproject.toml): the package, and the rest in npumesh/prefix.

    prefix_test.py BUILD SOURCE CMAKE
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import case

BUILD, SOURCE, CMAKE = sys.argv[1:4]
del sys.argv[1:4]


class Prefix(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.site = os.path.join(folder.name, "site packages")
        shutil.copytree(os.path.join(SOURCE, "python", "npumesh"), os.path.join(cls.site, "npumesh"))
        cls.prefix = os.path.join(cls.site, "npumesh", "prefix")
        for component in ("runtime", "tools", "python"):
            subprocess.run([CMAKE, "--install", BUILD, "--prefix", cls.prefix, "--component", component],
                           check=True, capture_output=True)

    def python(self, *words, **more):
        environment = case.plain_environment(PYTHONPATH=self.site, **more)
        for name in ("NPUMESH_LIBRARY", "NPUMESH_COMMAND"):
            environment.pop(name, None)
        done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True,
                              timeout=600, check=False, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr

    def command(self, *words, **more):
        return self.python("-c", "import npumesh.command as c, sys; sys.exit(c.main())", *words, **more)

    def test_the_library_and_the_prefix_are_those_inside(self):
        code, output, error = self.python("-c", "import npumesh; print(npumesh.library_path()); "
                                          "print(npumesh.__version__)")
        self.assertEqual(code, 0, error)
        path, version = output.splitlines()
        self.assertTrue(path.startswith(os.path.join(self.prefix, "lib")), path)
        self.assertRegex(version, r"^\d+\.\d+\.\d+$")
        self.assertEqual(self.python("-m", "npumesh", "--prefix"), (0, self.prefix + "\n", ""))
        self.assertEqual(self.python("-m", "npumesh", "--what")[0], 2)

    def test_the_command_and_what_it_starts(self):
        self.assertEqual(self.command("--version")[0], 0)
        code, output, error = self.command("python", "-c", "import npumesh, npu_bridge, sys; "
                                           "print(npumesh.__file__); print(npumesh.World().size)")
        self.assertEqual(code, 0, error)
        self.assertEqual(output.splitlines(), [os.path.join(
            self.prefix, "lib/python3/dist-packages/npumesh/__init__.py"), "1"])
        # The Python of the package goes first, where PATH does not have its folder.
        code, output, error = self.command("python", "-c", "import sys; print(sys.executable)", PATH="/nothing")
        self.assertEqual((code, os.path.realpath(output.strip())), (0, os.path.realpath(sys.executable)), error)

    def test_set_env_of_the_prefix(self):
        script = ('. "$(%s -m npumesh --prefix)/set_env.sh" && echo $ASCEND_HOME_PATH && command -v npumesh'
                  % sys.executable)
        done = subprocess.run(["bash", "-c", script], env=case.plain_environment(PYTHONPATH=self.site), text=True,
                              capture_output=True, check=True, timeout=60)
        self.assertEqual(done.stdout.splitlines(), [self.prefix, os.path.join(self.prefix, "bin/npumesh")])

    def test_a_package_without_its_prefix_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(os.path.join(SOURCE, "python", "npumesh"), os.path.join(folder, "npumesh"))
            done = subprocess.run([sys.executable, "-c", "import npumesh.command as c, sys; sys.exit(c.main())"],
                                  env=case.plain_environment(PYTHONPATH=folder), capture_output=True, text=True,
                                  timeout=60, check=False)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("neither prefix/set_env.sh nor", done.stderr)


if __name__ == "__main__":
    unittest.main()
