"""Reads .air files without protobuf: the wire format by hand, with the numbers of ge_ir.proto.

Only what a test of an export needs: graphs, nodes, inputs, attributes, descriptors. It shares no
code with npumesh, so that both can only be right together.
"""

import re
import struct


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def fields(data):
    """(number, value) of each field: int, or bytes for everything with a length."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = data[at : at + 8], at + 8
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
            if len(value) != size:
                raise ValueError(f"field {key >> 3} is cut short")
        elif kind == 5:
            value, at = data[at : at + 4], at + 4
        else:
            raise ValueError(f"wire type {kind}")
        yield key >> 3, value


def collect(data):
    found = {}
    for number, value in fields(data):
        found.setdefault(number, []).append(value)
    return found


def packed(values):
    """Repeated integers, packed or not."""
    result = []
    for value in values:
        if isinstance(value, int):
            result.append(signed(value))
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            result.append(signed(number))
    return result


def read_desc(data):
    found = collect(data)
    shape = found.get(3)
    return {
        "name": found.get(1, [b""])[0].decode(),
        "dtype": found.get(2, [0])[0],
        "dims": packed(collect(shape[0]).get(1, [])) if shape else None,
        "layout": found.get(4, [b""])[0].decode(),
    }


def read_attr(data):
    """(member, value); members as AttrDef calls them."""
    for number, value in fields(data):
        if number == 1:
            items = collect(value)
            return "list", {"s": items.get(2, []), "i": packed(items.get(3, []))}
        if number == 2:
            return "s", value
        if number == 3:
            return "i", signed(value)
        if number == 4:
            return "f", struct.unpack("<f", value)[0]
        if number == 5:
            return "b", bool(value)
        if number == 12:
            tensor = collect(value)
            return "t", {
                "desc": read_desc(tensor.get(1, [b""])[0]),
                "data": tensor.get(2, [b""])[0],
            }
        if number == 15:
            return "dt", signed(value)
        return str(number), value
    return "none", None


def read_attrs(entries):
    attrs = {}
    for entry in entries:
        pair = collect(entry)
        attrs[pair[1][0].decode()] = read_attr(pair.get(2, [b""])[0])
    return attrs


def read_op(data):
    found = collect(data)
    return {
        "name": found[1][0].decode(),
        "type": found[2][0].decode(),
        "inputs": [value.decode() for value in found.get(5, [])],
        "attrs": read_attrs(found.get(10, [])),
        "in": [read_desc(value) for value in found.get(33, [])],
        "out": [read_desc(value) for value in found.get(34, [])],
    }


def read_air(path):
    with open(path, "rb") as file:
        model = collect(file.read())
    graph = collect(model[7][0])
    return {
        "name": graph[1][0].decode(),
        "inputs": [value.decode() for value in graph.get(4, [])],
        "ops": [read_op(value) for value in graph[6]],
        "attrs": read_attrs(model.get(11, [])),
    }


def read_pbtxt(path):
    """(name, type, inputs) of each node of a dynamo.pbtxt."""
    nodes = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = line.rstrip("\n")
            if line == "node {":
                nodes.append(["", "", []])
            match = re.fullmatch(r'    (name|op|input): "(.*)"', line)
            if not match:
                continue
            if match[1] == "input":
                nodes[-1][2].append(match[2])
            else:
                nodes[-1][0 if match[1] == "name" else 1] = match[2]
    return [tuple(node) for node in nodes]
