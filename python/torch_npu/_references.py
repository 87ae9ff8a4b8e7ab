"""Operators of others, computed by functions of Python."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

import torch

_libraries: Dict[str, Any] = {}  # by namespace; they end with the process


def register_reference(name: str, function: Callable, schema: Optional[str] = None) -> None:
    """From now on `function` computes an operator that npumesh does not have: eager, in captured graphs,
    and for shapes while a function is compiled. It takes and gives what the schema of the operator says.

    `name`: "namespace::operator", as "_C_ascend::npu_scale" of torch.ops._C_ascend.npu_scale.
    `schema`: "(Tensor x, float by) -> Tensor", for an operator that no one has defined; None: what the
    annotations of `function` say. Errors: ValueError for another name, or a schema that differs from the
    operator's; RuntimeError for an operator that has a kernel already.
    """
    namespace, separator, operator = name.partition("::")
    if not separator or not namespace or not operator:
        raise ValueError(f"torch_npu.register_reference: expected namespace::operator, seen {name!r}")
    if torch._C._dispatch_has_kernel_for_dispatch_key(name, "CPU") if _exists(name) else False:
        raise RuntimeError(f"torch_npu.register_reference: {name} has a kernel already")
    library = _libraries.setdefault(namespace, torch.library.Library(namespace, "FRAGMENT"))
    if not _exists(name):
        library.define(operator + (schema or torch.library.infer_schema(function, mutates_args=())))
    elif schema is not None:
        _check_schema(name, operator, schema)
    library.impl(operator, function, "CPU")
    torch.library.register_fake(name, function, lib=library)


def _exists(name: str) -> bool:
    return torch._C._dispatch_has_kernel(name) or _schema_of(name) is not None


def _schema_of(name: str) -> Any:
    found = torch._C._jit_get_schemas_for_operator(name)
    return found[0] if found else None


def _check_schema(name: str, operator: str, schema: str) -> None:
    given = torch._C.parse_schema(name.partition("::")[0] + "::" + operator + schema)
    known = _schema_of(name)
    if str(given) != str(known):
        raise ValueError(f"torch_npu.register_reference: {name} has the schema {known}, seen {given}")
