"""npumesh in Python: Ascend graphs and collectives on simulated NPUs (docs/python.md).

    import numpy as np
    import npumesh

    with npumesh.World() as world:
        model = world.load("add.air")
        x = np.ones((2, 2), np.float32)
        print(model.run(x, x)[0])

The package is Python over the C interface of libnpumesh.so, which it finds by NPUMESH_LIBRARY, near
itself, or through the loader. numpy is optional: without it tensors are memoryviews.
"""

from __future__ import annotations

from ._library import library_path, prefix
from .command import compare_dumps, read_records
from .dtypes import DTYPES, DType, bytes_of, dtype, np as _np
from .errors import (
    CorruptError,
    InternalError,
    InvalidArgumentError,
    IoError,
    MismatchError,
    NotFoundError,
    NpumeshError,
    OutOfMemoryError,
    PeerLostError,
    UnsupportedError,
    WaitTimeoutError,
)
from .graph import Graph, Value
from .group import Group
from .questions import Field, Operator, operator, operators, save_air, version
from .options import dump_options
from .session import Port, Session, SessionStats
from .tensors import Spec
from .world import World, WorldInfo, shared_world

__all__ = [
    "CorruptError",
    "DTYPES",
    "DType",
    "Field",
    "Graph",
    "Group",
    "InternalError",
    "InvalidArgumentError",
    "IoError",
    "MismatchError",
    "NotFoundError",
    "NpumeshError",
    "Operator",
    "OutOfMemoryError",
    "PeerLostError",
    "Port",
    "Session",
    "SessionStats",
    "Spec",
    "UnsupportedError",
    "Value",
    "WaitTimeoutError",
    "World",
    "WorldInfo",
    "bytes_of",
    "compare_dumps",
    "dtype",
    "dump_options",
    "library_path",
    "operator",
    "operators",
    "prefix",
    "read_records",
    "save_air",
    "shared_world",
    "version",
]

if _np is not None:
    from .bits import BitArray, as_dtype, to_bfloat16, to_float32
    from .comparison import Comparison, FolderComparison, compare, compare_folders

    __all__ += [
        "BitArray",
        "Comparison",
        "FolderComparison",
        "as_dtype",
        "compare",
        "compare_folders",
        "to_bfloat16",
        "to_float32",
    ]


def __getattr__(name: str) -> str:
    """`__version__` is that of the library, which is loaded to answer."""
    if name == "__version__":
        return version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
