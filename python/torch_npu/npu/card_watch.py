"""What a card would not take of captured graphs, where NPUMESH_CARD names one: inputs that have moved or
are gone, values that no replay updates, more streams than the card has."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

import torch

from .. import _card
from .._say import line_of_program
from ._limits import kept_cores
from .captured import REPLAY_FAILED
from .joins import Joins
from .segments import storage_of, tensors_of

# Streams and graphs that are alive.
streams_alive: "weakref.WeakSet[Any]" = weakref.WeakSet()
graphs_alive: "weakref.WeakSet[Any]" = weakref.WeakSet()

_RUNTIME = "CANN runtime, pages of aclrtCreateStream and aclmdlRICaptureBegin"
_CORES_KEPT = "507034 (ACL_ERROR_RT_VECTOR_CORE_TIMEOUT)"
_NO_STREAM = "207008 (ACL_ERROR_RT_NO_STREAM_RESOURCE)"

# Calls whose lists of lengths are taken when they are captured, the lists, and what says that a
# program goes on: the cache and its table.
_LENGTHS = {
    "npu::npu_fused_infer_attention_score": (
        ("actual_seq_lengths", "actual_seq_lengths_kv"), ("key", "value", "block_table")),
    "npu::npu_fused_infer_attention_score_v2": (
        ("actual_seq_qlen", "actual_seq_kvlen"), ("key", "value", "block_table")),
}


def check_resources(beside: Any = None) -> None:
    """Before one more stream is made, or a graph is captured. Errors: RuntimeError, as _card.find."""
    if not _card.is_set():
        return
    most = _card.number("streams")
    held = sum(each._streams for each in graphs_alive
               if each is not beside and each._steps is not None)
    alive = len(streams_alive) + held + 1  # the default one
    if alive < most:
        return
    _card.find("streams", line_of_program(),
               f"{len(streams_alive)} streams and {held} of captured graphs are alive, and the card has "
               f"{most}", "capture for fewer sizes, and reset graphs that are done", _RUNTIME +
               "; vllm-ascend#8393, #9564", _NO_STREAM)


class _Input(NamedTuple):
    """The first call that reads a tensor of the program, which the graph needs where it is."""

    tensor: torch.Tensor
    address: int
    number: int
    call: str
    line: str


class _Collective(NamedTuple):
    """One that is captured on a stream with a limit of vector cores."""

    where: str
    stream: int
    number: int  # of the stream's work
    cores: int


class _Lengths(NamedTuple):
    call: str
    line: str
    lists: Dict[str, Any]
    beside: List[torch.Tensor]  # what no replay writes anew


class Watch:
    """Of one captured graph."""

    def __init__(self) -> None:
        self._inputs: Dict[int, _Input] = {}  # by storage
        self._addresses: List[Tuple[Callable[[], int], int]] = []  # where inputs are, and were
        self._made: Set[int] = set()  # storages that the capture has made
        self._lengths: List[_Lengths] = []
        self._collectives: List[_Collective] = []
        self._versions: Optional[List[int]] = None  # at the last replay
        self._is_new = True  # lengths were given since

    def make(self, tensors: List[torch.Tensor]) -> None:
        """The capture has made memory."""
        self._made.update(map(storage_of, tensors))

    def see(self, step: Any) -> None:
        """A call is captured."""
        line = line_of_program()
        name = step.func._schema.name
        for at, each in enumerate(tensors_of((step.args, step.kwargs))):
            if storage_of(each) not in self._made and storage_of(each) not in self._inputs:
                self._inputs[storage_of(each)] = _Input(each, each.data_ptr(), at, name, line)
                self._addresses.append((each.data_ptr, each.data_ptr()))
        results = tensors_of(step.result)
        self.make([results[at] for at in step.fresh])
        if name in _LENGTHS:
            self._see_lengths(step, name, line)

    def _see_lengths(self, step: Any, name: str, line: str) -> None:
        lists, beside = _LENGTHS[name]
        names = [each.name for each in step.func._schema.arguments]
        given = {**dict(zip(names, step.args)), **step.kwargs}
        taken = {each: given[each] for each in lists
                 if given.get(each) is not None and not isinstance(given[each], torch.Tensor)}
        if taken:
            self._lengths.append(_Lengths(name, line, taken, [
                each for each in tensors_of([given.get(each) for each in beside])
                if storage_of(each) not in self._made]))

    def keep_cores(self, name: str, stream: Any, joins: Joins) -> None:
        """A collective is captured, as the last work of its stream. Errors: RuntimeError, as _card.find,
        when it may run beside another one and the card has not the cores of both."""
        cores = kept_cores(stream)
        if cores == 0:
            return
        number = stream.stream_id
        line = line_of_program()
        most = _card.number("vector_cores")
        for each in self._collectives:
            if each.stream == number or joins.knows(number, each.stream, each.number):
                continue
            if most and each.cores + cores > most:
                _card.find("collective-cores", line,
                           f"{name} may run beside {each.where}, which is on another stream, and each keeps "
                           f"its vector cores until all ranks came: {each.cores} + {cores} > {most}, a deadlock",
                           "give them fewer cores (set_stream_limit), or let one wait for the other",
                           "TorchAir, deadlock_check and core limits; vllm-ascend#14296", _CORES_KEPT)
        self._collectives.append(_Collective(f"{name} at {line}", number, joins.done(number), cores))

    def updated(self) -> None:
        """NPUGraph.update was called."""
        self._is_new = True

    def check(self) -> None:
        """Before a replay. Errors: RuntimeError, as _card.find."""
        for address_now, address in self._addresses:  # all that it costs a replay
            if address_now() != address:
                self._find_moved()
                break
        if self._lengths:
            self._check_lengths()

    def _find_moved(self) -> None:
        for each in self._inputs.values():
            if each.tensor.data_ptr() == each.address:
                continue
            state = "freed" if each.tensor.untyped_storage().nbytes() == 0 else "moved"
            _card.find(f"replay-input-{state}", line_of_program(),
                       f"tensor {each.number} of {each.call}, captured at {each.line}, "
                       f"{list(each.tensor.shape)} of {str(each.tensor.dtype).partition('.')[2]}, was "
                       f"{state} since: the graph has its old address",
                       "copy_ new values into the captured tensor", "CANN runtime, error codes",
                       REPLAY_FAILED)

    def _check_lengths(self) -> None:
        versions = [each._version for one in self._lengths for each in one.beside]
        stale = self._versions is not None and versions != self._versions and not self._is_new
        self._versions, self._is_new = versions, False
        if not stale:
            return
        for each in self._lengths:
            said = ", ".join(f"{name}={list(value)}" for name, value in each.lists.items())
            _card.find("replay-lengths", line_of_program(),
                       f"{each.call}, captured at {each.line}, has {said} still, though its cache or "
                       "block table was written since the last replay",
                       "give lengths by NPUGraph.update, or capture with auto_dispatch_capture=True",
                       "vllm-ascend#16736")
