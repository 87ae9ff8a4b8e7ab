"""`npumesh dump` over the folders that msProbe's PrecisionDebugger leaves.

    msprobe_test.py [--first N] [--faults N]

Folders are written here, tensors with a pickle of Python's own over classes with torch's names, so that torch is not
needed. Where it can be had, torch.save writes tensors of every dtype, and where msProbe can be imported too
(NPUMESH_MSPROBE: a folder to import it from), it dumps two runs of a model, one of them with a fault.
"""

import io
import json
import os
import pickle
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from in_venv import run_in_venv

run_in_venv()

import case
from case import numpy as np

COMMAND = os.environ.get("NPUMESH_COMMAND", "npumesh")
FIRST, FAULTS = case.numbers(__doc__, first=1, faults=6)

try:
    import torch
except ImportError:
    torch = None

STORAGES = {"float32": "Float", "float16": "Half", "float64": "Double", "int64": "Long", "int32": "Int",
            "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool", "complex64": "ComplexFloat"}


def npumesh(*words):
    told = subprocess.run([COMMAND, *words], capture_output=True, text=True)
    if told.returncode < 0:
        raise AssertionError(f"{words} ends with signal {-told.returncode}: {told.stderr}")
    return told


class Named:
    """Something that a pickle refers to by torch's name for it."""

    def __init__(self, module, name):
        self.module, self.name = module, name


class Call:
    def __init__(self, name, *arguments):
        self.name, self.arguments = name, arguments


class Outside:
    def __init__(self, *parts):
        self.parts = parts


class TorchPickler(pickle._Pickler):  # the one in Python, whose names can be chosen
    dispatch = dict(pickle._Pickler.dispatch)

    def save_named(self, named):
        self.write(pickle.GLOBAL + f"{named.module}\n{named.name}\n".encode())

    def save_call(self, call):
        self.save(call.name)
        self.save(call.arguments)
        self.write(pickle.REDUCE)

    def save_outside(self, outside):
        self.save(outside.parts)
        self.write(pickle.BINPERSID)

    dispatch[Named], dispatch[Call], dispatch[Outside] = save_named, save_call, save_outside


def pickled(value):
    stream = io.BytesIO()
    TorchPickler(stream, protocol=2).dump(value)
    return stream.getvalue()


def write_archive(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(f"x/{name}", content)


def write_tensor(path, array):
    """As torch.save writes a view of a storage that begins two elements earlier."""
    if array.dtype == object:
        raise TypeError(array.dtype)
    base = array.base if array.base is not None and not array.flags.c_contiguous else np.ascontiguousarray(array)
    width = array.itemsize
    first, begin = (each.__array_interface__["data"][0] for each in (array, base))
    offset = (first - begin) // width if base is not array else 0
    head = bytes(2 * width)
    storage = Outside("storage", Named("torch", STORAGES[str(array.dtype)] + "Storage"), "0", "cpu", base.size + 2)
    hooks = Call(Named("collections", "OrderedDict"))
    value = Call(Named("torch._utils", "_rebuild_tensor_v2"), storage, offset + 2, array.shape,
                 tuple(stride // width for stride in array.strides), False, hooks)
    write_archive(path, {"data.pkl": pickled(value), "byteorder": "little", "data/0": head + base.tobytes()})


def entry(array, file=None):
    told = {"type": "torch.Tensor", "dtype": f"torch.{array.dtype}", "shape": list(array.shape), "requires_grad": False}
    if array.size and array.dtype != bool:
        wide = array.astype("float64")
        told.update(Max=wide.max(), Min=wide.min(), Mean=wide.mean(), Norm=float(np.sqrt((wide ** 2).sum())))
    if file:
        told["data_name"] = file
    return told


class Job:
    """A dump of a job whose ranks call the same functions, each of which reads what the one before gave."""

    def __init__(self, folder, ranks=1, steps=1, calls=6, tensors=True):
        self.folder, self.ranks, self.steps, self.calls, self.tensors = folder, ranks, steps, calls, tensors

    def name(self, call):
        return f"Torch.mul.{call}.forward" if call != 3 else "Distributed.all_reduce.3.forward"

    def write(self, seed, fault=None, ending=".pt"):
        """`fault`: (step, rank, call) whose output has one wrong element."""
        for step in range(self.steps):
            values = [np.random.default_rng([seed, step, rank]).standard_normal((4, 3)).astype("float32")
                      for rank in range(self.ranks)]
            lists = [{} for _ in range(self.ranks)]
            for call in range(self.calls):
                given = list(values)
                values = [value * np.float32(1.5) for value in given]
                if call == 3:
                    values = [sum(given)] * self.ranks
                for rank in range(self.ranks):
                    if fault == (step, rank, call):
                        values[rank] = values[rank].copy()
                        values[rank][2, 1] += 1
                    self.note(lists[rank], step, rank, call, given[rank], values[rank], ending)
            for rank in range(self.ranks):
                self.write_list(step, rank, lists[rank])
        return self.folder

    def place(self, step, rank):
        return os.path.join(self.folder, f"step{step}", f"rank{rank}")

    def note(self, calls, step, rank, call, given, value, ending):
        folder = os.path.join(self.place(step, rank), "dump_tensor_data")
        os.makedirs(folder, exist_ok=True)
        name, told = self.name(call), {}
        for side, array in (("input", given), ("output", value)):
            file = f"{name}.{side}.0{ending}" if self.tensors else None
            if file and ending == ".pt":
                write_tensor(f"{folder}/{file}", array)
            elif file:
                np.save(f"{folder}/{file}", array)
            told[side] = entry(array, file)
        calls[name] = {"input_args": [told["input"], {"type": "float", "value": 1.5}], "input_kwargs": {},
                       "output": [told["output"]]}

    def write_list(self, step, rank, calls):
        place = self.place(step, rank)
        with open(f"{place}/dump.json", "w") as file:
            json.dump({"task": "tensor" if self.tensors else "statistics", "level": "L1", "framework": "pytorch",
                       "dump_data_dir": None, "data": calls}, file)
        frames = ["File /usr/lib/python3/dist-packages/torch/functional.py, line 9, in mul, \n return x",
                  "File train.py, line 12, in forward, \n h = h * 1.5"]
        with open(f"{place}/stack.json", "w") as file:
            json.dump({str(n): [[name], frames] for n, name in enumerate(calls)}, file)
        with open(f"{place}/construct.json", "w") as file:
            json.dump({name: "Module.net.Net.forward.0" for name in calls}, file)


class MsprobeFolders(unittest.TestCase):
    def setUp(self):
        self.at = tempfile.TemporaryDirectory()
        self.addCleanup(self.at.cleanup)

    def folder(self, name):
        return os.path.join(self.at.name, name)

    def compare(self, mine, golden, *words):
        told = npumesh("dump", "compare", mine, golden, "-o", self.folder("report"), "--json", *words)
        return told.returncode, json.loads(told.stdout)

    def test_the_same_run_twice(self):
        for ending in (".pt", ".npy"):
            one, two = (Job(self.folder(name + ending), ranks=2, steps=2).write(3, ending=ending) for name in "ab")
            code, report = self.compare(one, two)
            self.assertEqual((code, report["verdict"]), (0, "same"), report)
            self.assertEqual([c["operators"] for c in report["comparisons"]], [6] * 4)

    def test_a_fault_is_named(self):
        random = np.random.default_rng(FIRST)
        for number in range(FAULTS):
            tensors = number % 3 != 2
            job = dict(ranks=3, steps=2, tensors=tensors)
            fault = tuple(int(random.integers(0, n)) for n in (2, 3, 6))
            step, rank, call = fault
            seed = int(random.integers(1 << 30))
            bad = Job(self.folder(f"bad{number}"), **job).write(seed, fault)
            good = Job(self.folder(f"good{number}"), **job).write(seed)
            code, report = self.compare(bad, good)
            found = report["findings"][0]
            name = Job(bad).name(call)
            self.assertEqual((code, found["operator"], found["rank"], found["step"]), (1, name, rank, str(step)), fault)
            self.assertEqual(found["side"], "output")
            self.assertEqual(found["called_at"],
                             "train.py, line 12, in forward: h = h * 1.5; inside Module.net.Net.forward.0")
            if tensors:
                self.assertEqual((found["differing"], found["first"]), (1, "[2,1]"))
            else:
                self.assertRegex(found["reason"], "(Max|Min|Mean|Norm) .* against ")

    def test_one_rank_and_one_step_can_be_named(self):
        job = dict(ranks=2, steps=2)
        bad = Job(self.folder("bad"), **job).write(5, (1, 1, 2))
        good = Job(self.folder("good"), **job).write(5)
        self.assertEqual(self.compare(bad, good, "--step", "0")[0], 0)
        code, report = self.compare(os.path.join(bad, "step1", "rank1"), os.path.join(good, "step1", "rank1"))
        self.assertEqual((code, report["findings"][0]["operator"]), (1, "Torch.mul.2.forward"))
        self.assertEqual(report["findings"][0]["rank"], 1)

    def test_statistics_beside_tensors(self):
        whole = Job(self.folder("whole")).write(9)
        lean = Job(self.folder("lean"), tensors=False).write(9)
        self.assertEqual(self.compare(lean, whole)[0], 0)
        self.assertEqual(self.compare(whole, lean)[0], 0)
        wrong = Job(self.folder("wrong")).write(9, (0, 0, 4))
        code, report = self.compare(wrong, lean)
        self.assertEqual((code, report["findings"][0]["operator"]), (1, "Torch.mul.4.forward"))

    def test_what_a_dump_holds(self):
        dump = Job(self.folder("dump"), ranks=2).write(1)
        steps = json.loads(npumesh("dump", "ls", "-l", dump, "--json").stdout)["steps"]
        self.assertEqual([(s["rank"], s["world_size"], s["step"], s["operators"], s["files"]) for s in steps],
                         [(0, 2, 0, 6, 12), (1, 2, 0, 6, 12)])
        self.assertEqual(steps[0]["rows"][0]["inputs"], ["float32[4,3]", "float64[]"])
        told = npumesh("dump", "stat", os.path.join(dump, "step0", "rank0"), "--op", "mul.1", "--json")
        self.assertEqual([t["tensor"] for t in json.loads(told.stdout)["folders"][0]["tensors"]],
                         ["float32[4,3]", "float64[]", "float32[4,3]"])
        lean = Job(self.folder("lean"), tensors=False).write(1)
        self.assertRegex(npumesh("dump", "stat", lean).stdout, r"the dump says min .* max .* mean .* l2 ")

    def convert(self, arrays):
        """What the reader makes of each tensor file, as .npy."""
        folder = self.folder("dump")
        os.makedirs(f"{folder}/dump_tensor_data", exist_ok=True)
        calls = {f"Torch.x.{n}.forward": {"output": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1],
                                                     "data_name": file}]} for n, file in enumerate(arrays)}
        with open(f"{folder}/dump.json", "w") as file:
            json.dump({"data": calls}, file)
        return npumesh("dump", "convert", folder, "-o", self.folder("npy"))

    def test_tensors_of_every_dtype_and_layout(self):
        os.makedirs(self.folder("dump/dump_tensor_data"))
        expected = {}
        for dtype in STORAGES:
            whole = (np.arange(24) % 7 - (0 if dtype in ("bool", "uint8") else 3)).reshape(4, 6).astype(dtype)
            for name, array in (("whole", whole), ("turned", whole.T), ("strided", whole[1::2, ::3]),
                                ("scalar", whole[2, 3:4].reshape(()).copy()), ("none", whole[:0].copy())):
                expected[f"{dtype}_{name}.pt"] = array
                write_tensor(self.folder(f"dump/dump_tensor_data/{dtype}_{name}.pt"), array)
        self.assertEqual(self.convert(expected).returncode, 0)
        for name, array in expected.items():
            got = np.load(self.folder(f"npy/{name[:-3]}.npy"))
            if array.size:  # an empty tensor becomes float64[0]
                self.assertEqual(str(got.dtype), str(array.dtype), name)
                np.testing.assert_array_equal(got.reshape(array.shape), array, name)

    @unittest.skipIf(torch is None, "torch is missing")
    def test_what_torch_saves(self):
        os.makedirs(self.folder("dump/dump_tensor_data"))
        expected = {}
        dtypes = ["float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool",
                  "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "uint16", "uint32", "uint64"]
        for name in dtypes:
            dtype = getattr(torch, name)
            whole = (torch.arange(24) % 5).reshape(4, 6).to(dtype)
            for layout, tensor in (("whole", whole), ("turned", whole.t()), ("part", whole[1:, 2:4]),
                                   ("row", whole[2]), ("expanded", whole[:1].expand(5, 6))):
                file = f"{name}_{layout}.pt"
                path = self.folder(f"dump/dump_tensor_data/{file}")
                torch.save(tensor, path, pickle_protocol=4 if layout == "row" else 2)
                expected[file] = tensor
        parameter = torch.nn.Parameter(torch.arange(3.0))
        torch.save(parameter, self.folder("dump/dump_tensor_data/parameter.pt"))
        expected["parameter.pt"] = parameter.detach()
        self.assertEqual(self.convert(expected).returncode, 0)
        for name, tensor in expected.items():
            got = np.load(self.folder(f"npy/{name[:-3]}.npy"))
            wide = tensor.dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
            np.testing.assert_array_equal(got, (tensor.float() if wide else tensor).contiguous().numpy(), name)

    def test_nothing_of_a_file_is_run(self):
        os.makedirs(self.folder("dump/dump_tensor_data"))
        witness = self.folder("witness")
        write_archive(self.folder("dump/dump_tensor_data/bad.pt"),
                      {"data.pkl": pickled(Call(Named("os", "system"), f"touch {witness}"))})
        told = self.convert(["bad.pt"])
        self.assertIn("os.system", told.stdout + told.stderr)
        self.assertFalse(os.path.exists(witness))

    def test_damaged_files_end_in_one_line(self):
        good = Job(self.folder("good")).write(2)
        bad = Job(self.folder("bad"))
        bad.write(2)
        random = np.random.default_rng(FIRST)
        for file in ("dump.json", "dump_tensor_data/Torch.mul.1.forward.output.0.pt"):
            path = os.path.join(bad.place(0, 0), file)
            with open(path, "rb") as stream:
                whole = stream.read()
            cuts = [whole[:n] for n in sorted(int(n) for n in random.integers(0, len(whole) - 30, 8))]
            for damaged in [b"", *cuts]:
                with open(path, "wb") as stream:
                    stream.write(damaged)
                told = npumesh("dump", "compare", bad.folder, good, "-o", self.folder("report"))
                self.assertEqual(told.returncode, 3, (file, len(damaged), told.stdout))
                self.assertEqual(len(told.stderr.strip().split("\n")), 1, told.stderr)
                self.assertIn(os.path.basename(file), told.stderr)
            with open(path, "wb") as stream:
                stream.write(whole)
        os.remove(os.path.join(bad.place(0, 0), "dump_tensor_data/Torch.mul.1.forward.output.0.pt"))
        self.assertEqual(npumesh("dump", "compare", bad.folder, good, "-o", self.folder("report")).returncode, 3)

    def test_processes_without_ranks_are_not_mixed(self):
        job = Job(self.folder("dump"), ranks=2)
        job.write(1)
        for rank in (0, 1):
            os.rename(job.place(0, rank), os.path.join(job.folder, "step0", f"proc{100 + rank}"))
        told = npumesh("dump", "ls", job.folder)
        self.assertNotEqual(told.returncode, 0)
        self.assertIn("both of rank 0", told.stderr)
        self.assertEqual(npumesh("dump", "ls", os.path.join(job.folder, "step0", "proc100")).returncode, 0)


PROGRAM = """
import json, sys, torch
from msprobe.pytorch import PrecisionDebugger, seed_all
out, task, level, fault = sys.argv[1:]
seed_all(1)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = torch.nn.Linear(16, 32), torch.nn.LayerNorm(32), torch.nn.Linear(32, 16)
    def forward(self, x):
        h = torch.nn.functional.gelu(self.first(x))
        h = self.norm(h)
        if fault == "yes":
            h = torch.nn.functional.relu(h)
        else:
            h = torch.nn.functional.leaky_relu(h, 0.01)
        return self.last(h).softmax(-1)
net = Net()
with open(out + ".json", "w") as file:
    json.dump({"task": task, "dump_path": out, "rank": [], "step": [], "level": level, "seed": 1,
               "tensor": {"scope": [], "list": [], "data_mode": ["all"]},
               "statistics": {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}}, file)
debugger = PrecisionDebugger(config_path=out + ".json")
for step in range(2):
    debugger.start(model=net)
    net(torch.randn(2, 3, 16)).square().sum().backward()
    debugger.stop()
    debugger.step()
"""


class TrueFolders(unittest.TestCase):
    """What msProbe itself writes."""

    def setUp(self):
        self.at = tempfile.TemporaryDirectory()
        self.addCleanup(self.at.cleanup)
        self.paths = dict(os.environ, PYTHONPATH=os.environ.get("NPUMESH_MSPROBE", ""))
        known = subprocess.run([sys.executable, "-c", "import msprobe.pytorch"], env=self.paths, capture_output=True)
        if torch is None or known.returncode != 0:
            self.skipTest("msProbe is missing")

    def dump(self, name, *words):
        folder = os.path.join(self.at.name, name)
        subprocess.run([sys.executable, "-c", PROGRAM, folder, *words], env=self.paths, check=True, capture_output=True)
        return folder

    def test_a_call_that_was_exchanged_is_found_behind_it(self):
        for task, level in (("tensor", "L1"), ("tensor", "mix"), ("statistics", "L1"), ("tensor", "L0")):
            good = self.dump(f"good_{task}_{level}", task, level, "no")
            bad = self.dump(f"bad_{task}_{level}", task, level, "yes")
            again = self.dump(f"again_{task}_{level}", task, level, "no")
            report = os.path.join(self.at.name, "report")
            same = npumesh("dump", "compare", again, good, "-o", report)
            self.assertEqual(same.returncode, 0, same.stdout + same.stderr)
            told = npumesh("dump", "compare", bad, good, "-o", report, "--json")
            found = json.loads(told.stdout)["findings"][0]
            first = "Module.last.Linear.forward.0" if level == "L0" else "Functional.linear.1.forward"
            self.assertEqual((told.returncode, found["operator"], found["step"]), (1, first, "0"), (task, level))
            self.assertEqual(found["cause"]["side"], "input")


if __name__ == "__main__":
    case.main()
