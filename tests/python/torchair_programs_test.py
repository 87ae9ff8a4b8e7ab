"""Programs over TorchAir and torch_npu: the scripts of the vendor's page, captured graphs beside eager
ones, and models that are compiled on several ranks."""

import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest
import warnings

import case
import torchair_case

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "torchair_rank_program.py")
sys.path.insert(0, os.path.join(HERE, "..", "mpi"))

import launcher  # noqa: E402

if not torchair_case.MISSING:
    import torch
    import torch_npu
    import torchair
    from torchair.configs.compiler_config import CompilerConfig


def start(words, folder=None, **environment):
    done = subprocess.run([*words], capture_output=True, text=True, timeout=1200, cwd=folder,
                          env=case.plain_environment(**environment), check=False)
    return done.returncode, done.stdout + done.stderr


# Where a statement begins in a script whose lines were joined.
_STATEMENT = re.compile(
    r"(?<!from torchair )(?=\bimport )|(?=\b(?:from|class|def|return|if) )|(?=super\(\)\.)|"
    r"(?=self\.p\d = )|(?<![.\w])(?=\w+ = )|(?=torch\.(?:distributed|multiprocessing)\.)|"
    r"(?=torchair\.dynamo_export\()|(?=config\.export\.)|(?=os\.environ\[)|(?=\bmp\(\)$)")


def with_lines(joined):
    """The script of a page that has it as one line: indentation follows from what begins."""
    lines, indent, in_class = [], 0, False
    for statement in filter(None, map(str.strip, _STATEMENT.split(joined))):
        if statement.startswith("class "):
            indent, in_class, after = 0, True, 4
        elif statement.startswith("def "):
            in_class = in_class and bool(re.match(r"def (__init__|forward)\b", statement))
            indent, after = (4, 8) if in_class else (0, 4)
        elif statement.startswith("if "):
            indent, after = 0, 4
        else:
            after = indent
        body = re.match(r"((?:class|def|if) .*?:) (\S.*)$", statement)
        if body:
            lines += [" " * indent + body[1], " " * after + body[2]]
        else:
            lines.append(" " * indent + statement)
        indent = after
        if statement.startswith("return"):
            indent, in_class = 0, False
    return "\n".join(lines) + "\n"


class Page(unittest.TestCase):
    """The two scripts of the page of dynamo_export, as printed; the page is not part of this
    repository."""

    def setUp(self):
        pages = glob.glob(os.path.join(os.environ.get("NPUMESH_SHARED_DIR", ""), "seeds", "001_*"))
        if not pages:
            self.skipTest("the page of dynamo_export is not in NPUMESH_SHARED_DIR")
        with open(pages[0], encoding="utf-8") as file:
            text = file.read()
        self.scripts = re.findall(r"^import torch.*class .*$", text, re.M)
        self.assertEqual(len(self.scripts), 2)

    def files_of(self, script):
        """What it leaves behind."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "example.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(with_lines(script))
            code, output = start([os.environ["NPUMESH_COMMAND"], "python", "--python",
                                  sys.executable, "--torchair", torchair_case.CHECKOUT,
                                  "example.py"], folder)
            self.assertEqual(code, 0, output)
            return {os.path.relpath(os.path.join(place, name), folder)
                    for place, _, names in os.walk(folder) for name in names} - {"example.py"}

    def test_one_device(self):
        # Weights below 1.8 GiB are in the graph itself, not in the files p1 and p2 of the page.
        self.assertEqual(self.files_of(self.scripts[0]),
                         {"test_export_file_False/dynamo.pbtxt", "test_export_file_False/export.air"})

    def test_two_devices(self):
        seen = self.files_of(self.scripts[1])
        self.assertLessEqual({"mp/mp_rank0.air", "mp/mp_rank1.air", "mp/rank_0/dynamo.pbtxt",
                              "mp/rank_1/dynamo.pbtxt", "mp/model_relation_config.json",
                              "mp/numa_config.json"}, seen)


class Captured(unittest.TestCase):
    """Modes of TorchAir that capture and replay, beside eager runs."""

    MODES = ("reduce-overhead", "npugraph_ex")

    def compiled(self, function, mode, dynamic=False):
        torch._dynamo.reset()
        config = CompilerConfig()
        config.mode = mode
        return torch.compile(function, backend=torchair.get_npu_backend(compiler_config=config),
                             dynamic=dynamic, fullgraph=True)

    def test_a_model_equals_the_eager_one(self):
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)
                self.gamma = torch.nn.Parameter(torch.rand(8))

            def forward(self, x):
                y = torch_npu.npu_rms_norm(x, self.gamma)[0]
                return self.second(torch.relu(self.first(y))) + x

        model = Model().npu().eval()
        for mode in self.MODES:
            for dynamic in (False, True):
                with self.subTest(mode=mode, dynamic=dynamic), torch.no_grad():
                    run = self.compiled(model, mode, dynamic)
                    for rows in (4, 4, 7, 7, 4):
                        x = torch.randn(rows, 8, device="npu")
                        torch.testing.assert_close(run(x), model(x))

    def test_static_kernels_of_captured_graphs(self):
        def chain(x):
            return torch.tanh(x * 2 + 1).exp() - x

        with tempfile.TemporaryDirectory() as folder:
            config = CompilerConfig()
            config.mode = "reduce-overhead"
            config.experimental_config.aclgraph._aclnn_static_shape_kernel = True
            config.experimental_config.aclgraph._aclnn_static_shape_kernel_build_dir = folder
            torch._dynamo.reset()
            run = torch.compile(chain, backend=torchair.get_npu_backend(compiler_config=config),
                                dynamic=False)
            for _ in range(3):
                x = torch.randn(64, 64)
                torch.testing.assert_close(run(x), chain(x))
            # The operators that became one kernel, as docs/static_kernels.md tells.
            made = glob.glob(f"{folder}/aclnn_static_shape_kernel_outputs/*_outputs/*[0-9]/Tanh_*.json")
            self.assertEqual(len(made), 1, os.listdir(folder))

    def test_what_is_updated_in_place(self):
        def step(cache, x, at):
            cache.add_(x)
            torch_npu.npu_scatter_nd_update_(cache, at, x[:1])
            return cache * 2

        for mode in (*self.MODES, "max-autotune"):
            with self.subTest(mode=mode):
                run = self.compiled(step, mode)
                cache = torch.zeros(4, 8)
                plain = cache.clone()
                for row in range(4):
                    x, at = torch.randn(4, 8), torch.tensor([[row]])
                    torch.testing.assert_close(run(cache, x, at), step(plain, x, at))
                    torch.testing.assert_close(cache, plain)


class Ranks(unittest.TestCase):
    def setUp(self):
        if not case.mpirun():
            self.skipTest("this build has no tests with mpirun")

    def test_compiled_models_on_two_ranks(self):
        cases = ("all_reduce", "captured", "training")
        code, output = start([*case.mpirun(), "-n", "2", sys.executable, PROGRAM, *cases])
        self.assertEqual(code, 0, output)
        for each in cases:
            for rank in (0, 1):
                self.assertIn(f"passed {each} {rank}", output)

    def test_a_killed_rank_is_an_exception_of_the_others(self):
        _, output = start([*case.mpirun(), *launcher.RECOVERY, "-n", "2", sys.executable, PROGRAM,
                           "killed"])
        self.assertRegex(output, r"rank 0 saw RuntimeError: .*HcomAllReduce.*"
                                 r"rank 1 of 2 \(process \d+\) has ended")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torchair_case.main()
