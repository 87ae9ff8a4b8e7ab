"""Reads operator dumps: written from the vendor's format description, apart from npumesh's code.

  dump_reader.py PATH...     prints what each file says
"""

import json
import re
import struct
import sys

# By number: name and bytes of one element (0: not a whole number of bytes, or none).
TYPES = [("UNDEFINED", 0), ("FLOAT", 4), ("FLOAT16", 2), ("INT8", 1), ("UINT8", 1), ("INT16", 2),
         ("UINT16", 2), ("INT32", 4), ("INT64", 8), ("UINT32", 4), ("UINT64", 8), ("BOOL", 1),
         ("DOUBLE", 8), ("STRING", 0), ("DUAL_SUB_INT8", 1), ("DUAL_SUB_UINT8", 1),
         ("COMPLEX64", 8), ("COMPLEX128", 16), ("QINT8", 1), ("QINT16", 2), ("QINT32", 4),
         ("QUINT8", 1), ("QUINT16", 2), ("RESOURCE", 8), ("STRING_REF", 0), ("DUAL", 5),
         ("VARIANT", 8), ("BF16", 2)]

# What msaccucmp accepts.
OFFLINE_NAME = re.compile(r"^[A-Za-z0-9_-]+\.([A-Za-z0-9_-]+)\.[0-9]+(\.[0-9]+)?\.[0-9]{1,255}"
                          r"(\.[0-9]+\.[0-9]+\.[0-9]+)?(\.[0-9]+)?")

CSV_HEADER = ("Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value,Min Value,Avg Value,"
              "Count,Nan Count,Negative Inf Count,Positive Inf Count")


class BadDump(Exception):
    pass


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise BadDump("bad varint")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def fields(data):
    """(number, value) of a message; values are integers or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            size, at = varint(data, at)
            if size > len(data) - at:
                raise BadDump("a field ends behind its message")
            value, at = data[at:at + size], at + size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = data[at:at + size], at + size
        else:
            raise BadDump(f"wire type {kind}")
        yield key >> 3, value


def shape(data):
    dims = []
    for number, value in fields(data):
        if number != 1:
            continue
        if isinstance(value, int):
            dims.append(value)
        else:  # packed
            at = 0
            while at < len(value):
                dim, at = varint(value, at)
                dims.append(dim)
    return dims


# Field numbers of OpOutput and OpInput.
OUTPUT = {1: "data_type", 2: "format", 3: "shape", 5: "data", 6: "size", 7: "original_shape",
          8: "sub_format", 9: "address", 12: "arg_index"}
INPUT = {1: "data_type", 2: "format", 3: "shape", 4: "data", 5: "size", 6: "original_shape",
         7: "sub_format", 8: "address", 10: "arg_index"}


def tensor(data, names):
    result = {"data_type": 0, "format": 0, "shape": [], "size": 0, "original_shape": [],
              "data": b""}
    for number, value in fields(data):
        name = names.get(number)
        if name in ("shape", "original_shape"):
            value = shape(value)
        if name:
            result[name] = value
    if result["data"]:
        raise BadDump("version 2.0 has no bytes inside the header")
    return result


def size_of(message, number):
    return {"size": dict(fields(message)).get(number, 0)}


def read(path):
    """The record of a dump file; every tensor with its "payload"."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) <= 8:
        raise BadDump(f"{path}: {len(data)} bytes")
    (length,) = struct.unpack_from("<Q", data)
    if length < 1 or length > len(data) - 8:
        raise BadDump(f"{path}: header length {length}")
    record = {"version": b"", "dump_time": 0, "op_name": b"", "input": [], "output": [],
              "buffer": [], "space": [], "dfx_message": b""}
    for number, value in fields(data[8:8 + length]):
        if number == 1:
            record["version"] = value
        elif number == 2:
            record["dump_time"] = value
        elif number == 3:
            record["output"].append(tensor(value, OUTPUT))
        elif number == 4:
            record["input"].append(tensor(value, INPUT))
        elif number == 5:
            record["buffer"].append(size_of(value, 3))
        elif number == 6:
            record["op_name"] = value
        elif number == 8:
            record["space"].append(size_of(value, 3))
        elif number == 9:
            record["dfx_message"] = value
    if record["version"] != b"2.0":
        raise BadDump(f"{path}: version {record['version']}")
    at = 8 + length
    for piece in record["input"] + record["output"] + record["buffer"] + record["space"]:
        if piece["size"] > len(data) - at:
            raise BadDump(f"{path}: cut short")
        piece["payload"] = data[at:at + piece["size"]]
        at += piece["size"]
    if at != len(data):
        raise BadDump(f"{path}: {len(data) - at} bytes too many")
    for each in record["input"] + record["output"]:
        name, width = TYPES[each["data_type"]]
        elements = 1
        for dim in each["shape"]:
            elements *= dim
        if width and each["size"] not in (0, elements * width):
            raise BadDump(f"{path}: {name}{each['shape']} has {each['size']} bytes")
    return record


def read_csv(path):
    """The rows of a statistics file, as dictionaries by column."""
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    if not text.endswith("\n") or "\r" in text:
        raise BadDump(f"{path}: lines end in \\n")
    lines = text[:-1].split("\n")
    if lines[0] != CSV_HEADER:
        raise BadDump(f"{path}: header {lines[0]}")
    columns = lines[0].split(",")
    rows = []
    for line in lines[1:]:
        cells = line.split(",")
        if len(cells) != len(columns):
            raise BadDump(f"{path}: {line}")
        rows.append(dict(zip(columns, cells)))
    return rows


def main():
    for path in sys.argv[1:]:
        if path.endswith(".csv"):
            print(json.dumps(read_csv(path), indent=1))
            continue
        record = read(path)
        print(path, record["op_name"].decode(errors="replace"))
        for kind in ("input", "output"):
            for index, each in enumerate(record[kind]):
                print(f"  {kind} {index} {TYPES[each['data_type']][0]}{each['shape']}"
                      f" {each['size']} bytes")


if __name__ == "__main__":
    main()
