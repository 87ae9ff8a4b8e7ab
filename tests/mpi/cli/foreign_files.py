#!/usr/bin/env python3
"""Files of other tools, as those tools write them, are answered with what they are and what to do.

  foreign_files.py NPUMESH

Python's own modules write what they can; the rest has the first bytes of the format. Each command must end
with 3 and one line that names the file, its kind and the way out.
"""

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile

TORCH = "torch.onnx.export"
CONVERT = "tf2onnx"
WEIGHTS = {"layer.weight": [0.5] * 8, "step": 3}


def zipped(*members):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in members:
            archive.writestr(name, content)
    return data.getvalue()


def tarred(form):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=form) as archive:
        info = tarfile.TarInfo("model.onnx")
        info.size = 3
        archive.addfile(info, io.BytesIO(b"abc"))
    return data.getvalue()


def safetensors(**header):
    text = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, **header}).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(4)


def files():
    """(name, bytes, kind, what to do)"""
    for protocol in range(6):
        yield f"weights{protocol}.pkl", pickle.dumps(WEIGHTS, protocol), "pickle", TORCH
    legacy = b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, WEIGHTS))
    yield "legacy.pt", legacy, "pickle", TORCH
    data = ("m/data.pkl", pickle.dumps(WEIGHTS, 2))
    yield "script.pt", zipped(data, ("m/code/__torch__/m.py", "class M")), "TorchScript", TORCH
    yield "saved.pth", zipped(data, ("m/data/0", bytes(300)), ("m/version", "3\n")), "torch.save", TORCH
    yield "new.pt2", zipped(("archive_format", "pt2")), "torch.export", TORCH
    yield "old.pt2", zipped(("serialized_exported_program.json", "{}")), "torch.export", TORCH
    yield "model.keras", zipped(("config.json", "{}"), ("model.weights.h5", "")), "Keras", CONVERT
    yield "arrays.npz", zipped(("w.npy", b"\x93NUMPY")), ".npz", "--inputs"
    yield "array.npy", b"\x93NUMPY\x01\x00" + bytes(118), "NumPy", "--inputs"
    yield "other.zip", zipped(("a.txt", "a")), "zip", "unpack"
    yield "empty.zip", zipped(), "zip", "again"
    for name, form in (("u", tarfile.USTAR_FORMAT), ("g", tarfile.GNU_FORMAT), ("p", tarfile.PAX_FORMAT)):
        yield f"{name}.tar", tarred(form), "tar archive", "unpack"
    yield "a.gz", gzip.compress(b"model"), "gzip", "unpack"
    yield "a.bz2", bz2.compress(b"model"), "bzip2", "unpack"
    yield "a.xz", lzma.compress(b"model"), "xz", "unpack"
    yield "a.zst", b"\x28\xb5\x2f\xfd\x04\x00\x09\x00\x00a", "zstd", "unpack"
    yield "a.7z", b"7z\xbc\xaf\x27\x1c\x00\x04" + bytes(24), "7-Zip", "unpack"
    yield "model.safetensors", safetensors(), "safetensors", TORCH
    yield "more.safetensors", safetensors(__metadata__={"format": "pt"}), "safetensors", TORCH
    yield "model.om", b"IMOD" + struct.pack("<II", 1, 0) + bytes(244), ".om", "atc"
    yield "model.gguf", b"GGUF\x03\x00\x00\x00" + bytes(16), "GGUF", TORCH
    yield "model.h5", b"\x89HDF\r\n\x1a\n" + bytes(88), "HDF5", CONVERT
    yield "model.tflite", b"\x1c\x00\x00\x00TFL3" + bytes(16), "TensorFlow Lite", CONVERT
    yield "frozen.pb", b"\x0a\x10\x0a\x01x\x12\x0bPlaceholder", "GraphDef", CONVERT
    yield "model.ort", b"\x1c\x00\x00\x00ORTM" + bytes(16), "ONNX Runtime", ".onnx"
    yield "model.plan", b"ftrt" + bytes(100), "TensorRT", "ONNX"
    yield "model.mindir", b"\x0a\x050.1.0\x12\x09MindSpore\x1a\x052.3.0", "MindIR", 'file_format="AIR"'
    yield "model.xml", b'<?xml version="1.0"?>\n<net name="m" version="11">', "OpenVINO", "ONNX"
    yield "error.onnx", b'<?xml version="1.0"?><Error><Code>NoSuchKey</Code>', "XML", "download"
    yield "page.onnx", b"\n\n<!doctype html>\n<html>", "web page", "download"
    yield "marked.onnx", b"\xef\xbb\xbf<html>", "web page", "download"
    yield "lfs.onnx", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "Git LFS", "git lfs pull"
    yield "config.json", b'{"architectures": ["LlamaForCausalLM"]}', "JSON", TORCH
    yield "index.json", b'{"metadata": {}, "weight_map": {}}', "JSON", TORCH
    yield "options.json", b'{"ge_config": {}}', "JSON", "--config"
    yield "program", b"\x7fELF\x02\x01\x01" + bytes(57), "program", "--op-library"
    # Of no known kind: what is expected.
    yield "notes.txt", b"hello world\n", "text without", "expected an .air"
    yield "nothing.onnx", b"", "empty", ""


def problems_of(npumesh, folder):
    for name, content, kind, advice in files():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
        for command in ("run", "import", "graph"):
            done = subprocess.run([npumesh, command, name], cwd=folder, capture_output=True, text=True,
                                  timeout=1200, check=False)
            # import knows only what is no ONNX.
            expected = ("no ONNX model", "") if command == "import" and name in ("notes.txt",) else (kind, advice)
            said = done.stderr
            good = (done.returncode == 3 and not done.stdout and said.count("\n") == 1 and name in said
                    and all(word in said for word in expected))
            if not good:
                yield f"npumesh {command} {name} ended with {done.returncode}; expected {expected}: {said}"


def main():
    npumesh = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="npumesh-foreign-") as folder:
        problems = list(problems_of(npumesh, folder))
        for words in (["launch", "-n", "2", "--", "run"], ["export"], ["import", "--tp", "2", "-o", "out"]):
            done = subprocess.run([npumesh, *words, "script.pt"], cwd=folder, capture_output=True, text=True,
                                  timeout=1200, check=False)
            if done.returncode != 3 or done.stderr.count("TorchScript") != 1:
                problems.append(f"{words} ended with {done.returncode}: {done.stderr}")
    print(f"{sum(1 for _ in files())} files, {len(problems)} problems")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
