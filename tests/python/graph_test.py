"""Graphs built in Python: drawn ones against numpy, every form of a call, what is refused."""

import os
import random
import tempfile
import unittest

import case
from case import numpy as np

if np is not None:
    import npumesh
    from session_test import onnx_neg

DRAWN = int(os.environ.get("NPUMESH_TEST_DRAWN", "60"))
PAIRS = {"Add": "add", "Sub": "subtract", "Mul": "multiply", "Maximum": "maximum", "Minimum": "minimum"}


def setUpModule():
    os.environ.update(case.SMALL)


class Drawn:
    """A graph of exact operators on int32, and what numpy makes of the same."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.graph = npumesh.Graph(f"drawn_{seed}")
        self.feeds, self.values = [], []
        for at in range(self.dice.randint(1, 3)):
            array = self._array()
            self.feeds.append(array)
            self.values.append((self.graph.input(f"x{at}", array.shape, "int32"), array))
        for _ in range(self.dice.randint(1, 8)):
            self.values += self._step()
        picked = self.dice.sample(self.values, min(3, len(self.values)))
        self.expected = [array for _, array in picked]
        self.graph.output(*(value for value, _ in picked))

    def _array(self):
        numbers = [self.dice.randint(-9, 9) for _ in range(12)]
        return np.array(numbers, np.int32).reshape(3, 4)

    def _step(self):
        (a, left), (b, right) = self.dice.choice(self.values), self.dice.choice(self.values)
        kind = self.dice.choice(["pair", "constant", "concat", "split", "cast"])
        if kind == "pair":
            name = self.dice.choice(list(PAIRS))
            by_name = self.dice.random() < 0.5
            made = self.graph.op(name, x1=a, x2=b) if by_name else self.graph.op(name, a, b)
            return [(made, getattr(np, PAIRS[name])(left, right))]
        if kind == "constant":
            other = self._array()
            return [(self.graph.op("Add", a, other, name="same"), left + other)]
        if kind == "concat":
            made = self.graph.op("ConcatV2", x=[a, b, a], concat_dim=np.array(0), N=3)
            rows = np.concatenate([left, right, left])
            return [(self.graph.op("SliceD", made, offsets=[2, 0], size=[3, 4]), rows[2:5])]
        if kind == "split":
            halves = self.graph.op("SplitD", a, split_dim=1, num_split=2, outputs=2)
            back = self.graph.op("ConcatD", list(reversed(halves)), concat_dim=1, N=2)
            return [(back, np.concatenate([left[:, 2:], left[:, :2]], 1))]
        wide = self.graph.op("Cast", a, dst_type=9)  # int64
        return [(self.graph.op("Cast", wide, dst_type=3), left)]


class Graphs(unittest.TestCase):
    def setUp(self):
        self.world = npumesh.World()

    def tearDown(self):
        self.world.close()

    def run_one(self, graph, *feeds):
        with self.world.load(graph.text()) as model:
            return model.run(*feeds)

    def test_drawn_graphs_compute_what_numpy_does(self):
        for seed in range(DRAWN):
            drawn = Drawn(seed)
            seen = self.run_one(drawn.graph, *drawn.feeds)
            for got, expected in zip(seen, drawn.expected):
                np.testing.assert_array_equal(got, expected, f"seed {seed}\n{drawn.graph.text().decode()}")

    def test_a_saved_graph_is_the_graph(self):
        drawn = Drawn(7)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "drawn.air")
            drawn.graph.save(path)
            with self.world.load(path) as model:
                for got, expected in zip(model.run(*drawn.feeds), drawn.expected):
                    np.testing.assert_array_equal(got, expected)

    def test_several_outputs_and_optional_inputs(self):
        graph = npumesh.Graph()
        x = graph.input("x", (2, 3))
        y, rstd = graph.op("RmsNorm", x, np.ones(3, np.float32), epsilon=0.0)
        product = graph.op("MatMul", y, np.eye(3, dtype=np.float32), bias=None, transpose_x2=True)
        ones = self.run_one(graph.output(product, rstd), np.full((2, 3), 2, np.float32))
        self.assertEqual([each.tolist() for each in ones], [[[1, 1, 1]] * 2, [[0.5]] * 2])

    def test_a_state_is_changed_in_place(self):
        graph = npumesh.Graph()
        cache = graph.state("cache", (2,), "int32")
        graph.output(graph.op("Assign", cache, graph.op("Add", cache, [1, 2])))
        graph_of_ints = npumesh.Graph()
        cache = graph_of_ints.state("cache", (2,), "int32")
        step = graph_of_ints.constant([1, 2], of="int32")
        graph_of_ints.output(graph_of_ints.op("Assign", cache, graph_of_ints.op("Add", cache, step)))
        held = np.zeros(2, np.int32)
        with self.world.load(graph_of_ints.text()) as model:
            model.run(held, in_place="cache")
            model.run(held, in_place="cache")
        self.assertEqual(held.tolist(), [2, 4])
        with self.assertRaisesRegex(npumesh.NpumeshError, "Assign needs equal types"):
            self.world.load(graph.text()).run(held, in_place="cache")

    def test_every_kind_of_element_is_a_constant(self):
        for of in ("float16", "float32", "float64", "bfloat16", "int8", "uint8", "int16", "int32", "int64", "bool"):
            graph = npumesh.Graph()
            values = [[0, 1], [1, 0]]
            held = graph.constant(values, of=of)
            (seen,) = self.run_one(graph.output(graph.op("Cast", held, dst_type=0)))
            self.assertEqual(seen.tolist(), values, of)

    def test_names_and_texts_are_quoted(self):
        graph = npumesh.Graph('a "name" \\ of\nlines')
        x = graph.input('in "1"', (1,))
        graph.output(graph.op("Relu", x, name="re\\lu"))
        with self.world.load(graph.text()) as model:
            self.assertEqual(model.inputs[0].name, 'in "1"')
            self.assertEqual(model.run(np.array([-1], np.float32))[0].tolist(), [0])

    def test_what_is_refused(self):
        graph = npumesh.Graph("g")
        x = graph.input("x", (2, 2))
        pair = graph.op("RmsNorm", x, np.ones(2, np.float32))
        for call, words in (
                (lambda: graph.op("MatMul", x), "MatMul: input 'x2' is missing; inputs are x1, x2, bias"),
                (lambda: graph.op("Relu", x, x), "Relu: got 2 inputs; expected at most 1: x"),
                (lambda: graph.op("MatMul", x, x, transpose=True),
                 "MatMul: there is no input or attribute 'transpose'; inputs are x1, x2, bias; "
                 "attributes are transpose_x1, transpose_x2"),
                (lambda: graph.op("MatMul", x, x, x1=x), "MatMul: input 'x1' is given twice"),
                (lambda: graph.output(pair), "graph 'g': an output is a tuple of values"),
                (lambda: graph.text(), "graph 'g': has no output; call output\\(value\\)"),
                (lambda: graph.constant(object()), "graph 'g': constant 'const': expected an array"),
                (lambda: graph.input("y", (1,), "float31"), "float31")):
            with self.assertRaisesRegex(npumesh.NpumeshError, words):
                call()

    def test_a_graph_is_edited(self):
        graph = npumesh.Graph("g")
        x = graph.input("x", (2,))
        doubled = graph.op("Muls", x, value=2.0, name="scaled")
        summed = graph.op("Add", doubled, doubled)
        graph.output(summed, doubled)
        graph.change(doubled, value=3.0)
        run = lambda: [each.tolist() for each in self.run_one(graph, np.float32([1, 2]))]  # noqa: E731
        self.assertEqual(run(), [[6, 12], [3, 6]])
        # The node between reads what it stands behind; all others read the node.
        between = graph.op("Neg", doubled, name="turned")
        self.assertEqual(graph.replace(doubled, between), 3)
        self.assertEqual(run(), [[-6, -12], [-3, -6]])
        self.assertEqual(graph.replace(between, np.float32([5, 6])), 3)
        self.assertEqual(run(), [[10, 12], [5, 6]])
        graph.remove("turned")
        graph.remove(doubled)
        self.assertEqual([kind for _, kind in graph.nodes], ["Data", "Add", "Const"])
        self.assertEqual(run(), [[10, 12], [5, 6]])
        for call, words in (
                (lambda: graph.remove("turned"), "there is no node 'turned'"),
                (lambda: graph.remove(x), "'x' is an input of the graph"),
                (lambda: graph.remove(summed), "'Add' is an output of the graph; replace it first"),
                (lambda: graph.remove("scaled_replaced"), "there is no node"),
                (lambda: graph.remove("turned_replaced"), "'Add' reads 'turned_replaced'; replace it first"),
                (lambda: graph.change(summed, alpha=1), "Add: there is no attribute 'alpha'; attributes are none")):
            with self.assertRaisesRegex(npumesh.NpumeshError, words):
                call()

    def saved(self, graph):
        """A graph of a file, and the file."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "graph.air")
        graph.save(path)
        return npumesh.Graph.load(path), path

    def test_a_graph_of_a_file_is_the_graph(self):
        for seed in range(DRAWN):
            drawn = Drawn(seed)
            loaded, path = self.saved(drawn.graph)
            self.assertEqual(loaded.nodes, drawn.graph.nodes)
            self.assertEqual(loaded.outputs, tuple(drawn.graph._outputs))
            for got, expected in zip(self.run_one(loaded, *drawn.feeds), drawn.expected):
                np.testing.assert_array_equal(got, expected, f"seed {seed}\n{loaded.text().decode()}")
            loaded.save(path + ".again")
            with open(path, "rb") as first, open(path + ".again", "rb") as again:
                self.assertEqual(again.read(), first.read(), f"seed {seed}")

    def test_a_drawn_edit_of_a_file_is_that_of_the_graph(self):
        for seed in range(DRAWN):
            drawn, dice = Drawn(seed), random.Random(seed)
            loaded, _ = self.saved(drawn.graph)
            value, _ = dice.choice(drawn.values)
            for graph in (drawn.graph, loaded):
                between = graph.op("Neg", value, name="between")
                graph.replace(value, graph.op("Cast", graph.op("Cast", between, dst_type=9), dst_type=3))
            for got, expected in zip(self.run_one(loaded, *drawn.feeds), self.run_one(drawn.graph, *drawn.feeds)):
                np.testing.assert_array_equal(got, expected, f"seed {seed}\n{loaded.text().decode()}")

    def test_what_a_file_holds_is_seen_and_changed(self):
        graph = npumesh.Graph("g")
        x = graph.input("x", (2, 3))
        total = graph.op("ReduceSumD", x, axes=[1], keep_dims=False, name="total")
        scaled = graph.op("Muls", total, value=0.5, name='ha"lf')
        graph.output(graph.op("Add", scaled, total, name="sum"), scaled)
        loaded, path = self.saved(graph)
        told = loaded.attributes("total")
        self.assertEqual((told["axes"], told["keep_dims"]), ([1], False))
        self.assertEqual(loaded.attributes('ha"lf')["value"], 0.5)
        self.assertIn("graph_test.py", loaded.attributes("sum")["_stack_trace"])
        self.assertEqual(loaded.inputs("sum"), (loaded.value('ha"lf'), loaded.value("total")))
        self.assertEqual(loaded.readers(loaded.value("total")), ('ha"lf', "sum"))
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        # Types behind a change are others than the file says.
        loaded.change("total", axes=[0])
        self.assertEqual([each.tolist() for each in self.run_one(loaded, array)], [[4.5, 7.5, 10.5], [1.5, 2.5, 3.5]])
        turned = loaded.op("Neg", loaded.value("total"), name="turned")
        self.assertEqual(loaded.replace(loaded.value("total"), turned, reader="sum"), 1)
        self.assertEqual(loaded.inputs("sum"), (loaded.value('ha"lf'), turned))
        self.assertEqual(loaded.inputs('ha"lf'), (loaded.value("total"),))
        self.assertEqual([each.tolist() for each in self.run_one(loaded, array)], [[-1.5, -2.5, -3.5], [1.5, 2.5, 3.5]])
        loaded.save(path)
        with self.world.load(path) as model:
            self.assertEqual(model.run(array)[1].tolist(), [1.5, 2.5, 3.5])
        for call, words in (
                (lambda: loaded.value("totals"), "there is no node 'totals'; near: total"),
                (lambda: loaded.attributes("nothing like it"), "there is no node 'nothing like it'$"),
                (lambda: loaded.replace(scaled, turned, reader="total"), "'total' does not read ha\"lf:0"),
                (lambda: loaded.change("total", axis=[0]), "ReduceSumD: there is no attribute 'axis'"),
                (lambda: npumesh.Graph.load(path + ".gone"), "graph.air.gone")):
            with self.assertRaisesRegex(npumesh.NpumeshError, words):
                call()

    def test_weights_in_files_stay_beside_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "other"))
            np.float32([1, 2]).tofile(os.path.join(folder, "w"))
            path = os.path.join(folder, "graph.txt")
            with open(path, "w") as file:
                file.write("""graph { name: "g"
                    op { name: "w" type: "FileConstant" attr { key: "file_path" value { s: "w" } }
                         attr { key: "dtype" value { dt: 0 } }
                         attr { key: "shape" value { list { i: 2 val_type: VT_LIST_INT } } }
                         output_desc { name: "y" dtype: DT_FLOAT layout: "ND" shape { dim: 2 } } }
                    op { name: "NetOutput" type: "NetOutput" input: "w:0"
                         input_desc { dtype: DT_FLOAT layout: "ND" } } }""")
            graph = npumesh.Graph.load(path)
            self.assertEqual(graph.attributes("w")["file_path"], "w")
            graph.replace(graph.value("w"), graph.op("Neg", graph.value("w")))
            with self.assertRaisesRegex(npumesh.InvalidArgumentError, "its weights lie beside"):
                graph.save(os.path.join(folder, "other", "graph.air"))
            graph.save(os.path.join(folder, "edited.air"))
            with self.world.load(os.path.join(folder, "edited.air")) as model:
                self.assertEqual(model.run()[0].tolist(), [-1, -2])

    def test_an_onnx_file_becomes_operators_of_ge(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "neg.onnx")
            with open(path, "wb") as file:
                file.write(onnx_neg())
            graph = npumesh.Graph.load(path)
            self.assertEqual([kind for _, kind in graph.nodes], ["Data", "Neg"])
            (out,) = graph.outputs
            graph.replace(out, graph.op("Neg", out))
            self.assertEqual(self.run_one(graph, np.float32([1, -2]))[0].tolist(), [1, -2])
            with open(path, "wb") as file:
                file.write(b"nothing")
            with self.assertRaisesRegex(npumesh.NpumeshError, "neg.onnx"):
                npumesh.Graph.load(path)

    def test_an_operator_of_a_library_of_ones_own(self):
        graph = npumesh.Graph()
        made = graph.op("NoSuchOperator", graph.input("x", (2,)), coefficients=[1.0, 2.0])
        self.assertIn('key: "coefficients"', graph.output(made).text().decode())
        graph.change(made, coefficients=[3.0])
        self.assertIn("f: 3.0", graph.text().decode())
        graph.change(made, coefficients=None)
        self.assertNotIn("coefficients", graph.text().decode())

    def test_messages_name_the_line_of_the_program(self):
        graph = npumesh.Graph()
        graph.output(graph.op("Add", graph.input("x", (2,)), graph.input("y", (3,))))
        with self.assertRaisesRegex(npumesh.NpumeshError, r'File ".*graph_test.py", line \d+, in test_messages_name'):
            self.run_one(graph, np.zeros(2, np.float32), np.zeros(3, np.float32))


if __name__ == "__main__":
    case.main()
