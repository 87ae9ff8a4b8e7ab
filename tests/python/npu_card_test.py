"""Captured programs beside a card, made after public reports of captures that fail: each raises the vendor's code at the
program's line, and its mended twin does not. Further 200 captured programs without a fault, of which nothing is found."""

import inspect
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings
from xml.etree import ElementTree

import npu_case

if npu_case.torch is not None:
    import torch
    import torch_npu  # noqa: F401

CARD = "ascend910b3"


def line():
    """That of the caller's next line."""
    return f"{os.path.basename(__file__)}:{inspect.currentframe().f_back.f_lineno + 1}"


class OnCard(unittest.TestCase):
    check = "fail"

    def setUp(self):
        os.environ["NPUMESH_CARD"], os.environ["NPUMESH_CARD_CHECK"] = CARD, self.check

    def tearDown(self):
        for name in ("NPUMESH_CARD", "NPUMESH_CARD_CHECK"):
            os.environ.pop(name, None)

    def capture(self, body, **words):
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph, **words):
            body()
        return graph

    def refused(self, code, body, at=None, **words):
        """The body cannot be captured: it has this code, and the line, if one is given."""
        with self.assertRaisesRegex(RuntimeError, code) as seen:
            self.capture(body, **words)
        if at is not None:
            self.assertIn(at, str(seen.exception))


class Captures(OnCard):
    """What no capture permits, whatever the card."""

    def setUp(self):
        super().setUp()
        self.x = torch.ones(4, device="npu")

    def test_values_are_asked_for(self):
        def item():
            self.at = line()
            return (self.x + 1).sum().item()

        def to_host():
            self.at = line()
            return (self.x + 1).cpu()

        def printed():
            self.at = line()
            return str(self.x + 1)

        def nonzero():
            self.at = line()
            return torch.nonzero(self.x + 1)

        def decides():
            y = self.x + 1
            self.at = line()
            return y if y.sum() > 0 else -y

        for body in (item, to_host, printed, nonzero, decides):
            with self.subTest(body.__name__):
                self.refused("107027", body)
                with self.assertRaisesRegex(RuntimeError, self.at):
                    self.capture(body)
        self.capture(lambda: torch.where(self.x > 0, self.x, -self.x)).replay()

    def test_the_host_waits(self):
        for body in (torch.npu.synchronize, lambda: torch.npu.current_stream().synchronize()):
            self.refused("107027", body)
        graph = self.capture(lambda: self.x + 1)
        graph.replay()
        torch.npu.synchronize()

    def test_copies_from_the_host(self):
        plain, pinned = torch.ones(4, device="cpu"), torch.ones(4, device="cpu").pin_memory()
        self.refused("107027", lambda: plain.to("npu"))
        self.refused("107027", lambda: pinned.to("npu"))
        self.capture(lambda: pinned.to("npu", non_blocking=True)).replay()

    def test_a_stream_that_does_not_come_back(self):
        side = torch.npu.Stream()

        def body(joins):
            main = torch.npu.current_stream()
            side.wait_stream(main)
            with torch.npu.stream(side):
                y = self.x * 2
            if joins:
                main.wait_stream(side)
            return y + 1 if joins else None

        self.refused("107025", lambda: body(joins=False))
        self.capture(lambda: body(joins=True)).replay()

    def test_streams_that_join_through_others(self):
        first, second = torch.npu.Stream(), torch.npu.Stream()

        def body(late):
            main = torch.npu.current_stream()
            first.wait_stream(main)
            with torch.npu.stream(first):
                self.x * 2
            second.wait_stream(first)
            with torch.npu.stream(second):
                self.x * 3
            event = second.record_event()
            if late:
                with torch.npu.stream(second):
                    self.x * 4
            main.wait_event(event)

        self.capture(lambda: body(late=False)).replay()
        self.refused("107025", lambda: body(late=True))

    def test_another_thread_copies(self):
        """As capture_error_mode decides."""
        seen = []

        def beside():
            try:
                seen.append(torch.ones(4, device="npu").cpu())
            except RuntimeError as error:
                seen.append(str(error))

        def body():
            thread = threading.Thread(target=beside)
            thread.start()
            thread.join()
            return self.x + 1

        self.capture(body)
        self.assertRegex(seen.pop(), r"npu_card_test.py:\d+: a copy .* 107030")
        for mode in ("thread_local", "relaxed"):
            self.capture(body, capture_error_mode=mode)
            self.assertIsInstance(seen.pop(), torch.Tensor)
        beside()
        self.assertIsInstance(seen.pop(), torch.Tensor)

    def test_another_thread_ends_it(self):
        graph = torch.npu.NPUGraph()
        graph.capture_begin()
        seen = []

        def end():
            try:
                graph.capture_end()
            except RuntimeError as error:
                seen.append(str(error))

        thread = threading.Thread(target=end)
        thread.start()
        thread.join()
        self.assertIn("107038", seen[0])
        graph.capture_end()


class Cards(OnCard):
    """What is found where a card is named."""

    def setUp(self):
        super().setUp()
        self.x = torch.ones(4, device="npu")

    def found(self, rule, call):
        with self.assertRaisesRegex(RuntimeError, f"rule {rule};") as seen:
            call()
        self.assertIn(f"{CARD} refuses {__file__}:", str(seen.exception))
        return str(seen.exception)

    def test_an_input_that_moved(self):
        self.at = line()
        graph = self.capture(lambda: self.x + 1)
        graph.replay()
        self.x.copy_(torch.zeros(4))
        graph.replay()
        self.x.data = torch.zeros(4)
        text = self.found("replay-input-moved", graph.replay)
        self.assertIn("507011", text)
        self.assertIn("tensor 0 of aten::add", text)
        self.assertIn(self.at, text)

    def test_an_input_whose_memory_was_freed(self):
        graph = self.capture(lambda: self.x.mul_(2))
        self.x.untyped_storage().resize_(0)
        self.assertIn("507011", self.found("replay-input-freed", graph.replay))

    def test_an_event_from_outside(self):
        before = torch.npu.current_stream().record_event()
        text = self.found("capture-event", lambda: self.capture(
            lambda: torch.npu.current_stream().wait_event(before)))
        self.assertIn("107024", text)

        def inside():
            main, side = torch.npu.current_stream(), torch.npu.Stream()
            side.wait_stream(main)
            main.wait_stream(side)

        self.capture(inside)

    def test_streams_of_the_card(self):
        held = []
        text = self.found("streams", lambda: held.extend(torch.npu.Stream() for _ in range(4000)))
        self.assertIn("207008", text)
        self.assertGreater(len(held), 1900)
        held.clear()
        torch.npu.Stream()

    def test_graphs_take_streams(self):
        graphs = []

        def fill():
            for _ in range(4000):
                graphs.append(self.capture(lambda: self.x + 1))

        self.assertIn("of captured graphs are alive", self.found("streams", fill))
        for each in graphs:
            each.reset()
        self.capture(lambda: self.x + 1)


class Warnings(OnCard):
    check = "warn"

    def found(self, rule, call):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            call()
        return [str(each.message) for each in seen if f"rule {rule};" in str(each.message)]

    def test_work_on_a_stream_that_never_joined(self):
        x, side = torch.ones(4, device="npu"), torch.npu.Stream()

        def body():
            with torch.npu.stream(side):
                return x * 2

        self.assertEqual(len(self.found("capture-stream", lambda: self.capture(body))), 1)

    def test_lengths_that_stay(self):
        query = torch.ones(1, 1, 8, dtype=torch.float16, device="npu")
        cache = torch.zeros(1, 16, 8, dtype=torch.float16, device="npu")
        attend = torch.ops.npu.npu_fused_infer_attention_score

        def capture(**words):
            graph = torch.npu.NPUGraph()
            with torch.npu.graph(graph, **words):
                attend(query, cache, cache, num_heads=1, input_layout="BSH", scale=0.25,
                       actual_seq_lengths_kv=[3])
            return graph

        def decode(graph, lengths):
            for step, length in enumerate(lengths):
                cache[:, step] = 1
                if length:
                    graph.update(cpu_update_input=[{"actual_seq_lengths_kv": [length]}])
                graph.replay()

        stale = self.found("replay-lengths", lambda: decode(capture(), [None, None]))
        self.assertIn("actual_seq_lengths_kv=[3]", stale[0])
        self.assertEqual(self.found("replay-lengths", lambda: decode(
            capture(auto_dispatch_capture=True), [1, 2, 3])), [])


class Reports(OnCard):
    """NPUMESH_CARD_REPORT, as `npumesh card report` reads it."""

    check = "warn"

    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        os.environ["NPUMESH_CARD_REPORT"] = self.path("found")

    def tearDown(self):
        os.environ.pop("NPUMESH_CARD_REPORT")
        self.folder.cleanup()
        super().tearDown()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def report(self, *words):
        done = subprocess.run([os.environ["NPUMESH_COMMAND"], "card", "report", self.path("found"), *words], check=False,
                              capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def test_findings_reach_json_and_junit(self):
        x, side = torch.ones(4, device="npu"), torch.npu.Stream()

        def body():
            with torch.npu.stream(side):
                x * 2

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.capture(body)
        self.at = line()
        self.refused("107027", lambda: (x + 1).sum().item())
        code, out, err = self.report("--json", "--junit", self.path("junit.xml"))
        self.assertEqual(code, 1, err)
        stray, read = json.loads(out)["findings"]
        self.assertEqual((stray["rule"], stray["code"], stray["severity"]), ("capture-stream", None, "warning"))
        self.assertEqual((read["rule"], read["code"]), ("capture", 107027))
        self.assertIn(self.at, read["where"])
        self.assertIn("item needs values while torch.npu.graph captures", read["text"])
        cases = ElementTree.parse(self.path("junit.xml")).findall(".//testcase")
        self.assertEqual([case.find("failure") is None for case in cases], [False, False])
        self.assertIn("card capture-stream", cases[0].get("name"))

    def test_without_a_finding(self):
        torch.npu.Stream()
        self.assertEqual(self.report()[:2], (0, "0 findings\n"))


class Faultless(OnCard):
    """200 captured programs on one to three streams: nothing is found."""

    def test_nothing_is_found(self):
        for seed in range(200):
            with self.subTest(seed=seed):
                dice = random.Random(seed)
                inputs = [torch.full((4, 6), float(at + 1)) for at in range(2)]
                sides = [torch.npu.Stream() for _ in range(dice.randint(0, 2))]

                def body():
                    main, left = torch.npu.current_stream(), list(inputs)
                    for _ in range(dice.randint(1, 8)):
                        x, y = dice.choice(left), dice.choice(left)
                        side = dice.choice([main, *sides])
                        if side is not main:
                            side.wait_stream(main)
                        with torch.npu.stream(side):
                            left.append(dice.choice([lambda: x + y, lambda: torch.tanh(x), lambda: x @ y.t() @ x,
                                                     lambda: torch.softmax(x, -1)])())
                        if side is not main:
                            main.wait_stream(side)

                graph = self.capture(body)
                for _ in range(2):
                    inputs[0].copy_(torch.rand(4, 6))
                    graph.replay()


if __name__ == "__main__":
    npu_case.main()
