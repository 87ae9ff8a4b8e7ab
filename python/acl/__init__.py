"""acl: the vendor's interface for Python (pyACL) over libascendcl.so of npumesh.

`acl.rt`, `acl.mdl`, `acl.op`, `acl.prof` and `acl.util` take and return what pyACL documents:
handles and addresses are ints, what C writes is returned, and an error code comes last. docs/acl.md
lists the functions and what of them npumesh has.
"""

from __future__ import annotations

import sys
import types
from typing import Any, Callable, Dict

from . import util  # noqa: F401
from ._binding import bind
from ._by_hand import BY_HAND
from ._constants import CONSTANTS
from ._functions import FUNCTIONS
from ._library import libraries as _libraries

# Modules of pyACL that npumesh has nothing for, and what to do instead.
_REFUSED = {
    "media": "npumesh simulates no media processor; decode and resize images on the host",
    "himpi": "npumesh simulates no media processor; decode and resize images on the host",
    "fv": "npumesh simulates no feature retrieval; compute distances on the host",
    "blas": "npumesh has no acl.blas; run a model with a MatMul, or use numpy",
}


def _unknown(module: str, name: str) -> AttributeError:
    return AttributeError(f"{module} has no {name}; docs/acl.md lists what pyACL has")


def _module(name: str, members: Dict[str, Any]) -> types.ModuleType:
    made = types.ModuleType(f"acl.{name}", f"acl.{name}: functions of pyACL (docs/acl.md).")
    made.__dict__.update(members)

    def missing(attribute: str) -> Any:
        raise _unknown(f"acl.{name}", attribute)

    made.__dict__["__getattr__"] = missing
    return made


def _refused_module(name: str, why: str) -> types.ModuleType:
    made = types.ModuleType(f"acl.{name}", f"acl.{name}: {why}.")
    made.__dict__.update(BY_HAND.get(name, {}))

    def refused(attribute: str) -> Callable[..., Any]:
        if attribute.startswith("__"):
            raise AttributeError(attribute)

        def refuse(*_: Any, **__: Any) -> Any:
            raise NotImplementedError(f"acl.{name}.{attribute}: {why}")

        return refuse

    made.__dict__["__getattr__"] = refused
    return made


def _fill() -> None:
    here = sys.modules[__name__]
    for name, text in FUNCTIONS.items():
        members = {**bind(name, text), **BY_HAND.get(name, {})}
        if name:
            setattr(here, name, _module(name, members))
            sys.modules[f"acl.{name}"] = getattr(here, name)
        else:
            here.__dict__.update(members)
    for name, why in _REFUSED.items():
        setattr(here, name, _refused_module(name, why))
        sys.modules[f"acl.{name}"] = getattr(here, name)
    here.__dict__.update(CONSTANTS)


def __getattr__(name: str) -> Any:
    raise _unknown("acl", name)


_libraries()
_fill()
