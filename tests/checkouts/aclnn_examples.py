#!/usr/bin/env python3
"""The vendor's example programs of aclnn (examples/test_aclnn_*.cpp of ops-math, ops-nn, ops-transformer, ops-cv), as they
are, on npumesh.

    aclnn_examples.py INSTALLED CHECKOUT... [--values] [--only TEXT] [--jobs N] [--list FILE]

Compiles each program against an installation of npumesh and runs it. A program is right when it ends with 0 and no call in
it says that it failed; with --values (needs torch) also when what its functions wrote is what aclnn_references.py says of
their parameters. --list writes a line for each: what came of it, the file, the reason or which functions were compared.
Those of `experimental/` are left out. Nothing of the checkouts is part of npumesh.
"""

import argparse
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

LONGEST = 180  # seconds of a program


def exported(installed):
    done = subprocess.run(["nm", "-D", "--defined-only", os.path.join(installed, "lib64", "libopapi.so")],
                          capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in done.stdout.splitlines()}


def examples(checkouts):
    for checkout in checkouts:
        for folder, folders, names in os.walk(checkout):
            folders[:] = sorted(name for name in folders if name not in ("experimental", ".git"))
            for name in sorted(names):
                if name.startswith("test_aclnn_") and name.endswith(".cpp") and "examples" in folder.split(os.sep):
                    yield os.path.join(folder, name)


class Runner:
    def __init__(self, installed, folder, values):
        self.installed, self.folder, self.functions = installed, folder, exported(installed)
        if values:
            import call_trace  # needs torch
            self.preload = call_trace.preload(installed, folder)
        else:
            self.preload = None
        self.environment = {**os.environ, "LD_LIBRARY_PATH": os.path.join(installed, "lib64"),
                            "NPUMESH_DEVICE_COUNT": "8", "OMP_NUM_THREADS": "1"}

    def missing(self, source):
        with open(source, encoding="utf-8", errors="replace") as file:
            called = set(re.findall(r"\b(aclnn\w+?)GetWorkspaceSize\s*\(", file.read()))
        return sorted(name for name in called if name + "GetWorkspaceSize" not in self.functions)

    def __call__(self, source):
        missing = self.missing(source)
        if missing:
            return "absent", ", ".join(missing)
        include = os.path.join(self.installed, "include")
        program = os.path.join(self.folder, f"{os.path.basename(source)[:-4]}_{abs(hash(source))}")
        built = subprocess.run(
            ["g++", "-std=c++17", "-O0", "-w", f"-I{include}", f"-I{include}/aclnnop", f"-I{os.path.dirname(source)}",
             source, "-o", program, f"-L{self.installed}/lib64", "-lascendcl", "-lopapi", "-lnnopbase", "-lhccl",
             "-lpthread"], capture_output=True, text=True, errors="replace")
        if built.returncode != 0:
            errors = [line for line in built.stderr.splitlines() if "error" in line or "undefined" in line]
            return "not compiled", errors[0] if errors else built.stderr[-200:]
        trace = program + ".calls"
        traced = {"LD_PRELOAD": self.preload, "ACLNN_TRACE": trace} if self.preload else {}
        try:
            done = subprocess.run([program], env={**self.environment, **traced}, capture_output=True, text=True,
                                  errors="replace", timeout=LONGEST, cwd=self.folder)
        except subprocess.TimeoutExpired:
            return "no end", f"after {LONGEST} s"
        finally:
            os.remove(program)
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        failed = [line for line in said if re.search(r"failed|ERROR", line) and "WARN" not in line]
        if done.returncode != 0 or failed:
            return "wrong", f"ends with {done.returncode}: {(failed or said or [''])[-1][:300]}"
        return self.compare(trace) if self.preload else ("right", "")

    def compare(self, trace):
        """What the calls of a program wrote, beside the references."""
        import aclnn_values
        if not os.path.exists(trace):
            return "right", "no call"
        with open(trace) as file:
            found = [aclnn_values.compare(line) for line in file]
        os.remove(trace)
        differing = [f"{function}: {reason}" for function, state, reason in found if state == "differs"]
        if differing:
            return "differs", "; ".join(differing)[:400]
        compared = sorted({function for function, state, _ in found if state == "same"})
        left = sorted({f"{function} ({reason})" for function, state, reason in found if state == "not compared"})
        return "right", " ".join(compared) + ("; not compared: " + ", ".join(left) if left else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("installed")
    parser.add_argument("checkouts", nargs="+")
    parser.add_argument("--values", action="store_true", help="compare what functions write with torch")
    parser.add_argument("--only", default="", help="a part of the path")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list")
    given = parser.parse_args()
    sources = [source for source in examples(given.checkouts) if given.only in source]
    if not sources:
        sys.exit("aclnn_examples: no examples/test_aclnn_*.cpp below the checkouts")
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        results = list(zip(sources, pool.map(Runner(os.path.abspath(given.installed), folder, given.values), sources)))
    if given.list:
        with open(given.list, "w", encoding="utf-8") as file:
            file.writelines(f"{state}\t{source}\t{reason}\n" for source, (state, reason) in results)
    counts = collections.Counter(state for _, (state, _) in results)
    present = len(results) - counts["absent"]
    print(f"{len(results)} programs, {present} of them call only functions that are there: "
          + ", ".join(f"{counts[state]} {state}" for state in ("right", "differs", "wrong", "not compiled", "no end")))
    if given.values:
        whole = sum(state == "right" and reason not in ("", "no call") and "not compared" not in reason
                    for _, (state, reason) in results)
        print(f"in {whole} of the right ones every call was compared")
    return 0


if __name__ == "__main__":
    sys.exit(main())
