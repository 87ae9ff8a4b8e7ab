"""ConfigProto: the configuration of a session. Fields that say nothing to npumesh may be set."""

from __future__ import annotations

from typing import Any

from .rewriter_config_pb2 import RewriterConfig


class GraphOptions:
    def __init__(self) -> None:
        self.rewrite_options = RewriterConfig()


class GPUOptions:
    """Of no effect here."""


class ConfigProto:
    def __init__(self, **fields: Any) -> None:
        self.graph_options = GraphOptions()
        self.gpu_options = GPUOptions()
        for name, value in fields.items():
            setattr(self, name, value)
