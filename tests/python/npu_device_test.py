"""torch_npu: the device npu, streams, events, memory, random numbers, captured graphs."""

import io
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import docs_test
import npu_case
from npu_case import torch

if torch is not None:
    import numpy as np
    import npumesh
    import torch_npu
    from torch._subclasses import FakeTensorMode


class Device(unittest.TestCase):
    def test_factories_take_the_device_in_each_spelling(self):
        for device in ("npu", "npu:0", torch.device("npu"), torch.device("npu", 0)):
            for tensor in (torch.zeros(2, 3, device=device), torch.tensor([1.0], device=device),
                           torch.arange(4, device=device), torch.rand(3, device=device),
                           torch.empty_like(torch.ones(2), device=device),
                           torch.ones(2).new_zeros(3, device=device),
                           torch.ones(2).to(device), torch.ones(2).to(device=device)):
                self.assertEqual(tensor.device.type, "cpu")
                self.assertTrue(tensor.is_npu)

    def test_a_copy_on_the_device_is_other_memory(self):
        x = torch.zeros(3)
        y = x.npu()
        y += 1
        self.assertEqual((x.tolist(), y.tolist()), ([0, 0, 0], [1, 1, 1]))
        golden = y.cpu()
        y += 1
        self.assertEqual((golden.tolist(), y.tolist()), ([1, 1, 1], [2, 2, 2]))
        self.assertIs(y.npu(), y)
        self.assertIs(golden.cpu(), golden)
        self.assertIsNot(golden.to(y.device), golden)
        self.assertEqual((y.is_npu, golden.is_npu), (True, False))

    def test_to_takes_types_beside_the_device(self):
        x = torch.ones(3)
        self.assertEqual(x.to("npu", torch.float16).dtype, torch.float16)
        self.assertEqual(x.to(torch.device("npu:0"), torch.float64, True).dtype, torch.float64)
        self.assertEqual(x.to(x.npu(), False, True).tolist(), [1, 1, 1])
        y = x.npu()
        self.assertIsNot(y.to("npu", torch.float32, False, True), y)

    def test_gradients_go_through_copies(self):
        x = torch.ones(3, requires_grad=True)
        (x.npu() * 2).cpu().sum().backward()
        self.assertEqual(x.grad.tolist(), [2, 2, 2])
        parameter = torch.nn.Parameter(torch.ones(2, device="npu"))
        self.assertTrue(parameter.npu().is_leaf)

    def test_an_optimiser_leaves_the_copy_of_the_host_alone(self):
        layer = torch.nn.Linear(2, 2).npu()
        golden = {name: each.cpu() for name, each in layer.state_dict().items()}
        before = {name: each.clone() for name, each in golden.items()}
        optimiser = torch.optim.SGD(layer.parameters(), lr=0.5)
        layer(torch.ones(1, 2)).sum().backward()
        optimiser.step()
        for name, each in golden.items():
            self.assertTrue(torch.equal(each, before[name]))
            self.assertFalse(torch.equal(each, layer.state_dict()[name]))

    def test_packed_sequences_and_storages_are_copied(self):
        packed = torch.nn.utils.rnn.pack_sequence([torch.zeros(2), torch.zeros(1)])
        packed.npu().data.add_(1)
        self.assertEqual(packed.data.tolist(), [0, 0, 0])
        x = torch.zeros(2)
        torch.empty(0).set_(x.untyped_storage().npu(), 0, (2,)).add_(1)
        self.assertEqual(x.tolist(), [0, 0])

    def test_memory_is_pinned(self):
        x = torch.ones(2)
        self.assertFalse(x.is_pinned())
        pinned = x.pin_memory()
        self.assertTrue(pinned.is_pinned() and pinned[1:].is_pinned())
        self.assertIs(pinned.pin_memory(), pinned)
        for made in (torch.empty(3, pin_memory=True), torch.zeros(3, dtype=torch.int64, pin_memory=True),
                     torch.tensor([1.0], pin_memory=True), torch.empty_like(x, pin_memory=True),
                     x.new_empty(2, pin_memory=True)):
            self.assertTrue(made.is_pinned())
        self.assertFalse(pinned.npu(non_blocking=True).is_pinned())
        self.assertTrue(pinned.untyped_storage().is_pinned())
        with self.assertRaisesRegex(RuntimeError, "only memory of the host can be pinned"):
            x.npu().pin_memory()
        x.npu().record_stream(torch.npu.current_stream())

    def test_tensors_go_through_dlpack(self):
        x = torch.ones(2, 2)
        torch.from_dlpack(x).add_(1)
        self.assertEqual(x.sum().item(), 8)
        self.assertEqual(x.__dlpack_device__()[0], 1)
        np.from_dlpack(x)[0, 0] = 5
        self.assertEqual(x[0, 0].item(), 5)
        graph = (b'name: "m" graph { name: "m" op { name: "x" type: "Data" output_desc { name: "y" '
                 b'dtype: DT_FLOAT layout: "ND" shape { dim: 2 dim: 2 } } attr { key: "index" value { i: '
                 b'0 } } } op { name: "n" type: "Neg" input: "x:0" input_desc { name: "x" dtype: '
                 b'DT_FLOAT layout: "ND" shape { dim: 2 dim: 2 } } output_desc { name: "y" dtype: '
                 b'DT_FLOAT layout: "ND" shape { dim: 2 dim: 2 } } } op { name: "NetOutput" type: '
                 b'"NetOutput" input: "n:0" input_desc { name: "x" dtype: DT_FLOAT layout: "ND" shape '
                 b'{ dim: 2 dim: 2 } } } }')
        seen = npumesh.shared_world().load(graph).run(x)[0]
        self.assertEqual(np.asarray(seen).tolist(), [[-5, -2], [-2, -2]])

    def test_modules_move(self):
        layer = torch.nn.Linear(3, 2, device="npu").npu().to("npu:0").to(torch.bfloat16)
        self.assertEqual(layer.weight.dtype, torch.bfloat16)
        self.assertEqual(layer(torch.ones(1, 3, dtype=torch.bfloat16)).shape, (1, 2))

    def test_default_devices(self):
        array = np.zeros(2, np.float32)
        with torch.device("npu"):
            made = torch.zeros(2)
            torch.as_tensor(array).add_(1)
        self.assertEqual((made.device.type, array.tolist()), ("cpu", [0, 0]))
        self.assertIs(made.npu(), made)
        with torch.device("cpu"):
            torch.as_tensor(array).add_(1)
        self.assertEqual(array.tolist(), [1, 1])
        torch.set_default_device("npu")
        try:
            self.assertEqual(torch.ones(2).device.type, "cpu")
        finally:
            torch.set_default_device(None)

    def test_saved_tensors_load_onto_the_device(self):
        for place in ("npu", "npu:0", torch.device("npu"), {"cpu": "npu:0"}):
            buffer = io.BytesIO()
            torch.save({"w": torch.arange(3.0)}, buffer)
            buffer.seek(0)
            loaded = torch.load(buffer, map_location=place)
            self.assertEqual(loaded["w"].tolist(), [0, 1, 2])

    def test_autocast_is_that_of_the_cpu(self):
        with torch.autocast("npu", dtype=torch.bfloat16):
            self.assertEqual((torch.ones(2, 2) @ torch.ones(2, 2)).dtype, torch.bfloat16)
        with torch.npu.amp.autocast(dtype=torch.bfloat16):
            self.assertEqual((torch.ones(2, 2) @ torch.ones(2, 2)).dtype, torch.bfloat16)

    def test_another_device_is_refused_with_a_word(self):
        self.assertTrue(torch.npu.is_available())
        self.assertEqual((torch.npu.device_count(), torch.npu.current_device()), (1, 0))
        torch.npu.set_device("npu:0")
        for wrong in (1, "npu:7"):
            with self.assertRaisesRegex(RuntimeError, "from 0 to 0"):
                torch.npu.set_device(wrong)
        with self.assertRaisesRegex(ValueError, "device of npu"):
            torch.npu.set_device("meta")

    def test_a_tensor_goes_to_no_device_that_the_host_lacks(self):
        x = torch.ones(2)
        self.assertEqual(x.to("npu:0").tolist(), [1, 1])
        for go in (lambda: x.to("npu:7"), lambda: x.to(7), lambda: x.to(torch.device("npu:7")),
                   lambda: torch.zeros(2, device="npu:7"), lambda: x.npu(7)):
            with self.assertRaisesRegex(RuntimeError, "error code is 107001 .*Invalid device ID"):
                go()

    def test_other_devices_stay(self):
        self.assertEqual(torch.zeros(2, device="meta").device.type, "meta")
        self.assertEqual(torch.ones(2).to("meta").device.type, "meta")

    def test_training_steps_equal_those_on_the_cpu(self):
        def trained(device):
            torch.manual_seed(3)
            model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(),
                                        torch.nn.Linear(8, 1)).to(device)
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            x = torch.randn(16, 4, device=device)
            for _ in range(5):
                optimizer.zero_grad()
                loss = (model(x) - x.sum(-1, keepdim=True)).square().mean()
                loss.backward()
                optimizer.step()
            return [each.detach() for each in model.parameters()]

        for ours, theirs in zip(trained("npu"), trained("cpu")):
            self.assertTrue(torch.equal(ours, theirs))


class Compiled(unittest.TestCase):
    def test_a_transfer_in_a_graph_says_no_memory_format(self):
        """TorchAir's converter refuses the default by its name."""
        from torch.fx.experimental.proxy_tensor import make_fx

        for move in (lambda x: x.npu(), lambda x: x.cpu()):
            calls = [node for node in make_fx(move)(torch.ones(2)).graph.nodes
                     if node.target is torch.ops.aten._to_copy.default]
            self.assertEqual([node.kwargs.get("memory_format") for node in calls], [None])

    def test_copies_and_factories_do_not_break_a_graph(self):
        x = torch.ones(3)
        for function in (lambda x: x.npu() + 1, lambda x: x.to("npu") + 1, lambda x: x.cpu() + 1,
                         lambda x: x.to(x.device) + 1, lambda x: x.to(torch.float16) + 1,
                         lambda x: x.to(x) + 1, lambda x: torch.as_tensor(x, device="npu") + 1,
                         lambda x: torch.zeros(3, device="npu") + x + 1,
                         lambda x: torch.zeros_like(x) + x + 1,
                         lambda x: torch.arange(3, device=x.device) * 0 + x + 1,
                         lambda x: torch.tensor([1.0], device="npu") + x):
            torch._dynamo.reset()
            compiled = torch.compile(function, backend="eager", fullgraph=True)
            self.assertEqual(compiled(x).tolist(), [2, 2, 2])
        self.assertEqual(x.tolist(), [1, 1, 1])


class Spawned(unittest.TestCase):
    def test_processes_are_ranks_in_order(self):
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "spawned_program.py")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        done = subprocess.run([sys.executable, program, port], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:])
        for rank in range(2):
            self.assertIn(f"rank {rank} is done", done.stdout)


class Random(unittest.TestCase):
    def test_a_seed_repeats_numbers(self):
        drawn = []
        for _ in range(2):
            torch.npu.manual_seed(7)
            drawn.append(torch.randn(4, device="npu"))
        self.assertTrue(torch.equal(*drawn))
        self.assertEqual(torch.npu.initial_seed(), 7)

    def test_generators_and_states(self):
        first = torch.Generator(device="npu").manual_seed(1)
        second = torch.Generator("npu:0").manual_seed(1)
        self.assertIsInstance(first, torch.Generator)
        self.assertTrue(torch.equal(torch.rand(3, generator=first, device="npu"),
                                    torch.rand(3, generator=second, device="npu")))
        state = torch.npu.get_rng_state()
        x = torch.rand(3)
        torch.npu.set_rng_state(state)
        self.assertTrue(torch.equal(x, torch.rand(3)))


class Streams(unittest.TestCase):
    def test_a_stream_is_current_inside_its_block(self):
        outside = torch.npu.current_stream()
        stream = torch.npu.Stream()
        self.assertNotEqual(stream, outside)
        with torch.npu.stream(stream):
            self.assertEqual(torch.npu.current_stream(), stream)
        self.assertEqual(torch.npu.current_stream(), outside)
        self.assertEqual(outside, torch.npu.default_stream())
        stream.wait_stream(outside)
        stream.synchronize()
        self.assertTrue(stream.query())

    def test_events_tell_time(self):
        first, last = (torch.npu.Event(enable_timing=True) for _ in range(2))
        with self.assertRaisesRegex(RuntimeError, "recorded"):
            first.elapsed_time(last)
        first.record()
        torch.npu.synchronize()
        torch.npu.current_stream().record_event(last)
        self.assertGreaterEqual(first.elapsed_time(last), 0)
        with self.assertRaisesRegex(RuntimeError, "enable_timing"):
            torch.npu.Event().elapsed_time(last)


class Memory(unittest.TestCase):
    def test_memory_is_that_of_the_simulated_device(self):
        torch_npu.npu_rms_norm(torch.ones(4, 8), torch.ones(8))
        free, total = torch.npu.mem_get_info()
        self.assertTrue(0 < free <= total)
        self.assertEqual(torch.npu.get_device_properties().total_memory, total)
        self.assertGreaterEqual(torch.npu.max_memory_allocated(), torch.npu.memory_allocated())
        self.assertIn("allocated_bytes.all.peak", torch.npu.memory_stats())

    def test_empty_cache_drops_kept_graphs(self):
        from torch_npu import _engine

        torch_npu.npu_rms_norm(torch.ones(4, 8), torch.ones(8))
        self.assertGreater(_engine.program_count(), 0)
        torch.npu.empty_cache()
        self.assertEqual(_engine.program_count(), 0)
        torch_npu.npu_rms_norm(torch.ones(4, 8), torch.ones(8))


class Graphs(unittest.TestCase):
    def test_a_replay_computes_with_the_inputs_of_now(self):
        x, gamma = torch.zeros(2, 8), torch.rand(8)
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph):
            self.assertTrue(torch.npu.is_current_stream_capturing())
            y = torch_npu.npu_rms_norm(x * 2, gamma)[0].view(-1) + 1
            x_sum = x.t().sum(0)
        self.assertFalse(torch.npu.is_current_stream_capturing())
        for _ in range(3):
            x.normal_()
            graph.replay()
            torch.testing.assert_close(y, torch_npu.npu_rms_norm(x * 2, gamma)[0].view(-1) + 1)
            torch.testing.assert_close(x_sum, x.t().sum(0))

    def test_what_is_changed_in_place_is_changed_by_each_replay(self):
        cache = torch.zeros(4, 3)
        row, indices = torch.ones(1, 3), torch.tensor([[2]])
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph):
            torch_npu.npu_scatter_nd_update_(cache, indices, row)
            cache.add_(1)
        cache.zero_()
        row.fill_(5)
        indices.fill_(1)
        graph.replay()
        self.assertEqual(cache.sum(-1).tolist(), [3, 18, 3, 3])

    def test_callables_are_graphed(self):
        layer = torch.nn.Linear(3, 2).requires_grad_(False)
        graphed = torch.npu.make_graphed_callables(layer, (torch.zeros(4, 3),))
        for _ in range(2):
            x = torch.randn(4, 3)
            torch.testing.assert_close(graphed(x), layer(x))

    def test_memory_without_values_is_left_alone_by_a_replay(self):
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph):
            place = torch.empty(3, device="npu")
            doubled = place * 2
        place.copy_(torch.tensor([1.0, 2, 3]))
        graph.replay()
        self.assertEqual(doubled.tolist(), [2, 4, 6])

    def test_a_tensor_is_made_again_from_its_address(self):
        from torch_npu import _C

        x = torch.arange(12.0)
        storage = _C._construct_storage_from_data_pointer(
            x.untyped_storage().data_ptr(), x.device, x.untyped_storage().nbytes())
        seen = _C._construct_NPU_Tensor_From_Storage_And_Metadata(
            {"size": (2, 3), "stride": (3, 1), "dtype": torch.float32, "storage_offset": 2,
             "npu_format": 2}, storage)
        self.assertTrue(torch.equal(seen, x[2:8].view(2, 3)))
        seen.zero_()
        self.assertEqual(x.sum().item(), 0 + 1 + 8 + 9 + 10 + 11)

    def test_a_task_group_gets_other_arguments_while_a_replay_waits(self):
        x, gathered = torch.arange(6.0), torch.empty(2)
        event, graph = torch.npu.ExternalEvent(), torch.npu.NPUGraph()
        stream, beside = torch.npu.current_stream(), torch.npu.Stream()
        with torch.npu.graph(graph):
            scaled = x * 10
            event.wait(stream)
            event.reset(stream)
            torch.npu.graph_task_group_begin(stream)
            torch.ops.aten.index_select.out(scaled, 0, torch.tensor([0, 1]), out=gathered)
            handle = torch.npu.graph_task_group_end(stream)
            total = gathered.sum()
        for picked, expected in (([4, 5], 90.0), ([1, 2], 30.0)):
            graph.replay()
            with self.assertRaisesRegex(RuntimeError, "a replay waits"):
                torch.npu.synchronize()
            torch.npu.graph_task_update_begin(beside, handle)
            torch.ops.aten.index_select.out(scaled, 0, torch.tensor(picked), out=gathered)
            torch.npu.graph_task_update_end(beside)
            beside.record_event(event)
            torch.npu.synchronize()
            self.assertEqual(total.item(), expected)
        event.record(beside)
        graph.replay()
        self.assertEqual(total.item(), 30.0)

    def attention(self, lengths):
        return torch_npu.npu_fused_infer_attention_score(
            self.query, self.keys, self.keys, num_heads=2, input_layout="BNSD", scale=0.5,
            actual_seq_lengths_kv=lengths)[0]

    def captured_attention(self):
        torch.manual_seed(5)
        self.query, self.keys = torch.randn(2, 2, 1, 8), torch.randn(2, 2, 6, 8)
        graph = torch.npu.NPUGraph()
        with torch.no_grad(), torch.npu.graph(graph, auto_dispatch_capture=True):
            doubled = self.attention([1, 1]) * 2
        return graph, doubled

    def test_lists_of_lengths_are_updated_before_a_replay(self):
        graph, doubled = self.captured_attention()
        for lengths in ([3, 6], [1, 2]):
            graph.update(cpu_update_input=[{"actual_seq_lengths_kv": lengths}])
            graph.replay()
            torch.npu.synchronize()
            self.assertTrue(torch.equal(doubled, self.attention(lengths) * 2))

    def test_lists_of_lengths_are_updated_after_a_replay_or_beside_it(self):
        graph, doubled = self.captured_attention()
        graph.replay()
        with self.assertRaisesRegex(RuntimeError, "a replay waits .* NPUGraph.update"):
            torch.npu.synchronize()
        graph.update(cpu_update_input=[{"actual_seq_lengths_kv": [4, 5]}])
        torch.npu.synchronize()
        self.assertTrue(torch.equal(doubled, self.attention([4, 5]) * 2))
        for turn in range(50):
            lengths = [1 + turn % 6, 6 - turn % 6]
            beside = threading.Thread(target=graph.update, kwargs={
                "cpu_update_input": [{"actual_seq_lengths_kv": lengths}]})
            beside.start()
            graph.replay()
            beside.join()
            torch.npu.synchronize()
            self.assertTrue(torch.equal(doubled, self.attention(lengths) * 2))

    def test_updates_that_no_call_waits_for_are_refused(self):
        graph, _ = self.captured_attention()
        for given, said in (([{"scale": 2.0}], "no argument 'scale'"),
                            ([{}, {}], "expected 1 or 1 entries, seen 2"), ([], "seen 0")):
            with self.assertRaisesRegex(RuntimeError, said):
                graph.update(cpu_update_input=given)
        plain = torch.npu.NPUGraph()
        with torch.npu.graph(plain):
            self.attention([1, 1])
        with self.assertRaisesRegex(RuntimeError, "auto_dispatch_capture=True"):
            plain.update(cpu_update_input=[{"actual_seq_lengths_kv": [1, 1]}])

    def test_a_capture_runs_nothing(self):
        runs = []

        @torch.library.custom_op("npumesh_test::counted", mutates_args=())
        def counted(x: torch.Tensor) -> torch.Tensor:
            runs.append(1)
            return x + 1

        counted.register_fake(torch.empty_like)
        graph, x = torch.npu.NPUGraph(), torch.zeros(3)
        with torch.npu.graph(graph):
            y = counted(x.mul(2)).exp()
            x.add_(1)
        self.assertEqual((len(runs), x.sum().item()), (0, 0))
        graph.replay()
        self.assertEqual((len(runs), x.sum().item()), (1, 3))
        torch.testing.assert_close(y, torch.ones(3).exp())

    def test_what_nobody_refers_to_has_no_memory(self):
        graph, x = torch.npu.NPUGraph(), torch.randn(4)
        with torch.npu.graph(graph):
            hidden = torch.exp(x)
            place = hidden.untyped_storage()._weak_ref()
            y = hidden + 1
            del hidden
        self.assertTrue(torch.UntypedStorage._expired(place))
        torch.UntypedStorage._free_weak_ref(place)
        graph.replay()
        torch.testing.assert_close(y, torch.exp(x) + 1)

    def test_a_graph_writes_the_names_of_its_calls(self):
        graph = torch.npu.NPUGraph()
        x = torch.ones(2, 8)
        with torch.npu.graph(graph):
            torch_npu.npu_rms_norm(x + 1, torch.ones(8))
        with tempfile.TemporaryDirectory() as folder:
            graph.debug_dump(os.path.join(folder, "graph.json"))
            with open(os.path.join(folder, "graph.json"), encoding="utf-8") as file:
                told = json.load(file)
        self.assertEqual(told["calls"][0], "aten::add.Tensor")
        self.assertEqual(told["calls"][-1], "npu::npu_rms_norm")
        self.assertEqual(told["graphs"], [])  # before the first replay

    def test_a_capture_gives_no_values(self):
        """The device refuses each of these, and names no number of a tensor that has none."""
        x, made = torch.ones(3), torch.ones(3, device="npu")
        reads = {
            "item": [lambda: (x * 3).sum().item(), lambda: bool((x * 2 > 2).all()),
                                    lambda: int(x.add_(1)[0]), lambda: f"{(x * 2)[0]:.1f}",
                                    lambda: made[0].item()],
            "allclose": [lambda: torch.allclose(x * 2, x)],
            "equal": [lambda: torch.equal(x * 2, x)],
            "nonzero": [lambda: torch.nonzero(x), lambda: torch.where(x * 2 > 0)],
            "masked_select": [lambda: torch.masked_select(x, x > 0)],
            "numpy": [lambda: (x * 2).numpy(), lambda: np.asarray(x * 2)],
            "tolist": [lambda: (x * 2).tolist()],
            "repr": [lambda: print(x * 2)],
            "reduce_ex": [lambda: torch.save(x * 2, io.BytesIO())],
            "a copy to the host": [lambda: (x * 2).cpu(), lambda: x.to("cpu"), lambda: made.cpu()],
            "Stream.synchronize": [lambda: torch.npu.current_stream().synchronize()],
            "Stream.query": [lambda: torch.npu.current_stream().query()],
            "torch.npu.synchronize": [torch.npu.synchronize],
            "replay": [lambda: torch.npu.NPUGraph().replay()],
            "capture_begin": [lambda: torch.npu.NPUGraph().capture_begin()],
        }
        copy = made.cpu()
        reads["a copy from the host"] = [lambda: copy.npu(), lambda: copy.to("npu", non_blocking=True)]
        for what, calls in reads.items():
            for call in calls:
                graph = torch.npu.NPUGraph()
                with self.subTest(what=what), self.assertRaisesRegex(
                        RuntimeError, rf"npu_device_test.py:\d+: {what}.* 107027 "
                        r"\(ACL_ERROR_RT_STREAM_CAPTURED\)"):
                    with torch.npu.graph(graph):
                        call()
                with self.assertRaisesRegex(RuntimeError, "nothing was captured"):
                    graph.replay()
        self.assertFalse(torch.npu.is_current_stream_capturing())

    def test_an_event_of_a_capture_is_not_asked_for(self):
        event = torch.npu.Event()
        with torch.npu.graph(torch.npu.NPUGraph()):
            self.assertTrue(event.query())
            event.record()
            for call in (event.query, event.synchronize):
                with self.assertRaisesRegex(RuntimeError, r"107028 \(ACL_ERROR_RT_EVENT_CAPTURED\)"):
                    call()
        self.assertTrue(event.query())

    def test_the_host_computes_for_itself_during_a_capture(self):
        lengths, x = torch.tensor([3, 4], device="cpu"), torch.ones(4)
        pinned = torch.tensor([5.0]).pin_memory()
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph):
            self.assertEqual((lengths + 1).max().item(), 5)
            self.assertEqual(torch.arange(3).tolist(), [0, 1, 2])
            self.assertEqual(torch.tensor([7, 8])[1].item(), 8)
            self.assertEqual(torch.tensor([1.0]).mul_(2).cpu().tolist(), [2])
            counted = torch.zeros(1, device="cpu")
            counted += 1
            y = x[:(lengths + 0)[0].item()] * pinned.to("npu", non_blocking=True)
        x.fill_(2)
        pinned.fill_(10)
        for _ in range(2):
            graph.replay()
            self.assertEqual((y.tolist(), counted.item()), ([20, 20, 20], 1))

    def test_calls_in_the_wrong_order_are_refused(self):
        graph = torch.npu.NPUGraph()
        with self.assertRaisesRegex(RuntimeError, "nothing was captured"):
            graph.replay()
        with self.assertRaisesRegex(RuntimeError, "no capture"):
            graph.capture_end()
        with torch.npu.graph(graph):
            with self.assertRaisesRegex(RuntimeError, "running already in this thread .*107027"):
                torch.npu.NPUGraph().capture_begin()


class Gradients(unittest.TestCase):
    """Of operators of the engine, beside those that torch computes of the same function."""

    def same(self, ours, plain, *inputs, **bounds):
        gradients = []
        for function in (ours, plain):
            given = [each.clone().requires_grad_() for each in inputs]
            result = function(*given)
            weights = torch.linspace(-1, 1, result.numel()).view(result.shape)
            gradients.append(torch.autograd.grad((result * weights).sum(), given))
        for mine, theirs in zip(*gradients):
            torch.testing.assert_close(mine, theirs, **bounds)

    def test_norms_and_activations(self):
        def norm(x, gamma):
            return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * gamma

        def swiglu(x):
            first, second = x.chunk(2, -1)
            return torch.nn.functional.silu(first) * second

        functional = torch.nn.functional
        x = torch.randn(3, 16)
        self.same(lambda x, g: torch_npu.npu_rms_norm(x, g)[0], norm, x, torch.rand(16))
        self.same(torch_npu.npu_swiglu, swiglu, x)
        self.same(torch_npu.npu_silu, functional.silu, x)
        self.same(torch_npu.npu_mish, functional.mish, x)
        for form in ("none", "tanh"):
            self.same(lambda x: torch_npu.npu_gelu(x, approximate=form),
                      lambda x: functional.gelu(x, approximate=form), x, rtol=1e-3, atol=1e-3)
        self.same(torch_npu.npu_fast_gelu, lambda x: x * torch.sigmoid(1.702 * x), x,
                  rtol=1e-3, atol=1e-3)

    def test_products_and_casts(self):
        x, w, b = torch.randn(2, 5, 8), torch.randn(4, 8), torch.randn(4)
        self.same(torch_npu.npu_linear, torch.nn.functional.linear, x, w, b)
        self.same(lambda x: torch.ops.npu._npu_dtype_cast(x, torch.float64),
                  lambda x: x.to(torch.float64), x)

    def test_rotary_embeddings(self):
        def rotated(x, cos, sin):
            first, second = x.chunk(2, -1)
            return x * cos + torch.cat([-second, first], -1) * sin

        shape = (1, 4, 1, 8)
        self.same(torch_npu.npu_rotary_mul, rotated, torch.randn(2, 4, 3, 8), torch.randn(shape),
                  torch.randn(shape))

    def test_attention(self):
        q, k, v = (torch.randn(2, 3, 16, 8) for _ in range(3))
        self.same(lambda q, k, v: torch_npu.npu_fusion_attention(q, k, v, 3, "BNSD",
                                                                 scale=8 ** -0.5)[0],
                  lambda q, k, v: (q @ k.transpose(-1, -2) * 8 ** -0.5).softmax(-1) @ v, q, k, v,
                  rtol=1e-3, atol=1e-4)

    def test_a_model_is_trained_through_them(self):
        torch.manual_seed(5)
        gamma = torch.nn.Parameter(torch.ones(8))
        weight = torch.nn.Parameter(torch.randn(8, 8) / 3)
        optimizer = torch.optim.SGD([gamma, weight], lr=0.1)
        x, wanted = torch.randn(32, 8), torch.randn(32, 8) / 4
        losses = []
        for _ in range(20):
            y = torch_npu.npu_linear(torch_npu.npu_rms_norm(x, gamma)[0], weight)
            loss = (y - wanted).square().mean()
            losses.append(loss.item())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        self.assertLess(losses[-1], 0.8 * losses[0])


class Projections(unittest.TestCase):
    """Joint projections of query, key and value, whose keys and values go into caches."""

    tokens, heads, kept, width = 6, 4, 2, 8

    def rotated(self, x, cos, sin):
        first, second = x.chunk(2, -1)
        return x * cos + torch.cat([-second, first], -1) * sin

    def parts(self, projection):
        """Heads of query, key and value."""
        split = [self.heads * self.width, self.kept * self.width, self.kept * self.width]
        return [part.unflatten(-1, (-1, self.width)) for part in projection.split(split, -1)]

    def test_rotated_into_caches_of_int8(self):
        x = torch.randn(2, 3, (self.heads + 2 * self.kept) * self.width)
        cos, sin = torch.randn(2, 3, 1, self.width), torch.randn(2, 3, 1, self.width)
        indices = torch.tensor([1, 4], dtype=torch.int32)
        scales = torch.rand(2, self.kept, self.width) / 20 + 0.02
        query, key, value = self.parts(x)
        wanted = [self.rotated(query, cos, sin), self.rotated(key, cos, sin), value]
        for call in (torch_npu.npu_rope_quant_kvcache, torch_npu.npu_dequant_rope_quant_kvcache):
            caches = [torch.zeros(2, 8, self.kept, self.width, dtype=torch.int8) for _ in range(2)]
            seen = call(x, cos, sin, *caches, indices, *scales,
                        [part.shape[-2] * self.width for part in wanted], kv_output=True)
            for mine, theirs in zip(seen, wanted):
                torch.testing.assert_close(mine, theirs)
            for cache, returned, part, scale in zip(caches, seen[3:], wanted[1:], scales):
                self.assertTrue(torch.equal(cache, returned))
                for batch, first in enumerate(indices.tolist()):
                    rows = cache[batch, first:first + 3].float()
                    exact = (part[batch] / scale).clamp(-128, 127)
                    self.assertLessEqual((rows - exact).abs().max().item(), 0.51)
                self.assertEqual(cache[0, 4:].abs().max().item(), 0)

    def test_normalised_into_tiles(self):
        qkv = torch.randn(self.tokens, (self.heads + 2 * self.kept) * self.width)
        gammas = torch.randn(2, self.width)
        cos, sin = torch.randn(2, self.tokens, self.width)
        query, key, value = self.parts(qkv)

        def normed(x, gamma):
            x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * gamma
            return self.rotated(x, cos[:, None], sin[:, None])

        wanted = [normed(query, gammas[0]), normed(key, gammas[1]), value]
        given = [torch.zeros(self.tokens, self.heads * self.width),
                 *(torch.zeros(3, self.kept * self.width // 4, 4, 4) for _ in range(2))]
        index = torch.tensor([3, -1, 0, 9, 5, 6])
        sizes = [2, 3, self.heads + 2 * self.kept, self.width], [self.heads, self.kept, self.kept]
        copies = torch_npu.npu_qkv_rms_norm_rope_cache_functional(
            qkv, *gammas, cos, sin, index, *given, *sizes)
        self.assertEqual(given[0].abs().max().item(), 0)
        parts = torch_npu.npu_qkv_rms_norm_rope_cache(qkv, *gammas, cos, sin, index, *given, *sizes,
                                                      is_output_qkv=True)
        for mine, theirs in zip(parts, wanted):
            torch.testing.assert_close(mine, theirs.flatten(1), rtol=1e-5, atol=1e-5)
        for changed, copy in zip(given, copies[3:]):
            self.assertTrue(torch.equal(changed, copy))
        for cache, part in zip(given[1:], wanted[1:]):
            rows = cache.view(3, -1, 4, 4).transpose(1, 2).reshape(12, -1)
            for token, slot in enumerate(index.tolist()):
                if slot >= 0:
                    torch.testing.assert_close(rows[slot], part[token].flatten(), rtol=1e-5,
                                               atol=1e-5)

    def test_rotated_and_quantised(self):
        x, rotation = torch.randn(5, 12), torch.randn(4, 4)
        values, scale = torch_npu.npu_rotate_quant(x, rotation)
        exact = (x.view(5, 3, 4) @ rotation).view(5, 12)
        torch.testing.assert_close(scale, exact.abs().amax(1) / 127)
        self.assertLessEqual((values.float() - exact / scale[:, None]).abs().max().item(), 0.51)


class Quantised(unittest.TestCase):
    """Operators that read or write few bits, against torch."""

    def test_convolutions_of_int8(self):
        x = torch.randint(-128, 128, (2, 6, 9, 8), dtype=torch.int8)
        for groups, stride, pads, dilation in ((1, (1, 2), (1, 0), (2, 1)), (2, (2, 1), (0, 2), (1, 1))):
            weight = torch.randint(-128, 128, (4, 6 // groups, 3, 2), dtype=torch.int8)
            bias = torch.randint(-1000, 1000, (4,), dtype=torch.int32)
            scale = torch.rand(4) / 1000
            packed = torch_npu.npu_trans_quant_param(scale)
            kept = (packed & 0xffffffff).to(torch.int32).view(torch.float32)
            exact = torch.nn.functional.conv2d(x.double(), weight.double(), bias.double(), stride,
                                               pads, dilation, groups)
            for dtype in (torch.float16, torch.float32):
                seen = torch_npu.npu_quant_conv2d(x, weight, packed, stride, pads, dilation, groups,
                                                  output_dtype=dtype, bias=bias)
                torch.testing.assert_close(seen, (exact.float() * kept[:, None, None]).to(dtype),
                                           rtol=0, atol=0)
        with FakeTensorMode() as mode:
            fake = [mode.from_tensor(each) for each in (x, weight, packed)]
            seen = torch_npu.npu_quant_conv2d(*fake, stride, pads, dilation, groups)
        self.assertEqual((seen.shape, seen.dtype), (exact.shape, torch.float16))

    def test_blocks_with_two_scales(self):
        x = torch.full((3, 1024), 8.0, dtype=torch.bfloat16)
        values, first, second = torch_npu.npu_dynamic_dual_level_mx_quant(x)
        self.assertEqual(values.tolist(), [[0x77] * 512] * 3)
        torch.testing.assert_close(first, torch.full((3, 2), 8 / 6))
        self.assertEqual(second.view(torch.uint8).tolist(), [[[127, 127]] * 16] * 3)

    def test_attention_to_keys_of_int8(self):
        query = torch.randn(1, 2, 4, 576, dtype=torch.bfloat16)
        numbers = torch.randint(-100, 100, (1, 20, 1, 512), dtype=torch.int8)
        rotated = torch.randn(1, 20, 1, 64, dtype=torch.bfloat16)
        scales = torch.rand(1, 20, 1, 4) / 100
        keys = torch.cat([numbers, rotated.view(torch.int8), scales.view(torch.int8)], -1)
        indices = torch.stack([torch.randperm(19)[:8] for _ in range(2)]).to(torch.int32)
        seen = torch_npu.npu_kv_quant_sparse_flash_attention(
            query, keys, keys, indices.view(1, 2, 1, 8), 0.05, 2, 2, attention_mode=2)
        plain = (numbers * scales.repeat_interleave(128, -1)).bfloat16()
        whole = torch.cat([plain, rotated], -1)[0, :, 0].float()
        for token in range(2):
            chosen = indices[token].long()
            scores = query[0, token].float() @ whole[chosen].T * 0.05
            wanted = scores.softmax(-1) @ plain[0, chosen, 0].float()
            torch.testing.assert_close(seen[0, token].float(), wanted, rtol=0.01, atol=0.01)


class Norms(unittest.TestCase):
    """Batch norm whose batch lies on several ranks, in parts."""

    def check(self, shape, dtype, running):
        x = (torch.randn(shape) * 3 + 1).to(dtype)
        parts = x.split([1, 2, 4])
        pairs = [torch_npu.batch_norm_reduce(part, 1e-5) for part in parts]
        others = [axis for axis in range(x.dim()) if axis != 1]
        for part, (total, squares) in zip(parts, pairs):
            self.assertEqual((total.dtype, squares.dtype), (torch.float32, torch.float32))
            torch.testing.assert_close(total, part.double().sum(others).float())
            torch.testing.assert_close(squares, part.double().square().sum(others).float())
        counts = torch.tensor([part.numel() / shape[1] for part in parts])
        sums, squares = (torch.stack(each) for each in zip(*pairs))
        ours, theirs = ([torch.linspace(0, 1, shape[1]), torch.linspace(1, 2, shape[1])]
                        for _ in range(2))
        mean, invstd = torch_npu.batch_norm_gather_stats_update(
            parts[0], sums, squares, *(ours if running else (None, None)), 0.25, 1e-3, counts)
        expected = torch.nn.functional.batch_norm(x.float(), *theirs, training=True,
                                                  momentum=0.25, eps=1e-3)
        self.assertEqual((mean.shape, invstd.shape), ((shape[1],),) * 2)
        wide = [1, shape[1]] + [1] * (x.dim() - 2)
        torch.testing.assert_close((x.float() - mean.view(wide)) * invstd.view(wide), expected,
                                   rtol=1e-4, atol=1e-4)
        if running:
            torch.testing.assert_close(ours, theirs)

    def test_statistics_of_parts_are_those_of_the_batch(self):
        for shape in ((7, 5), (7, 5, 6), (7, 5, 4, 3), (7, 5, 2, 3, 2)):
            for dtype in (torch.float32, torch.float16, torch.bfloat16):
                for running in (True, False):
                    with self.subTest(shape=shape, dtype=dtype, running=running):
                        self.check(shape, dtype, running)

    def test_running_statistics_keep_their_type_and_may_have_gaps(self):
        x, sums = torch.randn(4, 3, 2, 2), torch.rand(2, 3).to(torch.float16)
        held = torch.zeros(3, 2, dtype=torch.float16)
        mean, invstd = torch_npu.batch_norm_gather_stats_update(
            x, sums, sums * 8, held[:, 0], None, 0.5, 1e-5, torch.tensor([4, 4]))
        self.assertEqual((mean.dtype, invstd.dtype), (torch.float16, torch.float16))
        torch.testing.assert_close(mean, (sums.double().sum(0) / 8).half())
        torch.testing.assert_close(held, torch.stack([mean / 2, mean * 0], 1), rtol=2e-3, atol=1e-4)

    def test_meta_functions_know_the_results(self):
        x, sums = torch.randn(4, 3, 2, 2).half(), torch.rand(2, 3)
        running = [torch.zeros(3), torch.ones(3)]
        with FakeTensorMode() as mode:
            total, squares = torch_npu.batch_norm_reduce(mode.from_tensor(x), 1e-5)
            words = [mode.from_tensor(each) for each in (x, sums, sums, *running)]
            mean, invstd = torch_npu.batch_norm_gather_stats_update(
                *words, 0.1, 1e-5, mode.from_tensor(torch.tensor([8, 8])))
        for each in (total, squares, mean, invstd):
            self.assertEqual((each.shape, each.dtype), ((3,), torch.float32))


class Profiler(unittest.TestCase):
    def test_a_profile_has_the_operators(self):
        from torch_npu import profiler

        with profiler.profile(activities=[profiler.ProfilerActivity.NPU],
                              record_shapes=True) as seen:
            torch_npu.npu_rms_norm(torch.ones(4, 8), torch.ones(8))
        self.assertIn("npu::npu_rms_norm", [each.key for each in seen.key_averages()])


class Docs(unittest.TestCase):
    def test_the_blocks_of_the_page(self):
        with open(docs_test.PAGE, encoding="utf-8") as file:
            blocks = docs_test.blocks_in(file.read(), by="python_npu_device")
        self.assertGreater(len(blocks), 0)
        folder = tempfile.TemporaryDirectory()  # a block writes a file
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        for line, code, _ in blocks:
            with self.subTest(line=line):
                exec(compile(code, f"python.md:{line}", "exec"), {})


class References(unittest.TestCase):
    def check(self, operator, x):
        self.assertEqual(operator(x, 3.0).tolist(), (x * 3).tolist())
        with FakeTensorMode() as fake:
            self.assertEqual(operator(fake.from_tensor(x), 3.0).shape, x.shape)
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph):
            y = operator(x, 2.0) + 1
        x.fill_(5)
        graph.replay()
        self.assertEqual(y.tolist(), [11, 11])

    def test_an_operator_that_no_one_has_defined(self):
        def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
            return x * by

        torch_npu.register_reference("npumesh_other::scaled", scaled)
        self.check(torch.ops.npumesh_other.scaled, torch.ones(2))
        torch_npu.register_reference("npumesh_other::doubled", lambda x: x * 2, "(Tensor x) -> Tensor")
        self.assertEqual(torch.ops.npumesh_other.doubled(torch.ones(1)).item(), 2)

    def test_an_operator_that_another_package_has_defined(self):
        library = torch.library.Library("npumesh_theirs", "DEF")
        library.define("scaled(Tensor x, float by) -> Tensor")
        torch_npu.register_reference("npumesh_theirs::scaled", lambda x, by: x * by)
        self.check(torch.ops.npumesh_theirs.scaled, torch.ones(2))

    def test_what_is_refused(self):
        with self.assertRaisesRegex(ValueError, "expected namespace::operator, seen 'scaled'"):
            torch_npu.register_reference("scaled", lambda x: x, "(Tensor x) -> Tensor")
        with self.assertRaisesRegex(RuntimeError, "npu::npu_rms_norm has a kernel already"):
            torch_npu.register_reference("npu::npu_rms_norm", lambda x: x)
        library = torch.library.Library("npumesh_strict", "DEF")
        library.define("same(Tensor x) -> Tensor")
        with self.assertRaisesRegex(ValueError, "has the schema .*Tensor x.* seen .*int x"):
            torch_npu.register_reference("npumesh_strict::same", lambda x: x, "(int x) -> Tensor")


class Doors(unittest.TestCase):
    """Small parts of torch_npu that programs ask for."""

    def test_options_are_remembered(self):
        option = torch_npu._C._npu_getOption
        self.assertIsNone(option("npumesh_unknown"))
        self.assertEqual(option("ALLOW_INTERNAL_FORMAT"), b"disable")
        torch.npu.config.allow_internal_format = True
        self.assertEqual(option("ALLOW_INTERNAL_FORMAT"), b"enable")
        torch.npu.config.allow_internal_format = False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.npu.set_option({"npumesh_known": "on"})
        self.assertEqual(option("npumesh_known"), b"on")

    def test_pools_have_names(self):
        one, other = torch.npu.MemPool(), torch.npu.MemPool()
        self.assertNotEqual(one.id, other.id)
        with torch.npu.use_mem_pool(one):
            self.assertEqual((one.use_count(), other.use_count()), (2, 1))
            x = torch.ones(2, device="npu")
        self.assertEqual((one.use_count(), x.sum().item()), (1, 2))
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph, pool=one.id):
            y = x + 1
        graph.replay()
        self.assertEqual(y.tolist(), [2, 2])

    def test_groups_have_options(self):
        from torch_npu._C._distributed_c10d import ProcessGroupHCCL

        options = ProcessGroupHCCL.Options(True)
        options.hccl_config = {"hccl_buffer_size": 200}
        options.global_ranks_in_group = [0]
        self.assertTrue(options.is_high_priority_stream)
        self.assertEqual(ProcessGroupHCCL.Options().hccl_config, {})

    def test_the_package_for_tests(self):
        from torch_npu.testing.common_distributed import skipIfUnsupportMultiNPU
        from torch_npu.testing.common_utils import SupportedDevices, create_common_tensor
        from torch_npu.testing.testcase import TestCase

        case = TestCase()
        host, npu = create_common_tensor([np.float32, 2, (3, 4)], 0, 1)
        self.assertEqual((host.is_npu, npu.is_npu), (True, True))
        self.assertNotEqual(host.data_ptr(), npu.data_ptr())
        case.assertRtolEqual(host, npu)
        case.assertEqual(host, npu)
        case.assertRtolEqual([host.half()], [npu.half() * 1.0005])
        few = torch.ones(20000)
        few[0] = 2  # fewer than 1e-4 of them
        case.assertRtolEqual(few, torch.ones(20000))
        for x, y in ((host, npu + 1), (host, npu[:2]), (host, npu.double()), (few[:10], torch.ones(10)),
                     (torch.tensor([True]), torch.tensor([False])),
                     (torch.tensor([float("nan")]), torch.ones(1)), ([host], [])):
            with self.assertRaises(AssertionError):
                case.assertRtolEqual(x, y)
        with self.assertRaises(unittest.SkipTest):
            skipIfUnsupportMultiNPU(2)(lambda: None)()
        with self.assertRaises(unittest.SkipTest):
            SupportedDevices(["Ascend310P"])(lambda: None)()
        self.assertEqual(SupportedDevices(["Ascend910B"])(lambda: 3)(), 3)


class Words(unittest.TestCase):
    def test_what_has_no_effect_says_so_once(self):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for _ in range(2):
                torch.npu.set_compile_mode(jit_compile=False)
        self.assertEqual([str(each.message) for each in seen],
                         ["torch_npu: torch.npu.set_compile_mode has no effect on a simulated NPU"])

    def test_versions_are_compared(self):
        from torch_npu.npu.utils import _is_gte_cann_version, get_cann_version

        self.assertTrue(_is_gte_cann_version(get_cann_version()))
        for older in ("8.2.RC1", "8.5.RC1.alpha003", "8.5.0"):
            self.assertTrue(_is_gte_cann_version(older), older)
        for later in ("9.0.0", "8.5.1", "8.6.RC1"):
            self.assertFalse(_is_gte_cann_version(later), later)
        with self.assertRaisesRegex(ValueError, "8.5.0"):
            _is_gte_cann_version("latest")

    def test_an_unknown_operator_is_named(self):
        with self.assertRaisesRegex(AttributeError, "npu_of_tomorrow"):
            torch_npu.npu_of_tomorrow

    def test_formats_are_remembered(self):
        x = torch.ones(4, 4)
        self.assertEqual(torch_npu.get_npu_format(x), 2)
        cast = torch_npu.npu_format_cast(x, 29)
        self.assertEqual(torch_npu.get_npu_format(cast), torch_npu.Format.FRACTAL_NZ)
        self.assertEqual(cast.data_ptr(), x.data_ptr())
        with self.assertRaises(ValueError):
            torch_npu.npu_format_cast(x, 1234)


if __name__ == "__main__":
    npu_case.main()
