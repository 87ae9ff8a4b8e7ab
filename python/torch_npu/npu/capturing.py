"""The capture that goes on in this thread: what streams, copies and collectives ask of it. graphs.py
begins and ends it."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

import torch

from .._capture import current
from .captured import EVENT_CAPTURED, STREAM_CAPTURED, refusal

def is_current_stream_capturing() -> bool:
    return current() is not None


def record(call: Callable[[], Any], name: str = "collective") -> bool:
    """Writes down a collective, which torch's dispatcher does not see. False: there is no capture, so
    the caller has to run it."""
    capture = current()
    if capture is None:
        return False
    capture.add_collective(Call(name, call))
    return True


def hold(tensor: torch.Tensor) -> None:
    """Keeps a tensor as long as the graph that is captured now. Nothing without a capture."""
    capture = current()
    if capture is not None:
        capture.held.append(tensor)


class Call:
    """A step of a graph."""

    def __init__(self, name: str, call: Callable[[], Any]) -> None:
        self.names = [name]
        self.call = call


class Wait:
    """A step: nothing goes on before the event is recorded."""

    def __init__(self, event: Any) -> None:
        self.names = ["wait"]
        self.event = event


def permit_waiting(what: str, stream: Any = None) -> None:
    """Before the host waits for a stream, or for all. Errors: RuntimeError when it is captured."""
    capture = current()
    if capture is not None and (stream is None or stream.stream_id in capture.streams):
        raise refusal(f"{what} waits for a stream that is captured", STREAM_CAPTURED)


def permit_asking(event: Any, what: str) -> None:
    """Before an event is asked for. Errors: RuntimeError when it was recorded in the capture that
    goes on."""
    capture = current()
    if capture is not None and event._capture is capture:
        raise refusal(f"{what} asks for an event that is captured", EVENT_CAPTURED)


def record_on(stream: Any) -> Any:
    """What an event that is recorded on the stream now stands for. Empty without a capture."""
    capture = current()
    return capture.joins.record(stream.stream_id) if capture is not None else {}


def enter_stream(stream: Any) -> None:
    """The stream that is current now belongs to the capture, if there is one."""
    capture = current()
    if capture is not None:
        capture.streams.add(stream.stream_id)


# Replays that have stopped, and the event that each waits for.
waiting: Dict[Any, Any] = {}


def check_nothing_waits() -> None:
    """Errors: RuntimeError when a replay waits for an event, because no one could record it
    while the host waits for the replay."""
    if waiting:
        raise RuntimeError("torch_npu: synchronize: a replay waits for an ExternalEvent that was "
                           "not recorded, or for NPUGraph.update")


def wait_in_capture(event: Any) -> None:
    """The graph that is captured now waits for the event in each replay. Nothing without one."""
    capture = current()
    if capture is not None:
        capture.steps.append(Wait(event))
