"""NPUGraph: calls that are captured once and replayed.

A capture runs each call and writes it down with the tensors it read and made; a replay runs them
again in order and leaves the results in the same tensors. The engine runs what it ran in the
capture: operators of torch.ops.npu, by plans that exist, and collectives. torch runs the others.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any, Callable, List, Optional, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from .._say import no_effect
from .streams import Stream, current_stream, set_stream

_here = threading.local()
_pools = itertools.count(1)


def _capture() -> Optional["_Capture"]:
    return getattr(_here, "capture", None)


def is_current_stream_capturing() -> bool:
    return _capture() is not None


def record(call: Callable[[], Any]) -> None:
    """Writes down a call that torch's dispatcher does not see, such as a collective. Nothing
    without a capture."""
    capture = _capture()
    if capture is not None:
        capture.steps.append(call)


class _Capture(TorchDispatchMode):
    """Writes down what the dispatcher is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: List[Callable[[], Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        outputs = [each for each in tree_flatten(result)[0] if isinstance(each, torch.Tensor)]
        inputs = [each for each in tree_flatten((args, kwargs))[0]
                  if isinstance(each, torch.Tensor)]
        places = {_place(each) for each in inputs}
        fresh = [at for at, each in enumerate(outputs) if _place(each) not in places]
        if fresh or not outputs or _writes(func):
            self.steps.append(_step(func, args, kwargs, [outputs[at] for at in fresh], fresh))
        return result


def _place(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _writes(func: Any) -> bool:
    return any(each.alias_info is not None and each.alias_info.is_write
               for each in func._schema.arguments)


def _step(func: Any, args: Any, kwargs: Any, kept: List[torch.Tensor],
          fresh: List[int]) -> Callable[[], None]:
    def again() -> None:
        outputs = [each for each in tree_flatten(func(*args, **kwargs))[0]
                   if isinstance(each, torch.Tensor)]
        for tensor, at in zip(kept, fresh):
            tensor.copy_(outputs[at])

    return again


class NPUGraph:
    """Calls that were captured. `replay` runs them; tensors of the capture are its inputs and
    results. Errors: RuntimeError for calls in the wrong order."""

    def __init__(self, keep_graph: bool = False) -> None:
        self._steps: Optional[List[Callable[[], Any]]] = None
        self._capture: Optional[_Capture] = None
        self._pool: Any = None

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global",
                      **kwargs: Any) -> None:
        if capture_error_mode not in ("global", "thread_local", "relaxed"):
            raise RuntimeError("torch_npu: capture_error_mode: expected global, thread_local or "
                               f"relaxed, seen {capture_error_mode!r}")
        if _capture() is not None:
            raise RuntimeError("torch_npu: a capture is running already in this thread")
        self._pool = pool or graph_pool_handle()
        self._capture = _Capture()
        _here.capture = self._capture
        self._capture.__enter__()

    def capture_end(self) -> None:
        if self._capture is None or _capture() is not self._capture:
            raise RuntimeError("torch_npu: capture_end: this graph has no capture running")
        self._capture.__exit__(None, None, None)
        _here.capture = None
        self._steps, self._capture = self._capture.steps, None

    def replay(self) -> None:
        """Runs the calls again, in order."""
        if self._steps is None:
            raise RuntimeError("torch_npu: replay: nothing was captured")
        with torch.no_grad():
            for step in self._steps:
                step()

    def reset(self) -> None:
        """Forgets the calls and their tensors."""
        self._steps = None

    def pool(self) -> Any:
        return self._pool

    def update(self, cpu_update_input: Any = None) -> None:
        raise NotImplementedError(
            "torch_npu: NPUGraph.update: lists of lengths are part of the captured calls; capture "
            "again, or give lengths as tensors")

    def enable_debug_mode(self) -> None:
        pass

    def debug_dump(self, debug_path: str) -> None:
        no_effect("NPUGraph.debug_dump")

    @property
    def step_count(self) -> int:
        """How many calls a replay runs."""
        return len(self._steps or ())


class graph:
    """`with torch.npu.graph(g):` captures into `g`."""

    default_capture_stream: Optional[Stream] = None

    def __init__(self, npu_graph: NPUGraph, pool: Any = None, stream: Optional[Stream] = None,
                 capture_error_mode: str = "global", auto_dispatch_capture: bool = False,
                 report_shape: bool = True, **kwargs: Any) -> None:
        self.npu_graph = npu_graph
        self.pool = pool
        self.stream = stream or Stream()
        self.capture_error_mode = capture_error_mode

    def __enter__(self) -> NPUGraph:
        self._before = current_stream()
        set_stream(self.stream)
        try:
            self.npu_graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            set_stream(self._before)
            raise
        return self.npu_graph

    def __exit__(self, *_: Any) -> None:
        self.npu_graph.capture_end()
        set_stream(self._before)


def graph_pool_handle() -> Tuple[int, int]:
    """Tensors of a capture live as long as its graph; a pool only has a name."""
    return (0, next(_pools))


def make_graphed_callables(callables: Any, sample_args: Any, num_warmup_iters: int = 3,
                           allow_unused_input: bool = False, pool: Any = None) -> Any:
    """Functions of tensors, captured with `sample_args`; a call copies its arguments into the
    captured ones and replays. Without gradients: a function that needs some stays as it is."""
    single = not isinstance(callables, (tuple, list))
    functions = (callables,) if single else tuple(callables)
    samples = (sample_args,) if single else tuple(sample_args)
    graphed = tuple(_graphed(function, args, pool)
                    for function, args in zip(functions, samples))
    return graphed[0] if single else graphed


def _graphed(function: Callable, sample: Any, pool: Any) -> Callable:
    needs = [each for each in tree_flatten(sample)[0]
             if isinstance(each, torch.Tensor) and each.requires_grad]
    if isinstance(function, torch.nn.Module):
        needs += [each for each in function.parameters() if each.requires_grad]
    if needs and torch.is_grad_enabled():
        no_effect("make_graphed_callables with gradients")
        return function
    inputs = tree_map(lambda each: each.clone() if isinstance(each, torch.Tensor) else each,
                      sample)
    captured = NPUGraph()
    with torch.no_grad(), graph(captured, pool=pool):
        results = function(*inputs)
    places = [each for each in tree_flatten(inputs)[0] if isinstance(each, torch.Tensor)]

    def call(*args: Any) -> Any:
        values = [each for each in tree_flatten(args)[0] if isinstance(each, torch.Tensor)]
        for place, value in zip(places, values):
            place.copy_(value)
        captured.replay()
        return tree_map(lambda each: each.clone() if isinstance(each, torch.Tensor) else each,
                        results)

    return call


def graph_task_group_begin(stream: Stream) -> None:
    no_effect("a task group of a graph")


def graph_task_group_end(stream: Stream) -> int:
    return 0


def graph_task_update_begin(stream: Stream, handle: Any) -> None:
    no_effect("a task update of a graph")


def graph_task_update_end(stream: Stream) -> None:
    pass
