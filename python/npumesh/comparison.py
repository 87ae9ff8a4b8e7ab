"""Where values part: two arrays, or two folders of .npy files. Needs numpy.

Dump files of the vendor's format, and the operator to blame, are for npumesh.compare_dumps.
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from .bits import to_float32
from .errors import CorruptError, InvalidArgumentError, NotFoundError

__all__ = ["Comparison", "FolderComparison", "compare", "compare_folders"]


class Comparison(NamedTuple):
    """How an array differs from the one that was expected."""

    elements: int
    differing: int
    first: Optional[Tuple[int, ...]]  # position of the first element that differs
    max_abs: float  # largest difference; infinite where only one is finite
    max_rel: float  # largest difference by the expected value
    nan_expected: int
    nan_seen: int
    reason: str  # "" for the same, else one line

    @property
    def same(self) -> bool:
        return not self.reason

    def __bool__(self) -> bool:
        return self.same


def compare(seen: Any, expected: Any, *, rtol: float = 0.0, atol: float = 0.0) -> Comparison:
    """Compares element by element: |seen - expected| <= atol + rtol * |expected|; without
    tolerances they must be equal. NaN is the same as NaN, an infinity as itself. Types of the bits
    of which npumesh knows the meaning (bfloat16, float8) are compared as what they mean.

    Another shape or dtype is a difference, not an error.
    """
    if not (rtol >= 0 and atol >= 0):
        raise InvalidArgumentError(
            f"compare: expected tolerances of 0 or more, seen {rtol}, {atol}"
        )
    left, right = _numbers(seen), _numbers(expected)
    if left.shape != right.shape:
        return _other_type(right, f"shape: expected {right.shape}, seen {left.shape}")
    if _name(seen) != _name(expected):
        return _other_type(right, f"dtype: expected {_name(expected)}, seen {_name(seen)}")
    with np.errstate(all="ignore"):
        return _compare_numbers(left, right, rtol, atol)


def _other_type(expected: np.ndarray, reason: str) -> Comparison:
    endless = float("inf")
    return Comparison(expected.size, expected.size, None, endless, endless, 0, 0, reason)


def _name(array: Any) -> str:
    marked = getattr(array, "npumesh_dtype", None)
    return marked.name if marked is not None else np.asarray(array).dtype.name


def _numbers(array: Any) -> np.ndarray:
    if getattr(array, "npumesh_dtype", None) is not None:
        return to_float32(array)
    array = np.asarray(array)
    if array.dtype.kind == "V" or array.dtype.kind not in "biufc":  # a type of ml_dtypes
        return array.astype(np.float32)
    return array


def _compare_numbers(left: np.ndarray, right: np.ndarray, rtol: float, atol: float) -> Comparison:
    both_nan = np.isnan(left) & np.isnan(right)
    equal = (left == right) | both_nan
    gap = np.where(equal, 0.0, _gap(left, right))
    gap = np.where(np.isnan(gap), np.inf, gap)
    size = np.where(np.isfinite(right), np.abs(right).astype(np.float64), 0.0)
    differs = ~equal & ~((gap <= atol + rtol * size) & np.isfinite(gap))
    count = int(np.count_nonzero(differs))
    relative = np.where(gap == 0, 0.0, gap / size)
    first = None
    if count:
        first = tuple(int(at) for at in np.unravel_index(int(np.argmax(differs)), differs.shape))
    return Comparison(
        elements=int(left.size),
        differing=count,
        first=first,
        max_abs=float(gap.max(initial=0.0)),
        max_rel=float(relative.max(initial=0.0)),
        nan_expected=int(np.isnan(right).sum()),
        nan_seen=int(np.isnan(left).sum()),
        reason="" if first is None else _reason(count, left, right, first),
    )


def _gap(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The difference in double; of integers exact before it is rounded."""
    if left.dtype.kind in "biu":
        high, low = np.maximum(left, right), np.minimum(left, right)
        if left.dtype.kind == "b":
            return high.astype(np.float64) - low.astype(np.float64)
        unsigned = np.dtype(f"u{left.dtype.itemsize}")
        return (high.astype(unsigned) - low.astype(unsigned)).astype(np.float64)  # modulo: exact
    wide = np.complex128 if left.dtype.kind == "c" else np.float64
    return np.abs(left.astype(wide) - right.astype(wide)).astype(np.float64)


def _reason(count: int, left: np.ndarray, right: np.ndarray, first: Tuple[int, ...]) -> str:
    return (
        f"{count} of {left.size} elements differ, first {list(first)}: "
        f"expected {right[first]}, seen {left[first]}"
    )


class FolderComparison(NamedTuple):
    """How the .npy files of a folder differ from those of another."""

    files: Dict[str, Comparison]  # those that both have, in order
    only_seen: List[str]
    only_expected: List[str]

    @property
    def same(self) -> bool:
        return not (self.only_seen or self.only_expected) and all(self.files.values())

    @property
    def first(self) -> Optional[str]:
        """The first file that differs; None: there is no such file."""
        return next((name for name, each in self.files.items() if not each), None)

    def __bool__(self) -> bool:
        return self.same


# The moment at the end of the name of a file of an eager dump.
_MOMENT = re.compile(r"\.\d{6,}(?=\.npy$)")


def compare_folders(seen: Any, expected: Any, *, rtol: float = 0.0,
                    atol: float = 0.0) -> FolderComparison:
    """Compares the .npy files below two folders by their names. Of files of an eager dump
    (docs/dump.md) the moment is no part of the name, and decides the order instead: that of the
    run.

    Errors: NotFoundError for what is no folder or has no .npy files; CorruptError for a file.
    """
    mine, golden = _npy_files(seen), _npy_files(expected)
    files = {
        name: compare(_read(path), _read(golden[name]), rtol=rtol, atol=atol)
        for name, path in mine.items()
        if name in golden
    }
    return FolderComparison(
        files,
        [name for name in mine if name not in golden],
        [name for name in golden if name not in mine],
    )


def _npy_files(folder: Any) -> Dict[str, str]:
    """Paths by names, in the order of their moments and names."""
    root = os.fspath(folder)
    found = []
    for place, _, names in os.walk(root):
        for name in names:
            if name.endswith(".npy"):
                path = os.path.join(place, name)
                relative = os.path.relpath(path, root)
                moment = _MOMENT.search(relative)
                found.append((int(moment.group()[1:]) if moment else 0, _natural(relative), path,
                              _MOMENT.sub("", relative)))
    if not found:
        raise NotFoundError(f"{root}: expected a folder with .npy files")
    files: Dict[str, str] = {}
    for _, _, path, name in sorted(found):
        if name in files:
            raise InvalidArgumentError(
                f"{path}: {files[name]} is the same tensor; name the folder of one run"
            )
        files[name] = path
    return files


def _natural(name: str) -> List[Any]:
    """So that 10.npy comes after 9.npy."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _read(path: str) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise CorruptError(f"{path}: {error}") from None
