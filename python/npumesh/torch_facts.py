"""What of the vendor's wheel of torch_npu npumesh has: `npumesh doctor --torch` (docs/torch_npu.md).

The names that the wheel's libraries link and look up are read from their ELF files and asked of npumesh's libraries;
torch itself is not loaded.
"""

import ctypes
import glob
import importlib.metadata
import importlib.util
import os
import re
import struct
import sys
from typing import Iterable, List, Optional, Set

# The libraries that the wheel's names come from.
LIBRARIES = ("libascendcl.so", "libhccl.so", "libhcomm.so", "libopapi.so", "libge_runner.so", "libgraph.so",
             "libacl_op_compiler.so", "libmsprofiler.so", "libms_tools_ext.so")
# What the vendor's software is called by in C; the rest of a library's undefined names are torch's and C++'s.
LINKED = re.compile(r"(acl|hccl|Hccl|Hcom|aclnn|mstx|rt[A-Z]|AdxDataDump|prof[A-Z]|Msprof)\w*$")
PHASE = "GetWorkspaceSize"
NAMES = re.compile(rb"(?<![\w.])((?:aclnn|aclrt|aclmdl|aclop|aclprof|acltdt|Hccl|Hcom)[A-Z]\w+)\x00")
SHOWN = 12  # names in a line


def undefined_names(path: str) -> Set[str]:
    """The names that an ELF file of 64 bits, little endian, wants of others. Errors: ValueError: it is no such file."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{path}: no ELF file of 64 bits, little endian")
    at, = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + index * size) for index in range(count)]
    names = set()
    for _, kind, _, _, offset, length, link, _, _, entry in sections:
        if kind != 11 or entry == 0:  # SHT_DYNSYM
            continue
        texts = sections[link][4]
        for place in range(offset, offset + length, entry):
            name, _, _, section = struct.unpack_from("<IBBH", data, place)
            if name and section == 0:
                begin = texts + name
                names.add(data[begin:data.index(b"\x00", begin)].decode("ascii", "replace"))
    return names


def looked_up(path: str) -> Set[str]:
    """Functions whose names stand in a file as texts: what dlsym may be asked for. An aclnn function counts when its
    first phase is named too, since operators have such names elsewhere."""
    with open(path, "rb") as file:
        texts = {each.decode() for each in NAMES.findall(file.read())}
    return {each for each in texts
            if not each.startswith("aclnn") or (not each.endswith(PHASE) and each + PHASE in texts)}


class Present:
    """The names that npumesh's libraries in a folder have. Errors: OSError: one of them cannot be loaded."""

    def __init__(self, folder: str) -> None:
        paths = [os.path.join(folder, name) for name in LIBRARIES]
        self.libraries = [ctypes.CDLL(path) for path in paths if os.path.exists(path)]

    def has(self, name: str) -> bool:
        return any(hasattr(library, name) for library in self.libraries)


def find_wheel() -> Optional[str]:
    """The wheel's folder, or None."""
    for folder in sys.path:
        place = os.path.join(folder or ".", "torch_npu")
        if os.path.isfile(os.path.join(place, "lib", "libtorch_npu.so")):
            return os.path.abspath(place)
    return None


def version_of(name: str, folder: Optional[str] = None) -> Optional[str]:
    """The version of an installed package, of the one in a folder; None: it is not there."""
    path = [folder] if folder else sys.path
    for each in importlib.metadata.distributions(name=name, path=path):
        return each.version
    return None


def release(version: str) -> List[str]:
    return version.split("+")[0].split(".")[:2]


def listed(names: Iterable[str]) -> str:
    names = sorted(names)
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


class Facts:
    """Findings of a wheel: (level, subject, text, remedy); level is "ok", "note" or "wrong"."""

    def __init__(self) -> None:
        self.findings = []

    def say(self, level: str, subject: str, text: str, remedy: str = "") -> None:
        self.findings.append((level, subject, text, remedy))

    def torch(self) -> Optional[str]:
        version = version_of("torch")
        if version is None or importlib.util.find_spec("torch") is None:
            self.say("wrong", "torch", f"{sys.executable} has no torch",
                     "launch/install_deps --torch, or pip install torch==2.13.0; npumesh python --python names another")
            return None
        self.say("ok", "torch", f"{version} in {sys.executable}")
        return version

    def wheel(self, torch: Optional[str]) -> Optional[str]:
        """The wheel's folder, or None."""
        folder = find_wheel()
        if folder is None:
            self.say("note", "wheel", "torch_npu is npumesh's own package: no wheel of the vendor's is in sys.path",
                     "pip install torch_npu of torch's version (docs/torch_npu.md), if the vendor's is wanted")
            return None
        version = version_of("torch_npu", os.path.dirname(folder)) or "of no known version"
        if torch is not None and release(version) != release(torch):
            self.say("wrong", "wheel", f"torch_npu {version} is for another torch than {torch}",
                     f"pip install torch_npu=={'.'.join(torch.split('+')[0].split('.')[:3])}")
        else:
            self.say("ok", "wheel", f"torch_npu {version} in {folder}")
        return folder

    def names(self, wheel: str, present: "Present") -> None:
        """What the wheel's libraries want and npumesh has."""
        files = [path for pattern in ("lib/*.so", "*.so") for path in sorted(glob.glob(os.path.join(wheel, pattern)))]
        linked, asked = set(), set()
        for path in files:
            linked |= {each for each in undefined_names(path) if LINKED.match(each)}
            asked |= looked_up(path)
        defined = {each for each in asked if each in linked}
        self.tell("linked names", linked, present, "wrong",
                  "`import torch_npu` fails, or the first call of one of these ends the process",
                  "this wheel is newer than this npumesh: take a tested release (docs/torch_npu.md)")
        functions = {each for each in asked - defined if each.startswith("aclnn")}
        self.tell("aclnn functions", functions, present, "note",
                  "a function of torch that needs one of these raises an error with its name",
                  "npumesh ops --aclnn NAME says why it is absent")
        self.tell("names looked up", asked - defined - functions, present, "note",
                  "the wheel goes without, or raises an error with the name", "docs/acl.md has the functions")

    def tell(self, subject: str, names: Set[str], present: "Present", level: str, meaning: str, remedy: str) -> None:
        absent = {each for each in names if not present.has(each)}
        text = f"{len(names) - len(absent)} of {len(names)} are there"
        if absent:
            self.say(level, subject, f"{text}; absent, so {meaning}: {listed(absent)}", remedy)
        else:
            self.say("ok", subject, text)


def examine(libraries: str) -> Facts:
    """The facts of this Python, with npumesh's libraries in a folder."""
    facts = Facts()
    wheel = facts.wheel(facts.torch())
    if wheel is None:
        return facts
    try:
        present = Present(libraries)
    except OSError as error:
        facts.say("wrong", "libraries", str(error), "install npumesh whole; `. <prefix>/set_env.sh`")
        return facts
    try:
        facts.names(wheel, present)
    except (OSError, ValueError, struct.error) as error:
        facts.say("wrong", "wheel", f"{wheel} cannot be read: {error}", "install the wheel again")
    return facts


def main() -> int:
    home = os.environ.get("ASCEND_HOME_PATH", "")
    facts = examine(os.path.join(home, "lib64"))
    for level, subject, text, remedy in sorted(facts.findings, key=lambda each: each[0] != "wrong"):
        print(f"{level:<6}{subject}: {text}")
        if remedy:
            print(f"      {remedy}")
    return 1 if any(each[0] == "wrong" for each in facts.findings) else 0


if __name__ == "__main__":
    sys.exit(main())
