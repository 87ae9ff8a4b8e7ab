"""Runs every block of Python code in docs/python.md, and compares what it prints.

Blocks of a page follow each other in one program. A block that begins with "# file: NAME" is a
program of two ranks. Below <!-- printed --> stands what the block before it prints. In the line
above a block:

  <!-- run by TEST: REASON -->    another test runs it
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest

import case
from air_text import AirText

if case.numpy is not None:
    import npumesh

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "docs", "python.md")
PATH = os.pathsep.join(os.path.join(ROOT, "python", *below)
                       for below in ((), ("npu_bridge", "stand_in")))
BLOCK = re.compile(r"^(?:<!-- ([^\n]*) -->\n)?```python\n(.*?)^```\n", re.S | re.M)
PRINTED = re.compile(r"\n<!-- printed -->\n```\n(.*?)^```\n", re.S | re.M)
FILE = re.compile(r"# file: (\S+)\n")


def blocks_in(text, by=""):
    """Line, code, and what it prints or None, of each block that test `by` runs; "": this one."""
    found = []
    for match in BLOCK.finditer(text):
        said = re.match("run by (\\w+)", match.group(1) or "")
        if (said.group(1) if said else "") != by:
            continue
        printed = PRINTED.match(text, match.end())
        line = text.count("\n", 0, match.start(2)) + 1
        found.append((line, match.group(2), printed.group(1) if printed else None))
    return found


def write_models():
    """The models that the page names."""
    add = AirText("add")
    x, w = add.data("x", "float32", (2, 2)), add.data("w", "float32", (2, 2))
    add.output(add.op("Add", {"x1": x, "x2": w}, "float32", (2, 2), name="sum"))
    counter = AirText("counter")
    count = counter.data("count", "int32", (2,), kind="RefData")
    step = counter.data("step", "int32", (2,))
    total = counter.op("Add", {"x1": count, "x2": step}, "int32", (2,))
    counter.output(counter.op("Assign", {"ref": count, "value": total}, "int32", (2,)))
    for name, graph in (("add.air", add), ("counter.air", counter)):
        npumesh.save_air(graph.text(), name)


class Docs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        write_models()

    def run_ranks(self, name, code):
        with open(name, "w", encoding="utf-8") as file:
            file.write(code)
        done = subprocess.run([*case.mpirun(), "-n", "2", sys.executable, name], text=True,
                              capture_output=True, timeout=1200, check=False,
                              env=case.plain_environment(PYTHONPATH=PATH))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_every_block(self):
        with open(PAGE, encoding="utf-8") as file:
            blocks = blocks_in(file.read())
        self.assertGreater(len(blocks), 10)
        names = {"__name__": "page"}
        for line, code, printed in blocks:
            with self.subTest(line=line):
                program = FILE.match(code)
                if program:
                    if not case.mpirun():
                        continue
                    output = self.run_ranks(program.group(1), code)
                else:
                    with contextlib.redirect_stdout(io.StringIO()) as said:
                        exec(compile("\n" * (line - 1) + code, PAGE, "exec"), names)
                    output = said.getvalue()
                self.assertEqual(output, printed or "")

    def test_errors_of_the_page_are_those_of_the_package(self):
        with open(PAGE, encoding="utf-8") as file:
            rows = re.findall(r"^\| `(\w+Error)` \| (?:`(\w+)`)? ?\| (\d) \|$", file.read(), re.M)
        self.assertEqual(len(rows), 10)
        for name, also, exit_code in rows:
            kind = getattr(npumesh, name)
            self.assertEqual(kind.exit_code, int(exit_code))
            if also:
                self.assertTrue(issubclass(kind, getattr(__builtins__, also)), name)


if __name__ == "__main__":
    case.main()
