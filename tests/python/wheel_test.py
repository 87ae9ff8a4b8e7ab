"""The vendor's wheel of torch_npu over npumesh's libraries (docs/torch_npu.md): functions of torch
beside the same on the CPU, training, captures, TorchAir, ranks. Skipped where torch or the wheel is
missing (launch/install_deps --torch).

`wheel_test.py functions FILE [NAME..]` compares all functions that torch's own samples describe and
writes a line of JSON for each into FILE; it goes on after those that FILE has.
"""

import csv
import glob
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import case

WHEEL = os.environ.get("NPUMESH_TORCH_NPU_WHEEL", "")
TOLERANCE = 1e-3
AGAIN = 75
LONGEST = 120  # seconds of a function's samples


def missing():
    """Why the tests cannot run; None: they can."""
    if not os.path.isfile(os.path.join(WHEEL, "torch_npu", "lib", "libtorch_npu.so")):
        return f"there is no wheel of torch_npu at {WHEEL!r} (launch/install_deps --torch)"
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed (launch/install_deps --torch)"
    return None


def environment(**more):
    """What set_env.sh gives, with the wheel in sys.path behind npumesh's packages."""
    home = os.environ["NPUMESH_VENDOR_HOME"]
    seen = dict(os.environ)
    for name in ("NPUMESH_LIBRARY", "NPUMESH_ACL_LIBRARY"):
        seen.pop(name, None)
    packages = [os.environ["NPUMESH_PACKAGES"], WHEEL]
    seen.update(LD_LIBRARY_PATH=os.path.join(home, "lib64"), ASCEND_HOME_PATH=home,
                ASCEND_OPP_PATH=os.path.join(home, "opp"), PYTHONPATH=os.pathsep.join(packages),
                NPUMESH_TORCH_NPU="wheel", PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1", **more)
    return seen


# Below the limit of CTest, so that a program that hangs is named by its test, with what it printed.
PATIENCE = 1200


def run(test, text, words=(), launcher=(), **more):
    """What a program prints; a failure shows all of it."""
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(text)
    try:
        with subprocess.Popen([*launcher, sys.executable, file.name, *words], env=environment(**more),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
            try:
                printed, _ = running.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                # A launcher that is asked ends its ranks; they outlive one that is killed.
                running.terminate()
                printed, _ = running.communicate()
                test.fail(f"after {PATIENCE} s it still runs: {printed[-6000:]}")
    finally:
        os.unlink(file.name)
    test.assertEqual(running.returncode, 0, printed[-6000:])
    return printed


IDENTITY = """
import torch, torch_npu
assert torch_npu.__file__.startswith(WHEEL), torch_npu.__file__
assert torch.npu.is_available() and torch.npu.device_count() == 1
properties = torch.npu.get_device_properties(0)
assert properties.total_memory > 0 and properties.name.startswith("Ascend"), properties
"""

# Two steps of four are recorded.
PROFILED = """
import sys, torch, torch_npu
from torch_npu import profiler
x, w = torch.randn(64, 64).npu(), torch.randn(64, 64).npu()
kinds = [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU]
with profiler.profile(activities=kinds, schedule=profiler.schedule(wait=0, warmup=1, active=2, repeat=1),
                      on_trace_ready=profiler.tensorboard_trace_handler(sys.argv[1], analyse_flag=False)) as profile:
    for _ in range(4):
        (x @ w).relu().sum()
        torch.npu.synchronize()
        profile.step()
"""

TRAINING = """
import copy, torch, torch_npu
torch.manual_seed(0)
cpu = torch.nn.Sequential(torch.nn.Embedding(32, 16), torch.nn.Linear(16, 32), torch.nn.GELU(),
                          torch.nn.LayerNorm(32), torch.nn.Linear(32, 8))
npu = copy.deepcopy(cpu).npu()
ids, goal = torch.randint(0, 32, (4, 6)), torch.randint(0, 8, (24,))
sides = [(m, torch.optim.AdamW(m.parameters(), lr=0.01), d) for m, d in ((cpu, "cpu"), (npu, "npu"))]
for step in range(5):
    losses = []
    for model, optimizer, device in sides:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(ids.to(device)).flatten(0, 1), goal.to(device))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    assert abs(losses[0] - losses[1]) < 1e-4, (step, losses)
assert losses[0] < 2.2, losses
for a, b in zip(cpu.parameters(), npu.parameters()):
    torch.testing.assert_close(a, b.cpu(), rtol=1e-3, atol=1e-4)
with torch.autocast("npu", dtype=torch.bfloat16):
    assert (npu[1].weight @ npu[1].weight.t()).dtype == torch.bfloat16
"""

CAPTURE = """
import torch, torch_npu
x = torch.arange(6.0, device="npu")
stream = torch.npu.Stream()
graph = torch.npu.NPUGraph()
with torch.npu.graph(graph):
    y = torch.softmax(x * 2 + 1, 0)
for value in (0.5, -3.0):
    x.copy_(torch.linspace(value, 4, 6))
    graph.replay()
    torch.testing.assert_close(y.cpu(), torch.softmax(torch.linspace(value, 4, 6) * 2 + 1, 0))
begin, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
begin.record(); y + y; end.record(); end.synchronize()
assert begin.elapsed_time(end) >= 0
assert torch.npu.memory_allocated() > 0
"""

# Types and roundings that torch's own samples do not reach.
NUMBERS = """
import torch, torch_npu
torch.manual_seed(0)
def beside(function, *tensors, **more):
    torch.testing.assert_close(function(*(t.npu() for t in tensors)).cpu(), function(*tensors), **more)
magnitude, angle = torch.rand(4, 3), torch.randn(4, 3)
gradients = []
for device in ("cpu", "npu"):
    a, b = (t.to(device, copy=True).requires_grad_() for t in (magnitude, angle))
    torch.polar(a, b).real.sum().backward()
    gradients.append((a.grad.cpu(), b.grad.cpu()))
torch.testing.assert_close(gradients[1], gradients[0])
beside(lambda x: x * (2 - 3j) + 1j, magnitude)
x = torch.randn(64, 50)
for dtype in (torch.float16, torch.bfloat16):
    h, w, bias, y = x.to(dtype), torch.randn(50, 20, dtype=dtype), torch.randn(20, dtype=dtype), (x + 2).to(dtype)
    for number in (0.2, 3.7):
        beside(lambda t: t / number, h, rtol=0, atol=0)
    # No quotient lies next to a whole number.
    beside(lambda t: torch.div(t, 3.71, rounding_mode="floor"), h, rtol=0, atol=0)
    beside(lambda a, b, c: torch.addcdiv(a, b, c, value=-2.3), h, h.flip(0), y, rtol=0, atol=0)
    # One rounding of sums, whose order may differ: next to the product in float32.
    for c in (bias, torch.randn(64, 20).to(dtype)):
        once = torch.addmm(c.float(), h.float(), w.float()).to(dtype)
        got = torch.addmm(c.npu(), h.npu(), w.npu()).cpu()
        assert (got != once).sum() <= 2, (got != once).sum()
for dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
    limits = torch.iinfo(dtype)
    t = torch.empty(2000, dtype=dtype, device="npu").random_(limits.min, None).cpu().double()
    assert limits.min <= t.min() < 0.9 * limits.min and 0.9 * limits.max < t.max() <= limits.max, (dtype, t)
for dtype, end in ((torch.float16, 2049), (torch.float16, 65504), (torch.bfloat16, 257), (torch.float32, 1 << 62)):
    t = torch.empty(20000, dtype=dtype, device="npu").random_(-42, end).cpu().double()
    assert -42 <= t.min() and 0.9 * end < t.max() < end, (dtype, end, t.max())
whole = torch.ones(3, dtype=torch.int64, device="npu")
try:
    whole.add_(torch.ones(3, device="npu"))
except RuntimeError as error:
    assert "result type Float can't be cast to the desired output type Long" in str(error), error
else:
    raise AssertionError("integers took real numbers")
"""

TORCHAIR = """
import torch, torch_npu, torchair
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)
    def forward(self, x):
        return torch.softmax(self.b(torch.nn.functional.silu(self.a(x))), -1)
torch.manual_seed(0)
block = Block()
x = torch.randn(3, 8)
expected = block(x).detach()
block.npu()
for mode in ("max-autotune", "reduce-overhead"):
    config = torchair.CompilerConfig()
    config.mode = mode
    torch._dynamo.reset()
    compiled = torch.compile(block, backend=torchair.get_npu_backend(compiler_config=config), dynamic=False)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(compiled(x.npu()).cpu(), expected)
"""

RANKS = """
import os, torch, torch_npu
import torch.distributed as dist
if "RANK" not in os.environ:
    os.environ["RANK"] = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK"))
    os.environ["WORLD_SIZE"] = os.environ.get("OMPI_COMM_WORLD_SIZE", os.environ.get("PMI_SIZE"))
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.npu.set_device(rank)
dist.init_process_group("hccl")
x = torch.full((5,), float(rank + 1), device="npu")
dist.all_reduce(x)
assert x.cpu().tolist() == [size * (size + 1) / 2] * 5
parts = [torch.zeros(2, device="npu") for _ in range(size)]
dist.all_gather(parts, torch.full((2,), float(rank), device="npu"))
assert [part.cpu().tolist() for part in parts] == [[r, r] for r in map(float, range(size))]
torch.manual_seed(3)
model = torch.nn.Linear(4, 2)
alone = torch.nn.Linear(4, 2)
alone.load_state_dict(model.state_dict())
data = torch.randn(size * 3, 4)
alone(data).pow(2).mean().backward()
ddp = torch.nn.parallel.DistributedDataParallel(model.npu(), device_ids=[rank])
ddp(data[rank * 3:rank * 3 + 3].npu()).pow(2).mean().backward()
torch.testing.assert_close(ddp.module.weight.grad.cpu(), alone.weight.grad)
if rank == 0:
    dist.send(torch.arange(3.0, device="npu"), 1)
elif rank == 1:
    got = torch.zeros(3, device="npu")
    dist.recv(got, 0)
    assert got.cpu().tolist() == [0, 1, 2]
dist.barrier()
dist.destroy_process_group()
print(f"rank {rank} is done")
"""

# Rank 1 ends before the second sum.
KILLED = """
import os, signal, torch, torch_npu
import torch.distributed as dist
rank = int(os.environ["RANK"])
torch.npu.set_device(rank)
dist.init_process_group("hccl")
x = torch.ones(4, device="npu")
dist.all_reduce(x)
torch.npu.synchronize()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    dist.all_reduce(x)
    torch.npu.synchronize()
except RuntimeError as error:
    print("failed:", " ".join(str(error).split()), flush=True)
os._exit(0)  # the group cannot be ended any more
"""


def program(name):
    """The text of a program beside this file."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), encoding="utf-8") as file:
        return file.read()


# Of each kind of function some; all of them by the word `functions`.
SOME = ("add", "sub", "mul", "div.no_rounding_mode", "addmm", "matmul", "bmm", "exp", "log", "sigmoid", "tanh",
        "nn.functional.relu", "nn.functional.gelu", "nn.functional.silu", "softmax", "log_softmax", "sum", "mean",
        "amax", "argmax", "cumsum", "sort", "topk", "cat", "stack", "where", "masked_fill", "tril", "take_along_dim",
        "maximum", "nn.functional.linear", "nn.functional.conv2d", "nn.functional.avg_pool1d",
        "nn.functional.mse_loss", "nn.functional.embedding", "clamp_min", "eq", "pow", "sqrt", "permute")


class Wheel(unittest.TestCase):
    def test_identity(self):
        run(self, f"WHEEL = {os.path.abspath(WHEEL)!r}\n" + IDENTITY)

    def test_training_is_as_on_the_cpu(self):
        run(self, TRAINING)

    def test_numbers_are_as_on_the_cpu(self):
        run(self, NUMBERS)

    def test_streams_events_and_captured_graphs(self):
        run(self, CAPTURE)

    def test_torchair_of_the_wheel(self):
        run(self, TORCHAIR)

    def test_profiler(self):
        """What the wheel's analysis reads; it drops its own parsers after half a second, so it is not run here."""
        msprof = os.path.join(os.environ["NPUMESH_VENDOR_HOME"], "tools", "profiler", "bin", "msprof")
        with tempfile.TemporaryDirectory() as folder:
            run(self, PROFILED, words=(folder,))
            profiles = glob.glob(os.path.join(folder, "*_ascend_pt", "PROF_*"))
            self.assertEqual(len(profiles), 1)
            output = os.path.join(profiles[0], "mindstudio_profiler_output")
            shutil.rmtree(output)
            subprocess.run([msprof, "--export=on", f"--output={profiles[0]}"], check=True, stdout=subprocess.DEVNULL)
            with open(glob.glob(os.path.join(output, "op_summary_*.csv"))[0], encoding="utf-8") as file:
                kernels = [row["Op Name"] for row in csv.DictReader(file)]
            self.assertTrue(os.path.isfile(os.path.join(profiles[0], "host", "start_info")))
        self.assertEqual(kernels.count("aclnnRelu"), 2)

    def test_choice(self):
        """NPUMESH_TORCH_NPU decides."""
        program = "import torch_npu; print(torch_npu.__file__)"
        words = [sys.executable, "-c", program]
        for choice, code, text in (("own", 0, os.environ["NPUMESH_PACKAGES"]), ("", 0, WHEEL),
                                   ("both", 1, "is 'both', expected own or wheel")):
            env = environment(TORCH_DEVICE_BACKEND_AUTOLOAD="0")
            env["NPUMESH_TORCH_NPU"] = choice
            done = subprocess.run(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, code, done.stdout)
            self.assertIn(text, done.stdout)

    def test_the_command_names_what_the_wheel_needs(self):
        env = {name: value for name, value in environment().items()
               if name not in ("LD_LIBRARY_PATH", "ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "NPUMESH_TORCH_NPU")}
        env["PYTHONPATH"] = WHEEL
        program = "import torch_npu, torch; print(torch_npu.__version__, torch.ones(2).npu().sum().item())"
        done = subprocess.run([os.environ["NPUMESH_COMMAND"], "python", "--vendor", "--python", sys.executable, "-c",
                               program], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(" 2.0", done.stdout)

    def test_what_the_doctor_says(self):
        env = {**environment(), "NPUMESH_PYTHON": sys.executable, "PYTHONPATH": WHEEL}
        done = subprocess.run([os.environ["NPUMESH_COMMAND"], "doctor", "--torch"], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"ok    linked names: (\d{2,}) of \1 are there")
        there, all_of_them = map(int, re.search(r"aclnn functions: (\d+) of (\d+)", done.stdout).groups())
        self.assertGreater(there, 700)
        self.assertGreater(all_of_them, there)

    def test_functions(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "functions.json")
            done = subprocess.run([sys.executable, __file__, "functions", path, *SOME], env=environment(),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
            self.assertEqual(done.returncode, 0, done.stdout[-4000:])
            with open(path) as file:
                lines = [json.loads(line) for line in file]
        self.assertEqual({line["op"] for line in lines}, set(SOME))
        self.assertEqual([line for line in lines if line["state"] != "ok"], [])
        self.assertGreater(sum(line["samples"] for line in lines), 200)


class Ranks(unittest.TestCase):
    def check(self, launcher, **more):
        text = run(self, RANKS, launcher=launcher, **more)
        for rank in range(2):
            self.assertIn(f"rank {rank} is done", text)

    def test_ranks_of_mpi(self):
        self.check([*os.environ["NPUMESH_MPIRUN_WORDS"].split(), "-n", "2"], MASTER_ADDR="127.0.0.1",
                   MASTER_PORT=str(free_port()))

    def test_ranks_of_torchrun(self):
        self.check([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2",
                    "--no-python"])

    def test_what_is_above_collectives(self):
        text = run(self, program("wheel_ranks_program.py"),
                   launcher=[sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2",
                             "--no-python"])
        for rank in range(2):
            self.assertIn(f"rank {rank} saves_and_loads", text)

    def test_a_killed_rank_is_named(self):
        place = dict(WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
        killed = subprocess.Popen([sys.executable, "-c", KILLED], env=environment(RANK="1", **place),
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with killed:
            text = run(self, KILLED, RANK="0", **place)
        self.assertEqual(killed.returncode, -signal.SIGKILL)
        self.assertRegex(text, r"failed: .*HcclAllReduce: rank 1 of 2 \(process \d+\) has ended")

    def test_ranks_of_spawn(self):
        text = run(self, program("spawned_program.py"), words=(str(free_port()),))
        for rank in range(2):
            self.assertIn(f"rank {rank} is done", text)


def free_port():
    import socket
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return door.getsockname()[1]


# ---- Functions ----

def leaves(value):
    from torch.utils._pytree import tree_leaves
    return tree_leaves(value)


def moved(value):
    import torch
    from torch.utils._pytree import tree_map

    def move(leaf):
        if isinstance(leaf, torch.Tensor):
            return leaf.detach().to("npu")
        return torch.device("npu") if isinstance(leaf, torch.device) else "npu" if leaf == "cpu" else leaf

    return tree_map(lambda leaf: move(leaf) if isinstance(leaf, (torch.Tensor, torch.device, str)) else leaf, value)


def differs(op, sample):
    """How the results of a sample differ, a text; None: they agree, or the CPU refuses the sample."""
    import torch
    words = (sample.input, *sample.args)
    try:
        there, named_there = moved(words), moved(sample.kwargs)  # before the CPU may write to them
        try:
            expected = op(*words, **sample.kwargs)
        except Exception:
            return None
        got = op(*there, **named_there)
        for mine, right in zip(leaves(got), leaves(expected)):
            if isinstance(right, torch.Tensor):
                torch.testing.assert_close(mine.cpu(), right, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True,
                                           check_stride=False)
    except Exception as error:  # whatever the wheel raises is a result of this comparison
        shapes = [tuple(leaf.shape) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves(words)]
        return f"{type(error).__name__}: {' '.join(str(error).split())[:600]} | {shapes} {sample.kwargs}"[:900]
    return None


def written(path):
    """The functions that FILE has."""
    if not os.path.exists(path):
        return set()
    with open(path) as file:
        return {json.loads(line)["op"] for line in file}


def compare_functions(path, names):
    """Writes a line for each function; ends with AGAIN after one that has left the stream failed."""
    os.environ["ASCEND_LAUNCH_BLOCKING"] = "1"
    import torch
    import torch_npu  # noqa: F401
    from torch.testing._internal.common_methods_invocations import op_db
    known = written(path)
    for op in op_db:
        name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
        if (names and name not in names) or name in known:
            continue
        with open(path + ".begun", "w") as begun:
            begun.write(name)
        signal.alarm(LONGEST)  # it ends this process
        torch.manual_seed(0)
        dtype = torch.float32 if torch.float32 in op.supported_dtypes("cpu") else torch.int64
        samples = [sample for _, sample in zip(range(12), op.sample_inputs("cpu", dtype))]
        found = [text for text in (differs(op, sample) for sample in samples) if text]
        signal.alarm(0)
        with open(path, "a") as out:
            out.write(json.dumps({"op": name, "state": "differs" if found else "ok", "samples": len(samples),
                                  "differ": len(found), "first": found[0] if found else ""}) + "\n")
        if any("ynchronize" in text for text in found):
            return AGAIN
    return 0


def compare_in_children(path, names):
    """compare_functions until it has been through; a child that dies is a result of its function."""
    while True:
        done = subprocess.run([sys.executable, __file__, "some-functions", path, *names])
        if done.returncode == 0:
            return
        if done.returncode == AGAIN:
            continue
        with open(path + ".begun") as begun:
            name = begun.read()
        if done.returncode > 0 or name in written(path):
            sys.exit(f"the comparison ended with {done.returncode} at {name}")
        with open(path, "a") as out:
            out.write(json.dumps({"op": name, "state": "killed", "samples": 0, "differ": 0,
                                  "first": f"signal {-done.returncode}"}) + "\n")


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        case.run_in_venv()
    if sys.argv[1:2] == ["some-functions"]:
        sys.exit(compare_functions(sys.argv[2], sys.argv[3:]))
    if sys.argv[1:2] == ["functions"]:
        compare_in_children(sys.argv[2], sys.argv[3:])
        sys.exit(0)
    if missing():
        print("SKIPPED:", missing())
        sys.exit(case.SKIPPED)
    unittest.main()
