#!/usr/bin/env python3
"""The table of docs/aclnn.md: the functions of aclnn that npumesh has, and the operators that compute them.

    tests/aclnn_functions.py             ends with 1, and says where, if the page differs
    tests/aclnn_functions.py --update    writes the page's table

Read is graph/aclnn/table/functions/*.aclnn.
"""

import argparse
import difflib
import os
import re
import sys
from typing import List

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLES = os.path.join(SOURCE, "graph", "aclnn", "table", "functions")
PAGE = os.path.join(SOURCE, "docs", "aclnn.md")
BEGIN, END = "<!-- functions -->\n", "<!-- end of functions -->\n"


def rows() -> List[str]:
    found = []
    header, name, params, body = "", "", "", []

    def end() -> None:
        if name:
            text = " ".join(body)
            operators = list(dict.fromkeys(re.findall(r"\b([A-Z]\w*)\(", text)))
            others = list(dict.fromkeys(re.findall(r"\b(aclnn\w+)\(", text)))
            shown = ", ".join(operators + [f"as {other}" for other in others]) or "-"
            found.append(f"| `{name}` | {params} | {shown} | `{header}` |\n")

    for table in sorted(os.listdir(TABLES)):
        with open(os.path.join(TABLES, table), encoding="utf-8") as file:
            for line in file:
                function = re.match(r"(aclnn\w+)\((.*)\)$", line.rstrip())
                if line.startswith("["):
                    end()
                    header, name, body = line[1:line.index("]")], "", []
                elif function:
                    end()
                    name, body = function[1], []
                    params = ", ".join(param.split(":")[0] for param in function[2].split(", "))
                elif line.startswith(" "):
                    body.append(line.strip())
    end()
    return sorted(found, key=str.lower)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the page's table")
    update = parser.parse_args().update
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    made = rows()
    table = [f"{len(made)} functions.\n", "\n", "| Function | Parameters | Operators | Header in `aclnnop/` |\n",
             "|---|---|---|---|\n"] + made
    wanted = before + BEGIN + "\n" + "".join(table) + "\n" + END + after
    if update:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(wanted)
    elif wanted != page:
        difference = difflib.unified_diff(page.splitlines(), wanted.splitlines(), "docs/aclnn.md", "the tables", lineterm="")
        print("\n".join(list(difference)[:20]), "\ntests/aclnn_functions.py --update writes it", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
