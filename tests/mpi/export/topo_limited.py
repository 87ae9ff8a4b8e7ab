#!/usr/bin/env python3
"""A process that may use one processor only, as in a cgroup, is told no other.

  topo_limited.py NPUMESH
"""

import json
import os
import subprocess
import sys
import tempfile


def main():
    allowed = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {allowed})
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/numa.json"
        subprocess.run(
            [sys.argv[1], "topo", "--plan", "a:2", "--write", f"numa_config={file}"],
            check=True,
            timeout=1200,
        )
        with open(file, encoding="utf-8") as text:
            node = json.load(text)["npumesh_topology"][0]
    seen = [rank["cpus"] for rank in node["ranks"]]
    if seen != [str(allowed)] * 2 or node["numa_nodes"][0]["cores"] != 1:
        sys.exit(f"topo_limited: expected processor {allowed} only, seen {node}")


if __name__ == "__main__":
    main()
