#!/usr/bin/env python3
"""The table of docs/acl.md: which public functions of AscendCL a build has.

    tests/acl_functions.py build/ci             ends with 1, and says where, if the page differs
    tests/acl_functions.py build/ci --update    writes the page's table

Read are runtime/acl/functions.txt, runtime/acl/without_effect.cc, what the build's libraries export, and
the table of pyACL (python/acl/_functions.py).
"""

import argparse
import difflib
import fnmatch
import importlib.util
import os
import re
import subprocess
import sys
from typing import Dict, List, NamedTuple, Set, Tuple

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FUNCTIONS = os.path.join("runtime", "acl", "functions.txt")
NOTES = os.path.join("runtime", "acl", "without_effect.cc")
PAGE = os.path.join("docs", "acl.md")
BEGIN, END = "<!-- functions -->\n", "<!-- end of functions -->\n"


def fail(words: str) -> None:
    print(words, file=sys.stderr)
    sys.exit(1)


class Header(NamedTuple):
    name: str
    about: str
    functions: List[str]


class Known(NamedTuple):
    headers: List[Header]
    reasons: List[Tuple[str, str]]  # pattern, why

    def reason(self, name: str) -> str:
        return next((why for pattern, why in self.reasons if fnmatch.fnmatch(name, pattern)), "")


def read_functions(path: str) -> Known:
    known = Known([], [])
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            words = line.split(None, 2)
            if not words or line.startswith("#"):
                continue
            if words[0] == "!" and len(words) == 3:
                known.reasons.append((words[1], words[2].strip()))
            elif words[0].startswith("acl/") and len(words) > 1:
                known.headers.append(Header(words[0], line.split(None, 1)[1].strip(), []))
            elif len(words) == 1 and known.headers:
                known.headers[-1].functions.append(words[0])
            else:
                fail(f"{path}:{number}: expected a header, a function or a reason, "
                     f"seen {line.strip()!r}")
    return known


def exported(build: str) -> Set[str]:
    """The functions of C whose names begin with acl, of all libraries of the build but that of aclnn, which has a page
    to itself (tests/aclnn_functions.py)."""
    folder = os.path.join(build, "lib64")
    names: Set[str] = set()
    for library in sorted(os.listdir(folder)):
        path = os.path.join(folder, library)
        if library.endswith(".so") and library != "libacl_mdl.so" and not os.path.islink(path):
            listed = subprocess.run(["nm", "--dynamic", "--defined-only", path], check=True,
                                    capture_output=True, text=True).stdout
            names |= set(re.findall(r" [TW] (acl\w+)$", listed, re.M))
    return names


class Notes(NamedTuple):
    """What runtime/acl/without_effect.cc says: functions or patterns of them, each with its reason."""

    idle: Dict[str, str]
    refused: Dict[str, str]


def reason_of(name: str, notes: Dict[str, str]) -> str:
    return next((why for pattern, why in notes.items() if fnmatch.fnmatchcase(name, pattern)), "")


def read_notes(path: str) -> Notes:
    """Both tables of the file; empty ones if there is no file."""
    notes = Notes({}, {})
    if not os.path.exists(path):
        return notes
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"^\s*//[^\n]*", "", file.read(), flags=re.M)
    # Each table is an array; its name says which it is.
    for name, body in re.findall(r"\bk(\w+)(?:\[\])?\s*=?\s*\{(.*?)\n?\};", text, re.S):
        into = notes.refused if "Refused" in name else notes.idle
        for function, why in re.findall(r'\{"(acl\w+\*?)",\s*((?:"[^"]*"\s*)+)\}', body):
            into[function] = "".join(re.findall(r'"([^"]*)"', why))
    return notes


def python_names() -> Dict[str, List[str]]:
    """Names of pyACL by the C function that they call."""
    path = os.path.join(SOURCE, "python", "acl", "_functions.py")
    spec = importlib.util.spec_from_file_location("acl_table", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    names: Dict[str, List[str]] = {}
    for group, text in module.FUNCTIONS.items():
        for name, function in re.findall(r"^(\w+) = (\w+)\(", text, re.M):
            names.setdefault(function, []).append(f"{group}.{name}" if group else name)
    with open(os.path.join(SOURCE, "python", "acl", "_by_hand.py"), encoding="utf-8") as file:
        by_hand = re.findall(r'@_of\("(\w*)"\)\ndef (\w+)\((.*?)(?=\n@_of|\Z)', file.read(), re.S)
    for group, name, body in by_hand:
        for function in re.findall(r'"(acl[a-z]*[A-Z]\w+)"', body)[:1]:
            names.setdefault(function, []).append(f"{group}.{name}" if group else name)
    return names


def state_of(name: str, known: Known, there: Set[str], notes: Notes) -> Tuple[str, str]:
    """How npumesh has the function, and what the page says of it."""
    if name not in there:
        return "absent", f"absent: {known.reason(name)}"
    refused, idle = reason_of(name, notes.refused), reason_of(name, notes.idle)
    if refused:
        return "refused", f"refused: {refused}"
    if idle:
        return "without effect", f"without effect: {idle}"
    return "works", "works"


def table(known: Known, there: Set[str], notes: Notes, python: Dict[str, List[str]]) -> str:
    rows: List[str] = []
    counts = {"works": 0, "without effect": 0, "refused": 0, "absent": 0}
    for header in known.headers:
        there_is = os.path.exists(os.path.join(SOURCE, "runtime", "acl", "include", header.name))
        place = f"`{header.name}`" if there_is else "There is no header of these."
        rows += ["", f"### {header.about[0].upper()}{header.about[1:]}", "", place, "",
                 "| function | pyACL | |", "|---|---|---|"]
        for name in header.functions:
            state, words = state_of(name, known, there, notes)
            counts[state] += 1
            called = ", ".join(f"`{each}`" for each in python.get(name, []))
            rows.append(f"| `{name}` | {called} | {words} |")
    total = sum(counts.values())
    return (f"Of {total} public functions {counts['works']} work, {counts['without effect']} are "
            f"accepted without effect,\n{counts['refused']} refuse each call, "
            f"{counts['absent']} are absent.\n" + "\n".join(rows) + "\n")


def complain(known: Known, there: Set[str], notes: Notes) -> List[str]:
    """What the files say that the libraries do not."""
    listed = [name for header in known.headers for name in header.functions]
    found = [f"{name} is listed twice" for name in sorted(set(listed)) if listed.count(name) > 1]
    found += [f"{name} is exported, but no public function" for name in sorted(there)
              if name not in listed]
    found += [f"{name} is absent and has no reason" for name in listed
              if name not in there and not known.reason(name)]
    found += [f"{name} has a note in {NOTES}, but no library exports it"
              for name in sorted({**notes.idle, **notes.refused}) if not fnmatch.filter(there, name)]
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description="The table of docs/acl.md.")
    arguments.add_argument("build", help="a build folder")
    arguments.add_argument("--update", action="store_true", help="write the table into the page")
    given = arguments.parse_args()

    known = read_functions(os.path.join(SOURCE, FUNCTIONS))
    there, notes = exported(given.build), read_notes(os.path.join(SOURCE, NOTES))
    faults = complain(known, there, notes)
    if faults:
        fail("\n".join(f"{FUNCTIONS}: {fault}" for fault in faults))
    path = os.path.join(SOURCE, PAGE)
    with open(path, encoding="utf-8") as file:
        page = file.read()
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        fail(f"{PAGE}: expected one line {BEGIN.strip()} and one {END.strip()}")
    head, rest = page.split(BEGIN)
    tail = rest.split(END)[1]
    right = head + BEGIN + table(known, there, notes, python_names()) + END + tail
    if right == page:
        return
    if given.update:
        with open(path, "w", encoding="utf-8") as file:
            file.write(right)
        return
    sys.stdout.writelines(difflib.unified_diff(page.splitlines(True), right.splitlines(True), PAGE,
                                               "what the build has"))
    fail(f"{PAGE} differs; mend it with: tests/acl_functions.py {given.build} --update")


if __name__ == "__main__":
    main()
