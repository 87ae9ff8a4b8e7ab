"""FX graphs of captured calls as graphs of the engine: TorchAir's converters translate them, where a
checkout of it is there (docs/python.md). What has no translation, torch runs.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import operator
import os
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import torch
from torch import fx
from torch.fx.passes.split_module import split_module
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten

from .._engine import with_options
from .schemas import written_by

# A segment that has so many calls without a translation is left to torch as it is then: each of them
# costs translations that fail.
_MOST_FAILURES = 16

# In the meta data of the nodes that are tensors: a number, equal for those that share memory.
MEMORY = "npumesh_memory"

_static_kernels: Optional[str] = None


def use_static_kernels(outputs: str) -> None:
    """From now on, captured graphs that have not run yet get static kernels
    (docs/static_kernels.md). `outputs`: <build_dir>/aclnn_static_shape_kernel_outputs/<run>, as
    TorchAir makes it; the kernels' own records become other runs beside it."""
    global _static_kernels
    _static_kernels = os.path.dirname(os.path.dirname(os.path.abspath(outputs)))


def _options() -> Dict[str, str]:
    if _static_kernels is None:
        return {}
    option = "experimental_config.aclgraph._aclnn_static_shape_kernel"
    return {"mode": "reduce-overhead", option: "true", option + "_build_dir": _static_kernels}


@contextlib.contextmanager
def _lowering() -> Iterator[None]:
    """Modes of the dispatcher are switched off: torch watches the first run of a compiled function,
    in which a replay may stand, by one that tracing does not bear."""
    with with_options(_options), _disable_current_modes():
        yield


class Budget:
    """How many translations of a segment may still fail."""

    def __init__(self) -> None:
        self.left = _MOST_FAILURES


class Lowered:
    """A function of tensors, given as an FX graph: run by the engine where it can be translated. The
    first call translates it; what fails is halved, until calls that have no translation are alone.
    One thread at a time."""

    def __init__(self, module: fx.GraphModule, budget: Optional[Budget] = None) -> None:
        self._module = module
        self._budget = budget or Budget()
        self._calls = [node for node in module.graph.nodes if _is_call(node)]
        self._run: Optional[Callable] = None
        self._parts: List["Lowered"] = []
        self._why_torch = ""

    def __call__(self, *inputs: torch.Tensor) -> Any:
        if self._run is None:
            return self._first(inputs)
        return self._run(*inputs)

    def describe(self) -> List[Dict[str, Any]]:
        """Of each part, in order: how many calls it has, who runs them, and why not the engine.
        Nothing before the first call."""
        if self._parts:
            return [told for part in self._parts for told in part.describe()]
        if self._run is None:
            return []
        told: Dict[str, Any] = {"calls": len(self._calls)}
        told["by"] = "torch" if self._why_torch else "engine"
        if self._why_torch:
            told["why"] = self._why_torch
        return [told]

    def _first(self, inputs: Sequence[torch.Tensor]) -> Any:
        torchair, why = _torchair()
        if torchair is None:
            return self._leave_to_torch(why, inputs)
        if self._budget.left <= 0:
            return self._leave_to_torch("too many calls beside it have no translation", inputs)
        written = _written(self._module)
        if _shares_memory(self._module, written):
            return self._failed(ValueError("its tensors share memory"), inputs)
        places = [node for node in self._module.graph.nodes if node.op == "placeholder"]
        before = [each.clone() if _memory_of(place) in written else None
                  for place, each in zip(places, inputs)]
        try:
            with _lowering():
                run = torchair.get_npu_backend(compiler_config=torchair.CompilerConfig())(
                    self._module, list(inputs))
                outputs = run(*inputs)
        except Exception as error:  # of the translation, or of the engine, which refuses a graph
            for tensor, value in zip(inputs, before):
                if value is not None:
                    tensor.copy_(value)
            return self._failed(error, inputs)
        self._run = run
        return outputs

    def _failed(self, error: Exception, inputs: Sequence[torch.Tensor]) -> Any:
        if len(self._calls) == 1:
            self._budget.left -= 1
            return self._leave_to_torch(_line(error), inputs)
        self._run = self._halved()
        return self._run(*inputs)

    def _leave_to_torch(self, why: str, inputs: Sequence[torch.Tensor]) -> Any:
        self._why_torch = why
        self._run = self._module
        return self._module(*inputs)

    def _halved(self) -> Callable:
        second = set(self._calls[len(self._calls) // 2:])
        part, part_of = 0, {}
        for node in self._module.graph.nodes:
            if node in second:
                part = 1
            part_of[node] = part
        # An element of a result belongs to the call that gave it.
        for node in self._module.graph.nodes:
            if node.target is operator.getitem:
                part_of[node] = part_of[node.args[0]]
        halves = split_module(self._module, None, part_of.__getitem__, keep_original_order=True)
        for name in ("submod_0", "submod_1"):
            part = _Part(getattr(halves, name), self._budget)
            self._parts.append(part.half)
            setattr(halves, name, part)
        return halves


class _Part(torch.nn.Module):
    """What split_module's graph calls: a function that gives one value bare, and several as a tuple."""

    def __init__(self, module: fx.GraphModule, budget: Budget) -> None:
        super().__init__()
        output = next(node for node in reversed(module.graph.nodes) if node.op == "output")
        self._gives_one = isinstance(output.args[0], fx.Node)
        if self._gives_one:
            output.args = ((output.args[0],),)
            module.recompile()
        self.half = Lowered(module, budget)

    def forward(self, *inputs: torch.Tensor) -> Any:
        outputs = self.half(*inputs)
        return outputs[0] if self._gives_one else outputs


def _is_call(node: fx.Node) -> bool:
    return node.op == "call_function" and node.target is not operator.getitem


def _line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


@functools.lru_cache(maxsize=None)
def _torchair() -> Tuple[Any, str]:
    """TorchAir, if this process uses it or NPUMESH_TORCHAIR names one; else None, and why."""
    if "torchair" not in sys.modules and not os.environ.get("NPUMESH_TORCHAIR"):
        return None, "there is no TorchAir (NPUMESH_TORCHAIR)"
    try:
        return importlib.import_module("torchair"), ""
    except ImportError as error:
        return None, _line(error)


def _memory_of(node: fx.Node) -> int:
    return node.meta[MEMORY]


def _written(module: fx.GraphModule) -> Set[int]:
    """The memory that a run changes, as the schemas of the calls say."""
    memory: Set[int] = set()
    for node in module.graph.nodes:
        if _is_call(node):
            values = written_by(node.target, node.args, node.kwargs)
            memory.update(_memory_of(each) for each in tree_flatten(values)[0]
                          if isinstance(each, fx.Node))
    return memory


def _shares_memory(module: fx.GraphModule, written: Set[int]) -> bool:
    """Whether memory that is written belongs to two inputs, or two outputs are of one memory:
    functional graphs express neither. A whole segment has neither, its parts may."""
    inputs = [_memory_of(node) for node in module.graph.nodes if node.op == "placeholder"]
    output = next(node for node in reversed(module.graph.nodes) if node.op == "output")
    given = [_memory_of(each) for each in tree_flatten(output.args)[0] if isinstance(each, fx.Node)]
    return any(inputs.count(each) > 1 for each in written) or len(set(given)) < len(given)
