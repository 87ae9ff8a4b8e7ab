"""Which streams have joined a capture, and whether their work comes back to the stream that began it.

Each stream counts its work. An event that is recorded on it has what the stream knows of the work of
all streams, a stream that waits for the event knows it from then on.
"""

from __future__ import annotations

from typing import Dict, List

Known = Dict[int, int]  # by stream: how much of its work


class Joins:
    def __init__(self, origin: int) -> None:
        self.origin = origin
        self._done: Known = {}
        self._known: Dict[int, Known] = {origin: {origin: 0}}  # what each stream has waited for

    def work(self, stream: int) -> bool:
        """A task is put on the stream. False: nothing has joined it to the capture."""
        self._done[stream] = self._done.get(stream, 0) + 1
        self._known.setdefault(stream, {})[stream] = self._done[stream]
        return self.origin in self._known[stream]

    def done(self, stream: int) -> int:
        """How much work is on the stream."""
        return self._done.get(stream, 0)

    def record(self, stream: int) -> Known:
        """What an event on the stream stands for."""
        return dict(self._known.get(stream, {}))

    def wait(self, stream: int, event: Known) -> None:
        known = self._known.setdefault(stream, {})
        for of, much in event.items():
            known[of] = max(known.get(of, 0), much)

    def knows(self, stream: int, of: int, much: int) -> bool:
        """Whether the first `much` of the work of a stream is done when the next of `stream` begins."""
        return self._known.get(stream, {}).get(of, 0) >= much

    def left(self) -> List[int]:
        """Streams of the capture whose last task the first stream has not waited for."""
        known = self._known[self.origin]
        return [stream for stream, done in self._done.items()
                if self.origin in self._known[stream] and known.get(stream, 0) < done]

    def streams(self) -> int:
        """How many belong to the capture."""
        return max(1, sum(self.origin in known for known in self._known.values()))
