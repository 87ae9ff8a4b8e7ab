"""tf.Session of the stand-in: runs the operations of npu_bridge."""

from __future__ import annotations

from typing import Any, Dict, Optional

from .core.protobuf.config_pb2 import ConfigProto

# The optimizer whose parameters are the options of a system.
_NPU = "NpuOptimizer"


class Session:
    """Runs operations. Closing it does not end the system: shutdown_system does."""

    def __init__(self, target: str = "", graph: Any = None,
                 config: Optional[ConfigProto] = None) -> None:
        self._config = config or ConfigProto()
        self._open = True

    def run(self, fetches: Any, feed_dict: Any = None) -> Any:
        """An operation, or lists, tuples and dicts of them; None in the place of each, as in
        TensorFlow. Errors: RuntimeError after `close`; TypeError for what is no operation."""
        if not self._open:
            raise RuntimeError("Attempted to use a closed Session.")
        if feed_dict:
            raise TypeError("feed_dict: the stand-in for tensorflow has no tensors to feed")
        if isinstance(fetches, dict):
            return {name: self.run(each) for name, each in fetches.items()}
        if isinstance(fetches, (list, tuple)):
            return type(fetches)([self.run(each) for each in fetches])
        run = getattr(fetches, "run", None)
        if run is None:
            raise TypeError(
                f"fetches: expected operations of npu_bridge, seen {type(fetches).__name__}; the "
                "stand-in for tensorflow runs no other, install TensorFlow for them"
            )
        run(self._options())
        return None

    def close(self) -> None:
        self._open = False

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _options(self) -> Dict[str, Any]:
        options: Dict[str, Any] = {}
        for optimizer in self._config.graph_options.rewrite_options.custom_optimizers:
            if optimizer.name == _NPU:
                options.update((name, value.value())
                               for name, value in optimizer.parameter_map.items()
                               if value.value() is not None)
        return options
