"""NPUGraph: calls that are captured once and replayed.

A capture writes down each call with the tensors that it reads and makes, and does not run it; results
have no values before a replay, so what asks for values is refused (captured.py). Calls that the host
makes for itself run at once and are not written down. A replay runs the calls in order and leaves the
results in the same tensors. The engine runs operators of torch.ops.npu, by plans that exist after the
first replay, collectives, and, where TorchAir is there, each run of torch's own operators as one graph
(segments.py, lowering.py).

A graph that waits for an ExternalEvent stops there; recording the event lets it go on. Until then a
task group, the calls between graph_task_group_begin and _end, may get other arguments.
"""

from __future__ import annotations

import itertools
import json
import threading
from typing import Any, Callable, Iterator, List, Mapping, Optional, Sequence, Tuple

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from .. import _capture, _card, _places
from .._say import line_of_program, no_effect
from . import capturing
from .captured import (DEPENDENCY, MODE_FORBIDS, STREAM_CAPTURED, STREAM_UNJOINED, WRONG_THREAD, Values,
                       fault, refusal)
from .card_watch import Watch, check_resources, graphs_alive
from .joins import Joins
from .schemas import depends_on_values, is_random, writes, writes_all, written_by
from .segments import Segment, Written, segmented, storage_of, tensors_of
from .streams import ExternalEvent, Stream, current_stream, set_stream

_pools = itertools.count(1)
_updates = threading.local()  # the task group that this thread updates

# Makers of tensors without values: a replay leaves alone what is in them.
_MAKERS = {f"aten::{name}" for name in
           ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty",
            "new_empty_strided")}


# Of calls that a program knows by another name.
_NAMES_OF_READERS = {"_local_scalar_dense": "item", "is_nonzero": "item"}


class _Group:
    """A step of several calls, which an update replaces."""

    def __init__(self, steps: List[Any]) -> None:
        self.names = ["task group"]
        self.steps = steps

    def call(self) -> None:
        for step in self.steps:
            step.call()


# Arguments of calls that NPUGraph.update replaces: lists of lengths, which are no tensors.
_UPDATED = {
    "npu::npu_fused_infer_attention_score": (
        "actual_seq_lengths", "actual_seq_lengths_kv", "actual_shared_prefix_len"),
    "npu::npu_fused_infer_attention_score_v2": ("actual_seq_qlen", "actual_seq_kvlen"),
}


class _Task:
    """A step: a call that waits in each replay for NPUGraph.update."""

    def __init__(self, step: Written) -> None:
        self.event = ExternalEvent()
        self.names = step.names
        self._step = step

    def call(self) -> None:
        self._step.call()

    def update(self, values: Mapping[str, Any]) -> None:
        """Replaces arguments. Errors: RuntimeError."""
        step, schema = self._step, self._step.func._schema
        updated = _UPDATED[schema.name]
        args, kwargs = list(step.args), dict(step.kwargs)
        for name, value in values.items():
            if name not in updated:
                raise RuntimeError(f"torch_npu: NPUGraph.update: {schema.name} has no argument "
                                   f"{name!r} that can be updated; expected one of "
                                   f"{', '.join(updated)}")
            at = [each.name for each in schema.arguments].index(name)
            if at < len(args):
                args[at] = value
            else:
                kwargs[name] = value
        step.args, step.kwargs = tuple(args), kwargs


class _Capture(TorchDispatchMode):
    """Writes down what the dispatcher is asked for. `tasks`: calls that can be updated wait for it."""

    def __init__(self, tasks: bool = False, mode: str = "relaxed") -> None:
        super().__init__()
        self._tasks = tasks
        self.mode = mode
        self.joins = Joins(current_stream().stream_id)
        self.watch = Watch() if _card.is_set() else None
        self._moves = False  # the next call takes a tensor to another place
        self.values = Values()
        self.streams = {current_stream().stream_id}
        self.steps: List[Any] = []
        self.held: List[Any] = []
        self.group_begin: Optional[int] = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        moves, self._moves = self._moves, False
        given = tensors_of((args, kwargs))
        if given and not moves and all(map(self.values.are_hosts, given)):
            return self.values.host_has(func(*args, **kwargs))
        known = all(map(self.values.are_constant, given)) and not is_random(func)
        if writes_all(func):
            return self._written(func, args, kwargs, known)
        foreseen, result = _foreseen(func, args, kwargs)
        if not foreseen and depends_on_values(func):
            return self._of_values(func, args, kwargs, known)
        if known or not foreseen:
            result = func(*args, **kwargs)
        outputs = tensors_of(result)
        places = {storage_of(each) for each in given}
        fresh = [at for at, each in enumerate(outputs) if storage_of(each) not in places]
        if known or func._schema.name in _MAKERS or func._schema.name == "aten::lift_fresh":
            self.values.know(outputs)
        else:
            self.values.await_replay([outputs[at] for at in fresh])
            self.values.await_replay(tensors_of(written_by(func, args, kwargs)))
        if func._schema.name in _MAKERS:
            self.held += outputs
            if self.watch is not None:
                self.watch.make(outputs)
            return result
        runs = bool(fresh or not outputs or writes(func))
        self._add(Written(func, args, kwargs, result, fresh, runs, foreseen))
        return result

    def _written(self, func: Any, args: Any, kwargs: Any, known: bool) -> Any:
        """A call that gives only arguments that it writes."""
        written = written_by(func, args, kwargs)
        if known:
            func(*args, **kwargs)
        else:
            self.values.await_replay(tensors_of(written))
        result = written[0] if len(written) == 1 else tuple(written)
        self._add(Written(func, args, kwargs, result, [], runs=True, foreseen=True))
        return result

    def _of_values(self, func: Any, args: Any, kwargs: Any, known: bool) -> Any:
        """A call whose result is a number, or has a shape that values decide."""
        gives_numbers = torch.Tag.data_dependent_output in func.tags
        given = tensors_of((args, kwargs))
        if not known and not (gives_numbers and all(map(self.values.are_there, given))):
            name = func._schema.name.partition("::")[2]
            raise refusal(f"{_NAMES_OF_READERS.get(name, name)} needs values", STREAM_CAPTURED)
        result = func(*args, **kwargs)
        outputs = tensors_of(result)
        if outputs:
            self.values.know(outputs)
            self._add(Written(func, args, kwargs, result, list(range(len(outputs))), True, False))
        return result

    def check_joined(self) -> None:
        """Before it becomes a graph. Errors: RuntimeError: a stream that has joined it did not come
        back."""
        left = self.joins.left()
        if left:
            raise fault(f"capture_end: stream {', '.join(map(str, left))} has joined the capture, and its "
                        "last work was not waited for", STREAM_UNJOINED,
                        "let the stream of the capture wait_stream for it")

    def wait_for(self, stream: int, event: Any) -> None:
        """The stream waits for an event."""
        if event._capture is self:
            self.joins.wait(stream, event._known)
        elif self.watch is not None and event._recorded is not None:
            _card.find("capture-event", line_of_program(),
                       f"stream {stream} waits for an event that was not recorded in this capture",
                       "wait for it before the capture, or use ExternalEvent",
                       "CANN runtime, error codes", DEPENDENCY)

    def work(self, name: str) -> None:
        """A task on the current stream."""
        stream = current_stream().stream_id
        if not self.joins.work(stream) and self.watch is not None:
            _card.find("capture-stream", line_of_program(),
                       f"{name} is on stream {stream}, which has not waited for the stream of the "
                       "capture: it runs at once, and is in no graph",
                       "call wait_stream of the captured stream first",
                       "CANN runtime, page of aclmdlRICaptureBegin")

    def permit_beside(self, place: _places.Place) -> None:
        """Before another thread copies, and waits for it, while this goes on in mode "global".
        Errors: RuntimeError."""
        raise fault(f"a copy to the {place.value} that waits, while another thread captures in mode global",
                    MODE_FORBIDS, "use non_blocking=True with pinned memory, or capture with "
                    'capture_error_mode="thread_local"')

    def permit_transfer(self, tensor: torch.Tensor, place: Optional[_places.Place],
                        non_blocking: bool) -> None:
        """Before a copy to another place. Errors: RuntimeError for one that the host would wait for."""
        self._moves = True
        if place is None or self.values.are_constant(tensor):
            return
        if place.is_host and not non_blocking:
            raise refusal("a copy to the host waits for its values", STREAM_CAPTURED)
        source = _places.place_of(tensor)
        if source is _places.Place.HOST or source is _places.Place.PINNED and not non_blocking:
            raise refusal("a copy from the host that is not both pinned and non_blocking waits",
                          STREAM_CAPTURED)

    def permit_reading(self, tensor: torch.Tensor, what: str) -> None:
        """Before `what` reads the values of a tensor past torch's dispatcher. Errors: RuntimeError when
        they come with a replay."""
        if not self.values.are_there(tensor):
            raise refusal(f"{what} needs values", STREAM_CAPTURED)

    def add_collective(self, call: capturing.Call) -> None:
        name = call.names[0]
        self.work(name)
        if self.watch is not None:
            self.watch.keep_cores(name, current_stream(), self.joins)
        self.steps.append(call)

    def _add(self, step: Written) -> None:
        if step.runs:
            self.work(step.names[0])
        if self.watch is not None:
            self.watch.see(step)
        if self._tasks and step.func._schema.name in _UPDATED:
            task = _Task(step)
            self.steps += [capturing.Wait(task.event), task]
        else:
            self.steps.append(step)

    def run(self, enter: bool) -> None:
        """This thread is captured from now on, or no longer."""
        thread = threading.get_ident()
        if enter:
            _capture.make_current(self)
            if self.mode == "global":
                _capture.strict[thread] = self
            self.__enter__()
        else:
            self.__exit__(None, None, None)
            _capture.strict.pop(thread, None)
            _capture.make_current(None)


def _is_of_host(step: Any) -> bool:
    """Whether a step only makes what the host keeps for itself."""
    if not isinstance(step, Written) or not step.fresh or writes(step.func):
        return False
    made = tensors_of(step.result)
    return all(_places.place_of(made[at]) is _places.Place.HOST for at in step.fresh)


def _foreseen(func: Any, args: Any, kwargs: Any) -> Tuple[bool, Any]:
    """The result of a call as tensors without values. (False, None): it must run, because its
    result is a view, a number, or known only from values."""
    plain = tree_map(lambda each: each.detach() if isinstance(each, torch.Tensor) else each,
                     (args, kwargs))
    with torch.no_grad(), FakeTensorMode() as fake:
        try:
            given = tree_map(lambda each: fake.from_tensor(each)
                             if isinstance(each, torch.Tensor) else each, plain)
            result = func(*given[0], **given[1])
        except Exception:  # whatever it is, the call itself says it better
            return False, None
    outputs = tensors_of(result)
    places = {storage_of(each) for each in tensors_of(given)}
    if result is not None and not outputs or any(storage_of(each) in places for each in outputs):
        return False, None
    return True, tree_map(lambda each: torch.empty_strided(each.shape, each.stride(),
                                                           dtype=each.dtype)
                          if isinstance(each, torch.Tensor) else each, result)


class NPUGraph:
    """Calls that were captured. `replay` runs them; tensors of the capture are its inputs and
    results. Errors: RuntimeError for calls in the wrong order."""

    def __init__(self, keep_graph: bool = False) -> None:
        self._steps: Optional[List[Any]] = None
        self._held: List[Any] = []
        self._capture: Optional[_Capture] = None
        self._left: Iterator[Any] = iter(())  # of a replay that waits
        self._pool: Any = None
        self._watch: Any = None  # of the card of NPUMESH_CARD; None: no card
        self._streams = 1  # of its capture
        graphs_alive.add(self)

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global",
                      auto_dispatch_capture: bool = False, **kwargs: Any) -> None:
        """What this thread calls from now on is captured. `auto_dispatch_capture`: attention over
        lists of lengths waits in each replay for `update`. Errors: RuntimeError."""
        if capture_error_mode not in ("global", "thread_local", "relaxed"):
            raise RuntimeError("torch_npu: capture_error_mode: expected global, thread_local or "
                               f"relaxed, seen {capture_error_mode!r}")
        if _capture.current() is not None:
            raise refusal("capture_begin: a capture is running already in this thread",
                          STREAM_CAPTURED)
        self._pool = pool or graph_pool_handle()
        self._watch = None
        check_resources(self)
        self._capture = _Capture(tasks=auto_dispatch_capture, mode=capture_error_mode)
        self._capture.run(True)

    def capture_end(self) -> None:
        capture = self._ended()
        capture.check_joined()
        self._watch = capture.watch
        self._streams = capture.joins.streams()
        steps = [each for each in capture.steps if not _is_of_host(each)]
        capture.steps.clear()
        self._steps, self._held = segmented(steps), capture.held

    def _ended(self) -> _Capture:
        """The capture, which is over now."""
        if self._capture is not None and _capture.current() is not self._capture:
            raise fault("capture_end: another thread has begun this capture", WRONG_THREAD,
                        "end it in that thread")
        if self._capture is None:
            raise RuntimeError("torch_npu: capture_end: this graph has no capture running")
        capture, self._capture = self._capture, None
        capture.run(False)
        return capture

    def replay(self) -> None:
        """Runs the calls again, in order, up to the first event that it must wait for."""
        if _capture.current() is not None:
            raise refusal("replay: a capture is running in this thread", STREAM_CAPTURED)
        if self._steps is None:
            raise RuntimeError("torch_npu: replay: nothing was captured")
        if self in capturing.waiting:
            raise RuntimeError("torch_npu: replay: the replay before this one waits for an "
                               "ExternalEvent; record the event first")
        if self._watch is not None:
            self._watch.check()
        self._left = iter(self._steps)
        self._go_on()

    def _go_on(self) -> None:
        capturing.waiting.pop(self, None)
        with torch.no_grad():
            for step in self._left:
                if not isinstance(step, capturing.Wait):
                    step.call()
                    continue
                # Another thread may record the event, and go on, before this one is back.
                capturing.waiting[self] = step.event
                if not step.event._pass(self._go_on):
                    return
                capturing.waiting.pop(self, None)

    def reset(self) -> None:
        """Forgets the calls and their tensors."""
        capturing.waiting.pop(self, None)
        self._steps, self._held, self._left = None, [], iter(())

    def pool(self) -> Any:
        return self._pool

    def update(self, cpu_update_input: Sequence[Mapping[str, Any]]) -> None:
        """Gives the calls that wait for it other lists of lengths, for one replay: that which waits,
        else the next one. One mapping from argument to list for all of these calls, or one for each,
        in their order. Any thread. Errors: RuntimeError."""
        tasks = [each for each in self._steps or () if isinstance(each, _Task)]
        if not tasks:
            raise RuntimeError("torch_npu: NPUGraph.update: no captured call waits for it; capture "
                               "attention with torch.npu.graph(..., auto_dispatch_capture=True)")
        if len(cpu_update_input) not in (1, len(tasks)):
            raise RuntimeError(f"torch_npu: NPUGraph.update: cpu_update_input: expected 1 or "
                               f"{len(tasks)} entries, seen {len(cpu_update_input)}")
        each_values = cpu_update_input if len(cpu_update_input) > 1 else (
            [cpu_update_input[0]] * len(tasks))
        for task, values in zip(tasks, each_values):
            task.update(values)
        if self._watch is not None:
            self._watch.updated()
        for task in tasks:
            task.event.record()

    def super_kernel_optimize(self, optimize_options: Any = None, debug_options: Any = None) -> None:
        no_effect("NPUGraph.super_kernel_optimize")

    def enable_debug_mode(self) -> None:
        """debug_dump needs no preparation."""

    def debug_dump(self, debug_path: str) -> None:
        """Writes the names of the calls, in order, as JSON; after a replay also who runs those of
        torch: the engine, as one graph for each run of them, or torch, and why. Errors:
        RuntimeError, OSError."""
        if self._steps is None:
            raise RuntimeError("torch_npu: debug_dump: nothing was captured")
        parts = [told for each in self._steps if isinstance(each, Segment)
                 for told in each.describe()]
        with open(debug_path, "w", encoding="utf-8") as file:
            json.dump({"calls": self._names(), "graphs": parts}, file, indent=1)

    @property
    def step_count(self) -> int:
        """How many calls a replay runs."""
        return len(self._names())

    def _names(self) -> List[str]:
        return [name for each in self._steps or () for name in each.names]


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
        self._auto_dispatch_capture = auto_dispatch_capture

    def __enter__(self) -> NPUGraph:
        self._before = current_stream()
        set_stream(self.stream)
        try:
            self.npu_graph.capture_begin(self.pool, self.capture_error_mode,
                                         self._auto_dispatch_capture)
        except BaseException:
            set_stream(self._before)
            raise
        return self.npu_graph

    def __exit__(self, kind: Any, *_: Any) -> None:
        """A capture that an exception leaves gives no graph."""
        try:
            if kind is None:
                self.npu_graph.capture_end()
            else:
                self.npu_graph._ended()
        finally:
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
    capture = _capture.current()
    if capture is None:
        raise RuntimeError(f"torch_npu: {function}: no graph is being captured")
    return capture


def graph_task_update_begin(stream: Stream, handle: Any) -> None:
    """The calls from now on take the place of those of the task group; they are not run now.
    Errors: RuntimeError."""
    if not isinstance(handle, _Group) or _capture.current() is not None:
        raise RuntimeError("torch_npu: graph_task_update_begin: expected a handle of "
                           "graph_task_group_end, outside of a capture")
    _updates.handle = handle
    _Capture().run(True)


def graph_task_update_end(stream: Stream) -> None:
    """Ends graph_task_update_begin. Errors: RuntimeError."""
    capture, handle = _capture.current(), getattr(_updates, "handle", None)
    if capture is None or handle is None:
        raise RuntimeError("torch_npu: graph_task_update_end: no update has begun")
    capture.run(False)
    _updates.handle = None
    handle.steps = capture.steps
