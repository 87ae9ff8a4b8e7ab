#!/usr/bin/env python3
"""What a call of Session.run costs in Python, beside the same call through ctypes with everything
prepared, which is what the C interface and the engine take.

  bench_python_call.py MODEL

MODEL is a graph of one small operator without open dimensions, such as add.air of write_c_models.
NPUMESH_LIBRARY and PYTHONPATH say which library and package. Prints the median of 15 turns.
"""

import ctypes
import statistics
import sys
import time

import numpy as np

import npumesh
from npumesh._library import library
from npumesh.session import _tensors

CALLS, TURNS = 2000, 15


def turn(call):
    started = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - started) / CALLS * 1e6


def prepared_call(session, arrays, out):
    """npumesh_run with arguments that are made once."""
    operands = [session._read(at, array) for at, array in enumerate(arrays)]
    inputs, outputs = _tensors(operands), _tensors(session._targets([out]))
    run, handle = library().npumesh_run, ctypes.c_void_p(session._handle)
    return lambda: (operands, run(handle, inputs, len(arrays), outputs, 1))


def main():
    with npumesh.World() as world, world.load(sys.argv[1]) as session:
        arrays = [np.ones(port.shape, port.dtype.own) for port in session.inputs]
        out = np.empty_like(session.run(*arrays)[0])
        calls = {
            "prepared, ctypes": prepared_call(session, arrays, out),
            "run(..., out=[...])": lambda: session.run(*arrays, out=[out]),
            "run(...)": lambda: session.run(*arrays),
        }
        times = {name: [] for name in calls}
        for _ in range(TURNS):
            for name, call in calls.items():
                times[name].append(turn(call))
    medians = {name: statistics.median(each) for name, each in times.items()}
    floor = medians["prepared, ctypes"]
    for name, each in medians.items():
        print(f"{name:20}  {each:6.2f} us  {each - floor:+6.2f} us")


if __name__ == "__main__":
    main()
