"""The vendor's own wheel of torch_npu: where it is, and how it takes the place of this package.

The wheel computes through libascendcl, libopapi and libhccl, which it finds in LD_LIBRARY_PATH
(set_env.sh, `npumesh python`). Its TorchAir brings native modules that are built upon GE; the ones
of npumesh stand for them.
"""

from __future__ import annotations

import importlib.util
import os
import sys

from npumesh import torchair_modules

_HERE = os.path.dirname(os.path.abspath(__file__))
_CHOICE = "NPUMESH_TORCH_NPU"
_LIBRARY = os.path.join("lib", "libtorch_npu.so")  # what no other package of that name has


def _installed() -> str | None:
    for entry in sys.path:
        folder = os.path.join(os.path.abspath(entry or os.curdir), "torch_npu")
        if folder != _HERE and os.path.isfile(os.path.join(folder, _LIBRARY)):
            return folder
    return None


def find() -> str | None:
    """The folder of the wheel's package that this process uses; None: npumesh's own package."""
    choice = os.environ.get(_CHOICE, "")
    if choice not in ("", "own", "wheel"):
        raise ImportError(f"{_CHOICE} is {choice!r}, expected own or wheel", name="torch_npu")
    if choice == "own":
        return None
    folder = _installed()
    if folder is None and choice == "wheel":
        raise ModuleNotFoundError(
            f"{_CHOICE} is wheel, and no wheel of torch_npu is installed for {sys.executable} "
            "(pip install torch_npu)", name="torch_npu")
    return folder


def enter(folder: str) -> None:
    """Puts the wheel's package into sys.modules in the place of this one."""
    for package in ("torchair.core", "torch_npu.dynamo.torchair.core"):
        torchair_modules.install(package)
    for name in [each for each in sys.modules if each.partition(".")[0] == "torch_npu"]:
        del sys.modules[name]
    spec = importlib.util.spec_from_file_location(
        "torch_npu", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder])
    real = importlib.util.module_from_spec(spec)
    sys.modules["torch_npu"] = real
    try:
        spec.loader.exec_module(real)
    except BaseException:
        sys.modules.pop("torch_npu", None)
        raise
