"""A door to TorchAir: `import torchair` finds the user's checkout, which stays as it is, and gives it
the native modules that it lacks (docs/python.md).

The checkout is the one that NPUMESH_TORCHAIR names, else the next `torchair` in sys.path. This module
ends by putting the real package in its own place.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import warnings

import npumesh

_HERE = os.path.dirname(os.path.abspath(__file__))
_MARK = os.path.join("core", "_backend.py")  # of TorchAir's Python

# Modules that TorchAir builds from C++, and what stands for them.
_NATIVE = {
    "torchair.core._torchair": None,  # _torchair.abi3.so
    "torchair.core._npu_graph_executor": os.path.join(_HERE, "npu_graph_executor.py"),
    "torchair.core._npu_utils": os.path.join(_HERE, "npu_utils.py"),
}


def _folders():
    """Where the package may be, and who says so."""
    named = os.environ.get("NPUMESH_TORCHAIR")
    if named:
        for below in ("", "torchair", os.path.join("python", "torchair")):
            yield os.path.join(os.path.abspath(named), below)
        return
    for entry in sys.path:
        folder = os.path.join(os.path.abspath(entry or os.curdir), "torchair")
        if folder != _HERE:
            yield folder


def _find():
    for folder in _folders():
        if os.path.isfile(os.path.join(folder, _MARK)):
            return os.path.normpath(folder)
    named = os.environ.get("NPUMESH_TORCHAIR")
    seen = f"{named} has no {_MARK}" if named else "there is none in sys.path"
    raise ModuleNotFoundError(
        f"TorchAir is not part of npumesh, and {seen}; expected a checkout of Ascend/torchair: "
        "npumesh python --torchair DIR, or NPUMESH_TORCHAIR=DIR", name="torchair")


def _library():
    """_torchair.abi3.so, near libnpumesh.so."""
    beside = os.path.dirname(os.path.realpath(npumesh.library_path()))
    path = os.path.join(beside, "npumesh", "_torchair.abi3.so")
    if os.path.isfile(path):
        return path
    raise ModuleNotFoundError(f"{path} is missing; it is built and installed with libnpumesh.so",
                              name="torchair.core._torchair")


class _NativeModules(importlib.abc.MetaPathFinder):
    """Finds the native modules. A checkout that was built for CANN has its own, which this
    overrules."""

    def find_spec(self, name, path=None, target=None):
        if name not in _NATIVE:
            return None
        place = _NATIVE[name]
        if place is not None:
            return importlib.util.spec_from_file_location(name, place)
        place = _library()
        loader = importlib.machinery.ExtensionFileLoader(name, place)
        return importlib.util.spec_from_file_location(name, place, loader=loader)


def _beside(name):
    """The module of a file beside this one."""
    spec = importlib.util.spec_from_file_location("npumesh_" + name, os.path.join(_HERE, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _install(name):
    """What a file beside this one changes in TorchAir. A warning where this TorchAir is another one
    than the file knows."""
    try:
        _beside(name).install()
    except (ImportError, AttributeError) as error:
        place = os.path.join(_HERE, name + ".py")
        warnings.warn(f"npumesh leaves this TorchAir without {place}: {error}", stacklevel=2)


def _enter():
    folder = _find()
    if not any(isinstance(each, _NativeModules) for each in sys.meta_path):
        sys.meta_path.insert(0, _NativeModules())
    spec = importlib.util.spec_from_file_location(
        "torchair", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder])
    real = importlib.util.module_from_spec(spec)
    sys.modules["torchair"] = real
    try:
        with _beside("overloads").missing_ones():
            spec.loader.exec_module(real)
        for name in ("node_origin", "assignments", "attention", "open_shapes"):
            _install(name)
    except BaseException:
        sys.modules.pop("torchair", None)
        raise


_enter()
