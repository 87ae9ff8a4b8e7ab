"""This process as a rank, with its simulated NPU."""

from __future__ import annotations

import atexit
import collections
import contextlib
import ctypes
import json
import os
import sys
import tempfile
import threading
import weakref
from typing import Any, Deque, Dict, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import tensors
from ._library import CWorldInfo, check, encode, library, option_array
from .dtypes import DTypeLike, bytes_of, dtype
from .errors import InvalidArgumentError, NpumeshError
from .group import Group
from .options import Options, Pairs, dump_options, flatten, of_keywords, text_of
from .session import Session

__all__ = ["World", "WorldInfo", "shared_world"]

Model = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview]


class WorldInfo(NamedTuple):
    rank: int
    size: int  # ranks
    local_rank: int  # on this host
    local_size: int
    node: int
    node_count: int  # hosts
    memory_bytes: int  # of the simulated device
    memory_used: int
    memory_peak: int


_worlds: weakref.WeakSet[World] = weakref.WeakSet()


class World:
    """This process as a rank. Collective over all processes that mpirun or `npumesh launch`
    started; a process that was not started so is a world of one rank.

        with npumesh.World() as world:
            model = world.load("model.air")
            outputs = model.run(x, w)

    A world that the program does not close is closed when Python ends. A `with` block that an
    exception leaves, and a program that ends with one, first says to the other ranks that this one
    has failed.

    `options` and keywords: variables of docs/env.md in place of the environment
    (NPUMESH_HBM_SIZE="64M"), and defaults of all sessions (`session.precision_mode`; as keywords
    without "session."). `record`: a folder for the flight record. At most one world at a time in a
    process that MPI started.

    All threads may use a world. A process that was forked from it cannot, and starts its own.

    Errors: a value that is not accepted; no device memory; a launcher's variables that contradict
    MPI.
    """

    def __init__(self, options: Optional[Options] = None, *, record: Any = None,
                 **keywords: Any) -> None:
        self._handle: Optional[int] = None
        self._turn = threading.RLock()  # making and closing come one at a time
        self._sessions: weakref.WeakSet[Session] = weakref.WeakSet()
        self._groups: weakref.WeakSet[Group] = weakref.WeakSet()
        # Handles of sessions and groups that are not closed, each with the function that ends it.
        self._dropped: Deque[Tuple[str, int]] = collections.deque()
        self._all: Optional[Group] = None
        self._process = os.getpid()
        pairs = flatten(options) + _world_keywords(keywords)
        if record is not None:
            pairs.append(("NPUMESH_RECORD", os.fspath(record)))
        handle = ctypes.c_void_p()
        check(library().npumesh_init(option_array(pairs), len(pairs), ctypes.byref(handle)))
        self._handle = handle.value
        _worlds.add(self)

    # ---- who it is ----

    @property
    def is_open(self) -> bool:
        """False after `close`, and in a process that was forked."""
        return self._handle is not None and self._process == os.getpid()

    @property
    def handle(self) -> int:
        """The npumesh_world of the C interface, for native modules. Errors: the world is closed."""
        return self._open()

    @property
    def info(self) -> WorldInfo:
        told = CWorldInfo()
        check(library().npumesh_get_world_info(self._open(), ctypes.byref(told)))
        return WorldInfo(*(getattr(told, field) for field in WorldInfo._fields))

    @property
    def rank(self) -> int:
        return self.info.rank

    @property
    def size(self) -> int:
        return self.info.size

    @property
    def local_rank(self) -> int:
        return self.info.local_rank

    @property
    def local_size(self) -> int:
        return self.info.local_size

    # ---- models ----

    def load(self, model: Model, options: Optional[Options] = None, *, name: Optional[str] = None,
             threads: Optional[int] = None, parameters: Optional[Sequence[Any]] = None,
             groups: Optional[Mapping[str, Sequence[int]]] = None, allow_outside: bool = False,
             dump: Any = None, **keywords: Any) -> Session:
        """Loads a model on this rank: a path, or bytes; AIR, text of GE, or ONNX. Local.

        `options`: those of docs/config.md, nested or with points, also as keywords with two
        underscores for a point (`ge_config__oo_level="O1"`). `name`: of bytes, stands in messages,
        and weights in files are looked for beside it. `threads`: of this session's kernels.
        `parameters`: a flag for each input, which `experimental_config.frozen_parameter` freezes.
        `groups`: ranks of the groups that the graph names. `allow_outside`: weights may lie outside
        of the model's folder. `dump`: a folder for a dump of all operators (docs/dump.md).

        Errors: file, node and field; the operators that npumesh does not have (UnsupportedError); a
        file of another tool, by its first bytes.
        """
        pairs: Pairs = flatten(dump_options(dump)) if dump is not None else []
        pairs += flatten(options) + of_keywords(keywords)
        if threads is not None:
            pairs.append(("npumesh.threads", str(threads)))
        if parameters is not None:
            pairs.append(("npumesh.parameters", text_of([int(bool(each)) for each in parameters])))
        for group, ranks in (groups or {}).items():
            pairs.append((f"npumesh.group.{group}", ",".join(map(str, ranks))))
        if allow_outside:
            pairs.append(("npumesh.allow_outside", "1"))
        with self._turn:
            self._close_dropped()
            session = self._load(model, option_array(pairs), len(pairs), name)
            self._sessions.add(session)
            return session

    def _load(self, model: Model, options: Any, count: int, name: Optional[str]) -> Session:
        handle = ctypes.c_void_p()
        if isinstance(model, (str, os.PathLike)):
            path = os.fspath(model)
            check(library().npumesh_load_file(self._open(), encode(path, "path"), options, count,
                                              ctypes.byref(handle)))
            return Session(self, handle.value or 0, path)
        if not isinstance(model, (bytes, bytearray, memoryview)):
            raise TypeError("load: expected the path of a model, or its bytes, seen "
                            f"{type(model).__name__}")
        content = bytes(model)
        label = name or "model"
        check(library().npumesh_load_bytes(self._open(), content, len(content),
                                           encode(label, "name"), options, count,
                                           ctypes.byref(handle)))
        return Session(self, handle.value or 0, label)

    def set_dump(self, config: Union[None, str, "os.PathLike[str]", Mapping[str, Any]]) -> None:
        """Sessions that are loaded from now on dump as this says: the path of a dump configuration
        in the vendor's JSON (docs/dump.md), or what such a file holds; None: they do not. Local."""
        if isinstance(config, Mapping):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "dump.json")
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(config, file)
                check(library().npumesh_set_dump(self._open(), encode(path, "config")))
            return
        path_of = None if config is None else encode(config, "config")
        check(library().npumesh_set_dump(self._open(), path_of))

    @contextlib.contextmanager
    def profile(self, folder: Any) -> Iterator[None]:
        """Collective over all ranks. `with world.profile("prof"):` writes what the ranks compute
        and communicate inside below `folder` (docs/profile.md)."""
        check(library().npumesh_start_profile(self._open(), encode(folder, "folder")))
        try:
            yield
        except BaseException:
            with contextlib.suppress(NpumeshError):
                check(library().npumesh_stop_profile(self._open()))
            raise
        check(library().npumesh_stop_profile(self._open()))

    # ---- ranks ----

    def group(self, ranks: Optional[Sequence[int]] = None, name: Optional[str] = None) -> Group:
        """Collective over `ranks`, world ranks whose order gives the group ranks; None: all.

        `name` stands in messages and tells groups of the same ranks apart; it is the same on all.
        Errors: this rank is no member; members that did not come.
        """
        members = None if ranks is None else [int(rank) for rank in ranks]
        label = name or ("world" if members is None else "-".join(map(str, members)))
        with self._turn:
            self._close_dropped()
            group = Group(self, members, label)
            self._groups.add(group)
            return group

    @property
    def all(self) -> Group:
        """The group of all ranks. The first use is collective, so it comes with a collective."""
        with self._turn:
            if self._all is None or not self._all.is_open:
                self._all = self.group(name="npumesh.all")
            return self._all

    def barrier(self) -> None:
        """Collective over all ranks."""
        self.all.barrier()

    def fail(self, message: str) -> None:
        """Says to the ranks of this host that this one has failed: those that wait for it, or will,
        raise PeerLostError with that text. A `with` block that an exception leaves does so.
        Local."""
        check(library().npumesh_fail(self._open(), encode(message.replace("\0", " "), "message")))

    # ---- device memory ----

    def alloc(self, shape: Union[int, Sequence[int]], of: DTypeLike = "float32") -> Any:
        """A numpy array in memory of the simulated device; its content is not defined.

        Collectives and graphs use such memory without a copy. It is given back when the last array
        over it is gone. It is gone with the world as well: an array must not be touched after
        `close`.
        """
        dims = (shape,) if isinstance(shape, int) else tuple(shape)
        meaning = dtype(of)
        address = ctypes.c_void_p()
        size = bytes_of(meaning, dims)
        check(library().npumesh_alloc(self._open(), max(size, 1), ctypes.byref(address)))
        return tensors.array_over(address.value or 0, dims, meaning,
                                  _DeviceMemory(self, address.value or 0))

    # ---- the end ----

    def close(self) -> None:
        """Collective over all ranks: closes sessions and groups, then waits for the others some
        seconds at most. Again is nothing. Errors: the first one of them all; the world is gone all
        the same."""
        with self._turn:
            if not self.is_open:
                return
            first = self._close_parts()
            handle, self._handle = self._handle, None
            try:
                check(library().npumesh_finalize(handle))
            except NpumeshError as error:
                first = first or error
            if first is not None:
                raise first

    def _close_parts(self) -> Optional[NpumeshError]:
        first = None
        for part in [*self._sessions, *self._groups]:
            try:
                part.close()
            except NpumeshError as error:
                first = first or error
        self._close_dropped()
        return first

    def _close_dropped(self) -> None:
        """Closes what the program dropped without closing it. An error of it has no caller to go
        to."""
        self._open()
        while self._dropped:
            ender, handle = self._dropped.popleft()
            getattr(library(), ender)(handle)

    def __enter__(self) -> World:
        return self

    def __exit__(self, _kind: Any, error: Any, _trace: Any) -> None:
        if error is None:
            self.close()
        else:
            self._abandon(error)

    def _abandon(self, error: BaseException) -> None:
        """Closes after `error`, which matters more than those of closing."""
        if not self.is_open:
            return
        text = str(error)
        with contextlib.suppress(NpumeshError):
            self.fail(type(error).__name__ + (f": {text}" if text else ""))
        with contextlib.suppress(NpumeshError):
            self.close()

    def _open(self) -> int:
        if self._handle is None:
            raise InvalidArgumentError("the world is closed")
        if self._process != os.getpid():
            raise InvalidArgumentError(
                f"the world belongs to process {self._process}; a forked process starts its own"
            )
        return self._handle

    def __repr__(self) -> str:
        if not self.is_open:
            return "<npumesh.World, closed>"
        return f"<npumesh.World: rank {self.rank} of {self.size}>"


_shared: Optional[World] = None
_shared_turn = threading.Lock()


def shared_world() -> World:
    """The world that torch_npu and TorchAir use: one that the program has opened, else a new one.
    The call that makes it is collective over all ranks of the job. Any thread."""
    global _shared
    with _shared_turn:
        if _shared is None or not _shared.is_open:
            _shared = next((world for world in _worlds if world.is_open), None) or World()
        return _shared


class _DeviceMemory:
    """Memory of npumesh_alloc; given back when the last array over it is gone."""

    def __init__(self, world: World, address: int) -> None:
        self._world, self._address = world, address

    def __del__(self) -> None:
        if self._world.is_open:
            library().npumesh_free(self._world._handle, self._address)


def _world_keywords(keywords: Dict[str, Any]) -> Pairs:
    """Variables keep their names; other keywords are options of sessions, "session." may be left
    out."""
    return [
        (key if key.isupper() or key.startswith("session.") else f"session.{key}", value)
        for key, value in of_keywords(keywords)
    ]


@atexit.register
def _close_worlds() -> None:
    error = getattr(sys, "last_value", None)
    for world in list(_worlds):
        if isinstance(error, BaseException):
            world._abandon(error)
        else:
            world.close()
