"""Calls functions of aclnn through libopapi.so with numpy arrays: what tests of them share."""

import ctypes as C
import os
import re

import case
from case import numpy as np

import acl

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "graph", "aclnn", "table",
                      "functions")
LIBRARY = C.CDLL(os.path.join(os.path.dirname(os.environ["NPUMESH_ACL_LIBRARY"]), "libopapi.so"))
for creator in ("aclCreateTensor", "aclCreateScalar", "aclCreateIntArray", "aclCreateFloatArray", "aclCreateBoolArray",
                "aclCreateTensorList", "aclCreateScalarList"):
    getattr(LIBRARY, creator).restype = C.c_void_p

DTYPES = {"float32": 0, "float16": 1, "int8": 2, "int32": 3, "uint8": 4, "int16": 6, "int64": 9, "float64": 11,
          "bool": 12}
FORMAT_ND = 2
# How a parameter that is a number is passed.
NUMBERS = {"i64": C.c_int64, "i32": C.c_int32, "i8": C.c_int8, "u64": C.c_uint64, "f64": C.c_double, "f32": C.c_float,
           "bool": C.c_bool, "dtype": C.c_int32}


class Param:
    def __init__(self, text):
        self.name, kind = text.strip().split(":")
        self.kind, self.written = kind.rstrip("!?~*"), "!" in kind


def signatures():
    """The parameters of every row, by name, from the table itself."""
    rows = {}
    for name in sorted(os.listdir(FOLDER)):
        with open(os.path.join(FOLDER, name)) as file:
            for line in file:
                match = re.match(r"(aclnn\w+)\((.*)\)\s*$", line)
                if match:
                    rows[match[1]] = [Param(text) for text in match[2].split(",")]
    return rows


class View:
    """A tensor in device memory: an array whose strides are whole elements, over a block of its extent."""

    def __init__(self, array):
        self.array = array
        size = array.itemsize
        self.strides = [stride // size for stride in array.strides]
        assert all(stride >= 0 for stride in self.strides)
        empty = 0 in array.shape
        self.elements = 0 if empty else 1 + sum((n - 1) * s for n, s in zip(array.shape, self.strides))
        self.address, code = acl.rt.malloc(max(1, self.elements * size), 0)
        assert code == 0
        if not empty:
            C.memmove(self.address, array.__array_interface__["data"][0], self.elements * size)
        self.handle = self.tensor()

    def tensor(self):
        rank = self.array.ndim
        dims = (C.c_int64 * max(1, rank))(*self.array.shape)
        handle = LIBRARY.aclCreateTensor(dims, C.c_uint64(rank), DTYPES[self.array.dtype.name],
                                         (C.c_int64 * max(1, rank))(*self.strides), C.c_int64(0), FORMAT_ND,
                                         (C.c_int64 * 1)(self.elements), C.c_uint64(1), C.c_void_p(self.address))
        assert handle
        return C.c_void_p(handle)

    def read(self):
        block = np.empty(max(1, self.elements), self.array.dtype)
        C.memmove(block.ctypes.data, self.address, self.elements * block.itemsize)
        return np.lib.stride_tricks.as_strided(block, self.array.shape, self.array.strides).copy()

    def free(self, with_tensor=True):
        assert acl.rt.free(self.address) == 0
        if with_tensor:
            assert LIBRARY.aclDestroyTensor(self.handle) == 0


class Session:
    """A process with a device and a stream."""

    def __init__(self):
        assert acl.init() == 0 and acl.rt.set_device(0) == 0
        self.stream, code = acl.rt.create_stream()
        assert code == 0

    def close(self):
        assert acl.finalize() == 0

    def words(self):
        return acl.get_recent_err_msg()

    def call(self, name, params, values):
        """Runs aclnn`name` with arrays, numbers and lists in the order of `params`; arrays of what is written get the
        results. The code of the first phase that fails, or 0 and the results in order."""
        views, handles, destroys = {}, [], []
        for index, (param, value) in enumerate(zip(params, values)):
            handles.append(self.argument(param, value, views, index, destroys))
        size, executor = C.c_uint64(), C.c_void_p()
        code = getattr(LIBRARY, name + "GetWorkspaceSize")(*handles, C.byref(size), C.byref(executor))
        results = None
        if code == 0:
            workspace, bad = acl.rt.malloc(size.value + 1, 0)
            assert bad == 0
            code = getattr(LIBRARY, name)(C.c_void_p(workspace), size, executor, C.c_void_p(self.stream))
            synchronized = acl.rt.synchronize_stream(self.stream)
            code = code or synchronized
            results = [[view.read() for view in views[i]] if params[i].kind == "TL" else views[i][0].read()
                       for i, param in enumerate(params) if param.written and i in views]
            assert acl.rt.free(workspace) == 0
        for index, made in views.items():
            for view in made:
                view.free(with_tensor=params[index].kind == "T")
        for destroy, handle in destroys:
            assert destroy(handle) == 0
        return code, results

    def argument(self, param, value, views, index, destroys):
        kind = param.kind
        if kind in NUMBERS:
            if kind == "dtype":
                value = DTYPES[value]
            return NUMBERS[kind](value)
        if value is None:
            return None
        if kind == "T":
            views[index] = [View(value)]
            return views[index][0].handle
        if kind == "TL":
            views[index] = [View(array) for array in value]
            handles = (C.c_void_p * max(1, len(value)))(*[view.handle.value for view in views[index]])
            made = C.c_void_p(LIBRARY.aclCreateTensorList(handles, C.c_uint64(len(value))))
            destroys.append((LIBRARY.aclDestroyTensorList, made))
            return made
        if kind == "S":
            number = np.array(value)
            if number.dtype == np.float64:
                number = number.astype(np.float32)
            made = C.c_void_p(LIBRARY.aclCreateScalar(C.c_void_p(number.ctypes.data), DTYPES[number.dtype.name]))
            destroys.append((LIBRARY.aclDestroyScalar, made))
            return made
        if kind == "IA":
            made = C.c_void_p(LIBRARY.aclCreateIntArray((C.c_int64 * max(1, len(value)))(*value),
                                                        C.c_uint64(len(value))))
            destroys.append((LIBRARY.aclDestroyIntArray, made))
            return made
        if kind == "BA":
            made = C.c_void_p(LIBRARY.aclCreateBoolArray((C.c_bool * max(1, len(value)))(*value),
                                                         C.c_uint64(len(value))))
            destroys.append((LIBRARY.aclDestroyBoolArray, made))
            return made
        if kind == "SL":
            scalars = (C.c_void_p * max(1, len(value)))(*[
                LIBRARY.aclCreateScalar((C.c_float * 1)(number), DTYPES["float32"]) for number in value])
            made = C.c_void_p(LIBRARY.aclCreateScalarList(scalars, C.c_uint64(len(value))))
            destroys.append((LIBRARY.aclDestroyScalarList, made))
            return made
        if kind == "str":
            return C.c_char_p(value.encode())
        raise AssertionError(f"parameters of kind {kind}")
