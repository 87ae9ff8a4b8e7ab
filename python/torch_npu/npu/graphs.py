"""NPUGraph: calls that are captured once and replayed.

A capture writes down each call with the tensors that it reads and makes, and does not run it, but for
views and calls whose results depend on values; results have no values before a replay. A replay runs
the calls in order and leaves the results in the same tensors. The engine runs operators of
torch.ops.npu, by plans that exist after the first replay, and collectives. torch runs the others.

A graph that waits for an ExternalEvent stops there; recording the event lets it go on. Until then a
task group, the calls between graph_task_group_begin and _end, may get other arguments.
"""

from __future__ import annotations

import itertools
import json
import threading
from typing import Any, Callable, Iterator, List, Optional, Tuple

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from .._say import no_effect
from .streams import ExternalEvent, Stream, current_stream, set_stream

_here = threading.local()
_pools = itertools.count(1)

# Makers of tensors without values: a replay leaves alone what is in them.
_MAKERS = {f"aten::{name}" for name in
           ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty",
            "new_empty_strided")}


def _capture() -> Optional["_Capture"]:
    return getattr(_here, "capture", None)


def is_current_stream_capturing() -> bool:
    return _capture() is not None


def record(call: Callable[[], Any], name: str = "collective") -> bool:
    """Writes down a call that torch's dispatcher does not see, such as a collective. False: there is
    no capture, so the caller has to run it."""
    capture = _capture()
    if capture is None:
        return False
    capture.steps.append(_Call(name, call))
    return True


def hold(tensor: torch.Tensor) -> None:
    """Keeps a tensor as long as the graph that is captured now. Nothing without a capture."""
    capture = _capture()
    if capture is not None:
        capture.held.append(tensor)


class _Call:
    """A step of a graph."""

    def __init__(self, name: str, call: Callable[[], Any]) -> None:
        self.name = name
        self.call = call


class _Wait:
    """A step: nothing goes on before the event is recorded."""

    def __init__(self, event: ExternalEvent) -> None:
        self.name = "wait"
        self.event = event


class _Group:
    """A step of several calls, which an update replaces."""

    def __init__(self, steps: List[Any]) -> None:
        self.name = "task group"
        self.steps = steps

    def call(self) -> None:
        for step in self.steps:
            step.call()


class _Capture(TorchDispatchMode):
    """Writes down what the dispatcher is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: List[Any] = []
        self.held: List[Any] = []
        self.group_begin: Optional[int] = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if _writes_all(func):
            self.steps.append(_Call(func.name(), _again(func, args, kwargs, [], [])))
            written = _written(func, args, kwargs)
            return written[0] if len(written) == 1 else tuple(written)
        known, result = _foreseen(func, args, kwargs)
        if not known:
            result = func(*args, **kwargs)
        outputs = _tensors(result)
        places = {_place(each) for each in _tensors((args, kwargs))}
        fresh = [at for at, each in enumerate(outputs) if _place(each) not in places]
        if func._schema.name in _MAKERS:
            self.held += outputs
        elif fresh or not outputs or _writes(func):
            kept = [outputs[at] for at in fresh]
            self.steps.append(_Call(func.name(), _again(func, args, kwargs, kept, fresh)))
        return result

    def run(self, enter: bool) -> None:
        """This thread is captured from now on, or no longer."""
        if enter:
            _here.capture = self
            self.__enter__()
        else:
            self.__exit__(None, None, None)
            _here.capture = None


def _tensors(values: Any) -> List[torch.Tensor]:
    return [each for each in tree_flatten(values)[0] if isinstance(each, torch.Tensor)]


def _foreseen(func: Any, args: Any, kwargs: Any) -> Tuple[bool, Any]:
    """The result of a call as tensors without values. (False, None): it must run, because its
    result is a view, a number, or known only from values."""
    with torch.no_grad(), FakeTensorMode() as fake:
        try:
            given = tree_map(lambda each: fake.from_tensor(each.detach())
                             if isinstance(each, torch.Tensor) else each, (args, kwargs))
            result = func(*given[0], **given[1])
        except Exception:  # whatever it is, the call itself says it better
            return False, None
    outputs = _tensors(result)
    places = {_place(each) for each in _tensors(given)}
    if result is not None and not outputs or any(_place(each) in places for each in outputs):
        return False, None
    return True, tree_map(lambda each: torch.empty_strided(each.shape, each.stride(),
                                                           dtype=each.dtype)
                          if isinstance(each, torch.Tensor) else each, result)


def _place(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _writes(func: Any) -> bool:
    return any(each.alias_info is not None and each.alias_info.is_write
               for each in func._schema.arguments)


def _writes_all(func: Any) -> bool:
    """Whether all that a call returns are arguments that it writes."""
    returns = func._schema.returns
    return bool(returns) and all(
        each.alias_info is not None and each.alias_info.is_write for each in returns)


def _written(func: Any, args: Any, kwargs: Any) -> List[Any]:
    return [args[at] if at < len(args) else kwargs[each.name]
            for at, each in enumerate(func._schema.arguments)
            if each.alias_info is not None and each.alias_info.is_write]


def _again(func: Any, args: Any, kwargs: Any, kept: List[torch.Tensor],
           fresh: List[int]) -> Callable[[], None]:
    def again() -> None:
        outputs = _tensors(func(*args, **kwargs))
        for tensor, at in zip(kept, fresh):
            tensor.copy_(outputs[at])

    return again


class NPUGraph:
    """Calls that were captured. `replay` runs them; tensors of the capture are its inputs and
    results. Errors: RuntimeError for calls in the wrong order."""

    def __init__(self, keep_graph: bool = False) -> None:
        self._steps: Optional[List[Any]] = None
        self._held: List[Any] = []
        self._capture: Optional[_Capture] = None
        self._left: Iterator[Any] = iter(())  # of a replay that waits
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
        self._capture.run(True)

    def capture_end(self) -> None:
        if self._capture is None or _capture() is not self._capture:
            raise RuntimeError("torch_npu: capture_end: this graph has no capture running")
        self._capture.run(False)
        self._steps, self._held = self._capture.steps, self._capture.held
        self._capture = None

    def replay(self) -> None:
        """Runs the calls again, in order, up to the first event that it must wait for."""
        if self._steps is None:
            raise RuntimeError("torch_npu: replay: nothing was captured")
        if self in _waiting:
            raise RuntimeError("torch_npu: replay: the replay before this one waits for an "
                               "ExternalEvent; record the event first")
        self._left = iter(self._steps)
        self._go_on()

    def _go_on(self) -> None:
        _waiting.pop(self, None)
        with torch.no_grad():
            for step in self._left:
                if not isinstance(step, _Wait):
                    step.call()
                elif not step.event._pass(self._go_on):
                    _waiting[self] = step.event
                    return

    def reset(self) -> None:
        """Forgets the calls and their tensors."""
        _waiting.pop(self, None)
        self._steps, self._held, self._left = None, [], iter(())

    def pool(self) -> Any:
        return self._pool

    def update(self, cpu_update_input: Any = None) -> None:
        raise NotImplementedError(
            "torch_npu: NPUGraph.update: lists of lengths are part of the captured calls; capture "
            "again, give lengths as tensors, or update a task group (graph_task_update_begin)")

    def super_kernel_optimize(self, optimize_options: Any = None, debug_options: Any = None) -> None:
        no_effect("NPUGraph.super_kernel_optimize")

    def enable_debug_mode(self) -> None:
        """debug_dump needs no preparation."""

    def debug_dump(self, debug_path: str) -> None:
        """Writes the names of the calls, in order, as JSON. Errors: RuntimeError, OSError."""
        if self._steps is None:
            raise RuntimeError("torch_npu: debug_dump: nothing was captured")
        with open(debug_path, "w", encoding="utf-8") as file:
            json.dump({"calls": [each.name for each in self._steps]}, file, indent=1)

    @property
    def step_count(self) -> int:
        """How many calls a replay runs."""
        return len(self._steps or ())


# Replays that have stopped, and the event that each waits for.
_waiting: "dict[NPUGraph, ExternalEvent]" = {}


def check_nothing_waits() -> None:
    """Errors: RuntimeError when a replay waits for an event, because no one could record it
    while the host waits for the replay."""
    if _waiting:
        raise RuntimeError("torch_npu: synchronize: a replay waits for an ExternalEvent that was "
                           "not recorded")


def wait_in_capture(event: ExternalEvent) -> None:
    """The graph that is captured now waits for the event in each replay. Nothing without one."""
    capture = _capture()
    if capture is not None:
        capture.steps.append(_Wait(event))


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
    """What is captured from now on is a task group. Errors: RuntimeError without a capture."""
    capture = _captured_now("graph_task_group_begin")
    if capture.group_begin is not None:
        raise RuntimeError("torch_npu: graph_task_group_begin: a task group has begun already")
    capture.group_begin = len(capture.steps)


def graph_task_group_end(stream: Stream) -> _Group:
    """Ends the group; returns what graph_task_update_begin takes. Errors: RuntimeError."""
    capture = _captured_now("graph_task_group_end")
    if capture.group_begin is None:
        raise RuntimeError("torch_npu: graph_task_group_end: no task group has begun")
    group = _Group(capture.steps[capture.group_begin:])
    capture.steps[capture.group_begin:] = [group]
    capture.group_begin = None
    return group


def _captured_now(function: str) -> _Capture:
    capture = _capture()
    if capture is None:
        raise RuntimeError(f"torch_npu: {function}: no graph is being captured")
    return capture


def graph_task_update_begin(stream: Stream, handle: Any) -> None:
    """The calls from now on take the place of those of the task group; they are not run now.
    Errors: RuntimeError."""
    if not isinstance(handle, _Group) or _capture() is not None:
        raise RuntimeError("torch_npu: graph_task_update_begin: expected a handle of "
                           "graph_task_group_end, outside of a capture")
    _here.update = handle
    _Capture().run(True)


def graph_task_update_end(stream: Stream) -> None:
    """Ends graph_task_update_begin. Errors: RuntimeError."""
    capture, handle = _capture(), getattr(_here, "update", None)
    if capture is None or handle is None:
        raise RuntimeError("torch_npu: graph_task_update_end: no update has begun")
    capture.run(False)
    _here.update = None
    handle.steps = capture.steps
