"""What the tests of pyACL share: results of calls, and offline models with their buffers."""

import ctypes
import os
import subprocess

import case
from air_text import AirText
from case import numpy as np

import acl

HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2
INVALID_PARAM, UNSUPPORTED = 100000, 200006


def taken(answer):
    """What a call returns before its code, which is 0."""
    *values, code = answer
    assert code == 0, (answer, acl.get_recent_err_msg())
    return values[0] if len(values) == 1 else tuple(values)


def done(code):
    assert code == 0, (code, acl.get_recent_err_msg())


def atc(*words):
    """Runs `npumesh atc`; what it prints."""
    ran = subprocess.run([os.environ["NPUMESH_COMMAND"], "atc", *words], capture_output=True, text=True,
                         env=case.plain_environment())
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def add_model(shape):
    """sum = x + w."""
    graph = AirText("add")
    x, w = graph.data("x", "float32", shape), graph.data("w", "float32", shape)
    graph.output(graph.op("Add", {"x1": x, "x2": w}, "float32", shape, name="sum"))
    return graph.text()


def compile_add(folder, name, shape, *flags):
    """The path of an offline model of add_model."""
    source, target = os.path.join(folder, name + ".pbtxt"), os.path.join(folder, name)
    with open(source, "wb") as file:
        file.write(add_model(shape))
    atc("--framework=1", f"--model={source}", f"--output={target}", "--soc_version=Ascend910B1", *flags)
    return target + ".om"


def write(address, array):
    data = array.tobytes()  # kept as long as its address
    if data:
        done(acl.rt.memcpy(address, len(data), acl.util.bytes_to_ptr(data), len(data), HOST_TO_DEVICE))


def read(address, dtype, shape):
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    data = ctypes.create_string_buffer(max(size, 1))
    if size:
        done(acl.rt.memcpy(ctypes.addressof(data), size, address, size, DEVICE_TO_HOST))
    return np.frombuffer(data.raw[:size], dtype).reshape(shape)


class Buffers:
    """A dataset over device memory of these sizes."""

    def __init__(self, sizes):
        self.dataset = acl.mdl.create_dataset()
        self.sizes, self.memory, self.buffers = list(sizes), [], []
        for size in self.sizes:
            self.memory.append(taken(acl.rt.malloc(max(size, 1), acl.ACL_MEM_MALLOC_HUGE_FIRST)))
            self.buffers.append(acl.create_data_buffer(self.memory[-1], size))
            self_again, code = acl.mdl.add_dataset_buffer(self.dataset, self.buffers[-1])
            assert (self_again, code) == (self.dataset, 0)

    def write(self, index, array):
        write(self.memory[index], array)

    def read(self, index, dtype, shape):
        return read(self.memory[index], dtype, shape)

    def close(self):
        for buffer, memory in zip(self.buffers, self.memory):
            done(acl.destroy_data_buffer(buffer))
            done(acl.rt.free(memory))
        done(acl.mdl.destroy_dataset(self.dataset))


class Model:
    """A loaded model with buffers for all inputs and outputs."""

    def __init__(self, model_id):
        self.id = model_id
        self.desc = acl.mdl.create_desc()
        done(acl.mdl.get_desc(self.desc, model_id))
        self.fed = Buffers(acl.mdl.get_input_size_by_index(self.desc, i)
                           for i in range(acl.mdl.get_num_inputs(self.desc)))
        self.made = Buffers(acl.mdl.get_output_size_by_index(self.desc, i)
                            for i in range(acl.mdl.get_num_outputs(self.desc)))
        self.inputs, self.outputs = self.fed.dataset, self.made.dataset

    def feed(self, *arrays):
        for index, array in enumerate(arrays):
            self.fed.write(index, array)

    def output(self, shape):
        return self.made.read(0, np.float32, shape)

    def close(self):
        self.fed.close()
        self.made.close()
        done(acl.mdl.destroy_desc(self.desc))
        done(acl.mdl.unload(self.id))
