"""A door to TorchAir: `import torchair` finds the user's checkout, which stays as it is, and gives it
the native modules that it lacks (docs/python.md).

The checkout is the one that NPUMESH_TORCHAIR names, else the next `torchair` in sys.path. This module
ends by putting the real package in its own place.
"""

import importlib.util
import os
import sys
import warnings

from npumesh import torchair_modules

_HERE = os.path.dirname(os.path.abspath(__file__))
_MARK = os.path.join("core", "_backend.py")  # of TorchAir's Python


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
    seen = f"{named} has no {_MARK}" if named else "sys.path has no other one"
    raise ModuleNotFoundError(
        f"TorchAir is not part of npumesh, and {seen}; expected a checkout of Ascend/torchair: "
        "npumesh python --torchair DIR, or NPUMESH_TORCHAIR=DIR", name="torchair")


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
    torchair_modules.install("torchair.core")
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
