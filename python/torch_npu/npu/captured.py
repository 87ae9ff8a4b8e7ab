"""What a capture may read: which memory has values while calls are only written down, and the words for
what it must refuse."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

import torch

from .. import _card
from .._places import Place, place_of, put
from .._say import line_of_program
from .segments import tensors_of

# The vendor's codes, as a program on the hardware sees them.
STREAM_CAPTURED = "107027 (ACL_ERROR_RT_STREAM_CAPTURED)"
EVENT_CAPTURED = "107028 (ACL_ERROR_RT_EVENT_CAPTURED)"
STREAM_UNJOINED = "107025 (ACL_ERROR_RT_STREAM_UNJOINED)"
MODE_FORBIDS = "107030 (ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT)"
WRONG_THREAD = "107038 (ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD)"
DEPENDENCY = "107024 (ACL_ERROR_RT_CAPTURE_DEPENDENCY)"
REPLAY_FAILED = "507011 (ACL_ERROR_RT_MODEL_EXECUTE)"


def fault(what: str, code: str, mend: str) -> RuntimeError:
    """The error for what breaks a capture, with the line of the program. It is a finding as well."""
    where = line_of_program()
    _card.note("capture", where, what, mend, "CANN runtime, error codes", code)
    return RuntimeError(f"torch_npu: {where}: {what}: error code {code}; {mend}")


def refusal(what: str, code: str) -> RuntimeError:
    """The error for what no capture permits, as `fault` has it."""
    return fault(f"{what} while torch.npu.graph captures", code,
                 "a captured call runs only when the graph is replayed. Do it before the capture or after "
                 'a replay; what the host keeps for itself is made with device="cpu"')


class _Mark(NamedTuple):
    """What a storage remembers: who has written it, and whether the values are there."""

    values: "Values"
    is_constant: bool


class Values:
    """Which memory has values during one capture."""

    def _mark(self, tensors: Sequence[torch.Tensor], is_constant: bool) -> None:
        for each in tensors:
            try:
                each.untyped_storage()._npumesh_mark = _Mark(self, is_constant)
            except (RuntimeError, NotImplementedError):  # of sparse tensors
                pass

    def know(self, tensors: Sequence[torch.Tensor]) -> None:
        """Values of these depend on no tensor from outside the capture; they are there."""
        self._mark(tensors, True)

    def await_replay(self, tensors: Sequence[torch.Tensor]) -> None:
        """Values of these come with a replay."""
        self._mark(tensors, False)

    def are_constant(self, tensor: torch.Tensor) -> bool:
        mark = _mark_of(tensor)
        return mark is not None and mark.values is self and mark.is_constant

    def are_hosts(self, tensor: torch.Tensor) -> bool:
        """Whether the host has the tensor for itself, so that no captured call writes it."""
        mark, place = _mark_of(tensor), place_of(tensor)
        awaited = mark is not None and mark.values is self and not mark.is_constant
        return place is not None and place.is_host and not awaited

    def are_there(self, tensor: torch.Tensor) -> bool:
        """Whether the host may read the tensor. One of before the capture that no call has put
        anywhere may be the host's."""
        if self.are_hosts(tensor):
            return True
        mark = _mark_of(tensor)
        return place_of(tensor) is None and (mark is None or mark.is_constant)

    def host_has(self, result: Any) -> Any:
        """The result of a call of the host for itself."""
        for each in tensors_of(result):
            if place_of(each) is None:
                put(each, Place.HOST)
        return result


def _mark_of(tensor: torch.Tensor) -> Any:
    try:
        return getattr(tensor.untyped_storage(), "_npumesh_mark", None)
    except (RuntimeError, NotImplementedError):
        return None
