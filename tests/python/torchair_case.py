"""What the tests of TorchAir share: torch and a checkout, or a word why they are skipped."""

import os
import sys
import unittest
import warnings

import case

CHECKOUT = os.environ.get("NPUMESH_TORCHAIR", "")

try:
    import torch
except ImportError:
    torch = None


if torch is None or tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
    case.run_in_venv()


def _missing():
    if torch is None:
        return "torch is not installed (launch/install_deps --torch, or python3-torch of Debian 13)"
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
        return f"torch {torch.__version__} is too old for TorchAir, which needs 2.6"
    if not os.path.isdir(CHECKOUT):
        return f"there is no checkout of TorchAir at \"{CHECKOUT}\" (NPUMESH_TORCHAIR)"
    return ""


MISSING = _missing()

os.environ.setdefault("NPUMESH_HBM_SIZE", "256M")

if not MISSING:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torchair  # noqa: F401


def main():
    """Runs the tests of the script. Ends with 77, and says why, where something is missing."""
    if MISSING:
        print(f"SKIPPED: {MISSING}")
        sys.exit(case.SKIPPED)
    torch.manual_seed(20261123)
    unittest.main()
