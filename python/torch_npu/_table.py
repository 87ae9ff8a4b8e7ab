"""Doors of torch.ops.npu: one row for each operator says what a call means to the engine.

A row has a schema of torch, the engine's operator, and a meta rule. An argument goes to the
operator's input or attribute of the same name unless `names` has another one; an argument that
neither has is dropped when `names` says None. What else is to be done stands in `adapt`.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import torch

import npumesh

from . import _engine, _types
from ._graph import Constant
from ._say import once


class Arguments(Dict[str, Any]):
    """The arguments of a call by name, with defaults; also as attributes. An `adapt` may change
    and add some, and says in `counts` how many tensors a dynamic output has."""

    counts: Dict[str, int]

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.__dict__["counts"] = {}

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


Meta = Callable[[Arguments], Any]


class ArgumentError(ValueError, RuntimeError):
    """What a call's arguments lack. The vendor's calls raise RuntimeError."""


@dataclasses.dataclass(frozen=True)
class Row:
    schema: str
    kind: Union[str, Callable[[Arguments], str]]  # the engine's operator
    meta: Meta  # the results as tensors of right types without values
    names: Mapping[str, Optional[str]] = dataclasses.field(default_factory=dict)
    # What the call returns: outputs of the operator, "=x" is the input x, changed in place; a
    # function gets (arguments, outputs). None: all outputs in the operator's order.
    results: Union[None, Sequence[str], Callable[[Arguments, Dict[str, Any]], Any]] = None
    adapt: Optional[Callable[[Arguments], None]] = None
    # Lists of integers that the graph holds as constants, because shapes of results depend on them.
    constants: Sequence[str] = ()
    copied: Sequence[str] = ()  # arguments that the operator changes and the call must not
    kinds: Sequence[str] = ()  # all operators, where there is more than one
    name: str = ""  # "npu_rms_norm", "npu_grouped_matmul.List"

    @property
    def operators(self) -> Tuple[str, ...]:
        return tuple(self.kinds) or (self.kind,)


ROWS: Dict[str, Row] = {}

# Schemas of operators that are made of torch's, and what they do. They have the gradients of these.
COMPOSED: Dict[str, Tuple[str, Callable[..., Any]]] = {}

# Functions of torch_npu that are called in other ways than the operators that they call.
FUNCTIONS: Dict[str, Callable[..., Any]] = {}


def row(schema: str, kind: Any, meta: Meta, **more: Any) -> Row:
    """Puts a row into the table."""
    name = schema[:schema.index("(")]
    if name in ROWS:
        raise ValueError(f"{name} is in the table twice")
    ROWS[name] = Row(schema, kind, meta, name=name, **more)
    return ROWS[name]


def composed(schema: str, function: Callable[..., Any]) -> None:
    """Puts an operator that is made of torch's into the table."""
    COMPOSED[schema[:schema.index("(")]] = (schema, function)


# ---- what a call does ----


class Door:
    """The kernel and the meta function of a row."""

    def __init__(self, of: Row) -> None:
        self.row = of
        self.schema = torch._C.parse_schema("npu::" + of.schema)
        self._fields = [(each.name, each.default_value) for each in self.schema.arguments]
        self._single = len(self.schema.returns) == 1

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Arguments:
        values = {name: default for name, default in self._fields}
        for (name, _), value in zip(self._fields, args):
            values[name] = value
        values.update(kwargs)
        return Arguments(values)

    def meta(self, *args: Any, **kwargs: Any) -> Any:
        return self.row.meta(self.bind(args, kwargs))

    def run(self, *args: Any, **kwargs: Any) -> Any:
        of = self.row
        arguments = self.bind(args, kwargs)
        for name in of.copied:
            value = arguments[name]
            arguments[name] = ([each.clone() for each in value] if isinstance(value, (list, tuple))
                               else value.clone())
        try:
            if of.adapt is not None:
                of.adapt(arguments)
            kind = of.kind if isinstance(of.kind, str) else of.kind(arguments)
            ports, attrs = self._placed(_engine.operator(kind), arguments)
            outputs = _engine.run(kind, ports, attrs, arguments.counts)
            return self._returned(kind, ports, outputs, arguments)
        except npumesh.NpumeshError as error:
            raise type(error)(f"torch.ops.npu.{of.name}: {error}") from None
        except ValueError as error:
            raise ArgumentError(f"torch.ops.npu.{of.name}: {error}") from None

    def _placed(self, of: npumesh.Operator, arguments: Arguments) -> Tuple[Dict, Dict]:
        ports = {field.name: None for field in of.inputs}
        dynamic = {field.name for field in of.inputs if field.kind == "dynamic"}
        known = {field.name for field in of.attrs}
        attrs: Dict[str, Any] = {}
        for name, value in arguments.items():
            target = self.row.names.get(name, name)
            if target is None or value is None:
                continue
            if name in self.row.constants:
                ports[target] = value if isinstance(value, Constant) else Constant.of(value)
            elif target in ports:
                ports[target] = _tensors(value) if target in dynamic else _tensor(value)
            elif target in known:
                attrs[target] = list(value) if isinstance(value, (list, tuple)) else value
            elif not self._is_default(name, value):
                raise npumesh.UnsupportedError(
                    f"{name}: expected the default, seen {value!r}; {of.type} has no such input or "
                    "attribute here")
        return ports, attrs

    def _is_default(self, name: str, value: Any) -> bool:
        for field, default in self._fields:
            if field == name:
                return not isinstance(value, torch.Tensor) and value == default
        return False

    def _returned(self, kind: str, ports: Mapping[str, Any], outputs: Dict[str, Any],
                  arguments: Arguments) -> Any:
        wanted = self.row.results
        if callable(wanted):
            return wanted(arguments, outputs)
        if wanted is None:
            wanted = self._all(kind, arguments)
        values = [_plain(ports[name[1:]]) if name.startswith("=") else outputs[name]
                  for name in wanted]
        if not self.schema.returns:
            return None
        if self._single and str(self.schema.returns[0].type) == "List[Tensor]":
            return values[0] if values and isinstance(values[0], list) else values
        return values[0] if self._single else tuple(values)

    @staticmethod
    def _all(kind: str, arguments: Arguments) -> List[str]:
        of = _engine.operator(kind)
        changed = {field.name for field in of.inputs}
        names = []
        for field in of.outputs:
            if field.name in changed:
                names.append("=" + field.name)
            elif field.kind == "dynamic":
                names += [f"{field.name}{at}" for at in range(arguments.counts[field.name])]
            else:
                names.append(field.name)
        return names


def _tensor(value: Any) -> Any:
    """An input of the engine; lists of integers are the vendor's way to give small vectors."""
    if isinstance(value, (list, tuple)) and not isinstance(value, _engine.Bits):
        return torch.tensor([int(each) for each in value], dtype=torch.int64)
    return value


def _tensors(value: Any) -> List[Any]:
    one = isinstance(value, (torch.Tensor, _engine.Bits))
    return [value] if one else list(value)


def _plain(value: Any) -> Any:
    if isinstance(value, _engine.Bits):
        return value.tensor
    return [_plain(each) for each in value] if isinstance(value, list) else value


# ---- what rows are made of ----


def like(tensor: torch.Tensor, dtype: Optional[torch.dtype] = None) -> torch.Tensor:
    """A result of the shape of a tensor, without gaps."""
    return tensor.new_empty(tensor.shape, dtype=dtype or tensor.dtype)


def made(tensor: torch.Tensor, shape: Sequence[Any],
         dtype: Optional[torch.dtype] = None) -> torch.Tensor:
    """A result of that shape where a tensor is."""
    return tensor.new_empty(tuple(shape), dtype=dtype or tensor.dtype)


def bits(tensor: Optional[torch.Tensor], of: Any) -> Any:
    """A tensor as elements of a type that a call names by number; None: as it is."""
    name = _types.named(of)
    if tensor is None or name is None or name == _types.engine_name(tensor.dtype):
        return tensor
    packed = 8 * tensor.element_size() // npumesh.dtype(name).bits
    if tensor.dim() == 0 or packed == 1:
        return _engine.Bits(tensor, name, tuple(tensor.shape))
    if not tensor.is_contiguous() and tensor.dim() > 1 and tensor.stride(-2) == 1:
        tensor = _repacked(tensor, packed)
    return _engine.Bits(tensor, name, (*tensor.shape[:-1], tensor.shape[-1] * packed))


def typed(a: Arguments, *names: str) -> None:
    """Arguments whose elements are of the type that `<name>_dtype` says, which is taken away."""
    for name in names:
        a[name] = bits(a[name], a.pop(f"{name}_dtype"))


def int4(tensor: Optional[torch.Tensor]) -> Any:
    """int32 holds eight int4; other tensors are what they are."""
    if tensor is None or tensor.dtype != torch.int32:
        return tensor
    return bits(tensor, _types.int4)


def _repacked(tensor: torch.Tensor, packed: int) -> torch.Tensor:
    """Of a transposed view, whose elements are packed along the last axis but one: a tensor of the
    same meaning, packed along the last axis."""
    straight = tensor.transpose(-1, -2).contiguous()
    width = 8 * tensor.element_size() // packed
    shifts = torch.arange(packed, dtype=tensor.dtype) * width
    mask = (1 << width) - 1
    single = ((straight.unsqueeze(-1) >> shifts) & mask).flatten(-2).transpose(-1, -2)
    grouped = single.unflatten(-1, (-1, packed)).to(torch.int64)
    packed_back = (grouped << shifts.to(torch.int64)).sum(-1)
    if tensor.dtype == torch.int32:  # the top bit is the sign
        packed_back = torch.where(packed_back >= 1 << 31, packed_back - (1 << 32), packed_back)
    return packed_back.to(tensor.dtype)


def group_size(sizes: Optional[Sequence[int]]) -> int:
    """Three group sizes as the engine has them, in one number. Errors: ValueError."""
    if not sizes:
        return 0
    if len(sizes) != 3 or any(not 0 <= each < 1 << 16 for each in sizes):
        raise ValueError(f"group_sizes: expected three numbers from 0 to 65535, seen {list(sizes)}")
    return (sizes[0] << 32) + (sizes[1] << 16) + sizes[2]


# ---- registration ----

DOORS: Dict[str, Door] = {}
_libraries: List[Any] = []


def library() -> Any:
    """The definitions of this module; they end with the process."""
    if not _libraries:
        _libraries.append(torch.library.Library("npu", "FRAGMENT"))
    return _libraries[0]


def register() -> None:
    """Makes torch.ops.npu of the table. What a program has defined already is left as it is."""
    define = library()
    for name, (schema, function) in COMPOSED.items():
        if not _is_defined(name):
            define.define(schema)
            define.impl(name, function, "CompositeImplicitAutograd")
    for name, of in ROWS.items():
        if _is_defined(name):
            continue
        door = Door(of)
        DOORS[name] = door
        define.define(of.schema)
        define.impl(name, door.run, "CPU")
        torch.library.register_fake(f"npu::{name}", door.meta, lib=define)
    for name in ROWS:
        if name.endswith("_") and name[:-1] in ROWS and name in DOORS:
            _functionalise(name)


def _is_defined(name: str) -> bool:
    defined = torch._C._dispatch_has_kernel(f"npu::{name}")
    if defined:
        once(f"torch.ops.npu.{name} was defined before torch_npu; it is left as it is")
    return defined


def _functionalise(name: str) -> None:
    """A compiler sees the operator `name`, which returns the tensor that it changes, as its twin
    without the underscore, and the change after it."""
    twin = getattr(torch.ops.npu, name[:-1]).default
    if len(DOORS[name].schema.returns) != 1:
        return  # torch does that for operators without results

    def functional(changed: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        torch._sync(changed)
        plain = [_plain_of(each) for each in (changed, *args)]
        words = {key: _plain_of(value) for key, value in kwargs.items()}
        keys = torch._C.DispatchKeySet(torch._C.DispatchKey.Functionalize)
        with torch._C._ExcludeDispatchKeyGuard(keys):
            value = twin(*plain, **words)
        torch._functionalize_replace(changed, value)
        torch._functionalize_commit_update(changed)
        torch._sync(changed)
        return changed

    library().impl(name, functional, "Functionalize")


def _plain_of(value: Any) -> Any:
    if not isinstance(value, torch.Tensor) or not torch._is_functional_tensor(value):
        return value
    torch._sync(value)
    return torch._from_functional_tensor(value)
