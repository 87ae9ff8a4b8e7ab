"""TorchAir's own tests (tests/st of the checkout) on npumesh's native module: all of them pass but
those that torchair_vendor_exceptions.txt names, and those fail.

    torchair_vendor_test.py FOLDER [MODULE ...]

FOLDER keeps their extension for a device, which is compiled there once. MODULEs name some of the
files, without "_st" and what follows it.
"""

import glob
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

import case
import coverage_page
import torchair_case

torch = torchair_case.torch
if torch is not None:
    from torch.utils import cpp_extension

HERE = os.path.dirname(os.path.abspath(__file__))
EXCEPTIONS = os.path.join(HERE, "torchair_vendor_exceptions.txt")
TESTS = os.path.join(torchair_case.CHECKOUT, "tests")
EXTENSION = os.path.join(TESTS, "privateuse1", "privateuse1.cpp")
LIBRARY = os.path.join(TESTS, "utils_tools", "opapi_fake.cpp")
MODULE_SECONDS = 1800

# Operators that their own stub of the engine has for these tests: type, inputs, outputs, attributes.
# "x?" is optional, "x*" dynamic, "x!" neither, which TorchAir refuses.
OPERATORS = [
    ("CustomOp", "", "", ""),
    ("TestV1", "x1 x2* x3?", "y1 y2*", "attr1:VT_INT attr2:VT_FLOAT"),
    ("TestV2", "x1 x2* x3? x4?", "y1 y2*", "attr1:VT_INT attr2:VT_FLOAT attr3:VT_STRING"),
    ("MyOpTest", "var indices updates", "y", ""),
    ("MyOpTestv1", "var updates indices", "y", ""),
    ("MyOpTestv2", "var indices updates", "y", "use_indices:VT_INT"),
    ("MyOpTestv3", "var updates* indices", "y", ""),
    ("MyOpTestv4", "var indices updates", "y", "use_indices:VT_NAMED_ATTRS"),
    ("MyOpTestv7", "var updates? indices", "y", ""),
    ("MyOpTestv8", "x!", "y", ""),
    ("MyOpInplace", "x y", "x y", ""),
    ("MyOpInplaceZ", "x y", "x z", ""),
    ("MyInplaceAutoNoOutput", "x y", "x", ""),
    ("MyTwoInplace", "x wkv wgate kv_state score_state ape norm_weight rope_sin rope_cos",
     "cmp_kv kv_state score_state", ""),
    ("MyInplaceAutoKwargsInt", "x y", "x", "alpha:VT_INT"),
    ("MyInplaceAutoKwargsStr", "x y", "x", "alpha:VT_STRING"),
    ("MyInplaceAutoOptionInput", "x y z?", "x", "alpha:VT_STRING"),
    ("MyOpNoMatchInputs", "x updates", "y", ""),
    ("MyOpNoMatchAttrs", "x updates", "y", "indices:VT_INT"),
    ("MyOpNoMatchOutputs", "x updates", "x", "indices:VT_INT"),
    ("Custom", "x", "y", ""),
    ("MyOpInfer", "x y", "o1 o2", ""),
    ("MyInplaceAuto1", "", "", ""),
    ("MyInplaceAuto2", "", "", ""),
]
KINDS = {"?": "optional", "*": "dynamic", "!": "illegal"}


def ports(text):
    return [[each.rstrip("?*!"), KINDS.get(each[-1], "required")] for each in text.split()]


def declared():
    """The operators as declare_operator takes them."""
    return [[kind, ports(inputs), ports(outputs), [each.split(":") for each in attrs.split()]]
            for kind, inputs, outputs, attrs in OPERATORS]


# Run in a separate process for each file: prints a line for each test.
RUNNER = '''
import json, sys, unittest
import torchair
from torchair.core import _torchair
for each in json.loads(sys.argv[2]):
    _torchair.declare_operator(*each)

class Result(unittest.TextTestResult):
    def say(self, test, word):
        print("RESULT " + json.dumps([word, test.id()]), file=sys.__stdout__, flush=True)
    def addSuccess(self, test):
        super().addSuccess(test); self.say(test, "passed")
    def addFailure(self, test, error):
        super().addFailure(test, error); self.say(test, "failed")
    def addError(self, test, error):
        super().addError(test, error); self.say(test, "failed")
    def addSkip(self, test, reason):
        super().addSkip(test, reason); self.say(test, "skipped")
    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error); self.say(test, "passed")
    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test); self.say(test, "failed")

suite = unittest.defaultTestLoader.loadTestsFromName(sys.argv[1])
pending = [suite]
while pending:
    each = pending.pop()
    if isinstance(each, unittest.TestSuite):
        pending += list(each)
    else:
        print("RESULT " + json.dumps(["started", each.id()]), flush=True)
unittest.TextTestRunner(resultclass=Result, verbosity=2).run(suite)
'''


def missing():
    """Why the tests cannot run; empty: they can."""
    if torchair_case.MISSING:
        return torchair_case.MISSING
    if not os.path.isfile(EXTENSION):
        return f"the checkout has no {EXTENSION}"
    if shutil.which("c++") is None:
        return "there is no C++ compiler for their extension"
    if not has_header("pybind11", "pybind11.h"):
        return "pybind11 is not installed (python3-pybind11)"
    if not has_header("ATen", "EmptyTensor.h"):
        return "the headers of torch are not installed (libtorch-dev)"
    return ""


def include_folders():
    """Those of torch, which brings pybind11's in its wheel, of pybind11 by itself, and of Python."""
    folders = [*cpp_extension.include_paths(), sysconfig.get_paths()["include"]]
    try:
        import pybind11
    except ImportError:
        return folders
    return [*folders, pybind11.get_include()]


def has_header(*path):
    return any(os.path.isfile(os.path.join(each, *path)) for each in include_folders())


def build(folder):
    """Compiles their extension, unless it is there. Errors: subprocess.CalledProcessError."""
    os.makedirs(folder, exist_ok=True)
    target = os.path.join(folder, "_privateuse1_backend.so")
    if not os.path.isfile(target):
        numbers = [int(each) for each in torch.__version__.split("+")[0].split(".")[:3]]
        version = numbers[0] * 10000 + numbers[1] * 100 + numbers[2]
        words = ["c++", "-shared", "-fPIC", "-O0", "-std=c++17", "-w",
                 f"-DTNG_TORCH_VERSION={version}",
                 "-DTORCH_EXTENSION_NAME=_privateuse1_backend",
                 f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
        words += [f"-I{each}" for each in include_folders()]
        words += [EXTENSION, "-o", target + ".new"]
        words += [f"-L{each}" for each in cpp_extension.library_paths()]
        words += ["-ltorch", "-ltorch_cpu", "-lc10", "-ltorch_python"]
        subprocess.run(words, check=True)
        os.rename(target + ".new", target)
    library = os.path.join(folder, "libopapi.so")
    if not os.path.isfile(library):
        subprocess.run(["c++", "-shared", "-fPIC", LIBRARY, "-o", library + ".new"], check=True)
        os.rename(library + ".new", library)


def link_packages(folder):
    """A path with npumesh and the door to TorchAir, and without torch_npu: their tests have their
    own."""
    os.makedirs(folder, exist_ok=True)
    ours = os.path.join(HERE, "..", "..", "python")
    for parent, name in ((ours, "npumesh"), (ours, "torchair"),
                         (os.path.join(torchair_case.CHECKOUT, "npugraph_ex"), "npugraph_ex")):
        link = os.path.join(folder, name)
        if not os.path.islink(link):
            os.symlink(os.path.join(parent, name), link)


def run_module(name, work, folder, log):
    """The results of a file of tests, by their names."""
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join([work, folder, os.path.join(folder, "packages")])
    environment["LD_LIBRARY_PATH"] = folder
    with open(log, "w", encoding="utf-8") as file:
        try:
            done = subprocess.run([sys.executable, "-c", RUNNER, name, json.dumps(declared())],
                                  cwd=work, env=environment, stdout=subprocess.PIPE, stderr=file,
                                  timeout=MODULE_SECONDS, check=False)
            output = done.stdout
        except subprocess.TimeoutExpired as error:
            output = error.stdout or b""
        text = output.decode("utf-8", "replace")
        file.write("\n==== standard output\n" + text)
    results = {}
    for line in text.splitlines():
        at = line.find("RESULT ")
        if at >= 0:
            word, test = json.loads(line[at + len("RESULT "):])
            results[test] = word
    return results


def exceptions():
    """Tests that are known to fail, and why: lines "name: reason"."""
    known = {}
    with open(EXCEPTIONS, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, _, reason = line.strip().partition(": ")
                known[name] = reason
    return known


def run(folder, chosen):
    folder = os.path.abspath(folder)
    build(folder)
    link_packages(os.path.join(folder, "packages"))
    names = sorted(os.path.basename(each)[:-len(".py")]
                   for each in glob.glob(os.path.join(TESTS, "st", "*_st.py")))
    if chosen:
        names = [each for each in names if each[:-len("_st")] in chosen]
    results = {}
    for name in names:
        with tempfile.TemporaryDirectory() as root:
            # One of the files reads tables that it expects in st/, three folders above itself.
            work = os.path.join(root, "build", "st")
            shutil.copytree(os.path.join(TESTS, "st"), work)
            os.symlink(work, os.path.join(root, "st"))
            seen = run_module(name, work, folder, os.path.join(folder, name + ".log"))
        passed = sum(each == "passed" for each in seen.values())
        print(f"{name}: {passed} of {len(seen)} passed", flush=True)
        results.update(seen)
    return results


def main():
    why = missing()
    if why:
        print(f"SKIPPED: {why}")
        return case.SKIPPED
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    chosen = sys.argv[2:]
    results = run(sys.argv[1], chosen)
    known = exceptions()
    passed = {name for name, word in results.items() if word == "passed"}
    bad = sorted(set(results) - passed - set(known))
    for name in bad:
        print(f"{results[name]}: {name}")
    better = sorted(passed & set(known))
    for name in better:
        print(f"passes, but is a known exception: {name}")
    gone = [] if chosen else sorted(set(known) - set(results))
    for name in gone:
        print(f"is a known exception, but there is no such test: {name}")
    print(f"{len(passed)} of {len(results)} passed, {len(known)} known exceptions")
    said = coverage_page.numbers("# of the vendor's # tests")
    miscounted = not chosen and said != [len(passed), len(results)]
    if miscounted:
        print(f"docs/coverage.md says {said[0]} of {said[1]}")
    return 1 if bad or better or gone or miscounted or not results else 0


if __name__ == "__main__":
    sys.exit(main())
