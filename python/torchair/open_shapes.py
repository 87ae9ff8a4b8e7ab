"""Open dimensions with torch 2.12 and later: TorchAir asks there for the size that a dimension has in the
first call, and would build a graph for that size only."""

import sys


def _shape_of(tensor):
    """The sizes of a tensor of a compiled function; -1 for one that is open."""
    return [int(text) if text.isdigit() else -1 for text in map(str, tensor.size())]


def install():
    """Once, after TorchAir was imported."""
    from torchair._ge_concrete_graph import utils

    of_torchair = utils.generate_shape_from_tensor
    for name, module in list(sys.modules.items()):
        if name.startswith("torchair.") and (
                getattr(module, "generate_shape_from_tensor", None) is of_torchair):
            module.generate_shape_from_tensor = _shape_of
