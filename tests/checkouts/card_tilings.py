#!/usr/bin/env python3
"""The tests of the vendor's open tilings (tests/ut/op_host/test_*_tiling.cpp of ops-nn and ops-transformer) beside the rules of
cards: which calls these expect to be refused, and which ones npumesh says are refused.

    card_tilings.py NPUMESH CHECKOUT... [--chip ascend910b1] [--only OPERATOR] [--list]

NPUMESH is the command. Of each test the call that stands there literally is read: types, shapes and attributes; others are
counted as unread. Operators are those that have rules for the chip. --list prints the calls on which the two differ: some
of the tests give outputs that do not fit, which no rule sees. Ends with 1 when fewer than five operators have 95 % of their
tests right. Nothing of the checkouts is part of npumesh.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys

TYPES = {"DT_FLOAT": "float32", "DT_FLOAT16": "float16", "DT_BF16": "bfloat16", "DT_DOUBLE": "float64"}
ENOUGH = 0.95  # of the tests of an operator
OPERATORS = 5  # that have enough


def tests(checkouts):
    for checkout in checkouts:
        for folder, folders, names in os.walk(checkout):
            folders[:] = sorted(name for name in folders if name not in ("experimental", ".git"))
            for name in sorted(names):
                if re.fullmatch(r"test_\w+_tiling\w*\.cpp", name):
                    yield os.path.join(folder, name)


def braces(text, begin):
    """The end of the text in braces that begins there."""
    depth = 0
    for at in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    return len(text)


def lists(text):
    """The texts in braces of a list, without those inside of them."""
    found, at = [], 0
    while (at := text.find("{", at)) >= 0:
        end = braces(text, at)
        found.append(text[at:end])
        at = end
    return found


def tensor(text):
    """TYPE[DIMS] of {{{16, 256}, {16, 256}}, ge::DT_FLOAT, ..}; "" of {{}, ..}, which is not fed; None: not literal."""
    shape = lists(text[1:])
    if shape and not shape[0][1:-1].strip():
        return ""
    storage = lists(shape[0][1:]) if shape else []
    if not storage:
        return None
    dims = storage[0][1:-1].strip()
    if dims and not re.fullmatch(r"[\d\s,*-]+", dims):
        return None
    dtype = re.search(r"DT_\w+", text)
    if dtype is None:
        return None
    dtype = TYPES.get(dtype[0], dtype[0][3:].lower())
    sizes = [str(eval(each)) for each in dims.split(",") if each.strip()]  # digits and signs only
    return f"{dtype}[{','.join(sizes)}]" if sizes else ""


def attribute(text):
    """(name, value) of {"k", ..CreateFrom<int64_t>(8)}, in one pair of braces or two; None: not literal."""
    if len(inner := lists(text[1:])) == 1:
        text = inner[0]
    found = re.match(r'\{\s*"(\w+)"\s*,.*CreateFrom<(.*?)>\(\s*(.*?)\s*\)\s*\}$', text, re.S)
    if found is None:
        return None
    name, kind, value = found.groups()
    if "vector" in kind:
        value = "[" + value.strip("{} ").replace(" ", "") + "]"
        return (name, value) if re.fullmatch(r"\[[\d,.-]*\]", value) else None
    if "string" in kind:
        return (name, value) if value.startswith('"') else None
    if "float" in kind:
        value = value.rstrip("f")
        return (name, value if "." in value or "e" in value else value + ".0")
    return (name, value) if re.fullmatch(r"-?\d+|true|false", value) else None


class Operators:
    """What npumesh knows of operators."""

    def __init__(self, command, chip):
        shown = json.loads(subprocess.run([command, "card", "show", chip, "--json"], capture_output=True, text=True,
                                          check=True).stdout)
        self.names = {each for rule in shown["rules"] for each in rule["operators"]}
        self.schemas = {}
        for each in json.loads(subprocess.run([command, "ops", *self.names, "--json"], capture_output=True, text=True,
                                              check=True).stdout)["operators"]:
            self.schemas[each["type"]] = each

    def call(self, name, text):
        """The call in words of a TilingContextPara. None: not literal."""
        schema = self.schemas[name]
        parts = lists(text)
        if len(parts) < 2:
            return None
        words = [name]
        inputs = lists(parts[0][1:-1])
        if any(each["kind"] == "dynamic" for each in schema["inputs"]):
            return None
        for port, given in zip(schema["inputs"], inputs):
            word = tensor(given)
            if word is None:
                return None
            if word:
                words.append(f"{port['name']}={word}")
        known = {each["name"] for each in schema["attributes"]}
        for given in lists(parts[2][1:-1]) if len(parts) > 2 else []:
            pair = attribute(given)
            if pair is None:
                return None
            renamed = {"acive_expert_range": "active_expert_range"}.get(pair[0], pair[0])
            if renamed in known:
                words.append(f"{renamed}={pair[1]}")
        return " ".join(words)


def cases(path, operators):
    """(operator, call or None, is refused) of the tests in a file."""
    with open(path, encoding="utf-8", errors="replace") as file:
        text = re.sub(r"//[^\n]*|/\*.*?\*/", "", file.read(), flags=re.S)
    for body in re.split(r"\nTEST_[FP]\(", text)[1:]:
        found = re.search(r'TilingContextPara\s+\w+\(\s*"(\w+)"\s*,', body)
        verdict = re.search(r"ExecuteTestCase\([^;]*?GRAPH_(SUCCESS|FAILED)", body)
        if found is None or verdict is None or found[1] not in operators.schemas:
            continue
        yield found[1], operators.call(found[1], body[found.end():]), verdict[1] == "FAILED"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("npumesh")
    parser.add_argument("checkouts", nargs="+")
    parser.add_argument("--chip", default="ascend910b1")
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    words = parser.parse_args()
    operators = Operators(words.npumesh, words.chip)
    read, unread = [], collections.Counter()
    for path in tests(words.checkouts):
        for name, call, refused in cases(path, operators):
            if words.only and name != words.only:
                continue
            if call is None:
                unread[name] += 1
            else:
                read.append((name, call, refused))

    def verdict(case):
        done = subprocess.run([words.npumesh, "card", "check", words.chip, case[1], "--json"], capture_output=True, text=True)
        return json.loads(done.stdout)

    agree, differ = collections.Counter(), collections.defaultdict(list)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (name, call, refused), said in zip(read, pool.map(verdict, read)):
            if said["verdict"] == "error":
                differ[name].append((call, refused, said["error"]))
            elif (said["verdict"] == "refused") == refused:
                agree[name] += 1
            else:
                differ[name].append((call, refused, ", ".join(each["rule"] for each in said["findings"])))
    enough = 0
    for name in sorted({*agree, *differ, *unread}):
        total = agree[name] + len(differ[name])
        if total:
            enough += agree[name] >= ENOUGH * total
            print(f"{name}: {agree[name]} of {total} agree ({agree[name] / total:.0%}), {unread[name]} not literal")
        else:
            print(f"{name}: none is literal, {unread[name]} tests")
        for call, refused, said in differ[name] if words.list else []:
            print(f"  {'refused' if refused else 'taken'} by the vendor, here {said or 'taken'}: {call}")
    total = len(read)
    right = sum(agree.values())
    print(f"together: {right} of {total} agree ({right / max(total, 1):.1%}); {enough} operators have {ENOUGH:.0%}")
    return 1 if enough < OPERATORS else 0


if __name__ == "__main__":
    sys.exit(main())
