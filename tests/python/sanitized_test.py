"""A library with the address sanitizer below the package npumesh: 1,000 calls without a finding, and
without a leak that is the library's.

Python is not sanitized: the sanitizer's runtime comes by LD_PRELOAD.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

import case
from air_text import AirText

if case.numpy is not None:
    import numpy as np

CALLS = 1000

# Whose memory is kept until the process ends, also when the library has asked for it.
OTHERS = ("libmpi", "libopen-", "libpmix", "libprrte", "libhwloc", "libevent", "mca_", "libucp",
          "libucs", "ld-linux")


def calls():
    """What the sanitized process does."""
    import npumesh

    add = AirText("add")
    x, w = add.data("x", "float32", (4, 4)), add.data("w", "float32", (4, 4))
    add.output(add.op("Add", {"x1": x, "x2": w}, "float32", (4, 4), name="sum"))
    count = AirText("counter")
    total = count.data("count", "int32", (2,), kind="RefData")
    step = count.data("step", "int32", (2,))
    summed = count.op("Add", {"x1": total, "x2": step}, "int32", (2,))
    count.output(count.op("Assign", {"ref": total, "value": summed}, "int32", (2,)))
    with npumesh.World(NPUMESH_HBM_SIZE="64M") as world:
        model, counter = (world.load(each.text(), name="model") for each in (add, count))
        a, out, places = np.ones((4, 4), np.float32), np.empty((4, 4), np.float32), np.zeros(2, np.int32)
        for number in range(CALLS):
            assert (model.run(a, w=a * number)[0] == number + 1).all()
            assert model.run(a, a, out=out)[0] is out
            counter.run(places, np.int32([1, 2]), in_place="count")
            if number % 50 == 0:
                with world.load(add.text(), name="again") as again:
                    again.run(a, a)
                try:
                    model.run(a, np.ones(3, np.float32))
                except npumesh.NpumeshError:
                    pass
                assert world.all.all_reduce(np.float32([number]))[0] == number
        assert places.tolist() == [CALLS, 2 * CALLS]
    print("good", flush=True)


def leaks_of(report):
    """The records of leaks that are the library's."""
    records = re.findall(r"(?:Direct|Indirect) leak of .*?(?=\n\n|\Z)", report, re.S)
    return [each for each in records
            if "libnpumesh" in each and not any(other in each for other in OTHERS)]


class Sanitized(unittest.TestCase):
    def test_a_thousand_calls(self):
        runtime = subprocess.run(["c++", "-print-file-name=libasan.so"], capture_output=True,
                                 text=True, check=True).stdout.strip()
        with tempfile.TemporaryDirectory() as folder:
            report = os.path.join(folder, "report")
            options = f"detect_leaks=1:exitcode=23:log_path={report}:fast_unwind_on_malloc=0"
            done = subprocess.run(
                [sys.executable, os.path.abspath(__file__), "calls"], capture_output=True, text=True,
                timeout=1200, check=False,
                env=case.plain_environment(LD_PRELOAD=runtime, PYTHONMALLOC="malloc",
                                           ASAN_OPTIONS=options))
            self.assertIn("good", done.stdout, done.stderr)
            said = ""
            for name in os.listdir(folder):
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                    said += file.read()
        self.assertNotIn("ERROR: AddressSanitizer", said)
        # Python leaves some memory behind, so a report is there if leaks were looked for at all.
        self.assertIn("LeakSanitizer: detected memory leaks", said, done.stderr)
        self.assertEqual(leaks_of(said), [])

    def test_a_leak_of_the_library_would_be_seen(self):
        leak = ("Direct leak of 8 byte(s) in 1 object(s) allocated from:\n    #0 0x1 in malloc\n"
                "    #1 0x2 in f (/build/lib/libnpumesh.so.1+0x2)\n    #2 0x3 in g (/usr/bin/python3)\n")
        other = leak.replace("g (/usr/bin/python3)", "MPI_Init (/lib/libmpi.so.40)")
        self.assertEqual(leaks_of(leak + "\n" + other + "\n"), [leak.rstrip("\n")])


if __name__ == "__main__":
    if sys.argv[1:] == ["calls"]:
        calls()
    else:
        case.main()
