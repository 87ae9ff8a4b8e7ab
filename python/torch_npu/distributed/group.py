"""ProcessGroupHCCL: collectives of torch.distributed on groups of npumesh."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroup, Work, _create_work_from_future

import npumesh

from .. import _engine, _types
from ..npu import capturing

_REDUCTIONS = {dist.ReduceOp.SUM: 0, dist.ReduceOp.PRODUCT: 1, dist.ReduceOp.MAX: 2,
               dist.ReduceOp.MIN: 3}
_BITWISE = {dist.ReduceOp.BAND: torch.bitwise_and, dist.ReduceOp.BOR: torch.bitwise_or,
            dist.ReduceOp.BXOR: torch.bitwise_xor}


def _done(result: Any) -> Work:
    """A work that is done; made by C++, which keeps it as long as it needs it."""
    future = torch.futures.Future()
    future.set_result(result)
    return _create_work_from_future(future)


class _Pending(Work):
    """A send or receive that runs when a call waits: a rank may start several before the other
    side comes."""

    def __init__(self, group: "ProcessGroupHCCL", peer: int, sends: bool,
                 call: Callable[[], None], result: List[torch.Tensor]) -> None:
        super().__init__()
        self.group, self.peer, self.sends, self.call = group, peer, sends, call
        self.result_tensors = result
        self.done = False

    def wait(self, timeout: Any = None) -> bool:
        self.group._meet_peers()
        return True

    def is_completed(self) -> bool:
        return self.done

    def result(self) -> List[torch.Tensor]:
        self.wait()
        return self.result_tensors

    def get_future(self) -> Any:
        self.wait()
        future = torch.futures.Future()
        future.set_result(self.result_tensors)
        return future


def default_group_size() -> int:
    return _engine.world().size


def of(group: Any = None) -> "ProcessGroupHCCL":
    """The group of npumesh below a group of torch; None: the default group."""
    found = group if group is not None else dist.distributed_c10d._get_default_group()
    if not isinstance(found, ProcessGroupHCCL):
        raise TypeError(f'torch_npu: expected a group of the backend "hccl", seen {found!r}')
    return found


class ProcessGroupHCCL(ProcessGroup):
    """Ranks of torch that are ranks of npumesh. Collectives are done when they return; sends and
    receives when one is waited for. Before data move the ranks compare what they ask for: a
    difference is an npumesh.MismatchError with the same words on all of them."""

    class Options(dist.Backend.Options if hasattr(dist.Backend, "Options")
                  else torch._C._distributed_c10d.Backend.Options):
        """What init_process_group and new_group take as `pg_options`. Time-outs are those of
        docs/env.md, and a group has no streams or buffers here."""

        def __init__(self, is_high_priority_stream: bool = False) -> None:
            super().__init__("hccl")
            self.is_high_priority_stream = is_high_priority_stream
            self.op_timeout = self._timeout
            self.global_ranks_in_group: List[int] = []
            self.hccl_config: Dict[str, Any] = {}
            self.group_id = ""

    def __init__(self, rank: int, size: int, ranks: Optional[Sequence[int]], name: str) -> None:
        super().__init__(rank, size)
        self._name = f"hccl.{name}"
        self._torch_name, self._description = name, "hccl"
        self._ranks = list(ranks) if ranks else list(range(size))
        world = _engine.world()
        if world.size < max(self._ranks) + 1:
            raise RuntimeError(
                f'torch_npu: backend "hccl": {size} ranks, but this process is one of '
                f"{world.size} that MPI has started; start them by mpirun or npumesh launch")
        if world.rank != self._ranks[rank]:
            raise RuntimeError(
                f'torch_npu: backend "hccl": rank {self._ranks[rank]} of torch is rank '
                f"{world.rank} of MPI; leave RANK unset, or set it to the rank of MPI")
        self._group = world.group(self._ranks, name=self._name)
        self._pending: List[_Pending] = []
        _engine.name_group(self._name, self._ranks)

    # ---- what torch asks a group for ----

    def getBackendName(self) -> str:
        return "hccl"

    def _get_backend_name(self) -> str:
        return "hccl"

    def name(self) -> str:
        return "hccl"

    @property
    def group_name(self) -> str:
        return self._torch_name

    @property
    def group_desc(self) -> str:
        return self._description

    def _set_group_name(self, name: str) -> None:
        self._torch_name = name

    def _set_group_desc(self, description: str) -> None:
        self._description = description

    def getGroupName(self) -> str:
        return self._torch_name

    def getGroupDesc(self) -> str:
        return self._description

    @property
    def _device_types(self) -> List[torch.device]:
        return [torch.device("npu")]

    def _get_backend(self, device: Any) -> "ProcessGroupHCCL":
        return self

    def get_hccl_comm_name(self, rank: int = 0, init_comm: bool = True) -> str:
        """The name by which operators call this group: their argument `hcom` or `group`."""
        return self._name

    def get_hccl_comm(self, rank: int = 0) -> int:
        return id(self._group)

    def supports_splitting(self) -> bool:
        return False

    @property
    def supports_coalescing(self) -> bool:
        return False

    def _start_coalescing(self, device: Any = None) -> None:
        pass

    def _end_coalescing(self, device: Any = None) -> Work:
        self._meet_peers()
        return _done([])

    def _set_sequence_number_for_group(self) -> None:
        pass

    def _get_sequence_number_for_group(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"<ProcessGroupHCCL {self._name}: rank {self.rank()} of {self.size()}>"

    # ---- reductions ----

    def allreduce(self, tensors: Any, opts: Any = None) -> Work:
        tensors = _list(tensors)
        op = _operation(opts)
        self._run(lambda: [self._reduce_one(each, op) for each in tensors])
        return _done(tensors)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Work:
        return self.allreduce(tensors, opts)

    def reduce(self, tensors: Any, opts: Any = None) -> Work:
        """At the root; elsewhere the tensors keep their values."""
        tensors = _list(tensors)
        op, root = _operation(opts), opts.rootRank if opts is not None else 0

        def call() -> None:
            for each in tensors:
                total = each if self.rank() == root else each.clone()
                self._reduce_one(total, op)

        self._run(call)
        return _done(tensors)

    def _reduce_one(self, tensor: torch.Tensor, op: Any) -> None:
        factor = None
        kind, factor = op
        values = tensor.detach()
        if kind == dist.ReduceOp.AVG:
            self._reduced(values, dist.ReduceOp.SUM)
            _divide(values, self.size())
        elif kind in _BITWISE:
            gathered = values.new_empty((self.size(), *values.shape))
            self._gather(values, gathered)
            values.copy_(functools.reduce(_BITWISE[kind], gathered.unbind(0)))
        elif kind == dist.ReduceOp.PREMUL_SUM:
            values.mul_(factor)
            self._reduced(values, dist.ReduceOp.SUM)
        else:
            self._reduced(values, kind)

    def _reduced(self, values: torch.Tensor, kind: Any) -> None:
        if values.is_complex():
            values = torch.view_as_real(values)
        with _Straight(values) as straight:
            memory, reduction = straight, _REDUCTIONS[kind]
            if straight.dtype == torch.bool:  # sums and products of truth: any, all
                memory = straight.view(torch.uint8)
                reduction = {0: 2, 1: 3}.get(reduction, reduction)
            place, count, number = _memory(memory)
            self._group._call("all_reduce", place, place, count, number, reduction)

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        outputs = _list(outputs)
        op = _operation(opts)

        def call() -> None:
            for output, parts in zip(outputs, inputs):
                total = torch.cat([part.detach().reshape(-1) for part in parts])
                self._reduce_one(total, op)
                sizes = [part.numel() for part in parts]
                output.detach().copy_(total.split(sizes)[self.rank()].reshape(output.shape))

        self._run(call)
        return _done(outputs)

    def _reduce_scatter_base(self, output: torch.Tensor, input: torch.Tensor,
                             opts: Any = None) -> Work:
        op = _operation(opts)
        self._run(lambda: self._scatter_reduced(output.detach(), input.detach(), op))
        return _done([output])

    def reduce_scatter_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        for output, value in zip(outputs, inputs):
            self._reduce_scatter_base(output, value, opts)
        return _done(list(outputs))

    def _scatter_reduced(self, output: torch.Tensor, value: torch.Tensor, op: Any) -> None:
        kind, _ = op
        plain = dist.ReduceOp.SUM if kind == dist.ReduceOp.AVG else kind
        if plain not in _REDUCTIONS or value.dtype == torch.bool or value.is_complex():
            total = value.clone()
            self._reduce_one(total, op)
            output.copy_(total.reshape(self.size(), *output.shape)[self.rank()])
            return
        self._check(value.numel() == self.size() * output.numel(), "reduce_scatter_tensor",
                    f"{self.size()} times the elements of the output", value)
        with _Straight(output) as straight:
            place, count, number = _memory(straight)
            ready = value.contiguous()
            self._group._call("reduce_scatter", _engine._address(ready), place, count, number,
                              _REDUCTIONS[plain])
        if kind == dist.ReduceOp.AVG:
            _divide(output, self.size())

    # ---- moving ----

    def broadcast(self, tensors: Any, opts: Any = None) -> Work:
        tensors = _list(tensors)
        root = opts.rootRank if opts is not None else 0
        self._run(lambda: [self._broadcast_one(each, root) for each in tensors])
        return _done(tensors)

    def _broadcast_one(self, tensor: torch.Tensor, root: int) -> None:
        with _Straight(tensor.detach()) as straight:
            self._group._call("broadcast", *_memory(straight), root)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        inputs = _list(inputs)

        def call() -> None:
            for parts, value in zip(outputs, inputs):
                self._gather_parts(parts, value.detach())

        self._run(call)
        return _done(outputs)

    def _gather_parts(self, parts: Sequence[torch.Tensor], value: torch.Tensor) -> None:
        if any(part.shape != value.shape for part in parts):
            for root, part in enumerate(parts):
                if root == self.rank():
                    part.detach().copy_(value.reshape(part.shape))
                self._broadcast_one(part, root)
            return
        gathered = value.new_empty((self.size(), *value.shape))
        self._gather(value, gathered)
        for part, block in zip(parts, gathered):
            part.detach().copy_(block)

    def _gather(self, value: torch.Tensor, output: torch.Tensor) -> None:
        self._check(output.numel() == self.size() * value.numel(), "all_gather",
                    f"an output of {self.size()} times the elements", output)
        ready = value.contiguous()
        place, count, number = _memory(ready)
        with _Straight(output) as straight:
            self._group._call("all_gather", place, _engine._address(straight), count, number)

    def _allgather_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Work:
        self._run(lambda: self._gather(input.detach(), output.detach()))
        return _done([output])

    def allgather_into_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        for output, value in zip(outputs, inputs):
            self._allgather_base(output, value)
        return _done(list(outputs))

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        return self.allgather([list(parts) for parts in zip(*outputs)], inputs)

    def gather(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        root = opts.rootRank if opts is not None else 0
        inputs = _list(inputs)

        def call() -> None:
            for at, value in enumerate(inputs):
                gathered = value.new_empty((self.size(), *value.shape))
                self._gather(value.detach(), gathered)
                if self.rank() == root:
                    for part, block in zip(outputs[at], gathered):
                        part.detach().copy_(block)

        self._run(call)
        return _done(outputs)

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        root = opts.rootRank if opts is not None else 0
        outputs = _list(outputs)

        def call() -> None:
            for at, output in enumerate(outputs):
                whole = output.new_empty((self.size(), *output.shape))
                if self.rank() == root:
                    whole.copy_(torch.stack(list(inputs[at])).detach())
                self._broadcast_one(whole, root)
                output.detach().copy_(whole[self.rank()])

        self._run(call)
        return _done(outputs)

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        def call() -> None:
            sent = [value.detach().reshape(-1) for value in inputs]
            packed = torch.cat(sent) if sent else torch.empty(0)
            coming = [output.numel() for output in outputs]
            received = packed.new_empty(sum(coming))
            self._exchange(packed, [each.numel() for each in sent], received, coming)
            for output, block in zip(outputs, received.split(coming)):
                output.detach().copy_(block.reshape(output.shape))

        self._run(call)
        return _done(outputs)

    def alltoall_base(self, output: torch.Tensor, input: torch.Tensor, output_split_sizes: Any,
                      input_split_sizes: Any, opts: Any = None) -> Work:
        def call() -> None:
            width = input.numel() // input.shape[0] if input.shape[0] else (
                output.numel() // output.shape[0] if output.shape[0] else 1)
            sending = self._counts(input_split_sizes, input.shape[0], width)
            coming = self._counts(output_split_sizes, output.shape[0], width)
            with _Straight(output.detach()) as straight:
                self._exchange(input.detach().contiguous(), sending, straight, coming)

        self._run(call)
        return _done([output])

    def _counts(self, sizes: Any, rows: int, width: int) -> List[int]:
        if sizes:
            if len(sizes) != self.size() or sum(sizes) != rows:
                raise ValueError(f"torch_npu: all_to_all_single: split sizes: expected "
                                 f"{self.size()} numbers with the sum {rows}, seen {list(sizes)}")
            return [each * width for each in sizes]
        if rows % self.size():
            raise ValueError(f"torch_npu: all_to_all_single: {rows} rows do not split evenly over "
                             f"{self.size()} ranks; give split sizes")
        return [rows // self.size() * width] * self.size()

    def _exchange(self, packed: torch.Tensor, sending: List[int], received: torch.Tensor,
                  coming: List[int]) -> None:
        import ctypes

        counts = ctypes.c_uint64 * self.size()
        self._group._call("all_to_all_v", _engine._address(packed), counts(*sending),
                          _engine._address(received), counts(*coming), _memory(packed)[2])

    def barrier(self, opts: Any = None) -> Work:
        self._run(lambda: self._group._call("barrier"))
        return _done([])

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        self.barrier()

    # ---- two ranks ----

    def send(self, tensors: Any, dst: int, tag: int = 0) -> Work:
        tensors = _list(tensors)

        def call() -> None:
            for each in tensors:
                self._group._call("send", *_memory(each.detach().contiguous()), dst)

        return self._start(dst, True, call, tensors)

    def recv(self, tensors: Any, src: int, tag: int = 0) -> Work:
        tensors = _list(tensors)

        def call() -> None:
            for each in tensors:
                with _Straight(each.detach()) as straight:
                    self._group._call("recv", *_memory(straight), src)

        return self._start(src, False, call, tensors)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        raise NotImplementedError('torch_npu: backend "hccl": recv needs the rank of the sender')

    def _start(self, peer: int, sends: bool, call: Callable[[], None],
               tensors: List[torch.Tensor]) -> Work:
        self._check_peer(peer)
        work = _Pending(self, peer, sends, call, tensors)
        self._pending.append(work)
        return work

    def _check_peer(self, peer: int) -> None:
        if peer == self.rank() or not 0 <= peer < self.size():
            raise ValueError(f'torch_npu: backend "hccl": rank {self.rank()} of {self.size()} '
                             f"cannot send to or receive from rank {peer}")

    def _meet_peers(self) -> None:
        """Runs what was started, pair after pair in an order that all ranks have: the pair of the
        lower ranks first, and of a pair first what its lower rank sends."""
        pending, self._pending = self._pending, []

        def turn(work: _Pending) -> Tuple[int, int, bool]:
            low, high = sorted((self.rank(), work.peer))
            sender = self.rank() if work.sends else work.peer
            return low, high, sender != low

        for work in sorted(pending, key=turn):
            if not capturing.record(work.call):
                work.call()
            work.done = True

    # ---- the names of torch 2.13 ----

    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
    all_to_all_single = alltoall_base

    # ---- parts ----

    def _run(self, call: Callable[[], Any]) -> None:
        self._meet_peers()
        if not capturing.record(call):
            call()

    def _check(self, holds: bool, what: str, expected: str, seen: torch.Tensor) -> None:
        if not holds:
            raise ValueError(f'torch_npu: backend "hccl": {what}: expected {expected}, '
                             f"seen {list(seen.shape)}")


class _Straight:
    """A tensor without gaps while the group writes it; values come back when it has some."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self._straight = tensor.contiguous()

    def __enter__(self) -> torch.Tensor:
        return self._straight

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None and self._straight.data_ptr() != self._tensor.data_ptr():
            self._tensor.copy_(self._straight)


def _memory(tensor: torch.Tensor) -> Tuple[int, int, int]:
    """Address, elements, and the engine's number of their type."""
    of_type = npumesh.dtype(_types.engine_name(tensor.dtype))
    return _engine._address(tensor), tensor.numel(), of_type.number


def _list(tensors: Any) -> List[torch.Tensor]:
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def _divide(values: torch.Tensor, by: int) -> None:
    if values.is_floating_point() or values.is_complex():
        values.div_(by)
    else:
        values.div_(by, rounding_mode="trunc")


def _operation(opts: Any) -> Tuple[Any, Any]:
    """The reduction that options name, and the factor of PREMUL_SUM."""
    op = dist.ReduceOp.SUM if opts is None else opts.reduceOp
    for kind in (*_REDUCTIONS, *_BITWISE, dist.ReduceOp.AVG, dist.ReduceOp.PREMUL_SUM):
        if op == kind:
            if kind == dist.ReduceOp.PREMUL_SUM:
                return kind, op.__getstate__()[1]
            return kind, None
    raise NotImplementedError(f'torch_npu: backend "hccl": there is no reduction {op}')
