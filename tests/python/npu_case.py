"""What the tests of torch_npu share: torch, or a word why they are skipped."""

import os
import sys
import unittest

import case

try:
    import torch
except ImportError:
    torch = None

if torch is not None and tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
    OLD = torch.__version__
    torch = None
else:
    OLD = ""

if torch is None:
    case.run_in_venv()

os.environ.setdefault("NPUMESH_HBM_SIZE", "256M")

if torch is not None:
    import torch_npu  # noqa: F401


def main():
    """Runs the tests of the script. Ends with 77, and says why, where torch is missing."""
    if torch is None:
        seen = f"torch {OLD} is too old" if OLD else "torch is not installed"
        print(f"SKIPPED: {seen} (launch/install_deps --torch, or python3-torch of Debian 13)")
        sys.exit(case.SKIPPED)
    torch.manual_seed(20261123)
    unittest.main()
