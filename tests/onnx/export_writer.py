"""Writes ONNX models the way exporters of frameworks write them, in operator set 11, 13 or 17."""

import math

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

OPERATOR_SETS = (11, 13, 17)
FORMATS = {11: 6, 13: 7, 17: 8}  # of the file, as exporters of the time wrote it
KINDS = {'float32': TensorProto.FLOAT, 'int64': TensorProto.INT64, 'bool': TensorProto.BOOL}


class Exported:
    """A model with what to feed it: `steps` are dicts of inputs, of other sizes each time.

    `reference(weights, **inputs)` gives the expected outputs, by name.
    """

    def __init__(self, writer, steps, reference):
        self.model = writer.model()
        self.steps = steps
        self.weights = writer.weights
        self.reference = reference
        self.inputs = [value.name for value in writer.inputs]
        self.outputs = [value.name for value in writer.outputs]

    def expected(self, step):
        return self.reference(self.weights, **self.steps[step])


class Writer:
    """A graph in the making. Methods add nodes and return the names of their results."""

    def __init__(self, name, opset):
        self.name, self.opset = name, opset
        self.nodes, self.inputs, self.outputs, self.constants = [], [], [], []
        self.weights = {}
        self._random = numpy.random.RandomState(len(name))

    # The graph around.

    def input(self, name, dtype, dims):
        self.inputs.append(helper.make_tensor_value_info(name, KINDS[dtype], dims))
        return name

    def output(self, name, value, dtype, dims):
        self.nodes.append(helper.make_node('Identity', [value], [name], name=f'out/{name}'))
        self.outputs.append(helper.make_tensor_value_info(name, KINDS[dtype], dims))

    def weight(self, name, *shape, scale=0.3, around=0.0):
        """A random weight, which the reference finds in `weights`; the same in every operator set."""
        return self.given(name, around + scale * self._random.standard_normal(shape))

    def given(self, name, values):
        values = numpy.asarray(values)
        if values.dtype == numpy.float64:
            values = values.astype(numpy.float32)
        self.weights[name] = values
        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def model(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.constants)
        model = helper.make_model(graph, producer_name='export_writer',
                                  opset_imports=[helper.make_opsetid('', self.opset)])
        model.ir_version = FORMATS[self.opset]
        onnx.checker.check_model(model)
        return model

    # Nodes.

    def node(self, kind, *operands, outputs=1, **attributes):
        number = len(self.nodes)
        results = [f'/{kind}_{number}_output_{i}' for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(operands), results, name=f'/{kind}_{number}',
                                           **attributes))
        return results[0] if outputs == 1 else results

    def constant(self, values, dtype=None):
        """A Constant node, as exporters have one for every number."""
        values = numpy.asarray(values, dtype)
        if values.dtype == numpy.float64:
            values = values.astype(numpy.float32)
        return self.node('Constant', value=numpy_helper.from_array(values))

    def _with_axes(self, kind, x, axes, **attributes):
        if self.opset < 13:
            return self.node(kind, x, axes=axes, **attributes)
        return self.node(kind, x, self.constant(axes, 'int64'), **attributes)

    def unsqueeze(self, x, *axes):
        return self._with_axes('Unsqueeze', x, axes)

    def squeeze(self, x, *axes):
        return self._with_axes('Squeeze', x, axes)

    def reduce_sum(self, x, *axes, keepdims=1):
        return self._with_axes('ReduceSum', x, axes, keepdims=keepdims)

    def split(self, x, sizes, axis):
        if self.opset < 13:
            return self.node('Split', x, outputs=len(sizes), split=sizes, axis=axis)
        return self.node('Split', x, self.constant(sizes, 'int64'), outputs=len(sizes), axis=axis)

    def size(self, x, axis):
        """The extent of an axis: Shape and Gather."""
        return self.node('Gather', self.node('Shape', x), self.constant(axis, 'int64'), axis=0)

    def shape(self, *extents):
        """A shape of numbers and scalars: Unsqueeze of each, Concat."""
        parts = [self.constant([extent], 'int64') if isinstance(extent, int)
                 else self.unsqueeze(extent, 0) for extent in extents]
        return self.node('Concat', *parts, axis=0)

    def reshape(self, x, *extents):
        return self.node('Reshape', x, self.shape(*extents))

    def slice(self, x, start, end, axis):
        ends = [self.constant([bound], 'int64') if isinstance(bound, int)
                else self.unsqueeze(bound, 0) for bound in (start, end)]
        return self.node('Slice', x, *ends, self.constant([axis], 'int64'))

    def at_least(self, a, b):
        """a >= b, which operator set 11 has no operator for."""
        if self.opset < 12:
            return self.node('Not', self.node('Less', a, b))
        return self.node('GreaterOrEqual', a, b)

    # Layers.

    def linear(self, x, name, rows, columns):
        """MatMul and Add, as a linear layer of three axes is exported."""
        product = self.node('MatMul', x, self.weight(f'{name}.weight', rows, columns))
        return self.node('Add', self.weight(f'{name}.bias', columns), product)

    def layer_norm(self, x, name, width):
        gain = self.weight(f'{name}.gain', width, scale=0.1, around=1)
        bias = self.weight(f'{name}.bias', width, scale=0.1)
        if self.opset >= 17:
            return self.node('LayerNormalization', x, gain, bias, axis=-1, epsilon=1e-5)
        mean = self.node('ReduceMean', x, axes=[-1])
        centred = self.node('Sub', x, mean)
        square = self.node('Pow', centred, self.constant(2.0))
        variance = self.node('Add', self.node('ReduceMean', square, axes=[-1]), self.constant(1e-5))
        normal = self.node('Div', centred, self.node('Sqrt', variance))
        return self.node('Add', self.node('Mul', normal, gain), bias)

    def gelu(self, x):
        inner = self.node('Erf', self.node('Div', x, self.constant(math.sqrt(2))))
        whole = self.node('Mul', x, self.node('Add', inner, self.constant(1.0)))
        return self.node('Mul', whole, self.constant(0.5))

    def gelu_tanh(self, x):
        cube = self.node('Mul', self.node('Pow', x, self.constant(3.0)), self.constant(0.044715))
        inner = self.node('Mul', self.node('Add', x, cube), self.constant(math.sqrt(2 / math.pi)))
        whole = self.node('Add', self.node('Tanh', inner), self.constant(1.0))
        return self.node('Mul', self.node('Mul', x, self.constant(0.5)), whole)

    def silu(self, x):
        return self.node('Mul', x, self.node('Sigmoid', x))
