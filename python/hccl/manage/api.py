"""Ranks and groups of the system that npu_ops.initialize_system has started.

All functions but create_group are local. Errors: npumesh.InvalidArgumentError, a ValueError, where
there is no system, group or rank.
"""

from __future__ import annotations

from typing import Sequence

import npumesh
from npu_bridge.system import SYSTEM, WORLD_GROUP


def create_group(group: str, rank_num: int, rank_ids: Sequence[int]) -> None:
    """Collective over the world ranks `rank_ids`, whose number is `rank_num`."""
    ranks = [int(rank) for rank in rank_ids]
    if rank_num != len(ranks):
        raise npumesh.InvalidArgumentError(
            f'group "{group}": expected {rank_num} ranks, seen {len(ranks)}'
        )
    SYSTEM.create_group(group, ranks)


def destroy_group(group: str) -> None:
    SYSTEM.destroy_group(group)


def get_rank_size(group: str = WORLD_GROUP) -> int:
    return len(SYSTEM.members(group).ranks)


def get_rank_id(group: str = WORLD_GROUP) -> int:
    return SYSTEM.rank(group)


def get_local_rank_size(group: str = WORLD_GROUP) -> int:
    """Members of the group on this node."""
    return len(SYSTEM.local_ranks(group))


def get_local_rank_id(group: str = WORLD_GROUP) -> int:
    """This rank's place among them."""
    return SYSTEM.local_ranks(group).index(SYSTEM.rank(group))


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    ranks = SYSTEM.members(group).ranks
    if not 0 <= group_rank_id < len(ranks):
        raise npumesh.InvalidArgumentError(
            f'group "{group}" has {len(ranks)} ranks, asked for rank {group_rank_id}'
        )
    return ranks[group_rank_id]


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    ranks = SYSTEM.members(group).ranks
    if world_rank_id not in ranks:
        raise npumesh.InvalidArgumentError(
            f'world rank {world_rank_id} is no member of group "{group}", which has {ranks}'
        )
    return ranks.index(world_rank_id)
