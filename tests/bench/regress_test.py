#!/usr/bin/env python3
"""tests/bench/regress beside programs that are made up: what it reads, compares and says."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

REGRESS = pathlib.Path(__file__).resolve().parent / "regress"
BLOCK = ("#!/bin/sh\necho '{\"benchmarks\": [{\"name\": \"Block/iterations:1/manual_time\", "
         "\"ratio\": %s, \"peak_share\": %s}]}'\n")
NPUMESH = """#!/usr/bin/env python3
import json, sys
row = {"ours_us": {"p50": 2.0}, "floor_us": {"p50": 1.0}, "p50_ratio": 0.5}
json.dump({"points": [row, dict(row, ours_us={"p50": 8.0}, p50_ratio=2.0)]}, open(sys.argv[-1], "w"))
"""


class Regress(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.build = pathlib.Path(self.folder.name)

    def put(self, path, text):
        program = self.build / path
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)

    def put_block(self, ratio, share):
        self.put("tests/bench/decoder/bench_block", BLOCK % (ratio, share))

    def run_it(self, *args):
        return subprocess.run(
            [sys.executable, REGRESS, "--build", self.build, "--baseline",
             self.build / "baseline.json", *args], capture_output=True, text=True, check=False)

    def test_without_a_baseline_nothing_is_compared(self):
        self.put_block(1.0, 0.9)
        done = self.run_it("--only", "block", "--json", self.build / "now.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nothing was compared", done.stdout)
        self.assertEqual(json.loads((self.build / "now.json").read_text(encoding="utf-8")),
                         {"Block/ratio": 1.0, "Block/peak_share": 0.9})

    def test_a_limited_processor_is_a_class_of_its_own(self):
        self.put("tests/bench/decoder/bench_block", "#!/bin/sh\n"
                 'case "$NPUMESH_TEST_ISA $ONEDNN_MAX_CPU_ISA $LD_PRELOAD" in\n'
                 "  'avx2 AVX2 '*libnpumesh_limit_isa.so) ratio=1.5 ;; *) ratio=1.0 ;;\n"
                 "esac\n"
                 "echo '{\"benchmarks\": [{\"name\": \"Block\", \"ratio\": '$ratio'}]}'\n")
        done = self.run_it("--only", "block", "--isa", "avx2")
        self.assertEqual(done.returncode, 4)
        self.assertIn("build the target npumesh_limit_isa", done.stderr)
        self.put("tests/isa/libnpumesh_limit_isa.so", "")
        done = self.run_it("--only", "block", "--isa", "avx2", "--write-baseline")
        self.assertEqual(done.returncode, 0, done.stderr)
        baseline = json.loads((self.build / "baseline.json").read_text(encoding="utf-8"))
        self.assertEqual(baseline, {"avx2": {"Block/ratio": {"median": 1.5, "worst": 1.5}}})

    def test_what_is_worse_is_named(self):
        self.put_block(1.0, 0.9)
        self.assertEqual(self.run_it("--only", "block", "--write-baseline").returncode, 0)
        self.put_block(1.1, 0.8)
        self.assertEqual(self.run_it("--only", "block").returncode, 0)
        self.put_block(1.2, 0.9)
        done = self.run_it("--only", "block")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"Block/ratio +1\.200 +1\.000 WORSE")
        self.put_block(1.0, 0.7)
        done = self.run_it("--only", "block")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"Block/peak_share +0\.700 +0\.900 WORSE")
        self.assertEqual(self.run_it("--only", "block", "--tolerance", "0.3").returncode, 0)

    def test_a_baseline_keeps_the_worst_of_its_rounds(self):
        turns = self.build / "turns"
        self.put("tests/bench/decoder/bench_block", BLOCK.replace(
            "echo '", f"echo >> {turns}; r=$(wc -l < {turns}); echo '", 1) % ("'$r'", 0.9))
        self.assertEqual(self.run_it("--only", "block", "--write-baseline").returncode, 0)
        stored = json.loads((self.build / "baseline.json").read_text(encoding="utf-8"))
        ratio, = (each["Block/ratio"] for each in stored.values())
        self.assertEqual(ratio, {"median": 3, "worst": 5})
        self.put_block(5.7, 0.9)
        self.assertEqual(self.run_it("--only", "block").returncode, 0)
        self.put_block(5.8, 0.9)
        self.assertEqual(self.run_it("--only", "block").returncode, 1)

    def test_collectives_are_means(self):
        self.put("launch/npumesh", NPUMESH)
        done = self.run_it("--only", "collectives", "--json", self.build / "now.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads((self.build / "now.json").read_text(encoding="utf-8"))
        for ranks in (2, 4, 8):
            self.assertEqual(found[f"collectives/{ranks}/ours_floor"], 4.0)
            self.assertEqual(found[f"collectives/{ranks}/ours_mpi"], 1.0)
            self.assertEqual(found[f"collectives/{ranks}/worst_ours_mpi"], 2.0)

    def test_a_program_that_fails_or_lacks(self):
        done = self.run_it("--only", "block")
        self.assertEqual(done.returncode, 4)
        self.assertIn("is not there", done.stderr)
        self.put("tests/bench/decoder/bench_block", "#!/bin/sh\necho no memory >&2\nexit 3\n")
        done = self.run_it("--only", "block")
        self.assertEqual(done.returncode, 4)
        self.assertIn("exit code 3: no memory", done.stderr)

    def test_usage(self):
        done = self.run_it("--only", "sums")
        self.assertEqual(done.returncode, 2)
        self.assertIn('"sums" is no group', done.stderr)


if __name__ == "__main__":
    unittest.main()
