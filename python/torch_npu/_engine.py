"""Operators of npumesh on tensors of torch: a graph of one operator for each operator, types and
attributes, kept for the next call.

The C interface is called as npumesh.Session does it; here, because torch has element types that
numpy lacks, and because a call costs less so.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import threading
from typing import (
    Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union,
)

import torch

import npumesh
from npumesh._library import IN_PLACE, UNDEFINED, CTensor, check, library
from npumesh.dtypes import dtype_of_number
from npumesh.tensors import describe_type

from . import _types
from ._graph import Constant, OneOperator, Type

# Graphs that are kept, those used last. Each holds its plan and the memory of its intermediates.
MOST_PROGRAMS = 512


class Bits(NamedTuple):
    """The memory of a tensor as elements of a type that torch lacks."""

    tensor: torch.Tensor
    dtype: str  # the engine's name
    shape: Tuple[int, ...]  # in elements of that type


Operand = Union[torch.Tensor, Bits]


# ---- the world ----

_lock = threading.RLock()
_world: Optional[npumesh.World] = None


def world() -> npumesh.World:
    """This process as a rank; made by the first call, which is collective over all ranks of the
    job."""
    global _world
    with _lock:
        if _world is None or not _world.is_open:
            _programs.clear()
            _world = npumesh.shared_world()
        return _world


def is_started() -> bool:
    """Whether a call has made the world."""
    return _world is not None and _world.is_open


# ---- groups that operators name ----

_groups: Dict[str, Sequence[int]] = {}
_here = threading.local()


def ranks_of(name: str) -> Optional[int]:
    """How many ranks a group has that name_group has named; None: it has named no such group."""
    return len(_groups[name]) if name in _groups else None


def name_group(name: str, ranks: Sequence[int]) -> None:
    """From now on the attribute `group` of an operator may be `name`: these world ranks."""
    _groups[name] = tuple(ranks)


def session_options() -> Dict[str, str]:
    """Options of a session that TorchAir makes now in this thread (docs/c_api.md): these groups, and
    those of with_options."""
    groups = {f"npumesh.group.{name}": ",".join(map(str, ranks)) for name, ranks in _groups.items()}
    return {**groups, **getattr(_here, "options", dict)()}


@contextlib.contextmanager
def with_options(options: Callable[[], Dict[str, str]]) -> Iterator[None]:
    """Sessions that TorchAir makes inside of the block, in this thread, have these options, too."""
    _here.options = options
    try:
        yield
    finally:
        del _here.options


# ---- operators ----

_operators: Dict[str, npumesh.Operator] = {}


def operator(kind: str) -> npumesh.Operator:
    """The interface of an operator. Errors: npumesh.NotFoundError."""
    if kind not in _operators:
        _operators[kind] = npumesh.operator(kind)
    return _operators[kind]


def run(kind: str, ports: Mapping[str, Any], attrs: Mapping[str, Any],
        counts: Optional[Mapping[str, int]] = None) -> Dict[str, torch.Tensor]:
    """Runs an operator; returns its outputs by name, new tensors.

    `ports`: for each input a tensor, Bits or Constant, of a dynamic input a list of tensors and
    Bits; None is not given.
    Inputs that the operator changes are written. `attrs`: None is left out. `counts`: of dynamic
    outputs, which are named "y0", "y1", .... Any thread.
    Errors: npumesh.NpumeshError names what the engine refuses.
    """
    of = operator(kind)
    given: List[Operand] = []
    types: Dict[str, Any] = {}
    for field in of.inputs:
        value = ports.get(field.name)
        if value is None:
            continue
        if isinstance(value, Constant):
            types[field.name] = value
        elif field.kind == "dynamic":
            given += value
            types[field.name] = tuple(map(_type_of, value))
        else:
            given.append(value)
            types[field.name] = _type_of(value)
    key = (kind, tuple(types.items()), _frozen(attrs), _frozen(counts or {}))
    with _lock:
        here = world()
        program = _programs.get(key)
        if program is None:
            program = _Program(here, of, types, dict(attrs), dict(counts or {}), given)
            _programs[key] = program
            if len(_programs) > MOST_PROGRAMS:
                _programs.popitem(last=False)[1].close()
        else:
            _programs.move_to_end(key)
    return program.run(given)


def program_count() -> int:
    """How many graphs are kept."""
    return len(_programs)


def _type_of(value: Operand) -> Type:
    if isinstance(value, Bits):
        return value.dtype, tuple(value.shape)
    return _types.engine_name(value.dtype), tuple(value.shape)


def _frozen(values: Mapping[str, Any]) -> Tuple:
    return tuple((name, tuple(value) if isinstance(value, list) else value)
                 for name, value in values.items())


_nowhere = ctypes.c_uint64()


def _address(tensor: torch.Tensor) -> int:
    """NULL would mean that there is no tensor; one without elements is one all the same."""
    return tensor.data_ptr() or ctypes.addressof(_nowhere)


class _Program:
    """The graph of one operator on one rank. Runs come one after the other."""

    def __init__(self, here: npumesh.World, of: npumesh.Operator, types: Dict[str, Any],
                 attrs: Dict[str, Any], counts: Dict[str, int], given: Sequence[Operand]) -> None:
        graph = OneOperator(of, types, attrs, counts)
        groups = {name: _groups[name] for name in _named_groups(attrs) if name in _groups}
        self._turn = threading.Lock()
        self._session = here.load(graph.text(), name=of.type, groups=groups)
        self._names = graph.outputs
        flat = [_type_of(value) for value in given]
        specs = [npumesh.Spec(shape, dtype) for dtype, shape in flat]
        outputs = self._session.prepare(*specs)
        self._written = [at for at, port in enumerate(self._session.inputs) if port.ref]
        self._results = [_held(port) for port in outputs]
        self._in = (CTensor * len(flat))()
        self._out = (CTensor * len(outputs))()
        for at, (dtype, shape) in enumerate(flat):
            self._describe(self._in[at], dtype, shape, at in self._written)
        for at, port in enumerate(outputs):
            if self._results[at] is not None:
                self._describe(self._out[at], port.dtype.name, port.shape, False)

    @staticmethod
    def _describe(tensor: CTensor, dtype: str, shape: Sequence[int], written: bool) -> None:
        of = npumesh.dtype(dtype)
        describe_type(tuple(shape), of, tensor)
        tensor.bytes = npumesh.bytes_of(of, tuple(shape))
        tensor.flags = IN_PLACE if written else 0

    def run(self, given: Sequence[Operand]) -> Dict[str, torch.Tensor]:
        tensors = [value.tensor if isinstance(value, Bits) else value for value in given]
        ready = [each.detach().contiguous() for each in tensors]
        with self._turn:
            results = self._run(ready)
        for at in self._written:
            if ready[at].data_ptr() != tensors[at].data_ptr():
                tensors[at].detach().copy_(ready[at])
        return dict(zip(self._names, results))

    def _run(self, ready: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        for at, tensor in enumerate(ready):
            self._in[at].data = _address(tensor)
        results = [None if held is None else torch.empty(held[1], dtype=held[0])
                   for held in self._results]
        for at, tensor in enumerate(results):
            if tensor is None:
                self._out[at] = CTensor(None, 0, None, 0, UNDEFINED, 0)
            else:
                self._out[at].data = _address(tensor)
        check(library().npumesh_run(self._session._open(), self._in, len(self._in), self._out,
                                    len(self._out)), self._session.name)
        return [_taken(self._out[at]) if tensor is None else tensor
                for at, tensor in enumerate(results)]

    def close(self) -> None:
        with self._turn:
            self._session.close()


_programs: "collections.OrderedDict[Any, _Program]" = collections.OrderedDict()


def _named_groups(attrs: Mapping[str, Any]) -> List[str]:
    return [value for name, value in attrs.items()
            if name in ("group", "group_ep", "group_tp") and value]


def _held(port: npumesh.Port) -> Optional[Tuple[torch.dtype, Tuple[int, ...]]]:
    """The type and shape of the tensor for an output; None: known only after the run."""
    if port.dtype is None or port.shape is None or -1 in port.shape:
        return None
    return _held_as(port.dtype.name, port.shape)


def _held_as(name: str, shape: Sequence[int]) -> Tuple[torch.dtype, Tuple[int, ...]]:
    dtype, packed = _types.holder(name)
    sizes = tuple(shape)
    if packed > 1 and sizes:
        sizes = (*sizes[:-1], -(-sizes[-1] // packed))
    return dtype, sizes


def _taken(tensor: CTensor) -> torch.Tensor:
    """A tensor with the values of an output whose memory the library gave."""
    of = dtype_of_number(tensor.dtype, "output")
    dtype, shape = _held_as(of.name, tuple(tensor.dims[:tensor.rank]) if tensor.rank else ())
    result = torch.empty(shape, dtype=dtype)
    ctypes.memmove(_address(result), tensor.data, tensor.bytes)
    library().npumesh_release(tensor.data)
    return result
