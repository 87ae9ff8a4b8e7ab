#!/usr/bin/env python3
"""What the commands show on screens of 80 and 200 columns, beside what they showed before.

  screens.py --source ROOT --npumesh FILE --samples FILE --library FILE --algorithm FILE
             --decoder FILE [--update]

Every --help and the main output of each command are compared with tests/mpi/docs/screens/. What varies
from run to run or from machine to machine (times, versions, values of elements, paths) is masked. A page
that has changed is printed as a diff; --update writes all pages again, for a reader to look at:

  git diff tests/mpi/docs/screens

No line may be longer than the screen, but for one that is a single word, such as a path, or an example of
--help, which is there to be copied. doctor and profile are not here, because what they say is all about
this machine.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile

import typed_commands

WIDTHS = (80, 200)
HELP = "help"  # pages of this name have nothing that varies
OUTPUTS = [
    "npumesh graph model.air",
    "npumesh graph mp/mp_rank0.air --plan | head -20",
    "npumesh graph mp/mp_rank0.air --types | tail -8",
    "npumesh run model.air",
    "npumesh launch -n 4 -- run mp/ --steps 3",
    "npumesh launch -n 4 -- run mp/ --inputs in/ --check golden/",
    "npumesh launch -n 4 -- run mp/ --inputs in/ --check golden/ --tolerance exact "
    "--inject corrupt:rank=2,op=RmsNorm_1,element=3",
    "npumesh launch -n 2 -- bench allreduce -b 8 -e 128 -f 16 -n 2 -w 1",
    "npumesh launch -n 4 -- bench allgather -b 1M -e 1M --algorithms",
    "npumesh export export.air --path written",
    "npumesh validate package/",
    "npumesh dump ls dump/ | head -4",
    "npumesh dump ls card/ -l | head -6",
    "npumesh dump stat card/ --op RmsNorm_7",
    "npumesh dump compare good/ bad/ --model mp/ -o report/",
    "npumesh dump laws bad/ --model mp/",
    "npumesh replay card/ --model export.air",
    "npumesh ops MatMulV2 HcomAllReduce",
    "npumesh config --config config.json",
    "npumesh env",
    "npumesh topo --plan a,10.0.0.1:2 --plan b,10.0.0.2:1",
    "npumesh kernels ls",
    "npumesh version",
    "npumesh doctor",
    "npumesh launch -n 2 -- doctor",
    "npumesh profile prof/",
    # What is wrong goes to standard error, whose lines stay whole in a pipe.
    "npumesh runn",
    "npumesh run --stps 3 model.air",
    "npumesh dump compar good/ bad/",
    "npumesh run missing.air",
    "npumesh launch -n 2 -- runn",
    "npumesh run config.json",
]
# What varies, and what stands in its place. A number keeps its place in a table because blanks before
# it are counted with it.
MASKS = [
    (r"(?<!\d)20\d{12}(?!\d)", lambda m: "#" * 14),
    (r"(\b(?:min|max|mean|std|l2|diff|abs|atol|rtol|scale)\s+)-?\d[\w.+-]*", lambda m: m[1] + "#"),
    (r"(\bis )-?\d[\w.+-]*(,\s+expected )-?\d[\w.+-]*", lambda m: m[1] + "#" + m[2] + "#"),
    (r"\d+ ULP", lambda m: "# ULP"),
    (r"(?<=\| )\d[\d.]*( *)(?=\||$)", lambda m: "#".ljust(len(m[0]))),
    (r"( <- slowest)$", lambda m: ""),
    (r"(?<=a step takes ) *[\d.]+(?= ms)", lambda m: "#.#"),
    (r"( *)(?<![\w.,-])(\d+\.\d{1,3})(?![\w.])", lambda m: "#.#".rjust(len(m[0]))),
    (r"^( *\d+ +[\d.# ]+?)(?:direct|small|[a-z_]+)$", lambda m: m[1] + "algorithm"),
    (r"^(npumesh|source|Open MPI|oneDNN|hwloc|Highway|protobuf|spdlog|compiler)( +)(?:GNU |Clang )?\S+$",
     lambda m: m[1] + m[2] + "#"),
    (r"/[\w./-]*npumesh-screens-\w+", lambda m: "HOME"),
    (r"worst point: .*", lambda m: "worst point: #"),
    (r"(?<=bench allreduce) -b \d+ -e \d+(?= --algorithms)", lambda m: " -b # -e #"),
]


def subjects(text):
    """Of a doctor what it looks at; what it finds there, and in which order, is the machine's."""
    names = re.findall(r"^(?:error|advice|ok) +(\S+(?: \S+)*)  ", text, flags=re.M)
    return "".join(name + "\n" for name in sorted(names))


def headings(text):
    """Of a profile its tables, without their rows."""
    kept = []
    below = False  # a title, and no row has come yet
    for line in text.splitlines():
        below = not re.search(r"[0-9]", line) and (below or not line.startswith(" "))
        if below:
            kept.append(line + "\n")
    return "".join(kept)


# Screens that are all about the machine: what of them stays. All of their lines have to fit.
SHAPES = [(r"npumesh (launch -n 2 -- )?doctor$", subjects), (r"npumesh profile ", headings)]


def shaped(command, text):
    for pattern, shape in SHAPES:
        if re.match(pattern, command):
            return shape(text)
    return text


def masked(text):
    for pattern, place in MASKS:
        text = re.sub(pattern, place, text, flags=re.M)
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def too_long(text, columns):
    """Lines that do not fit and could have been folded."""
    for line in text.splitlines():
        example = line.startswith(("  npumesh ", "  NPUMESH_"))
        message = re.match(r"(\[\d+\] )?npumesh( \w+)?: ", line)
        if len(line) > columns and " " in line.strip() and not example and not message:
            yield line


def help_pages(npumesh, words, environment):
    """--help of a command and of all below it."""
    text = subprocess.run([npumesh, *words, "--help"], capture_output=True, text=True, check=True,
                          env=environment).stdout
    yield " ".join(["npumesh", *words, "--help"]), text
    for line in text.partition("Subcommands:\n")[2].partition("\n\n")[0].splitlines():
        name = re.match(r"  (\w+)", line)
        if name:
            yield from help_pages(npumesh, [*words, name.group(1)], environment)


def pages_of(reader, options, folder, columns):
    """name of a page -> [(command, text)]"""
    reader.environment["COLUMNS"] = str(columns)
    shown = []
    for command in OUTPUTS:
        _, text = reader.type(command, folder)
        shown.append((command, text))
    return {f"{HELP}.{columns}": list(help_pages(options.npumesh, [], reader.environment)),
            f"outputs.{columns}": shown}


def check(name, screens, columns, options):
    """Problems of one page."""
    problems = []
    for command, text in screens:
        for line in too_long(text, columns):
            problems.append(f"{command}: more than {columns} columns: {line}")
    page = "".join(f"$ {command}\n{text if name.startswith(HELP) else masked(shaped(command, text))}\n"
                   for command, text in screens)
    path = f"{options.source}/tests/mpi/docs/screens/{name}.txt"
    if options.update:
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)
        return problems
    before = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            before = file.read()
    diff = list(difflib.unified_diff(before.splitlines(), page.splitlines(), name, "now", lineterm="", n=1))
    return problems + (["\n".join(diff)] if diff else [])


def main():
    parser = argparse.ArgumentParser()
    for name in ("source", "npumesh", "samples", "library", "algorithm", "decoder"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    options.user = "self"
    with tempfile.TemporaryDirectory(prefix="npumesh-screens-") as home:
        reader = typed_commands.Reader(options, home)
        reader.environment.update(NPUMESH_KERNEL_STORE=f"{home}/store", TERM="dumb",
                                  NPUMESH_TOPOLOGY="numa:1 core:4 pu:1")
        for name in ("LOCAL_WORLD_SIZE", "RANK", "WORLD_SIZE"):
            reader.environment.pop(name, None)
        folder = f"{home}/sample"
        typed_commands.prepare(reader, options, folder)
        problems = []
        for columns in WIDTHS:
            for name, screens in pages_of(reader, options, folder, columns).items():
                problems += check(name, screens, columns, options)
    for problem in problems:
        print(problem)
    if problems and not options.update:
        print("look at the changes; tests/mpi/docs/screens.py --update writes the pages again")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
