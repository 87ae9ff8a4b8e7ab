"""from npu_bridge.npu_init import *

Brings npu_ops, RewriterConfig and the rank functions of hccl.manage.api. Where TensorFlow is not
installed, this also makes the stand-in `tensorflow`.
"""

from __future__ import annotations

import importlib
import os
import sys

try:
    importlib.import_module("tensorflow")
except ImportError:
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "stand_in"))
    importlib.import_module("tensorflow")

from hccl.manage.api import (  # noqa: E402
    create_group,
    destroy_group,
    get_group_rank_from_world_rank,
    get_local_rank_id,
    get_local_rank_size,
    get_rank_id,
    get_rank_size,
    get_world_rank_from_group_rank,
)
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig  # noqa: E402

from . import npu_ops  # noqa: E402

__all__ = [
    "RewriterConfig",
    "create_group",
    "destroy_group",
    "get_group_rank_from_world_rank",
    "get_local_rank_id",
    "get_local_rank_size",
    "get_rank_id",
    "get_rank_size",
    "get_world_rank_from_group_rank",
    "npu_ops",
]
