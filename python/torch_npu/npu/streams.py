"""Streams and events. Work is done when a call returns, so streams have nothing to order; they keep
their identity, and events the time at which they were recorded."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from typing import Any, Iterator, Optional

import torch

from .. import _card
from .._device_index import check_device
from . import capturing, card_watch

_numbers = itertools.count(1)
_here = threading.local()


class Stream:
    """A stream; all are equal but for their number."""

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        self.device_index = check_device(device)
        self.priority = priority
        self.stream_id = kwargs.get("stream_id") or next(_numbers)
        if _card.is_set():
            card_watch.check_resources()
            card_watch.streams_alive.add(self)

    @property
    def device(self) -> torch.device:
        return torch.device("npu", self.device_index)

    @property
    def device_type(self) -> int:
        return 20  # c10::DeviceType of the npu

    @property
    def npu_stream(self) -> int:
        return self.stream_id

    _as_parameter_ = npu_stream

    def synchronize(self) -> None:
        """As torch.npu.synchronize."""
        capturing.permit_waiting("Stream.synchronize", self)
        capturing.check_nothing_waits()

    def query(self) -> bool:
        """Whether all work is done: always."""
        capturing.permit_waiting("Stream.query", self)
        return True

    def wait_event(self, event: "Event") -> None:
        event.wait(self)

    def wait_stream(self, stream: "Stream") -> None:
        self.wait_event(stream.record_event())

    def record_event(self, event: Optional["Event"] = None) -> "Event":
        event = event or Event()
        event.record(self)
        return event

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.stream_id, self.device_index) == (
            other.stream_id, other.device_index)

    def __hash__(self) -> int:
        return hash((self.stream_id, self.device_index))

    def __enter__(self) -> "Stream":
        self._before = current_stream()
        set_stream(self)
        return self

    def __exit__(self, *_: Any) -> None:
        set_stream(self._before)

    def __repr__(self) -> str:
        return f"<torch.npu.Stream device=npu:{self.device_index} npu_stream={self.stream_id:#x}>"


class ExternalStream(Stream):
    """A stream that another library made, by its address."""

    def __init__(self, stream_ptr: int, device: Any = None, **kwargs: Any) -> None:
        super().__init__(device, stream_id=stream_ptr)


class Event:
    """A moment. `elapsed_time` needs enable_timing, as on the hardware."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False,
                 interprocess: bool = False, device: Any = None) -> None:
        self.enable_timing = enable_timing
        self._recorded: Optional[float] = None
        self._capture: Any = None  # in which it was recorded
        self._known: Any = {}  # what it stands for there (joins.py)

    @property
    def npu_event(self) -> int:
        return id(self)

    @property
    def device(self) -> torch.device:
        return torch.device("npu", 0)

    def record(self, stream: Optional[Stream] = None) -> None:
        self._capture = capturing.current()
        self._known = capturing.record_on(stream or current_stream())
        self._recorded = time.perf_counter()

    def wait(self, stream: Optional[Stream] = None) -> None:
        capture = capturing.current()
        if capture is not None:
            capture.wait_for((stream or current_stream()).stream_id, self)

    def query(self) -> bool:
        capturing.permit_asking(self, "Event.query")
        return True

    def synchronize(self) -> None:
        capturing.permit_asking(self, "Event.synchronize")

    def reset(self, stream: Optional[Stream] = None) -> None:
        self._recorded = None

    def elapsed_time(self, end_event: "Event") -> float:
        """Milliseconds from this event to `end_event`. Errors: RuntimeError."""
        for event in (self, end_event):
            if not event.enable_timing:
                raise RuntimeError("torch_npu: elapsed_time: both events need enable_timing=True")
            if event._recorded is None:
                raise RuntimeError("torch_npu: elapsed_time: both events must have been recorded")
        return (end_event._recorded - self._recorded) * 1e3

    def recorded_time(self) -> int:
        if self._recorded is None:
            raise RuntimeError("torch_npu: recorded_time: the event was not recorded")
        return int(self._recorded * 1e6)

    def __repr__(self) -> str:
        return f"<torch.npu.Event {self.npu_event:#x}>"


class ExternalEvent(Event):
    """An event between a captured graph and what runs beside it: a graph that has captured a
    `wait` stops there in each replay until `record` is called outside of a capture."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._is_set = False
        self._go_on: Any = None  # of the replay that waits

    def wait(self, stream: Optional[Stream] = None) -> None:
        capturing.wait_in_capture(self)

    def record(self, stream: Optional[Stream] = None) -> None:
        super().record(stream)
        with self._lock:
            go_on, self._go_on = self._go_on, None
            self._is_set = go_on is None
        if go_on is not None:
            go_on()

    def reset(self, stream: Optional[Stream] = None) -> None:
        super().reset(stream)
        if not capturing.is_current_stream_capturing():  # a graph that has waited has reset it
            self._is_set = False

    def _pass(self, go_on: Any) -> bool:
        """Whether a replay may go on now; if not, `record` calls `go_on`."""
        with self._lock:
            if not self._is_set:
                self._go_on = go_on
                return False
            self._is_set = False
        return True


def default_stream(device: Any = None) -> Stream:
    """Number 0 of the device."""
    stream = Stream(device)
    stream.stream_id = 0
    return stream


def current_stream(device: Any = None) -> Stream:
    """That of this thread."""
    stream = getattr(_here, "stream", None)
    return default_stream(device) if stream is None else stream


def set_stream(stream: Optional[Stream]) -> None:
    if stream is not None:
        _here.stream = stream
        capturing.enter_stream(stream)


class StreamContext(contextlib.AbstractContextManager):
    """`with torch.npu.stream(s):` None: nothing."""

    def __init__(self, stream: Optional[Stream]) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        self._before = current_stream()
        set_stream(self.stream)

    def __exit__(self, *_: Any) -> None:
        set_stream(self._before)


def stream(stream: Optional[Stream]) -> StreamContext:
    return StreamContext(stream)


def synchronize(device: Any = None) -> None:
    """Work is done when a call returns. Errors: RuntimeError when a replay waits for an event that
    no one can record any more."""
    check_device(device)
    capturing.permit_waiting("torch.npu.synchronize")
    capturing.check_nothing_waits()


def fake_record_stream(tensor: torch.Tensor, stream: Stream) -> None:
    pass


@contextlib.contextmanager
def _restored() -> Iterator[None]:
    before = current_stream()
    yield
    set_stream(before)
