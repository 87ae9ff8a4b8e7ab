"""What the schema and the tags of an operator say about a call: which arguments it writes, and what its
result depends on."""

from __future__ import annotations

from typing import Any, List

import torch


def _is_write(field: Any) -> bool:
    return field.alias_info is not None and field.alias_info.is_write


def writes(func: Any) -> bool:
    """Whether a call writes an argument."""
    return any(map(_is_write, func._schema.arguments))


def writes_all(func: Any) -> bool:
    """Whether all that a call returns are arguments that it writes."""
    returns = func._schema.returns
    return bool(returns) and all(map(_is_write, returns))


def written_by(func: Any, args: Any, kwargs: Any) -> List[Any]:
    """The arguments that a call writes; None for one that it leaves out."""
    return [args[at] if at < len(args) else kwargs.get(field.name)
            for at, field in enumerate(func._schema.arguments) if _is_write(field)]


def depends_on_values(func: Any) -> bool:
    """Whether a call may give a number, or a shape, that the values of its tensors decide."""
    return (torch.Tag.data_dependent_output in func.tags
            or torch.Tag.dynamic_output_shape in func.tags)


def is_random(func: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in func.tags
