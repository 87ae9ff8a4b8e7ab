"""Stands in for TensorFlow 1.x where none is installed: what starts a system of npumesh needs of
it.

ConfigProto and Session, no tensors. When a TensorFlow is installed, this module makes room for it,
so its folder may stand anywhere in PYTHONPATH.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import PathFinder
from os.path import abspath, dirname, samefile
from typing import Any, List


def _other_places() -> List[str]:
    """sys.path without the folder that this module lies in."""
    here = dirname(dirname(abspath(__file__)))
    places = []
    for place in sys.path:
        try:
            same = samefile(place or ".", here)
        except OSError:
            continue
        if not same:
            places.append(place)
    return places


def _installed() -> Any:
    """The TensorFlow that is installed, loaded in place of this module; None: no TensorFlow is installed."""
    spec = PathFinder.find_spec(__name__, _other_places())
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    sys.modules[__name__] = module
    spec.loader.exec_module(module)
    return module


if _installed() is None:
    from .core.protobuf.config_pb2 import ConfigProto
    from .session import Session
    from . import compat

    npumesh_stand_in = True
    __version__ = "1.15.0"
    __all__ = ["ConfigProto", "Session", "compat"]
