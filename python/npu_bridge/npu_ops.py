"""npu_ops.initialize_system and shutdown_system: operations that a session of TensorFlow runs."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional

from .system import SYSTEM


class Operation:
    """What the stand-in's Session.run runs; `name` as in TensorFlow."""

    def __init__(self, name: str, run: Callable[[Mapping[str, Any]], None]) -> None:
        self.name = name
        self.run = run  # takes the options of the session


def initialize_system(name: Optional[str] = None) -> Any:
    """An operation that starts the system: this process becomes a rank. It takes its options from
    the NpuOptimizer in the configuration of the session that runs it (docs/python.md)."""
    return _operation(name or "InitializeSystem", SYSTEM.initialize)


def shutdown_system(name: Optional[str] = None) -> Any:
    """An operation that ends the system. Collective over all ranks."""
    return _operation(name or "ShutdownSystem", lambda _: SYSTEM.shutdown())


def _operation(name: str, run: Callable[[Mapping[str, Any]], None]) -> Any:
    import tensorflow

    if getattr(tensorflow, "npumesh_stand_in", False):
        return Operation(name, run)

    def call() -> int:  # TensorFlow tells a function nothing of its session
        run({})
        return 0

    return tensorflow.compat.v1.py_func(call, [], tensorflow.int64, name=name)
