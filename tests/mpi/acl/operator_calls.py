#!/usr/bin/env python3
"""Calls of the operator tests, made again by a program that calls operators alone (aclop*).

    operator_calls.py NPUMESH MOST SHARDS PROGRAM...

The test programs write down MOST calls of each operator, of one in SHARDS of their tests (tests/unit/recorded_calls.cc) and what came out. The same
bytes have to come out of aclopCompileAndExecute, of aclopCompileAndExecuteV2, which has to find the shapes of the
outputs itself, of handles, and, in another process, of the offline models that `npumesh atc --singleop` makes of the
calls. Inputs that are constants are given by aclSetTensorConst or in host memory, in turns.
"""

import ctypes
import glob
import json
import os
import subprocess
import sys
import tempfile

import acl

HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2
ND, UNDEFINED, HOST = 2, -1, 1
TYPES = {"float32": 0, "float16": 1, "int8": 2, "int32": 3, "uint8": 4, "int16": 6, "uint16": 7, "uint32": 8,
         "int64": 9, "uint64": 10, "float64": 11, "bool": 12, "complex64": 16, "complex128": 17, "bfloat16": 27,
         "int4": 29, "uint1": 30, "int2": 31, "uint2": 32, "complex32": 33, "hifloat8": 34, "float8_e5m2": 35,
         "float8_e4m3fn": 36, "float8_e8m0": 37, "float6_e3m2": 38, "float6_e2m3": 39, "float4_e2m1": 40,
         "float4_e1m2": 41, "UNDEFINED": -1}


def done(code):
    if code != 0:
        raise AssertionError(f"{code}: {acl.get_recent_err_msg()}")


def taken(answer):
    *values, code = answer
    done(code)
    return values[0] if len(values) == 1 else tuple(values)


class Call:
    """A call that was written down, with its memory."""

    def __init__(self, folder, number):
        self.folder, self.name = folder, os.path.basename(folder)
        with open(os.path.join(folder, "op.json"), encoding="utf-8") as file:
            self.said = json.load(file)[0]
        self.host_memory = number % 2 == 1
        self.attr = acl.op.create_attr()
        for attr in self.said["attr"]:
            self.set_attr(attr["name"], attr["type"], attr["value"])
        self.kept = []
        self.inputs = [self.read(f"in{i}") for i in range(len(self.said["input_desc"]))]
        self.expected = [self.read(f"out{i}")
                         for i in range(len(self.said["output_desc"]) + len(self.said["updated"]))]

    def read(self, name):
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            return b""
        with open(path, "rb") as file:
            return file.read()

    def set_attr(self, name, kind, value):
        if kind == "list_list_int" and not value:
            value = []
        setter = getattr(acl.op, f"set_attr_{kind}")
        answer = setter(self.attr, name, int(value) if kind == "bool" else
                        [int(each) for each in value] if kind == "list_bool" else value)
        done(answer[-1] if isinstance(answer, tuple) else answer)

    def describe(self, desc, data=b"", known=False):
        made = acl.create_tensor_desc(TYPES[desc["type"]], desc["shape"], ND)
        assert made, (self.name, desc)
        if desc.get("dynamic_input"):
            done(acl.set_tensor_dynamic_input(made, desc["dynamic_input"]))
            acl.set_tensor_desc_name(made, desc["name"])
        if known and data and not self.host_memory:
            done(acl.set_tensor_const(made, self.bytes(data), len(data)))
        elif known:
            done(acl.set_tensor_place_ment(made, HOST))
        return made

    def bytes(self, data):
        self.kept.append(data)
        return acl.util.bytes_to_ptr(data)

    def memory(self, data):
        address = taken(acl.rt.malloc(max(len(data), 1), 0))
        if data:
            done(acl.rt.memcpy(address, len(data), self.bytes(data), len(data), HOST_TO_DEVICE))
        return address

    def begin(self, shapes=True):
        """Descriptions and buffers of all tensors, outputs filled with what no operator writes by chance.
        Without `shapes` outputs are described as scalars."""
        self.descs, self.buffers, self.places = [], [], []
        for desc, data in zip(self.said["input_desc"], self.inputs):
            known = desc.get("known", False)
            self.descs.append(self.describe(desc, data, known))
            place = self.bytes(data) if known and self.host_memory and data else self.memory(data)
            self.places.append(place)
            absent = desc["type"] == "UNDEFINED"
            self.buffers.append(acl.create_data_buffer(0 if absent else place, len(data)))
        self.out_descs, self.out_buffers, self.out_places = [], [], []
        for desc, data in zip(self.said["output_desc"], self.expected):
            self.out_descs.append(self.describe(desc if shapes else {**desc, "shape": []}))
            self.out_places.append(self.memory(b"\xa5" * len(data)))
            self.out_buffers.append(acl.create_data_buffer(self.out_places[-1], len(data)))

    def check(self, way):
        places = self.out_places + [self.places[slot] for slot in self.said["updated"]]
        for number, (place, expected) in enumerate(zip(places, self.expected)):
            seen = ctypes.create_string_buffer(max(len(expected), 1))
            if expected:
                done(acl.rt.memcpy(ctypes.addressof(seen), len(expected), place, len(expected), DEVICE_TO_HOST))
            if seen.raw[:len(expected)] != expected:
                raise AssertionError(f"{way}: output {number} differs")

    def end(self):
        for buffer in self.buffers + self.out_buffers:
            done(acl.destroy_data_buffer(buffer))
        for desc in self.descs + self.out_descs:
            acl.destroy_tensor_desc(desc)
        host = [desc.get("known", False) and self.host_memory and data
                for desc, data in zip(self.said["input_desc"], self.inputs)]
        for place, is_host in zip(self.places + self.out_places, host + [False] * len(self.out_places)):
            if not is_host:
                done(acl.rt.free(place))

    def words(self):
        return self.said["op"], self.descs, self.buffers, self.out_descs, self.out_buffers, self.attr

    def execute(self, stream):
        self.begin()
        done(acl.op.compile_and_execute(*self.words(), 0, 0, "", stream))
        done(acl.rt.synchronize_stream(stream))
        self.check("aclopCompileAndExecute")
        self.end()

    def execute_v2(self, stream):
        self.begin(shapes=False)
        done(acl.op.compile_and_execute_v2(*self.words(), 0, 0, "", stream))
        done(acl.rt.synchronize_stream(stream))
        self.check("aclopCompileAndExecuteV2")
        for desc, said in zip(self.out_descs, self.said["output_desc"]):
            dims = [taken(acl.get_tensor_desc_dim_v2(desc, axis)) for axis in range(acl.get_tensor_desc_num_dims(desc))]
            assert dims == said["shape"], (dims, said["shape"])
        self.end()

    def execute_with_handle(self, stream):
        if any(desc.get("known") and (self.host_memory or not data)
               for desc, data in zip(self.said["input_desc"], self.inputs)):
            return  # a handle has no memory to read
        self.begin()
        handle = taken(acl.op.create_handle(self.said["op"], self.descs, self.out_descs, self.attr))
        done(acl.op.execute_with_handle(handle, self.buffers, self.out_buffers, stream))
        done(acl.rt.synchronize_stream(stream))
        self.check("aclopExecWithHandle")
        acl.op.destroy_handle(handle)
        self.end()

    def execute_loaded(self, stream):
        self.begin()
        done(acl.op.execute_v2(*self.words(), stream))
        done(acl.rt.synchronize_stream(stream))
        self.check("aclopExecuteV2")
        self.end()


def make_all(folder, ways):
    """Makes every call in every way; returns what went wrong."""
    done(acl.init())
    done(acl.rt.set_device(0))
    models = os.path.join(folder, "models")
    if ways == ["execute_loaded"]:
        done(acl.op.set_model_dir(models))
    stream = taken(acl.rt.create_stream())
    wrong, count = [], 0
    for number, place in enumerate(sorted(glob.glob(os.path.join(folder, "calls", "*")))):
        if ways == ["execute_loaded"] and not os.path.exists(os.path.join(models, os.path.basename(place) + ".om")):
            continue
        call = Call(place, number)
        count += 1
        for way in ways:
            try:
                getattr(call, way)(stream)
            except AssertionError as failure:
                wrong.append(f"{call.name}: {way}: {failure}")
                acl.rt.destroy_stream(stream)
                stream = taken(acl.rt.create_stream())
        acl.op.destroy_attr(call.attr)
    done(acl.rt.destroy_stream(stream))
    done(acl.rt.reset_device(0))
    done(acl.finalize())
    return wrong, count


def compile_all(npumesh, folder):
    """One file of all calls whose constants JSON can say, through atc."""
    entries = []
    for place in sorted(glob.glob(os.path.join(folder, "calls", "*"))):
        with open(os.path.join(place, "op.json"), encoding="utf-8") as file:
            entry = json.load(file)[0]
        if any(desc.get("known") and not desc.get("is_const") for desc in entry["input_desc"]):
            continue
        entry["name"] = os.path.basename(place)
        entries.append(entry)
    listed = os.path.join(folder, "ops.json")
    with open(listed, "w", encoding="utf-8") as file:
        json.dump(entries, file)
    ran = subprocess.run([npumesh, "atc", f"--singleop={listed}", f"--output={os.path.join(folder, 'models')}",
                          "--soc_version=Ascend910B1"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert len(glob.glob(os.path.join(folder, "models", "*.om"))) == len(entries)


def main():
    if sys.argv[1] == "--loaded":
        wrong, count = make_all(sys.argv[2], ["execute_loaded"])
        print(json.dumps({"wrong": wrong, "count": count}))
        return
    npumesh, most, shards, *programs = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        calls = os.path.join(folder, "calls")
        for program in programs:
            subprocess.run([program], check=True, stdout=subprocess.DEVNULL,
                           env={**os.environ, "NPUMESH_TEST_RECORD_CALLS": calls, "NPUMESH_TEST_RECORD_MOST": most,
                                "GTEST_TOTAL_SHARDS": shards, "GTEST_SHARD_INDEX": "0"})
        compile_all(npumesh, folder)
        wrong, count = make_all(folder, ["execute", "execute_v2", "execute_with_handle"])
        ran = subprocess.run([sys.executable, __file__, "--loaded", folder], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        loaded = json.loads(ran.stdout.splitlines()[-1])
        wrong += loaded["wrong"]
        operators = {os.path.basename(place).rsplit("_", 1)[0] for place in glob.glob(os.path.join(calls, "*"))}
    for line in wrong:
        print(line)
    print(f"{count} calls of {len(operators)} operators, {loaded['count']} of them from offline models: "
          f"{len(wrong)} differ")
    sys.exit(1 if wrong or count == 0 or loaded["count"] == 0 else 0)


if __name__ == "__main__":
    main()
