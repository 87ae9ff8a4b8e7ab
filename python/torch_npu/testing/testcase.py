"""TestCase of torch_npu.testing, and run_tests."""

from __future__ import annotations

import unittest
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

# What is added to the greater of two values before a difference is divided by it.
_LEAST = {np.dtype(np.float16): 6e-8}
_LEAST_OF_OTHERS = 1e-9


def run_tests() -> None:
    """Runs the tests of the script."""
    unittest.main()


class TestCase(unittest.TestCase):
    """Equality knows tensors; assertRtolEqual is the vendor's."""

    precision = 1e-5

    def assertEqual(self, first: Any, second: Any, msg: Any = None, *, prec: Any = None,  # noqa: N802
                    atol: Any = None, rtol: Any = None, **_: Any) -> None:
        tensors = [each for each in (first, second) if isinstance(each, torch.Tensor)]
        if not tensors:
            super().assertEqual(first, second, msg)
            return
        bound = self.precision if prec is None else prec
        torch.testing.assert_close(
            torch.as_tensor(first), torch.as_tensor(second), atol=bound if atol is None else atol,
            rtol=0.0 if rtol is None else rtol, equal_nan=True,
            msg=None if msg is None else str(msg))

    def assertRtolEqual(self, x: Any, y: Any, prec: float = 1e-4, prec16: float = 1e-3,  # noqa: N802
                        auto_trans_dtype: bool = False, message: Any = None) -> None:
        """Almost all elements of `x` and `y` differ by no more than the bound, absolutely or of the
        greater one: `prec`, or `prec16` for types of 16 bits. A share of elements as large as the
        bound may differ by more. Lists are compared element by element."""
        if isinstance(x, Sequence) and isinstance(y, Sequence):
            self.assertEqual(len(x), len(y), message)
            for one, other in zip(x, y):
                self.assertRtolEqual(one, other, prec, prec16, auto_trans_dtype, message)
            return
        x, y = torch.as_tensor(x), torch.as_tensor(y)
        if auto_trans_dtype:
            x = x.to(y.dtype)
        self.assertEqual(tuple(x.shape), tuple(y.shape), message or "the shapes differ")
        self.assertEqual(x.dtype, y.dtype, message or "the types differ")
        if x.dtype == torch.bfloat16:
            torch.testing.assert_close(x, y, atol=prec16, rtol=prec16)
            return
        one, other = x.detach().cpu().numpy(), y.detach().cpu().numpy()
        if one.dtype == np.bool_:
            self.assertTrue(np.array_equal(one, other), message or "the values differ")
            return
        self._few_differ(one, other, prec16 if one.dtype == np.float16 else prec, message)

    def _few_differ(self, x: Any, y: Any, bound: float, message: Any) -> None:
        nan = np.isnan(x)
        self.assertTrue(np.array_equal(nan, np.isnan(y)), message or "NaN stand in other places")
        difference = np.where(nan, 0, np.abs(y - x))
        greater = np.maximum(np.abs(x), np.abs(y)) + _LEAST.get(x.dtype, _LEAST_OF_OTHERS)
        too_far = difference > bound
        too_far_of_it = difference / greater > bound
        if too_far.any() and too_far_of_it.any() and (
                min(too_far.sum(), too_far_of_it.sum()) > x.size * bound):
            first = tuple(int(at) for at in np.argwhere(too_far & too_far_of_it | too_far)[0])
            self.fail(message or f"{int(too_far.sum())} of {x.size} elements differ by more than {bound}, "
                                 f"first {list(first)}: {x[first]} and {y[first]}")
