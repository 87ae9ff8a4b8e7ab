"""Captured calls of torch's own operators, put together: each run of them between two other steps of
a captured graph is one FX graph, a segment.

What a segment reads and does not make are its inputs, always the same tensors. Its outputs are the
results that something refers to when the capture ends, another step or the program; a replay writes
them where they are. Other results are intermediate values, which have memory only while a segment
runs.
"""

from __future__ import annotations

import operator
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

import torch
from torch import fx
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_flatten, tree_map

from .lowering import MEMORY, Lowered
from .schemas import written_by

# What depends on more than the values of tensors, or has a result whose shape does.
_ALONE = {torch.Tag.nondeterministic_seeded, torch.Tag.dynamic_output_shape,
          torch.Tag.data_dependent_output}


def tensors_of(values: Any) -> List[torch.Tensor]:
    return [each for each in tree_flatten(values)[0] if isinstance(each, torch.Tensor)]


def storage_of(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


class Written:
    """A step: a call that torch's dispatcher was asked for, with the tensors that it has given.

    `fresh`: which of its results, flattened, are memory of their own. `runs` False: it makes views
    only, which stay right by themselves. `foreseen` False: a capture had to run it.
    """

    def __init__(self, func: Any, args: Any, kwargs: Any, result: Any, fresh: List[int], runs: bool,
                 foreseen: bool) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs
        self.result, self.fresh, self.runs = result, fresh, runs
        self.names = [func.name()]
        self.in_graph = (foreseen or not runs) and _may_be_in_graph(func, args, kwargs)

    def call(self) -> None:
        """Runs it alone."""
        outputs = tensors_of(self.func(*self.args, **self.kwargs))
        kept = tensors_of(self.result)
        for at in self.fresh:
            kept[at].copy_(outputs[at])


def _may_be_in_graph(func: Any, args: Any, kwargs: Any) -> bool:
    if func.namespace not in ("aten", "prims") or not _ALONE.isdisjoint(func.tags):
        return False
    flat = tree_flatten((args, kwargs))[0]
    if any(isinstance(each, (torch.Generator, torch.Storage, torch.UntypedStorage)) for each in flat):
        return False
    return all(each.layout == torch.strided and not each.is_complex()
               for each in flat if isinstance(each, torch.Tensor))


class _Memory(NamedTuple):
    begin: int
    end: int

    def meets(self, other: "_Memory") -> bool:
        return self.begin < other.end and other.begin < self.end


def _memory(tensor: torch.Tensor) -> _Memory:
    storage = tensor.untyped_storage()
    return _Memory(storage.data_ptr(), storage.data_ptr() + storage.nbytes())


class _Made(NamedTuple):
    """A result with separate memory, which the capture no longer holds."""

    storage: StorageWeakRef
    dtype: torch.dtype
    offset: int
    shape: Tuple[int, ...]
    stride: Tuple[int, ...]
    node: fx.Node

    def tensor(self) -> Optional[torch.Tensor]:
        """None: nothing refers to it."""
        storage = torch.UntypedStorage._new_with_weak_ptr(self.storage.cdata)
        if storage is None:
            return None
        return torch.empty(0, dtype=self.dtype).set_(storage, self.offset, self.shape, self.stride)


class _Draft:
    """A segment that is being put together."""

    def __init__(self) -> None:
        self._graph = fx.Graph()
        self._nodes: Dict[int, fx.Node] = {}  # by id of a tensor, which steps hold meanwhile
        self._inputs: List[torch.Tensor] = []
        self._last_input: Any = None  # its node
        self._touched: List[_Memory] = []  # what it makes or writes
        self._made: List[_Made] = []
        self._names: List[str] = []

    def takes(self, step: Written) -> bool:
        """False: the step refers to memory that this segment changes by a tensor that the segment
        does not know, or changes memory to which several tensors from outside refer. An FX graph
        knows its inputs by name only."""
        strange = {id(each): _memory(each) for each in tensors_of((step.args, step.kwargs))
                   if id(each) not in self._nodes}
        if any(one.meets(other) for one in strange.values() for other in self._touched):
            return False
        outside = [*map(_memory, self._inputs), *strange.values()]
        return all(sum(changed.meets(each) for each in outside) <= 1
                   for changed in map(_memory, _changed(step)))

    def add(self, step: Written) -> None:
        args, kwargs = tree_map(self._value, (step.args, step.kwargs))
        node = self._graph.call_function(step.func, tuple(args), kwargs)
        self._touched += [_memory(each) for each in _changed(step)]
        results = tensors_of(step.result)
        fresh = {id(results[at]) for at in step.fresh}
        self._bind(node, step.result, fresh)
        if step.runs:
            self._names += step.names

    def _value(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self._nodes:
            with (self._graph.inserting_after(self._last_input) if self._inputs
                  else self._graph.inserting_before(None)):
                self._last_input = self._graph.placeholder(f"in{len(self._inputs)}")
            self._name(value, self._last_input)
            self._inputs.append(value)
        return self._nodes[id(value)]

    def _bind(self, node: fx.Node, result: Any, fresh: Set[int]) -> None:
        if isinstance(result, (tuple, list)):
            for at, each in enumerate(result):
                if tensors_of(each):
                    self._bind(self._graph.call_function(operator.getitem, (node, at)), each, fresh)
        elif isinstance(result, torch.Tensor):
            if id(result) in fresh:
                self._touched.append(_memory(result))
                self._made.append(_Made(StorageWeakRef(result.untyped_storage()), result.dtype,
                                        result.storage_offset(), tuple(result.shape),
                                        result.stride(), node))
            if id(result) not in self._nodes:
                self._name(result, node)

    def _name(self, tensor: torch.Tensor, node: fx.Node) -> None:
        self._nodes[id(tensor)] = node
        node.meta[MEMORY] = storage_of(tensor)

    def finish(self) -> Optional["Segment"]:
        """After the steps were forgotten. None: it has nothing to do."""
        self._nodes.clear()
        kept, nodes = [], []
        for each in self._made:
            tensor = each.tensor()
            if tensor is not None:
                kept.append(tensor)
                nodes.append(each.node)
        if not self._names:
            return None
        self._graph.output(tuple(nodes))
        return Segment(fx.GraphModule({}, self._graph), self._inputs, kept, self._names)


def _changed(step: Written) -> List[torch.Tensor]:
    return tensors_of(written_by(step.func, step.args, step.kwargs))


class Segment:
    """A step: calls that run as one FX graph, by the engine where TorchAir translates it, else by
    torch."""

    def __init__(self, module: fx.GraphModule, inputs: List[torch.Tensor],
                 kept: List[torch.Tensor], names: List[str]) -> None:
        self.names = names
        self._inputs = inputs
        self._kept = kept
        self._run = Lowered(module)

    def call(self) -> None:
        for tensor, value in zip(self._kept, self._run(*self._inputs)):
            tensor.copy_(value)

    def describe(self) -> List[Dict[str, Any]]:
        """Who runs its calls; nothing before the first replay."""
        return self._run.describe()


def segmented(steps: List[Any]) -> List[Any]:
    """The steps with runs of calls put together. Takes them over: `steps` is empty afterwards, so
    that what nothing else refers to goes away."""
    result: List[Any] = []
    draft: Optional[_Draft] = None
    for step in steps:
        if not isinstance(step, Written) or not step.in_graph:
            draft = None
            if not isinstance(step, Written) or step.runs:
                result.append(step)
            continue
        if draft is None or not draft.takes(step):
            draft = _Draft()
            result.append(draft)
        draft.add(step)
    step = None
    steps.clear()
    finished = [each.finish() if isinstance(each, _Draft) else each for each in result]
    return [each for each in finished if each is not None]
