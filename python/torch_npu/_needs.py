"""What the package needs, in one line where it is not there."""

from __future__ import annotations

OLDEST = (2, 6)
_WAYS = ("python3-torch of Debian 13 has it, and so has `pip install torch`; npumesh itself (import "
         "npumesh) needs no torch")

try:
    import torch
except Exception as error:  # a broken installation may raise anything
    raise ImportError(f"torch_npu of npumesh needs torch 2.6 or later, and `import torch` fails: "
                      f"{type(error).__name__}: {error}. {_WAYS}") from None


def _numbers(version: str) -> tuple:
    """(2, 6) of "2.6.0+cpu"; of what is no version, nothing."""
    parts = version.split(".")[:2]
    return tuple(map(int, parts)) if len(parts) == 2 and all(map(str.isdigit, parts)) else ()


_version = str(getattr(torch, "__version__", "none"))
if _numbers(_version) < OLDEST:
    raise ImportError(f"torch_npu of npumesh needs torch 2.6 or later, found {_version}. {_WAYS}")
