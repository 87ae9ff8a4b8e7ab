"""The modules that TorchAir builds from C++, and what stands for them: `_torchair`, the native module
over libnpumesh, and the small ones of the folder torchair, in Python.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any, Optional

from ._library import library_path

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "torchair")
_IN_PYTHON = {
    "_npu_graph_executor": os.path.join(_FOLDER, "npu_graph_executor.py"),
    "_npu_utils": os.path.join(_FOLDER, "npu_utils.py"),
}


def _library() -> str:
    """_torchair.abi3.so, near libnpumesh.so."""
    beside = os.path.dirname(os.path.realpath(library_path()))
    path = os.path.join(beside, "npumesh", "_torchair.abi3.so")
    if os.path.isfile(path):
        return path
    raise ModuleNotFoundError(f"{path} is missing; it is built and installed with libnpumesh.so",
                              name="torchair.core._torchair")


class _NativeModules(importlib.abc.MetaPathFinder):
    """Finds them below a package. A TorchAir that was built for CANN has its own, which this
    overrules."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, path: Any = None,
                  target: Any = None) -> Optional[importlib.machinery.ModuleSpec]:
        """Where the module `name` is; None: it is another one."""
        package, _, module = name.rpartition(".")
        if package != self.package:
            return None
        if module in _IN_PYTHON:
            return importlib.util.spec_from_file_location(name, _IN_PYTHON[module])
        if module != "_torchair":
            return None
        place = _library()
        loader = importlib.machinery.ExtensionFileLoader(name, place)
        return importlib.util.spec_from_file_location(name, place, loader=loader)


def install(package: str) -> None:
    """From now on imports of `package`._torchair and its relatives, as in "torchair.core", give these
    modules."""
    known = any(isinstance(each, _NativeModules) and each.package == package
                for each in sys.meta_path)
    if not known:
        sys.meta_path.insert(0, _NativeModules(package))
