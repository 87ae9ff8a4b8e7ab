"""Groups of ranks and their collectives on arrays."""

from __future__ import annotations

import ctypes
from typing import Any, List, Optional, Sequence, Tuple

from . import tensors
from ._library import check, encode, library
from .dtypes import DType
from .errors import InvalidArgumentError
from .handle import Handle, Owner

__all__ = ["Group"]

_REDUCTIONS = {"sum": 0, "prod": 1, "max": 2, "min": 3}


class Group(Handle):
    """Some ranks in an order. `World.group` makes it; `close`, `with` or the world ends it.

    All methods but `close` are collective over the group and return when the arrays are the
    caller's again. Arrays are anything that Session.run takes; results are new numpy arrays, or
    `out`, which has the shape and dtype of the result. Before data move the ranks compare what they
    ask for; a difference is a MismatchError with the same text on all, and a group that has failed
    stays failed. Arrays of `World.alloc` spare a copy.
    """

    _kind = "group"
    _ender = "npumesh_close_group"

    def __init__(self, world: Owner, ranks: Optional[Sequence[int]], name: str) -> None:
        super().__init__(world, name)
        self.rank, self.size = -1, 0  # of a group that was not made
        members = (ctypes.c_int32 * len(ranks))(*ranks) if ranks else None
        if ranks is not None and not ranks:
            raise InvalidArgumentError(f"group {name}: it has no ranks")
        handle = ctypes.c_void_p()
        check(library().npumesh_make_group(world._open(), members, len(ranks or ()),
                                           encode(name, "name"), ctypes.byref(handle)))
        self._handle = handle.value
        rank, size = ctypes.c_int32(), ctypes.c_int32()
        check(library().npumesh_get_group(handle, ctypes.byref(rank), ctypes.byref(size)))
        self.rank, self.size = rank.value, size.value

    # ---- collectives ----

    def all_reduce(self, array: Any, op: str = "sum", out: Any = None) -> Any:
        """The element-wise reduction over the ranks, on all: "sum", "prod", "max" or "min".
        `out` may be `array`."""
        sent = self._read(array)
        return self._into(out, sent.shape, sent.dtype, lambda to: self._call(
            "all_reduce", sent.address, to, _count(sent.shape), sent.dtype.number, _reduction(op)))

    def reduce(self, array: Any, root: int = 0, op: str = "sum", out: Any = None) -> Any:
        """The same at `root`; None elsewhere."""
        sent = self._read(array)

        def call(to: Any) -> None:
            self._call("reduce_to", sent.address, to, _count(sent.shape), sent.dtype.number,
                       _reduction(op), self._rank(root))

        if self.rank == root:
            return self._into(out, sent.shape, sent.dtype, call)
        call(None)
        return None

    def all_gather(self, array: Any, out: Any = None) -> Any:
        """The arrays of all ranks, one after the other: shape (size, *shape)."""
        sent = self._read(array)
        return self._into(out, (self.size, *sent.shape), sent.dtype, lambda to: self._call(
            "all_gather", sent.address, to, _count(sent.shape), sent.dtype.number))

    def reduce_scatter(self, array: Any, op: str = "sum", out: Any = None) -> Any:
        """`array` has shape (size, *shape); the reduction over the ranks of their block `rank`."""
        sent = self._read(array)
        block = self._block(sent)
        return self._into(out, block, sent.dtype, lambda to: self._call(
            "reduce_scatter", sent.address, to, _count(block), sent.dtype.number, _reduction(op)))

    def all_to_all(self, array: Any, out: Any = None) -> Any:
        """`array` has shape (size, *shape): block r goes to rank r. The result has block r from
        rank r. `out` must not overlap `array`."""
        sent = self._read(array)
        block = self._block(sent)
        return self._into(out, sent.shape, sent.dtype, lambda to: self._call(
            "all_to_all", sent.address, to, _count(block), sent.dtype.number))

    def all_to_all_v(self, blocks: Sequence[Any]) -> List[Any]:
        """Blocks of any lengths: one-dimensional arrays of the same dtype, block r goes to rank r.
        Returns block r from rank r. Two collectives, because the ranks tell each other the
        lengths."""
        sent = [self._read(block) for block in blocks]
        self._check_blocks(sent)
        of = sent[0].dtype
        lengths = (ctypes.c_uint64 * self.size)(*(_count(each.shape) for each in sent))
        coming = (ctypes.c_uint64 * self.size)()
        self._call("all_to_all", ctypes.addressof(lengths), ctypes.addressof(coming), 1, 10)
        packed = b"".join(ctypes.string_at(each.address, each.bytes) for each in sent)
        received = (ctypes.c_ubyte * (sum(coming) * of.itemsize))()
        self._call("all_to_all_v", packed, lengths, ctypes.addressof(received), coming, of.number)
        arrays, at = [], ctypes.addressof(received)
        for length in coming:
            arrays.append(tensors.array_over(at, (length,), of, received))
            at += length * of.itemsize
        return arrays

    def broadcast(self, array: Any, root: int = 0) -> Any:
        """Fills `array` with what it is at `root`, and returns it."""
        if self.rank == root:
            operand = self._read(array)
        else:
            operand = tensors.write(array, self._label("broadcast"))
        self._call("broadcast", operand.address, _count(operand.shape), operand.dtype.number,
                   self._rank(root))
        operand.finish()
        return array

    def barrier(self) -> None:
        """Returns when all ranks have come."""
        self._call("barrier")

    def send(self, array: Any, peer: int) -> None:
        """Collective over this rank and group rank `peer`, which calls `recv`."""
        sent = self._read(array)
        self._call("send", sent.address, _count(sent.shape), sent.dtype.number, self._rank(peer))

    def recv(self, out: Any, peer: int) -> Any:
        """Fills `out` with what group rank `peer` sends, and returns it."""
        operand = tensors.write(out, self._label("recv"))
        self._call("recv", operand.address, _count(operand.shape), operand.dtype.number,
                   self._rank(peer))
        operand.finish()
        return out

    def __repr__(self) -> str:
        return f"<npumesh.Group {self.name}: rank {self.rank} of {self.size}{self._state()}>"

    # ---- parts ----

    def _label(self, call: str = "") -> str:
        return f"group {self.name}" + (f", {call}" if call else "")

    def _call(self, name: str, *arguments: Any) -> None:
        with self._turn:
            check(getattr(library(), "npumesh_" + name)(self._open(), *arguments))

    def _read(self, array: Any) -> tensors.Operand:
        return tensors.read(array, None, self._label())

    def _into(self, out: Any, shape: Tuple[int, ...], of: DType, call: Any) -> Any:
        """Calls with the address of `out`, or of a new array, and returns the array."""
        array = tensors.empty(shape, of) if out is None else out
        target = tensors.write(array, self._label("out"))
        if (target.shape, target.dtype) != (shape, of):
            raise InvalidArgumentError(
                f"{self._label('out')}: expected {of}{list(shape)}, "
                f"seen {target.dtype}{list(target.shape)}"
            )
        call(target.address)
        target.finish()
        return array

    def _block(self, sent: tensors.Operand) -> Tuple[int, ...]:
        if not sent.shape or sent.shape[0] != self.size or sent.dtype.packed:
            raise InvalidArgumentError(
                f"{self._label()}: expected {self.size} blocks, a first dimension of {self.size}, "
                f"seen {sent.dtype}{list(sent.shape)}"
            )
        return sent.shape[1:]

    def _check_blocks(self, sent: Sequence[tensors.Operand]) -> None:
        if len(sent) != self.size:
            raise InvalidArgumentError(
                f"{self._label('all_to_all_v')}: expected {self.size} blocks, seen {len(sent)}"
            )
        for rank, each in enumerate(sent):
            if len(each.shape) != 1 or each.dtype != sent[0].dtype or each.dtype.packed:
                raise InvalidArgumentError(
                    f"{self._label('all_to_all_v')}: block {rank}: expected one dimension of "
                    f"{sent[0].dtype}, seen {each.dtype}{list(each.shape)}"
                )

    def _rank(self, rank: int) -> int:
        """The library says what a rank must be; here only that it is a number that C takes."""
        if not -(1 << 31) <= rank < 1 << 31:
            raise InvalidArgumentError(f"{self._label()}: there is no rank {rank}")
        return int(rank)


def _count(shape: Tuple[int, ...]) -> int:
    count = 1
    for dim in shape:
        count *= dim
    return count


def _reduction(op: str) -> int:
    if op not in _REDUCTIONS:
        raise InvalidArgumentError(f"op: expected one of {', '.join(_REDUCTIONS)}, seen {op!r}")
    return _REDUCTIONS[op]
