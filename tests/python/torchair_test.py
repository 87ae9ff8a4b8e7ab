"""The native module _torchair below the unmodified Python of TorchAir: compiled models against eager
ones, and what the module answers by itself."""

import os
import runpy
import subprocess
import sys
import tempfile
import unittest

import docs_test
import torchair_case

if not torchair_case.MISSING:
    import torch
    import torchair
    from torchair.core import _torchair
    from torchair.core._backend import TorchNpuGraph


def compiled(function, dynamic=False, config=None):
    torch._dynamo.reset()
    return torch.compile(function, backend=torchair.get_npu_backend(compiler_config=config),
                         dynamic=dynamic)


class Origin(unittest.TestCase):
    """Where a node of the graph that failed comes from, in the message."""

    def test_an_error_names_the_fx_node_the_module_and_the_line(self):
        class Gather(torch.nn.Module):
            def forward(self, x, at):
                return x[at]  # the line

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.gather = Gather()

            def forward(self, x, at):
                return self.gather(x * 2, at) + 1

        run = compiled(Model())
        self.assertEqual(run(torch.arange(4.0), torch.tensor([3])).item(), 7)
        with open(__file__, encoding="utf-8") as file:
            line = next(at for at, text in enumerate(file, 1) if "# the line" in text)
        with self.assertRaises(RuntimeError) as caught:
            run(torch.arange(4.0), torch.tensor([9]))
        said = str(caught.exception).splitlines()[0]
        self.assertRegex(said, r'node "\w+" \(\w+\) of FX node "index", module gather \(Gather\), '
                               rf'File ".*{os.path.basename(__file__)}", line {line}, in forward: ')


class Compiled(unittest.TestCase):
    def test_inputs_that_get_the_same_value(self):
        def same(a, b):
            b.mul_(0.5)
            a.copy_(b.clone())
            return b + 1

        def swapped(a, b):
            old = a.clone()
            a.copy_(b)
            b.copy_(old)
            return a - b

        for function in (same, swapped):
            run = compiled(function)
            ours = [torch.randn(4, 6), torch.randn(4, 6)]
            plain = [each.clone() for each in ours]
            for _ in range(3):
                self.assertTrue(torch.equal(run(*ours), function(*plain)))
                for one, other in zip(ours, plain):
                    self.assertTrue(torch.equal(one, other))

    def test_an_add_equals_eager(self):
        x, y = torch.randn(2, 3), torch.randn(2, 3)
        self.assertTrue(torch.equal(compiled(lambda a, b: a + b)(x, y), x + y))

    def test_attention_takes_its_decomposed_form(self):
        query, mask = torch.randn(2, 3, 5, 8), torch.randn(5, 5)
        attend = torch.nn.functional.scaled_dot_product_attention
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
        heads = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
        for function, *given in ((lambda q: attend(q, q, q, is_causal=True), query),
                                 (lambda q: attend(q, q, q), query.npu()),
                                 (lambda q, m: attend(q, q, q, attn_mask=m), query, mask),
                                 (lambda x: heads(x, x, x)[0], query[0]), (layer, query[0])):
            with torch.no_grad():
                torch.testing.assert_close(compiled(function)(*given), function(*given))

    def test_a_copy_in_a_compiled_function_is_other_memory(self):
        def moved(x):
            y = x.npu()
            y += 1
            return y

        x = torch.zeros(3)
        self.assertEqual((compiled(moved)(x).tolist(), x.tolist()), ([1, 1, 1], [0, 0, 0]))

    def test_shapes_change_from_call_to_call(self):
        model = compiled(lambda a, b: (a @ b.T).softmax(-1), dynamic=True)
        for size in (2, 5, 7, 3):
            x, y = torch.randn(size, 4), torch.randn(size + 1, 4)
            torch.testing.assert_close(model(x, y), (x @ y.T).softmax(-1))

    def test_an_integer_argument_is_a_scalar_of_the_graph(self):
        model = compiled(lambda a, n: a * n + n, dynamic=True)
        for n in (2, 3, 100):
            x = torch.randn(3)
            torch.testing.assert_close(model(x, n), x * n + n)

    def test_an_input_is_updated_in_place(self):
        def update(x, y):
            x.add_(y)
            return x * 2

        x, y = torch.randn(4), torch.randn(4)
        expected = x + y
        address = x.data_ptr()
        seen = compiled(update)(x, y)
        self.assertTrue(torch.equal(x, expected))
        self.assertTrue(torch.equal(seen, expected * 2))
        self.assertEqual(x.data_ptr(), address)

    def test_an_input_with_an_offset_and_one_with_gaps(self):
        memory = torch.randn(100)
        x, y = memory[10:22].view(3, 4), memory[40:52].view(4, 3).T
        self.assertTrue(torch.equal(compiled(lambda a, b: a - b)(x, y), x - y))

    def test_tensors_without_elements(self):
        model = compiled(lambda a, b: torch.cat([a, b]))
        x, y = torch.empty(0, 3), torch.randn(2, 3)
        self.assertTrue(torch.equal(model(x, y), y))

    def test_a_model_is_trained(self):
        torch.manual_seed(3)
        layers = [torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)]
        plain = torch.nn.Sequential(*layers)
        import copy
        other = copy.deepcopy(plain)
        model = compiled(other)
        steps = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (plain, other)]
        for _ in range(4):
            x = torch.randn(5, 6)
            losses = [each(x).square().mean() for each in (plain, model)]
            torch.testing.assert_close(losses[1], losses[0])
            for loss, step in zip(losses, steps):
                step.zero_grad()
                loss.backward()
                step.step()
        for mine, theirs in zip(other.parameters(), plain.parameters()):
            torch.testing.assert_close(mine, theirs)


class Module(unittest.TestCase):
    """The module without Dynamo."""

    def graph(self, function, *inputs):
        """The TorchNpuGraph that a compiled function has made, and the inputs of its last run."""
        seen = []
        run = TorchNpuGraph.run

        def watched(graph, *args, **kwargs):
            seen[:] = [graph, args[0]]
            return run(graph, *args, **kwargs)

        TorchNpuGraph.run = watched
        try:
            compiled(function)(*inputs)
        finally:
            TorchNpuGraph.run = run
        return seen

    def test_nothing_is_copied(self):
        x, y = torch.randn(64, 64), torch.randn(64, 64)
        graph, inputs = self.graph(lambda a, b: a @ b + a, x, y)
        for _ in range(3):
            outputs = graph.run(inputs)
        torch.testing.assert_close(outputs[0], x @ y + x)
        stats = graph.stats()
        self.assertEqual(stats["runs"], 4)
        self.assertEqual(stats["plans"], 1)
        self.assertEqual((stats["input_bytes_copied"], stats["output_bytes_copied"]), (0, 0))

    def test_an_assigned_output_is_the_tensor_that_was_given(self):
        x, y = torch.randn(3), torch.randn(3)
        graph, inputs = self.graph(lambda a, b: a + b, x, y)
        place = torch.zeros(3)
        outputs = graph.run(inputs, [place])
        self.assertIs(outputs[0], place)
        self.assertTrue(torch.equal(place, x + y))
        gaps = torch.zeros(3, 2)[:, 0]
        self.assertIs(graph.run(inputs, [gaps])[0], gaps)
        self.assertTrue(torch.equal(gaps, x + y))

    def test_what_is_no_tensor_is_named(self):
        graph, inputs = self.graph(lambda a, b: a + b, torch.ones(2), torch.ones(2))
        for wrong, text in ((None, "element 1 is None"), (7, "element 1 is not a Tensor")):
            with self.assertRaisesRegex(RuntimeError, text):
                graph.run([inputs[0], wrong])
            with self.assertRaisesRegex(RuntimeError, text):
                graph.auto_tune([inputs[0], wrong])

    def test_the_number_of_inputs_is_checked(self):
        graph, inputs = self.graph(lambda a, b: a + b, torch.ones(2), torch.ones(2))
        with self.assertRaisesRegex(RuntimeError, "has 2 inputs, 1 were given"):
            graph.run(inputs[:1])
        with self.assertRaisesRegex(RuntimeError, "has 1 outputs, 2 were assigned"):
            graph.run(inputs, [None, None])

    def test_another_shape_is_refused(self):
        graph, inputs = self.graph(lambda a, b: a + b, torch.ones(2), torch.ones(2))
        with self.assertRaisesRegex(RuntimeError, r"run of graph graph_\d+: .*\[2\].*\[3\]"):
            graph.run([inputs[0], torch.ones(3)])

    def test_a_graph_that_is_not_loaded(self):
        graph = _torchair.TorchNpuGraphBase("")
        with self.assertRaisesRegex(RuntimeError, "must after load"):
            graph.set_hint_shape([], [])
        with self.assertRaisesRegex(RuntimeError, "not loaded"):
            graph.compile()
        with self.assertRaisesRegex(RuntimeError, "not compiled"):
            graph.run(([], [], None))
        with self.assertRaisesRegex(RuntimeError, "Executor type is unknown"):
            graph.load(b"", {}, [], [], 2)
        graph.load(b"garbage", {}, [], [], 0)
        with self.assertRaisesRegex(RuntimeError, "load of graph"):
            graph.compile()

    def test_finalize_unloads_graphs_and_may_come_at_any_time(self):
        graph, inputs = self.graph(lambda a, b: a + b, torch.ones(2), torch.ones(2))
        _torchair.FinalizeGraphEngine()
        _torchair.FinalizeGraphEngine()
        with self.assertRaisesRegex(RuntimeError, "not compiled"):
            graph.run(inputs)
        x = torch.randn(2)
        self.assertTrue(torch.equal(compiled(lambda a: a + a)(x), x + x))

    def test_the_device_of_the_engine_is_checked(self):
        _torchair.FinalizeGraphEngine()
        with self.assertRaisesRegex(RuntimeError, "ge.exec.deviceId is missing"):
            _torchair.InitializeGraphEngine({})
        with self.assertRaisesRegex(RuntimeError, 'ge.exec.deviceId.*seen "-1"'):
            _torchair.InitializeGraphEngine({"ge.exec.deviceId": "-1"})
        with self.assertRaisesRegex(TypeError, "options: expected a str, seen int"):
            _torchair.InitializeGraphEngine({"ge.exec.deviceId": 1})

    def test_operators_are_those_of_the_registry(self):
        status, inputs, outputs, attrs = _torchair.get_registered_ir_def("MatMulV2")
        self.assertEqual(status, "SUCCESS")
        self.assertEqual(inputs[:2], [("x1", "required"), ("x2", "required")])
        self.assertEqual(outputs, [("y", "required")])
        self.assertIn(("transpose_x1", "VT_BOOL"), attrs)
        self.assertEqual(_torchair.get_registered_ir_def("NoSuch"), ("ERROR", [], [], []))

    def test_optional_parts_of_operators(self):
        self.assertEqual(_torchair.check_cann_compat("MatMulV2", ["bias"], ["offset_x"]), "")
        self.assertEqual(_torchair.check_cann_compat("MatMulV2", ["bias", "more"], ["other"]),
                         "optype MatMulV2 unsupported optional input [more], "
                         "optional attr [other], please upgrade cann version.")
        self.assertEqual(_torchair.check_cann_compat("NoSuch", [], []),
                         "OperatorFactory find optype NoSuch failed, maybe you need upgrade cann "
                         "version.")

    def test_an_operator_that_npumesh_lacks_is_declared(self):
        inputs, outputs = [("x", "required"), ("z", "optional")], [("y", "required")]
        _torchair.declare_operator("Foreign", inputs, outputs, [("alpha", "VT_FLOAT")])
        self.assertEqual(_torchair.get_registered_ir_def("Foreign"),
                         ("SUCCESS", inputs, outputs, [("alpha", "VT_FLOAT")]))
        self.assertEqual(_torchair.check_cann_compat("Foreign", ["z"], ["alpha"]), "")
        self.assertIn("input [w], optional attr [beta]",
                      _torchair.check_cann_compat("Foreign", ["z", "w"], ["beta"]))
        with self.assertRaisesRegex(RuntimeError, "npumesh has the operator Add"):
            _torchair.declare_operator("Add", inputs, outputs, [])
        with self.assertRaisesRegex(TypeError, "pairs of a name and a kind"):
            _torchair.declare_operator("Other", [("x",)], [], [])

    def test_foreign_memory_becomes_tensors(self):
        memory = torch.arange(6, dtype=torch.int32)
        code, (seen,) = _torchair.as_torch_tensors([2, 3], _torchair.INT32, [memory.data_ptr()])
        self.assertEqual((code, seen.dtype, tuple(seen.shape)), (0, torch.int32, (2, 3)))
        seen[1, 2] = 50
        self.assertEqual(memory.tolist(), [0, 1, 2, 3, 4, 50])
        self.assertEqual(_torchair.as_torch_tensors([1], 77, [memory.data_ptr()]), (1, []))
        scalar = _torchair.as_torch_tensors([], _torchair.INT32, [memory.data_ptr()])[1][0]
        self.assertEqual((tuple(scalar.shape), scalar.item()), ((), 0))
        with self.assertRaisesRegex(RuntimeError, "seen 4 bytes at 0"):
            _torchair.as_torch_tensors([1], _torchair.INT32, [0])

    def test_lines_of_the_log_go_to_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "debug.log")
            code = ("import torch, torchair; from torchair.core import _torchair; "
                    f"_torchair.SetDebugLogPath({path!r}); "
                    "f = torch.compile(lambda x: x + x, backend=torchair.get_npu_backend()); "
                    "f(torch.ones(2))")
            for level, expected in (("1", True), ("many", False)):
                done = subprocess.run(
                    [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True,
                    env={**os.environ, "TNG_LOG_LEVEL": level}, check=True, timeout=1200)
                text = ""
                if os.path.exists(path):
                    with open(path, encoding="utf-8") as file:
                        text = file.read()
                self.assertEqual("is compiled: static graph, 1 inputs, 1 outputs" in text, expected)
                if expected:
                    self.assertRegex(text, r"^\[INFO\] TORCHAIR\(\d+,python[^)]*\):\d{4}-\d\d-\d\d-"
                                     r"\d\d:\d\d:\d\d\.\d{3}\.\d{3} \[\w+\.cc:\d+\]\d+ ")
                    os.remove(path)
                self.assertEqual('expected 0 (DEBUG) to 4 (EVENT), seen "many"' in done.stderr,
                                 level == "many")

    def test_one_kind_of_arguments_is_dumped(self):
        _torchair.AclopStartDumpArgs(1, ".")
        _torchair.AclopStopDumpArgs(1)
        with self.assertRaisesRegex(RuntimeError, "expected the kind 1, seen 2"):
            _torchair.AclopStopDumpArgs(2)

    def test_numbers_of_types_of_torch(self):
        self.assertEqual(_torchair.TorchDataType.BF16, _torchair.BF16)
        self.assertEqual([each.value for each in _torchair.TorchDataType], list(range(13)))

    def test_an_export_needs_a_place(self):
        with self.assertRaisesRegex(RuntimeError, "export_name is missing"):
            _torchair.export(b"", {"export_path_dir": "."})


class Docs(unittest.TestCase):
    def test_the_blocks_of_the_page(self):
        with open(docs_test.PAGE, encoding="utf-8") as file:
            blocks = docs_test.blocks_in(file.read(), by="python_torchair")
        self.assertGreater(len(blocks), 0)
        for line, code, _ in blocks:
            with self.subTest(line=line):
                self.run_file(code)

    def run_file(self, code):
        """Dynamo wants to read the lines again."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "block.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(code)
            runpy.run_path(path)


if __name__ == "__main__":
    torchair_case.main()
