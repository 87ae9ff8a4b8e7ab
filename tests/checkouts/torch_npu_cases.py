#!/usr/bin/env python3
"""The tests of torch_npu and of its operators (op-plugin), from their checkouts, with the vendor's wheel on npumesh.

    npumesh python --vendor torch_npu_cases.py CHECKOUT SET [--results FILE] [--only WORD]...

SET names files of the checkout and what is known of their cases: `torch_npu` or `op_plugin`
(torch_npu_exceptions.txt, op_plugin_exceptions.txt beside this file). Each file runs in a fork of this process, which
has imported torch and the wheel; each case that does not pass runs once more in a separate process, since a failed task
leaves its stream failed. FILE gets a line of JSON for each case: name, state, seconds, and what it said. A run that
finds FILE goes on after the files that it has. --only takes files whose name has the word.

Prints a line for each case that is not as known, and the counts; ends with 1 when there is such a case. Cases that the
checkout lists as disabled (those that its authors leave out on their cards) do not run, and those that skip themselves
on this card are not counted. Nothing of the checkouts is part of npumesh.
"""

import argparse
import collections
import glob
import json
import os
import re
import resource
import signal
import sys
import time
import traceback
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
LONGEST = 300  # seconds of a file; of a case that runs alone, half
MEMORY = 6 << 30  # bytes of a file's process; some cases ask for tens of GiB
WORDS = 1500  # characters that are kept of what a case said

DISABLED = "test/unsupported_test_cases/.pytorch-disabled-tests.json"

# Files by pattern. Of torch_npu those that ask for no card's internals and no other hardware.
FILES = {
    "op_plugin": ["test/test_base_ops/test_*.py"],
    "torch_npu": [
        "test/trans_contiguous/test_*.py", "test/nn/test_*.py", "test/custom_ops/test_*.py", "test/contrib/test_*.py",
        "test/autograd/test_*.py", *(f"test/test_{each}.py" for each in (
            "autocast", "bool_storage", "cat", "chunk", "copy_", "dispatch", "indexing", "is_conj", "matmul_npu",
            "narrow", "out_dtype_op", "qint32_storage_dtype", "quantized_storage", "shape_ops", "sort_and_select",
            "tensor_map_", "type_promotion", "unflatten_dense_tensors", "view_ops")),
    ],
}


def files(checkout, kind, only):
    found = []
    for pattern in FILES[kind]:
        found += sorted(os.path.relpath(each, checkout) for each in glob.glob(os.path.join(checkout, pattern)))
    return [each for each in found if not only or any(word in each for word in only)]


def exceptions(kind):
    """What is known: [(case, reason)], from lines "case: reason"."""
    known = []
    with open(os.path.join(HERE, f"{kind}_exceptions.txt"), encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, _, reason = line.strip().partition(": ")
                known.append((name, reason))
    return known


class Said(unittest.TestResult):
    """Writes each case as it ends."""

    def __init__(self, prefix, out):
        super().__init__()
        self.prefix, self.out, self.begun = prefix, out, 0.0

    def name(self, test):
        return self.prefix + re.sub(r"^.*?(\w+\.\w+)$", r".\1", test.id())

    def startTest(self, test):
        super().startTest(test)
        self.begun = time.monotonic()
        self.say(test, "begun")

    def say(self, test, state, text=""):
        seconds = round(time.monotonic() - self.begun, 3)
        self.out.write(json.dumps({"case": self.name(test), "state": state, "seconds": seconds,
                                   "said": text[-WORDS:]}) + "\n")
        self.out.flush()

    def addSuccess(self, test):
        self.say(test, "passed")

    def addFailure(self, test, error):
        self.say(test, "failed", "".join(traceback.format_exception(*error)))

    def addError(self, test, error):
        if not isinstance(test, unittest.TestCase):  # of a class or a module
            self.begun = time.monotonic()
        self.addFailure(test, error)

    def addSkip(self, test, reason):
        self.say(test, "skipped", reason)

    def addExpectedFailure(self, test, error):
        self.say(test, "passed")

    def addUnexpectedSuccess(self, test):
        self.say(test, "failed", "it passes, which the test does not expect")

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.addFailure(test, error)


def cases_of(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from cases_of(each)
        else:
            yield each


def load(checkout, path):
    """The cases of a file, which is imported as their own runner does."""
    import importlib.util
    folder = os.path.dirname(os.path.join(checkout, path))
    sys.path[:0] = [folder, os.path.join(checkout, "test")]
    os.chdir(folder)
    name = os.path.splitext(os.path.basename(path))[0]
    sys.argv = [os.path.basename(path)]
    spec = importlib.util.spec_from_file_location(name, os.path.join(checkout, path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    left_out = disabled(checkout)
    return [each for each in cases_of(unittest.defaultTestLoader.loadTestsFromModule(module))
            if f"{each._testMethodName} (__main__.{type(each).__name__})" not in left_out]


def disabled(checkout):
    """Names of cases as torch's own tests list them: "method (__main__.Class)"."""
    path = os.path.join(checkout, DISABLED)
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def in_child(log, seconds, function):
    """Calls function in a fork; what it prints goes to LOG. 0 or what it ended with, or "no end"."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setpgid(0, 0)
            with open(log, "w") as file, open(os.devnull) as nothing:
                os.dup2(nothing.fileno(), 0)
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            signal.alarm(seconds)
            function()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    try:
        os.killpg(child, signal.SIGKILL)  # what it left behind
    except ProcessLookupError:
        pass
    code = os.waitstatus_to_exitcode(status)
    return "no end" if code == -signal.SIGALRM else code


def run_cases(checkout, path, out, names=None):
    """In a fork: the cases of a file, or those of NAMES."""
    cases = load(checkout, path)
    with open(out, "a") as file:
        result = Said(path, file)
        if names is not None:
            cases = [each for each in cases if result.name(each) in names]
        suite = unittest.TestSuite(cases)
        suite.run(result)


def read(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def lines_of(out):
    """The last line of each case; None: the last one has begun and not ended."""
    found = {}
    for line in read(out) if os.path.exists(out) else []:
        before = found.get(line["case"])
        if before is None or before["state"] == "begun" or line["state"] != "passed":
            found[line["case"]] = line
    return found


def run_file(checkout, path, scratch):
    """The lines of a file's cases."""
    out, log = os.path.join(scratch, "out"), os.path.join(scratch, "log")
    done, left = {}, None
    while True:
        if os.path.exists(out):
            os.unlink(out)
        code = in_child(log, LONGEST, lambda: run_cases(checkout, path, out, left))
        seen = lines_of(out)
        if not seen:
            if not done:
                with open(log, errors="replace") as file:
                    text = file.read()
                if code == 0:
                    return []
                return [{"case": path, "state": "failed", "seconds": 0, "said": f"ended with {code}: {text[-WORDS:]}"}]
            break
        for line in seen.values():
            if line["state"] == "begun":
                line.update(state="failed", said=f"ended with {code}: " + tail(log))
        done.update(seen)
        if code == 0:
            break
        every = os.path.join(scratch, "names")
        in_child(log, LONGEST, lambda: write_names(checkout, path, every))
        left = {name for name in open(every).read().split("\n") if name} - set(done)
        if not left:
            break
    return again(checkout, path, scratch, done)


def write_names(checkout, path, into):
    cases = load(checkout, path)
    with open(into, "w") as file:
        file.write("\n".join(Said(path, None).name(each) for each in cases))


def tail(path):
    with open(path, errors="replace") as file:
        return file.read()[-WORDS:]


def again(checkout, path, scratch, done):
    """A case that failed after the first failure of its file may be a consequence of that."""
    out, log = os.path.join(scratch, "out"), os.path.join(scratch, "log")
    failed = [name for name, line in done.items() if line["state"] == "failed"]
    for name in failed[1:]:
        if os.path.exists(out):
            os.unlink(out)
        code = in_child(log, LONGEST // 2, lambda name=name: run_cases(checkout, path, out, {name}))
        seen = lines_of(out)
        if name in seen:
            line = seen[name]
            if line["state"] == "begun":
                line.update(state="failed", said=f"ended with {code}: " + tail(log))
            done[name] = line
    return list(done.values())


def report(results, known):
    """Prints what is not as known and the counts. True: all is."""
    counts = collections.Counter(line["state"] for line in results)
    names = dict(known)
    new = [line for line in results if line["state"] == "failed" and line["case"] not in names]
    better = [line["case"] for line in results if line["state"] == "passed" and line["case"] in names]
    for line in new:
        said = [text for text in line["said"].splitlines() if text.strip()]
        print(f"failed: {line['case']}: {said[-1][:200] if said else ''}")
    for name in better:
        print(f"passes, but is a known exception: {name}")
    print(f"{counts['passed']} of {counts['passed'] + counts['failed']} pass,"
          f" {counts['failed'] - len(new)} are known not to, {counts['skipped']} skip themselves")
    return not new and not better


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout")
    parser.add_argument("set", choices=sorted(FILES))
    parser.add_argument("--results", metavar="FILE", help="where the lines of JSON go")
    parser.add_argument("--only", action="append", metavar="WORD")
    given = parser.parse_args()
    import tempfile
    checkout = os.path.abspath(given.checkout)
    chosen = files(checkout, given.set, given.only)
    if not chosen:
        sys.exit(f"torch_npu_cases: {checkout} has none of the files of {given.set}")
    os.environ.setdefault("NPUMESH_HBM_SIZE", "4G")
    import torch
    import torch_npu  # noqa: F401
    import torch_npu.testing.testcase  # noqa: F401
    import torch.testing._internal.common_utils  # noqa: F401
    torch.set_num_threads(1)
    results = read(given.results) if given.results and os.path.exists(given.results) else []
    known_files = {line["file"] for line in results}
    with tempfile.TemporaryDirectory() as scratch:
        for path in chosen:
            if path in known_files:
                continue
            lines = [{"file": path, **line} for line in run_file(checkout, path, scratch)]
            if given.results:
                with open(given.results, "a") as file:
                    for line in lines or [{"file": path, "case": path, "state": "empty", "seconds": 0, "said": ""}]:
                        file.write(json.dumps(line) + "\n")
            results += lines
    sys.exit(0 if report(results, exceptions(given.set)) else 1)


if __name__ == "__main__":
    main()
