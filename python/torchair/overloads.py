"""Overloads of torch's operators that a newer torch no longer has. TorchAir registers converters for them
while it is imported, and would lose the others of the same file."""

import contextlib
import functools

try:
    import torch
except ImportError:  # TorchAir itself says what it needs
    torch = None


class _Missing:
    """An overload that no graph of this torch can have: it takes a converter, and is never called."""

    def __init__(self, name):
        self.name = lambda: name

    def __str__(self):
        return self.name()

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"this torch has no {self}")


@contextlib.contextmanager
def missing_ones():
    """Inside, `torch.ops.aten.full.names` is something also where torch has no such overload."""
    if torch is None:
        yield
        return
    packet = torch._ops.OpOverloadPacket
    of_torch = packet.__getattr__

    @functools.wraps(of_torch)
    def overload(self, key):
        try:
            return of_torch(self, key)
        except AttributeError:
            if key.startswith("_") or self._qualified_op_name.partition("::")[0] != "aten":
                raise
            return _Missing(f"{self._qualified_op_name}.{key}")

    packet.__getattr__ = overload
    try:
        yield
    finally:
        packet.__getattr__ = of_torch
