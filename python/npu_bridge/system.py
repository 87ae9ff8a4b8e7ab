"""The system that initialize_system starts: a world of npumesh, and groups by name.

A process has one system, because the functions of the adapter name none.
"""

from __future__ import annotations

import atexit
import threading
from array import array
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import npumesh

WORLD_GROUP = "hccl_world_group"

# Options of the adapter that decide what a simulated NPU has no choice about.
_WITHOUT_EFFECT = ("use_off_line",)


class _Members(NamedTuple):
    """A group: world ranks in order of group ranks, and the node of each."""

    ranks: Tuple[int, ...]
    nodes: Tuple[int, ...]
    group: Optional[npumesh.Group]


class System:
    """What npu_ops.initialize_system starts. Any thread; calls come one at a time."""

    def __init__(self) -> None:
        self._turn = threading.RLock()
        self._world: Optional[npumesh.World] = None
        self._options: Dict[str, Any] = {}
        self._groups: Dict[str, _Members] = {}

    def initialize(self, options: Mapping[str, Any]) -> None:
        """Collective over all ranks. `options`: the documented ones of initialize_system, by their
        names. Again with equal options is nothing. Errors: an option that is not accepted; other
        options than before."""
        wanted = {name: value for name, value in options.items() if name not in _WITHOUT_EFFECT}
        with self._turn:
            if self._world is not None:
                self._check_same(wanted)
                return
            world = npumesh.World({f"session.{name}": value for name, value in wanted.items()})
            try:
                nodes = self._gather_nodes(world.all, world)
            except npumesh.NpumeshError as error:
                world._abandon(error)
                raise
            self._world, self._options = world, wanted
            self._groups = {WORLD_GROUP: _Members(tuple(range(world.size)), nodes, None)}

    def shutdown(self) -> None:
        """Collective over all ranks. Errors: there is no system."""
        with self._turn:
            world = self.world
            self._world, self._groups = None, {}
            world.close()

    @property
    def world(self) -> npumesh.World:
        """Errors: initialize_system has not run, or shutdown_system has."""
        if self._world is None or not self._world.is_open:
            raise npumesh.InvalidArgumentError(
                "there is no system; run the operation of npu_ops.initialize_system() first"
            )
        return self._world

    # ---- groups of ranks ----

    def create_group(self, name: str, ranks: Sequence[int]) -> None:
        """Collective over `ranks`, world ranks. Errors: the name is taken; ranks."""
        with self._turn:
            world = self.world
            if name in self._groups:
                raise npumesh.InvalidArgumentError(f'group "{name}" exists already')
            group = world.group(ranks, name)
            self._groups[name] = _Members(tuple(ranks), self._gather_nodes(group, world), group)

    def destroy_group(self, name: str) -> None:
        """Local."""
        with self._turn:
            group = self.members(name).group
            if group is None:
                raise npumesh.InvalidArgumentError(f'group "{name}" ends with shutdown_system')
            del self._groups[name]
            group.close()

    def members(self, name: str) -> _Members:
        """Errors: there is no system; there is no such group."""
        with self._turn:
            self.world
            if name not in self._groups:
                raise npumesh.InvalidArgumentError(
                    f'there is no group "{name}", there are {", ".join(self._groups)}'
                )
            return self._groups[name]

    def rank(self, name: str) -> int:
        return self.members(name).ranks.index(self.world.rank)

    def local_ranks(self, name: str) -> List[int]:
        """Group ranks of the members on this node, in order."""
        members, node = self.members(name), self.world.info.node
        return [rank for rank, of in enumerate(members.nodes) if of == node]

    # ---- parts ----

    def _check_same(self, options: Mapping[str, Any]) -> None:
        for name in sorted({*options, *self._options}):
            before, now = self._options.get(name), options.get(name)
            if before != now:
                raise npumesh.InvalidArgumentError(
                    f"initialize_system: option {name} was {before!r} before, seen {now!r}; "
                    "run shutdown_system first"
                )

    @staticmethod
    def _gather_nodes(group: npumesh.Group, world: npumesh.World) -> Tuple[int, ...]:
        nodes = group.all_gather(array("q", [world.info.node]))
        return tuple(node for (node,) in nodes.tolist())


SYSTEM = System()


@atexit.register
def _forget() -> None:
    """npumesh closes the world itself."""
    SYSTEM._world = None
