#!/usr/bin/env python3
"""Checks the scripts of the pages with node: page_scripts.py <source root>. Skipped (77) without node."""

import os
import shutil
import subprocess
import sys

SKIPPED = 77


def main():
    root = sys.argv[1]
    node = shutil.which("node") or shutil.which("nodejs")
    if node is None:
        print("skipped: node is not installed")
        return SKIPPED
    for script in ("launch/page/page.js", "launch/profile/profile.js", "launch/dump/compare.js",
                   "launch/page/drawing.js", "launch/view/graph.js", "launch/record/record.js"):
        subprocess.run([node, "--check", os.path.join(root, script)], check=True)
        print(f"ok {script} is a script")
    test = os.path.join(root, "tests/pages/page_scripts_test.js")
    return subprocess.run([node, test, root], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
