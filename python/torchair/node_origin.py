"""Nodes of a graph that TorchAir builds from a compiled model say where they come from, in attributes
that messages of the engine repeat (graph/ir/node_origin.h): the FX node, its module, and the line of the
user's model. Exported graphs stay as TorchAir writes them."""

import contextlib


def origin_of(node):
    """What an FX node tells, as attributes of the nodes that it becomes."""
    attributes = {"_fx_node": node.name}
    stack = node.meta.get("nn_module_stack")
    if stack:
        attributes["nn_module_stack"] = str(stack)
    if node.stack_trace:
        innermost = node.stack_trace.rpartition("File ")[2]
        attributes["_stack_trace"] = "File " + innermost.partition("\n")[0].strip()
    return {name: text.encode() for name, text in attributes.items()}


def install():
    """Once, after TorchAir was imported."""
    from torchair._ge_concrete_graph.fx2ge_converter import GeConcreteGraph
    from torchair.ge._ge_graph import attr_scope

    of_torchair = GeConcreteGraph.converter_context

    @contextlib.contextmanager
    def converter_context(self, *, node):
        with of_torchair(self, node=node):
            if self.config.export.export_mode:
                yield
            else:
                with attr_scope(origin_of(node)):
                    yield

    GeConcreteGraph.converter_context = converter_context
