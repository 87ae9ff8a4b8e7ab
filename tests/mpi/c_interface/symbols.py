#!/usr/bin/env python3
"""symbols.py LIBRARY HEADER: the library exports the functions of the header, under version
NPUMESH_1, and nothing else. Functions of a library that is loaded must not be found in ours."""
import re
import subprocess
import sys


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    return {line.split()[2] for line in lines if line.split()[1] != "A"}


def declared(header):
    with open(header, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    return {f"{name}@@NPUMESH_1" for name in re.findall(r"\b(npumesh_\w+)\(", text)}


def main():
    seen, expected = exported(sys.argv[1]), declared(sys.argv[2])
    for name in sorted(seen - expected):
        print(f"{name}: exported, but not in the header")
    for name in sorted(expected - seen):
        print(f"{name}: in the header, but not exported")
    print(f"{len(seen & expected)} functions")
    return 0 if seen == expected and seen else 1


sys.exit(main())
