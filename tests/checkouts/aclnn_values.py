"""One call of a trace (call_trace.py) beside its reference (aclnn_references.py)."""

import torch

import aclnn_references
import call_trace

# By aclDataType: what rounding leaves, relative and absolute.
TOLERANCES = {0: (1e-4, 1e-5), 1: (5e-3, 1e-3), 27: (4e-2, 1e-2), 11: (1e-9, 1e-9), 16: (1e-4, 1e-5)}


def same(given, expected, tolerance):
    """Why a written tensor is not what was expected; empty: it is."""
    if given.numel() != expected.numel():
        return f"{list(given.shape)} written, {list(expected.shape)} expected"
    given, expected = given.reshape(-1), expected.reshape(-1)
    if given.dtype == torch.bool or expected.dtype == torch.bool:
        given, expected = given.bool(), expected.bool()
    elif not given.is_floating_point() and not given.is_complex():
        expected = expected.trunc() if expected.is_floating_point() else expected
        expected = expected.to(given.dtype)
    else:
        expected = expected.detach().to(given.dtype)
    relative, absolute = tolerance
    close = torch.isclose(given, expected, relative, absolute, equal_nan=True)
    if close.all():
        return ""
    at = int((~close).nonzero()[0])
    return f"element {at} is {given[at].item()!r}, expected {expected[at].item()!r}"


def pairs(call, expected):
    """(name, written, expected) of what the reference says something about."""
    if isinstance(expected, dict):
        for name, wanted in expected.items():
            if call.after.get(name) is None or wanted is None:
                continue
            if isinstance(wanted, list):
                yield from ((f"{name}[{i}]", x, y) for i, (x, y) in enumerate(zip(call.after[name], wanted, strict=True)))
            else:
                yield name, call.after[name], wanted
        return
    written = {name: x for name, x in call.after.items() if x is not None}
    if isinstance(expected, list):
        name = "out" if "out" in written else next(name for name, x in written.items() if isinstance(x, list))
        yield from ((f"{name}[{i}]", x, y) for i, (x, y) in enumerate(zip(written[name], expected, strict=True)))
        return
    tensors = {name: x for name, x in written.items() if not isinstance(x, list)}
    name = list(tensors)[-1] if len(tensors) > 1 else next(iter(tensors))
    yield name, tensors[name], expected


def compare(line):
    """(function, "same", "") or "differs" or "not compared", with the reason."""
    name = call_trace.name_of(line)
    reference = aclnn_references.find_reference(name)
    if reference is None:
        return name, "not compared", "no reference"
    try:
        call = call_trace.Call(line)
    except call_trace.Unread as error:
        return name, "not compared", str(error)
    try:
        expected = reference(call.p)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        return name, "not compared", f"the reference says {' '.join(str(error).split())[:120]}"
    if expected is None:
        return name, "not compared", "a form without reference"
    try:
        found = list(pairs(call, expected))
    except (KeyError, ValueError, StopIteration) as error:
        return name, "not compared", f"what is written does not fit the reference: {error}"
    count = len(found)
    for written, given, wanted in found:
        if name in aclnn_references.SHORTER:
            given = given.reshape(-1)[:wanted.numel()]
        reason = same(given, wanted, TOLERANCES.get(call.types[written.split("[")[0]], (0, 0)))
        if reason:
            return name, "differs", f"{written}: {reason}"
    return (name, "same", "") if count else (name, "not compared", "nothing written")
