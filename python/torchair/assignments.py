"""Inputs of a graph that get the same value: TorchAir makes the value one output of the graph, and
remembers only the last of the inputs that it is copied to. Here each of them gets an output of its
own, so that none keeps its old value."""

import functools


def _repeated(graph):
    """The assignments to inputs whose value an earlier one has, too."""
    inputs = {f"{op.name}:0" for op in graph.op if op.type == "Data"}
    seen = set()
    for op in graph.op:
        if op.type != "Assign" or op.input[0] not in inputs:
            continue
        if op.input[1] in seen:
            yield op
        seen.add(op.input[1])


def _tensor_named(graph, text):
    from torchair.ge._ge_graph import Tensor

    name, index = text.rsplit(":", 1)
    return Tensor(next(op for op in graph.op if op.name == name), int(index))


def install():
    """Once, after TorchAir was imported."""
    from torchair._ge_concrete_graph import fx2ge_converter, ge_apis

    of_torchair = fx2ge_converter._mapping_assign_op_to_graph_output

    @functools.wraps(of_torchair)
    def mapping(graph):
        for op in list(_repeated(graph)):
            value = _tensor_named(graph, op.input[1])
            with graph:
                moved = ge_apis.TensorMove(value)
            moved.desc.dtype = value.desc.dtype
            op.input[1] = moved.tensor
        return of_torchair(graph)

    fx2ge_converter._mapping_assign_op_to_graph_output = mapping
