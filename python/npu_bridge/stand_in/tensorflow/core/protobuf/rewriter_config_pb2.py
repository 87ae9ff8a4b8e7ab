"""RewriterConfig: what a session asks of its optimizers."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

# Fields of an option's value, by the types that Python has for them.
_FIELDS = {"b": (bool,), "i": (int,), "f": (int, float), "s": (str, bytes)}


class AttrValue:
    """One value: `b`, `i`, `f` or `s`. The field that was set last counts."""

    def __init__(self) -> None:
        object.__setattr__(self, "_set", None)

    def __setattr__(self, field: str, value: Any) -> None:
        if field not in _FIELDS:
            raise AttributeError(f"AttrValue has no field {field}, but {', '.join(_FIELDS)}")
        wrong_bool = isinstance(value, bool) and field != "b"
        if wrong_bool or not isinstance(value, _FIELDS[field]):
            raise TypeError(f"field {field}: seen {value!r}")
        object.__setattr__(self, "_set", (field, value))

    def __getattr__(self, field: str) -> Any:
        if field not in _FIELDS:
            raise AttributeError(field)
        name, value = self._set or (None, None)
        if name == field:
            return value
        return _FIELDS[field][0]()

    def value(self) -> Any:
        """None when no field was set; bytes as text."""
        value = None if self._set is None else self._set[1]
        return value.decode() if isinstance(value, bytes) else value


class _Parameters(Dict[str, AttrValue]):
    """A value is made where it is named first, as in protobuf."""

    def __missing__(self, name: str) -> AttrValue:
        self[name] = AttrValue()
        return self[name]


class _CustomOptimizer:
    def __init__(self, name: str = "") -> None:
        self.name = name
        self.parameter_map = _Parameters()


class _Optimizers(List[_CustomOptimizer]):
    def add(self, name: str = "") -> _CustomOptimizer:
        self.append(_CustomOptimizer(name))
        return self[-1]


class RewriterConfig:
    DEFAULT, ON, OFF, AGGRESSIVE, NO_MEM_OPT = 0, 1, 2, 3, 1
    CustomGraphOptimizer = _CustomOptimizer

    def __init__(self) -> None:
        self.custom_optimizers = _Optimizers()
        self.remapping: Optional[int] = self.DEFAULT
        self.memory_optimization: Optional[int] = self.DEFAULT
