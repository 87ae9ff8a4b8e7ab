#!/usr/bin/env python3
"""Types every command of the documentation and judges it by exit code and output.

  typed_commands.py --user plain|self --source ROOT --npumesh FILE --samples FILE --library FILE
                    --algorithm FILE --decoder FILE [--only TEXT]

Commands are the lines of the ```sh blocks of README.md, CONTRIBUTING.md and docs/, and the examples at the
end of each --help. They run in a folder with the files that they name, made by npumesh itself; each page
begins with a fresh one, and its commands follow each other there. A command must end with 0, and print
something unless it redirects its output.

A block that cannot run here, or may end with another code, says so in the source of the page, in the line
above it:

  <!-- not typed by tests: REASON -->
  <!-- may end with 1: REASON -->

A block below one of commands shows what the last of them prints, when this line stands above it:

  <!-- printed -->

Then the command must print that. A block of Python that begins with "# file: NAME" is that file. Decimals (1.5, 2e-07) stand for any number, times (12 us) for any time,
blanks for any blanks, ... for any text, and a line that is only ... for any lines.

Pages of docs/zh are translations: their blocks must be those of the English page, in the same order.

--user plain: as the user nobody, when started by root, otherwise as who starts it. --user self: as root, otherwise
skipped (77).
"""

import argparse
import glob
import itertools
import os
import pwd
import re
import shutil
import struct
import subprocess
import sys
import tempfile

SKIPPED = 77
NOT_TYPED = "not typed by tests:"
MAY_END_WITH = re.compile(r"may end with (\d+):")
# Examples of --help, which have no room for marks: what begins so, and why it does not run or may end with 1.
HELP_NOT_TYPED = {
    r".*--hosts ": "hosts of the reader's",
    r"npumesh kernels (install|uninstall|show) ": "a package and a kernel of the reader's",
    r"npumesh attach ": "a job of the reader's that runs",
}
HELP_MAY_FAIL = {
    r"npumesh doctor": "says what is wrong with this machine",
    r"npumesh launch .* -- doctor": "says what is wrong with this machine",
    r"npumesh dump (compare|laws) ": "the dumps of the example differ",
    r"npumesh replay ": "may find a difference",
    r"npumesh graph .*--diff ": "the graphs of the example differ",
    r"npumesh validate .*--strict": "the package of the example lacks what ATC needs",
    r"npumesh (launch .* -- )?run .*--golden .*--inject": "finds the fault that it makes",
}
# A block of output that follows a block of commands.
PROGRAM = re.compile(r"^```python\n(# file: (\S+)\n.*?)^```", re.S | re.M)
PRINTED = re.compile(r"\s*<!-- printed -->\n[ ]*```\w*\n(.*?)^[ ]*```", re.S | re.M)
DECIMAL = r"-?\d+(?:\.\d+(?:e[-+]?\d+)?|e[-+]?\d+)"
TIME = r"\d+(?:\.\d+)? (?:ns|us|ms|s)\b"


class Command:
    def __init__(self, page, text, code):
        self.page, self.text = page, text
        self.code = code  # what it may end with instead of 0
        self.printed = None  # what the page says that it prints; None: nothing is said


def printed_pattern(block):
    """The expression that a whole output must match. Blanks around lines do not count."""
    pattern = ""
    for line in map(str.strip, block.strip().splitlines()):
        if line == "...":
            pattern += r"(?:.*\n)*?"
            continue
        for part in re.split(rf"(\.\.\.|(?<![\w.])(?:{TIME}|{DECIMAL})| +)", line):
            if part == "...":
                pattern += ".*?"
            elif re.fullmatch(TIME, part):
                pattern += TIME
            elif re.fullmatch(DECIMAL, part):
                pattern += rf"(?:{DECIMAL}|-?\d+)"
            else:
                pattern += " +" if part.isspace() else re.escape(part)
        pattern += r"\n"
    return pattern


def prints(block, output):
    """True when an output is what a block shows."""
    lines = "".join(line.strip() + "\n" for line in output.strip().splitlines())
    return re.fullmatch(printed_pattern(block), lines) is not None


def joined_lines(block):
    """The commands of a block: lines, those with a backslash at the end continued."""
    text = re.sub(r"\\\n\s*", "", block)
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            yield line


def commands_of_page(root, path):
    with open(path, encoding="utf-8") as file:
        return commands_in(file.read(), os.path.relpath(path, root))


def commands_in(text, page):
    found = []
    for match in re.finditer(r"(?:^[ ]*<!-- ([^\n]*) -->\n)?^[ ]*```sh\n(.*?)^[ ]*```", text, re.S | re.M):
        mark, block = match.group(1) or "", match.group(2)
        if mark.startswith(NOT_TYPED):
            continue
        other = MAY_END_WITH.match(mark)
        code = int(other.group(1)) if other else 0
        found += [Command(page, line, code) for line in joined_lines(block)]
        printed = PRINTED.match(text, match.end())
        if printed:
            found[-1].printed = printed.group(1)
    return found


def matches(table, text):
    return any(re.match(pattern, text) for pattern in table)


def commands_of_help(npumesh, words):
    """Examples of one --help and of those of its sub-commands."""
    text = subprocess.run([npumesh, *words, "--help"], capture_output=True, text=True, check=True).stdout
    found = []
    page = " ".join(["npumesh", *words, "--help"])
    for line in text.partition("Example")[2].splitlines()[1:]:
        if not line.startswith("  "):
            break  # other words of the footer
        command = line.strip()
        if not matches(HELP_NOT_TYPED, command):
            found.append(Command(page, command, 1 if matches(HELP_MAY_FAIL, command) else 0))
    below = text.partition("Subcommands:\n")[2].partition("\n\n")[0]
    for line in below.splitlines():
        name = re.match(r"  (\w+)\s", line)
        if name:
            found += commands_of_help(npumesh, [*words, name.group(1)])
    return found


def write_npy(path, shape):
    """float32 values that look like anything."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * ((-len(header) - 11) % 64) + "\n"
    count = shape[0] * shape[1]
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{count}f", *(((i * 29) % 31) / 16 - 1 for i in range(count))))


class Reader:
    """A user of the machine with a folder of files and npumesh in PATH."""

    def __init__(self, options, home):
        self.home = home
        self.user = {}
        if options.user == "plain" and os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self.user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        programs = os.path.join(home, "programs")
        os.mkdir(programs)
        for program in (options.npumesh, options.samples, options.decoder):
            shutil.copy(program, programs)
        # Python packages beside the command, and a folder that looks like a checkout of TorchAir.
        os.makedirs(os.path.join(home, "lib/python3"))
        os.symlink(os.path.join(os.path.abspath(options.source), "python"),
                   os.path.join(home, "lib/python3/dist-packages"))
        libraries = os.path.join(os.path.dirname(os.path.abspath(options.npumesh)), "..", "lib")
        for library in glob.glob(f"{libraries}/libnpumesh*.so.*"):
            os.symlink(library, os.path.join(home, "lib", os.path.basename(library)))
        os.makedirs(os.path.join(home, "torchair/python/torchair/core"))
        for name in ("__init__.py", "core/__init__.py", "core/_backend.py"):
            with open(os.path.join(home, "torchair/python/torchair", name), "w",
                      encoding="utf-8"):
                pass
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("OMPI_", "NPUMESH_", "PMIX_"))}
        self.environment.update(HOME=home, TMPDIR=home, PATH=f"{programs}:{os.environ['PATH']}")

    def type(self, command, folder):
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=1200, check=False, **self.user)
        return done.returncode, done.stdout

    def give(self, path):
        if not self.user:
            return
        for folder, _, files in os.walk(path):
            for name in [folder, *(os.path.join(folder, file) for file in files)]:
                os.chown(name, self.user["user"], self.user["group"])

    def must(self, command, folder):
        code, output = self.type(command, folder)
        if code != 0:
            sys.exit(f"preparing: {command}\nended with {code}\n{output}")


def prepare(reader, options, folder):
    """The files that commands name."""
    os.makedirs(f"{folder}/docs")
    for name in ("dump", "card", "good", "bad", "from_npu", "tensors", "dumps"):
        os.mkdir(f"{folder}/{name}")
    for name in ("in", "inputs"):
        for rank in (".", "rank_0", "rank_1", "rank_2", "rank_3"):
            write_npy(f"{folder}/{name}/{rank}/0.npy", (8, 32))
    shutil.copy(options.library, f"{folder}/libpolynomial_operator.so")
    shutil.copy(options.algorithm, f"{folder}/libdoubling_algorithm.so")
    with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
        file.write('{"ge_config": {"oo_level": "O3"}}\n')
    tensor = '{"format": "ND", "shape": [16, -1], "type": "float16"}'
    with open(f"{folder}/add.json", "w", encoding="utf-8") as file:
        file.write(f'[{{"op": "Add", "input_desc": [{tensor}, {tensor}], "output_desc": [{tensor}]}}]\n')
    tensor = '{"format": "ND", "shape": [8, 32], "type": "float32"}'
    with open(f"{folder}/relu.json", "w", encoding="utf-8") as file:
        file.write(f'[{{"op": "Relu", "input_desc": [{tensor}], "output_desc": [{tensor}]}}]\n')
    with open(f"{folder}/train.py", "w", encoding="utf-8") as file:
        file.write("import npu_bridge, sys\nprint(sys.argv)\n")
    with open(f"{folder}/dump.json", "w", encoding="utf-8") as file:
        file.write('{"dump": {"dump_path": "dump", "dump_mode": "all", "dump_list": []}}\n')
    reader.give(folder)
    launch = "npumesh launch -n 4 -- "
    for command in (
            "write_samples .",
            launch + "export mp/ --path package --name mp_rank --auto-atc-config",
            launch + "run mp/ --inputs in/ --outputs golden/ --steps 3",
            launch + "run mp/ --dump all --dump-path dump/",
            launch + "run mp/ --dump all --dump-path good/",
            launch + "run mp/ --dump all --dump-path bad/ --inject corrupt:rank=2,op=RmsNorm_1",
            "npumesh run export.air --dump all --dump-path card/",
            "npumesh run export.air --dump all --dump-path from_npu/",
            "npumesh dump convert card/worldsize1_global_rank0 -o golden_npy/",
            "NPUMESH_RECORD=records/ " + launch + "run mp/",
            "npumesh export export.air --path model",
            launch + "run mp/ --profile prof/ --steps 3",
            "npumesh verify relu.json --inputs inputs/ --write relu/; cp relu/golden/rank_0/0.npy mine.npy",
            "cp -r dump a; cp -r dump b; cp -r prof before; cp -r prof after",
            "cp -r records hang_detector"):
        reader.must(command, folder)


def check(reader, command, folder):
    """What is wrong with a command; empty: nothing."""
    if re.search(r"\bmpirun\b", command.text):
        return f"{command.page}: {command.text}\n  `npumesh launch` also works as root and on few cores"
    try:
        code, output = reader.type(command.text, folder)
    except subprocess.TimeoutExpired:
        return f"{command.page}: {command.text}\n  did not end within 120 s"
    silent = re.search(r">\s*\S+\s*(#.*)?$|^\s*(mkdir|cp|for|export|echo|sed|\.) ", command.text)
    if code == 0 and not output.strip() and not silent:
        return f"{command.page}: {command.text}\n  printed nothing"
    if code not in (0, command.code):
        return f"{command.page}: {command.text}\n  ended with {code}\n{output}"
    if command.printed is not None and not prints(command.printed, output):
        return f"{command.page}: {command.text}\n  the page shows another output than\n{output}"
    return ""


def copy_named(sample, folder, words):
    """The files and folders of the sample whose names occur in the words of a page: all would take a second."""
    os.mkdir(folder)
    for name in os.listdir(sample):
        if name not in words:
            continue
        if os.path.isdir(f"{sample}/{name}"):
            shutil.copytree(f"{sample}/{name}", f"{folder}/{name}")
        else:
            shutil.copy(f"{sample}/{name}", folder)


def write_programs(page, folder):
    """The files that a page shows."""
    with open(page, encoding="utf-8") as file:
        programs = PROGRAM.findall(file.read())
    for code, name in programs:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(code)


def type_all(reader, options, commands):
    sample = os.path.join(reader.home, "sample")
    prepare(reader, options, sample)
    problems = []
    folder, page = "", None
    for command in commands:
        if command.page != page:
            shutil.rmtree(folder, ignore_errors=True)
            folder, page = os.path.join(reader.home, "folder"), command.page
            words = " ".join(other.text for other in commands if other.page == page)
            copy_named(sample, folder, words)
            if page == "docs/dump.md":
                shutil.rmtree(f"{folder}/dump")  # its first command makes it
            if page.endswith(".md"):
                write_programs(os.path.join(options.source, page), folder)
            reader.give(folder)
        problem = check(reader, command, folder)
        print(f"{'FAIL' if problem else 'ok'}  {command.page}: {command.text}", flush=True)
        if problem:
            problems.append(problem)
    return problems


FENCED = re.compile(r"(?:^<!--[^\n]*-->\n)?^```.*?^```$", re.M | re.S)


def blocks(path):
    with open(path, encoding="utf-8") as file:
        return FENCED.findall(file.read())


def untyped_translations(source, pages):
    """The pages of docs/zh, whose commands are typed on the English page, and what differs there from it."""
    translations, problems = [], []
    for page in pages:
        folder, name = os.path.split(page)
        if os.path.basename(folder) != "zh":
            continue
        translations.append(page)
        for ours, theirs in itertools.zip_longest(blocks(page), blocks(f"{source}/docs/{name}"), fillvalue=""):
            if ours != theirs:
                problems.append(f"docs/zh/{name}: a block is not that of docs/{name}:\n{ours[:300]}\n-- there --\n{theirs[:300]}")
                break
    return translations, problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--user", choices=("self", "plain"), required=True)
    for name in ("source", "npumesh", "samples", "library", "algorithm", "decoder"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--only", default="", help="pages whose name holds this text")
    options = parser.parse_args()
    if options.user == "self" and os.geteuid() != 0:
        print("what another user types is typed by --user plain")
        return SKIPPED
    pages = [f"{options.source}/{name}" for name in ("README.md", "CONTRIBUTING.md")]
    pages += sorted(glob.glob(f"{options.source}/docs/**/*.md", recursive=True))
    translations, different = untyped_translations(options.source, pages)
    commands = [command for page in pages if page not in translations
                for command in commands_of_page(options.source, page)]
    shown = commands_of_help(options.npumesh, [])  # sub-commands repeat what stands above them
    commands += [command for i, command in enumerate(shown)
                 if command.text not in {earlier.text for earlier in shown[:i]}]
    commands = [command for command in commands if options.only in command.page]
    if not commands:
        sys.exit("no commands were found")
    with tempfile.TemporaryDirectory(prefix="npumesh-typed-") as home:
        os.chmod(home, 0o755)
        reader = Reader(options, home)
        reader.give(home)
        problems = different + type_all(reader, options, commands)
    print(f"{len(commands)} commands, {len(problems)} of them fail")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
