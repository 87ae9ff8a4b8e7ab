"""Models: loading is World.load, running is here."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple
from typing import Union

from . import tensors
from ._library import CPort, CSessionStats, CTensor, check, dims_of, library
from .dtypes import DType, bytes_of
from .errors import InvalidArgumentError
from .handle import Handle, Owner

__all__ = ["Port", "Session", "SessionStats"]

Position = Union[int, str]


class Port(NamedTuple):
    """What a graph says of an input or an output."""

    name: str  # of an input: its node; of an output: "node:port" that computes it
    index: int  # of an input: its attribute `index`; of an output: its number
    shape: Optional[Tuple[int, ...]]  # None: the rank is not known; -1: an open dimension
    dtype: Optional[DType]  # None: not known
    bytes: int  # 0 while something is open
    ref: bool  # of an input: it keeps its content between runs
    host: bool  # of an input: a small scalar or shape that lives on the host


class SessionStats(NamedTuple):
    """Of a session, over all its runs. docs/c_api.md says when bytes are copied."""

    runs: int
    plans: int  # compilations
    input_bytes_copied: int
    output_bytes_copied: int
    arena_bytes: int  # device memory of activations
    constant_bytes: int
    compile_seconds: float
    compute_seconds: float
    collective_seconds: float


class Session(Handle):
    """One model on one rank. `World.load` makes it; `close`, `with` or the world ends it.

    Calls from several threads come one after the other. `run` and `prepare` are collective over the
    ranks whose graphs communicate.
    """

    _kind = "session"
    _ender = "npumesh_close"

    def __init__(self, world: Owner, handle: int, name: str) -> None:
        super().__init__(world, name)
        self._handle = handle
        inputs, outputs = ctypes.c_size_t(), ctypes.c_size_t()
        check(library().npumesh_count_ports(handle, ctypes.byref(inputs), ctypes.byref(outputs)))
        self._input_count, self._output_count = inputs.value, outputs.value
        self._inputs = tuple(self._port("input", at) for at in range(inputs.value))
        self._positions = {port.name: at for at, port in enumerate(self._inputs)}
        # What messages call an input.
        self._labels = tuple(
            f'{self.name}: input {at} "{port.name}"' for at, port in enumerate(self._inputs)
        )
        # What a RefData got last, because only that says how large it is when its shape is open.
        self._ref_types: Dict[int, Tuple[Tuple[int, ...], DType]] = {}

    # ---- what the graph has ----

    @property
    def inputs(self) -> Tuple[Port, ...]:
        """Ordered by index, as the graph declares them."""
        return self._inputs

    @property
    def outputs(self) -> Tuple[Port, ...]:
        """As they were in the last run or are after `prepare`; before both as the graph
        declares."""
        with self._turn:
            self._open()
            return tuple(self._port("output", at) for at in range(self._output_count))

    @property
    def stats(self) -> SessionStats:
        with self._turn:
            told = CSessionStats()
            check(library().npumesh_get_stats(self._open(), ctypes.byref(told),
                                              ctypes.sizeof(told)), self.name)
            return SessionStats(*(getattr(told, field) for field in SessionStats._fields))

    # ---- running ----

    def run(self, *inputs: Any, out: Any = None, in_place: Any = (), **named: Any) -> List[Any]:
        """Runs the graph once; returns the outputs, in order.

        Inputs are given by position, by name as keywords, or both; or as one mapping from names or
        positions to arrays. What is left out, or None, is not given: a RefData keeps its content,
        a frozen parameter is the first run's. Arrays are read where they are when they are
        contiguous; numbers and lists become what the graph declares.

        `in_place`: names or positions of inputs into which the graph's in-place operators may
        write; True: all inputs whose port has `ref`. The arrays must be writable.

        `out`: arrays that receive outputs, as a sequence (None: a new array) or a mapping from
        names or positions; they have the shape and dtype of the output, and are returned. An array
        that is not contiguous is filled from a copy. New arrays own memory of the library.

        Errors: what npumesh_run says; after an error arrays of `out` and `in_place` hold anything.
        """
        with self._turn:
            handle = self._open()
            given = self._bind(inputs, named)
            written = self._written_inputs(in_place, given)
            operands = self._operands(given, written)
            targets = self._targets(out)
            c_inputs = _tensors(operands, written)
            c_outputs = _tensors(targets)
            check(
                library().npumesh_run(handle, c_inputs, self._input_count, c_outputs,
                                      self._output_count),
                self.name,
            )
            for at, operand in enumerate(operands):
                if operand is not None and self._inputs[at].ref:
                    self._ref_types[at] = (operand.shape, operand.dtype)
            for at in written:
                operands[at].finish()
            return [self._result(at, c_outputs[at], target) for at, target in enumerate(targets)]

    __call__ = run

    def prepare(self, *inputs: Any, **named: Any) -> Tuple[Port, ...]:
        """Compiles for these inputs without running; returns the outputs as they will be.

        Inputs are given as in `run`; a `Spec` gives the type alone.
        """
        with self._turn:
            handle = self._open()
            given = self._bind(inputs, named)
            c_inputs = (CTensor * len(given))()
            kept = []
            for at, value in enumerate(given):
                if isinstance(value, tensors.Spec):
                    c_inputs[at].data = None
                    tensors.describe_type(value.shape, value.dtype, c_inputs[at])
                else:
                    kept.append(self._read(at, value))
                    tensors.describe(kept[-1], c_inputs[at])
            check(library().npumesh_prepare(handle, c_inputs, len(given)), self.name)
            return self.outputs

    def read_ref(self, which: Position) -> Any:
        """A copy of what the RefData at a position or of a name holds after the last run."""
        with self._turn:
            handle = self._open()
            at = self._position(which)
            port = self._inputs[at]
            shape, of = self._ref_types.get(at, (port.shape, port.dtype))
            if shape is None or of is None or -1 in shape:
                raise InvalidArgumentError(
                    f'{self.name}: input {port.index} "{port.name}" has no content yet; run first'
                )
            content = tensors.empty(shape, of)
            target = tensors.write(content, port.name)
            check(library().npumesh_read_ref(handle, at, target.address, bytes_of(of, shape)),
                  self.name)
            return content

    def __repr__(self) -> str:
        return f"<npumesh.Session {self.name}: {self._input_count} inputs, " \
               f"{self._output_count} outputs{self._state()}>"

    # ---- parts ----

    def _port(self, kind: str, at: int) -> Port:
        told = CPort()
        get = getattr(library(), f"npumesh_get_{kind}")
        check(get(self._open(), at, ctypes.byref(told)), self.name)
        return Port(
            name=told.name.decode(errors="replace"),
            index=told.index,
            shape=dims_of(told.dims, told.rank),
            dtype=tensors.known_dtype(told.dtype),
            bytes=told.bytes,
            ref=bool(told.ref),
            host=bool(told.host),
        )

    def _position(self, which: Position) -> int:
        if isinstance(which, str):
            if which not in self._positions:
                raise InvalidArgumentError(
                    f'{self.name}: there is no input "{which}", there are '
                    + (", ".join(self._positions) or "none")
                )
            return self._positions[which]
        if not 0 <= which < self._input_count:
            raise InvalidArgumentError(
                f"{self.name}: the graph has {self._input_count} inputs, asked for position {which}"
            )
        return int(which)

    @staticmethod
    def _is_mapping(inputs: Sequence[Any]) -> bool:
        return len(inputs) == 1 and isinstance(inputs[0], Mapping)

    def _bind(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> List[Any]:
        """One value for each input of the graph, None for those that are not given."""
        if len(inputs) == self._input_count and not named and not self._is_mapping(inputs):
            return list(inputs)
        if self._is_mapping(inputs):
            pairs = list(inputs[0].items())
        else:
            pairs = list(enumerate(inputs))
        if len(pairs) > self._input_count:
            raise InvalidArgumentError(
                f"{self.name}: the graph has {self._input_count} inputs, {len(pairs)} were given"
            )
        given: List[Any] = [None] * self._input_count
        seen = set()
        for which, value in [*pairs, *named.items()]:
            at = self._position(which)
            if at in seen:
                raise InvalidArgumentError(f"{self._labels[at]} is given twice")
            seen.add(at)
            given[at] = value
        return given

    def _written_inputs(self, in_place: Any, given: Sequence[Any]) -> List[int]:
        if in_place is True:
            ports = enumerate(self._inputs)
            return [at for at, port in ports if port.ref and given[at] is not None]
        if isinstance(in_place, (str, int)) and in_place is not False:
            in_place = (in_place,)
        if not in_place:
            return []
        positions = sorted({self._position(which) for which in in_place})
        for at in positions:
            if given[at] is None:
                raise InvalidArgumentError(
                    f"{self._labels[at]} is to be written in place but is not given"
                )
        return positions

    def _read(self, at: int, value: Any) -> Optional[tensors.Operand]:
        if value is None:
            return None
        return tensors.read(value, self._inputs[at].dtype, self._labels[at])

    def _operands(self, given: Sequence[Any],
                  written: Sequence[int]) -> List[Optional[tensors.Operand]]:
        return [
            tensors.write(value, self._labels[at]) if at in written else self._read(at, value)
            for at, value in enumerate(given)
        ]

    def _targets(self, out: Any) -> List[Optional[_Target]]:
        """For each output the array of the caller, None for those without one."""
        targets: List[Optional[_Target]] = [None] * self._output_count
        if out is None:
            return targets
        if isinstance(out, Mapping):
            pairs = [(self._output_position(which), array) for which, array in out.items()]
        elif isinstance(out, (list, tuple)):
            pairs = list(enumerate(out))
        else:
            pairs = [(0, out)]
        for at, array in pairs:
            if not 0 <= at < self._output_count:
                raise InvalidArgumentError(
                    f"{self.name}: the graph has {self._output_count} outputs, seen memory for "
                    f"output {at}"
                )
            if array is not None:
                targets[at] = _Target(array, f"{self.name}: output {at}")
        return targets

    def _output_position(self, which: Position) -> int:
        if not isinstance(which, str):
            return int(which)
        names = [self._port("output", at).name for at in range(self._output_count)]
        if which not in names:
            raise InvalidArgumentError(
                f'{self.name}: there is no output "{which}", there are ' + ", ".join(names)
            )
        return names.index(which)

    def _result(self, at: int, tensor: CTensor, target: Optional[_Target]) -> Any:
        if target is None:
            return tensors.take(tensor, f"{self.name}: output {at}")
        shape = dims_of(tensor.dims, tensor.rank)
        if shape != target.shape:
            raise InvalidArgumentError(
                f"{self.name}: output {at} has shape {shape}, seen memory of shape {target.shape}"
            )
        target.finish()
        return target.array


class _Target(tensors.Operand):
    """Memory of the caller for an output."""

    __slots__ = ("array",)

    def __init__(self, array: Any, where: str) -> None:
        operand = tensors.write(array, where)
        super().__init__(operand.address, operand.shape, operand.dtype, operand.keep,
                         operand.finish)
        self.array = array


def _tensors(operands: Sequence[Optional[tensors.Operand]], written: Sequence[int] = ()) -> Any:
    c_tensors = (CTensor * len(operands))()
    for at, operand in enumerate(operands):
        tensors.describe(operand, c_tensors[at], at in written)
    return c_tensors
