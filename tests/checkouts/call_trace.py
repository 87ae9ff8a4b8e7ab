"""The calls of aclnn that a program makes, with the values before and after: preload(installed, folder) builds a library
that is preloaded into the program and writes them (call_trace.h), calls(path) reads them with torch.
"""

import glob
import json
import os
import re
import subprocess
from types import SimpleNamespace

import torch

FUNCTION = re.compile(r"aclnnStatus\s+(aclnn\w+)GetWorkspaceSize\s*\(([^;]*)\)\s*;")
# By aclDataType. What torch has no type for is read as nothing.
TYPES = {0: torch.float32, 1: torch.float16, 2: torch.int8, 3: torch.int32, 4: torch.uint8, 6: torch.int16,
         9: torch.int64, 11: torch.float64, 12: torch.bool, 16: torch.complex64, 17: torch.complex128, 27: torch.bfloat16}


def functions(installed):
    """The first phases of the headers: name -> [(declaration, name, whether it is written)]."""
    found = {}
    for header in sorted(glob.glob(os.path.join(installed, "include", "aclnnop", "*.h"))):
        with open(header) as file:
            for name, text in FUNCTION.findall(file.read()):
                words = [" ".join(word.split()) for word in text.split(",")]
                found[name] = [(word, re.search(r"(\w+)$", word).group(1),
                                word.startswith("aclTensor")) for word in words]
    return found


def source(installed):
    text = ['#include "call_trace.h"']
    text += [f'#include "aclnnop/{os.path.basename(header)}"'
             for header in sorted(glob.glob(os.path.join(installed, "include", "aclnnop", "*.h")))]
    text.append('extern "C" {')
    for name, parameters in functions(installed).items():
        first = f"{name}GetWorkspaceSize"
        words = ", ".join(declared for declared, _, _ in parameters)
        names = ", ".join(called for _, called, _ in parameters)
        takes = "".join(f'  call.Take("{called}", {called}, {"true" if written else "false"});\n'
                        for _, called, written in parameters[:-2])
        text.append(f'''aclnnStatus {first}({words}) {{
  trace::Call call{{"{name[5:]}", {{}}}};
{takes}  const aclnnStatus status = trace::Next<decltype({first})>("{first}")({names});
  if (status == 0) trace::Keep(*executor, call);
  return status;
}}
aclnnStatus {name}(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {{
  const trace::Call call = trace::Begin(executor, stream);
  const aclnnStatus status = trace::Next<decltype({name})>("{name}")(workspace, workspaceSize, executor, stream);
  if (status == 0) trace::End(call, stream);
  return status;
}}''')
    text.append("}")
    return "\n".join(text) + "\n"


def preload(installed, folder):
    """The path of the built library."""
    path = os.path.join(folder, "libcall_trace.so")
    with open(os.path.join(folder, "traced_functions.cc"), "w") as file:
        file.write(source(installed))
    include = os.path.join(installed, "include")
    subprocess.run(["g++", "-std=c++20", "-O0", "-fPIC", "-shared", f"-I{include}", f"-I{include}/aclnnop",
                    f"-I{os.path.dirname(os.path.abspath(__file__))}", os.path.join(folder, "traced_functions.cc"), "-o", path,
                    "-ldl"], check=True)
    return path


def tensor(words):
    """A tensor of torch, None where it has no values. Floats become doubles."""
    dtype = TYPES.get(words["type"])
    if dtype is None or not words["plain"]:
        return None
    shape, strides = ([int(n) for n in words[name]] for name in ("shape", "strides"))
    if 0 in shape:
        return torch.empty(shape, dtype=torch.float64 if dtype.is_floating_point else dtype)
    if not words["bytes"]:
        return None
    data = bytearray.fromhex(words["bytes"])
    if dtype == torch.bool:
        data = bytearray(value != 0 for value in data)
    read = torch.frombuffer(data, dtype=dtype).as_strided(shape, strides)
    return read.double() if dtype.is_floating_point else read.to(torch.complex128) if dtype.is_complex else read.clone()


def number(words):
    dtype = TYPES[words["type"]]
    return torch.frombuffer(bytearray.fromhex(words["scalar"]), dtype=dtype)[0].item()


class Unread(Exception):
    """A value that torch cannot hold, or that was too large to be written."""


def value(words):
    if isinstance(words, dict) and "scalar" in words:
        return number(words)
    if isinstance(words, dict):
        read = tensor(words)
        if read is None:
            raise Unread(f"type {words['type']}, shape {words['shape']}")
        return read
    if isinstance(words, list):
        return [value(word) for word in words]
    return int(words) if isinstance(words, float) and words.is_integer() else words


def name_of(line):
    return re.match(r'{"function":"(\w+)"', line).group(1)


class Call:
    """function, the parameters before (p), the written ones after by name: tensors, or lists of them."""

    def __init__(self, line):
        read = json.loads(line)
        self.function, self.p, self.after, self.types = read["function"], SimpleNamespace(), {}, {}
        for parameter in read["parameters"]:
            setattr(self.p, parameter["name"], value(parameter["value"]))
            after = parameter.get("after")
            if after is not None:
                self.after[parameter["name"]] = value(after)
                self.types[parameter["name"]] = after["type"] if isinstance(after, dict) else after[0]["type"] if after else 0
