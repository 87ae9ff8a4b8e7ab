"""pyACL (the package acl): small programs as clients write them, and what is refused."""

import contextlib
import ctypes
import glob
import io
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import unittest

from case import numpy as np
from docs_test import blocks_in

import acl
from acl import _binding, _by_hand, _functions, _library

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))

HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = range(4)

needs_numpy = unittest.skipIf(np is None, "numpy is not installed (python3-numpy)")


def taken(answer):
    """What a function returned before its code, which must be 0."""
    *values, code = answer
    assert code == 0, (answer, acl.get_recent_err_msg())
    return values[0] if len(values) == 1 else tuple(values)


def done(code):
    assert code == 0, (code, acl.get_recent_err_msg())


class Program(unittest.TestCase):
    """A program between init and finalize, on device 0."""

    def setUp(self):
        done(acl.init())
        done(acl.rt.set_device(0))

    def tearDown(self):
        done(acl.rt.reset_device(0))
        done(acl.finalize())

    def device_bytes(self, data):
        address = taken(acl.rt.malloc(len(data), 0))
        done(acl.rt.memcpy(address, len(data), acl.util.bytes_to_ptr(data), len(data),
                           HOST_TO_DEVICE))
        return address

    def host_bytes(self, address, size):
        host = taken(acl.rt.malloc_host(size))
        done(acl.rt.memcpy(host, size, address, size, DEVICE_TO_HOST))
        data = acl.util.ptr_to_bytes(host, size)
        done(acl.rt.free_host(host))
        return data

    def test_device_information(self):
        self.assertEqual(taken(acl.rt.get_device()), 0)
        self.assertGreaterEqual(taken(acl.rt.get_device_count()), 1)
        self.assertEqual(taken(acl.rt.get_run_mode()), acl.ACL_HOST)
        self.assertTrue(acl.get_soc_name().startswith("Ascend"))
        self.assertEqual(len(taken(acl.get_version())), 3)
        free, total = taken(acl.rt.get_mem_info(acl.ACL_HBM_MEM))
        self.assertLessEqual(free, total)
        block = taken(acl.rt.malloc(total // 2, 0))
        self.assertLess(taken(acl.rt.get_mem_info(acl.ACL_HBM_MEM))[0], free)
        done(acl.rt.free(block))

    def test_bytes_go_to_the_device_and_back(self):
        data = bytes(range(256)) * 3
        address = self.device_bytes(data)
        self.assertEqual(self.host_bytes(address, len(data)), data)
        done(acl.rt.free(address))

    @needs_numpy
    def test_array_goes_to_the_device_and_back(self):
        sent = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        size = sent.size * sent.itemsize
        device = taken(acl.rt.malloc(size, acl.ACL_MEM_MALLOC_HUGE_FIRST))
        done(acl.rt.memcpy(device, size, acl.util.numpy_to_ptr(sent), size, HOST_TO_DEVICE))
        host = taken(acl.rt.malloc_host(size))
        done(acl.rt.memcpy(host, size, device, size, DEVICE_TO_HOST))
        got = acl.util.ptr_to_numpy(host, (2, 3, 4), np.dtype(np.float32).num)
        self.assertTrue(np.array_equal(got, sent))
        self.assertEqual(got.dtype, sent.dtype)
        got[0, 0, 0] = 7  # no copy
        self.assertEqual(acl.util.ptr_to_bytes(host, 4), np.float32(7).tobytes())
        del got
        done(acl.rt.free(device))
        done(acl.rt.free_host(host))

    @needs_numpy
    def test_random_copies_equal_numpy(self):
        at_random = random.Random(40)
        kinds = "?bBhHiIqQefdFD"
        for turn in range(100):
            dtype = np.dtype(at_random.choice(kinds))
            shape = tuple(at_random.randrange(5) for _ in range(at_random.randrange(4)))
            size = max(int(np.prod(shape)) * dtype.itemsize, 1)
            sent = np.frombuffer(at_random.randbytes(size), np.uint8).copy()
            first, second = (taken(acl.rt.malloc(size, at_random.randrange(3))) for _ in "ab")
            received = np.empty_like(sent)
            done(acl.rt.memcpy(first, size, acl.util.numpy_to_ptr(sent), size, HOST_TO_DEVICE))
            done(acl.rt.memcpy(second, size, first, size, DEVICE_TO_DEVICE))
            done(acl.rt.memcpy(acl.util.numpy_to_ptr(received), size, second, size,
                               DEVICE_TO_HOST))
            view = acl.util.ptr_to_numpy(acl.util.numpy_to_ptr(received), shape, dtype.num)
            expected = np.ndarray(shape, dtype, sent)
            self.assertEqual(view.shape, shape, turn)
            self.assertEqual(view.tobytes(), expected.tobytes(), (turn, dtype, shape))
            done(acl.rt.free(first))
            done(acl.rt.free(second))

    @needs_numpy
    def test_view_becomes_dense(self):
        turned = np.arange(6, dtype=np.int32).reshape(2, 3).T
        address, dense = acl.util.numpy_contiguous_to_ptr(turned)
        self.assertEqual(acl.util.ptr_to_bytes(address, 24), np.array(turned).tobytes("C"))
        self.assertEqual(acl.util.numpy_to_ptr(dense), address)
        part = np.arange(6, dtype=np.int32)[2:]
        self.assertEqual(acl.util.ptr_to_bytes(acl.util.numpy_to_ptr(part), 4), b"\2\0\0\0")

    def test_memory_is_set(self):
        address = taken(acl.rt.malloc(100, 2))
        done(acl.rt.memset(address, 100, 0x5A, 100))
        self.assertEqual(self.host_bytes(address, 100), b"\x5a" * 100)
        stream = taken(acl.rt.create_stream())
        done(acl.rt.memset_async(address, 100, 1, 50, stream))
        done(acl.rt.synchronize_stream(stream))
        self.assertEqual(self.host_bytes(address, 100), b"\1" * 50 + b"\x5a" * 50)
        done(acl.rt.destroy_stream(stream))
        done(acl.rt.free(address))

    def test_copies_on_a_stream(self):
        data = b"npumesh!" * 64
        first = self.device_bytes(data)
        second = taken(acl.rt.malloc(len(data), 0))
        stream = taken(acl.rt.create_stream())
        done(acl.rt.memcpy_async(second, len(data), first, len(data), DEVICE_TO_DEVICE, stream))
        done(acl.rt.synchronize_stream(stream))
        self.assertEqual(self.host_bytes(second, len(data)), data)
        done(acl.rt.destroy_stream(stream))
        for address in (first, second):
            done(acl.rt.free(address))

    def test_a_stream_waits_for_the_event_of_another(self):
        size = 1 << 16
        first, second, third = (taken(acl.rt.malloc(size, 0)) for _ in range(3))
        early, late = (taken(acl.rt.create_stream()) for _ in range(2))
        event = taken(acl.rt.create_event_with_flag(1))  # ACL_EVENT_SYNC: it may be reset
        for value in range(20):
            done(acl.rt.memset_async(first, size, value, size, early))
            done(acl.rt.memcpy_async(second, size, first, size, DEVICE_TO_DEVICE, early))
            done(acl.rt.record_event(event, early))
            done(acl.rt.stream_wait_event(late, event))
            done(acl.rt.memcpy_async(third, size, second, size, DEVICE_TO_DEVICE, late))
            done(acl.rt.synchronize_stream(late))
            self.assertEqual(self.host_bytes(third, size), bytes([value]) * size)
            done(acl.rt.reset_event(event, early))
        for stream in (early, late):
            done(acl.rt.synchronize_stream(stream))
            done(acl.rt.destroy_stream(stream))
        done(acl.rt.destroy_event(event))
        for address in (first, second, third):
            done(acl.rt.free(address))

    def test_events_tell_time(self):
        stream = taken(acl.rt.create_stream())
        start, end = (taken(acl.rt.create_event()) for _ in range(2))
        done(acl.rt.record_event(start, stream))
        done(acl.rt.record_event(end, stream))
        done(acl.rt.synchronize_event(end))
        self.assertGreaterEqual(taken(acl.rt.event_elapsed_time(start, end)), 0)
        self.assertEqual(taken(acl.rt.query_event_status(end)), 1)
        for event in (start, end):
            done(acl.rt.destroy_event(event))
        done(acl.rt.destroy_stream(stream))

    def test_callbacks_run_in_the_subscribed_thread(self):
        context = taken(acl.rt.get_context())
        stream = taken(acl.rt.create_stream())
        going, seen = [True], []

        def report(arguments):
            done(acl.rt.set_context(arguments[0]))
            while going[0]:
                acl.rt.process_report(100)

        thread = taken(acl.util.start_thread(report, [context]))
        done(acl.rt.subscribe_report(thread, stream))
        for number in range(5):
            done(acl.rt.launch_callback(
                lambda what: seen.append((what, threading.get_ident())), ["call", number],
                acl.ACL_CALLBACK_BLOCK, stream))
        done(acl.rt.synchronize_stream(stream))
        self.assertEqual(seen, [(["call", number], thread) for number in range(5)])
        done(acl.rt.unsubscribe_report(thread, stream))
        going[0] = False
        done(acl.util.stop_thread(thread))
        done(acl.rt.destroy_stream(stream))

    def test_callback_without_a_thread_is_refused(self):
        stream = taken(acl.rt.create_stream())
        self.assertNotEqual(acl.rt.launch_callback(print, None, 0, stream), 0)
        self.assertIn("aclrtSubscribeReport", acl.get_recent_err_msg())
        self.assertFalse(_by_hand._waiting)
        done(acl.rt.destroy_stream(stream))

    def test_many_contexts(self):
        first = taken(acl.rt.get_context())
        made = [taken(acl.rt.create_context(0)) for _ in range(8)]
        self.assertEqual(len({first, *made}), 9)
        self.assertEqual(taken(acl.rt.get_context()), made[-1])
        for context in made:
            done(acl.rt.set_context(context))
            self.assertEqual(taken(acl.rt.get_context()), context)
        for context in made:
            done(acl.rt.destroy_context(context))
        done(acl.rt.set_context(first))

    def test_threads_with_their_own_contexts(self):
        results = {}

        def work(number):
            context = taken(acl.rt.create_context(0))
            stream = taken(acl.rt.create_stream())
            data = bytes([number]) * 4096
            address = self.device_bytes(data)
            copy = taken(acl.rt.malloc(4096, 0))
            for _ in range(10):
                done(acl.rt.memcpy_async(copy, 4096, address, 4096, DEVICE_TO_DEVICE, stream))
            done(acl.rt.synchronize_stream(stream))
            results[number] = self.host_bytes(copy, 4096) == data
            for block in (address, copy):
                done(acl.rt.free(block))
            done(acl.rt.destroy_stream(stream))
            done(acl.rt.destroy_context(context))

        threads = [taken(acl.util.start_thread(work, number)) for number in range(1, 7)]
        for thread in threads:
            done(acl.util.stop_thread(thread))
        self.assertEqual(results, {number: True for number in range(1, 7)})

    def test_errors_are_codes_with_words(self):
        self.assertNotEqual(acl.rt.set_device(4096), 0)
        self.assertIn("4096", acl.get_recent_err_msg())
        address = taken(acl.rt.malloc(64, 0))
        done(acl.rt.free(address))
        self.assertNotEqual(acl.rt.free(address), 0)
        self.assertIn(f"{address:#x}", acl.get_recent_err_msg())
        self.assertIsNone(acl.get_recent_err_msg())
        pointer, code = acl.rt.malloc(0, 0)
        self.assertEqual((pointer, code != 0), (0, True))
        self.assertNotEqual(acl.rt.memcpy(0, 8, 0, 8, DEVICE_TO_DEVICE), 0)
        self.assertNotEqual(acl.rt.destroy_stream(12345), 0)

    def test_limits_are_what_was_set(self):
        CUBE, VECTOR = 0, 1
        whole = taken(acl.rt.get_device_res_limit(0, CUBE))
        done(acl.rt.set_device_res_limit(0, CUBE, 5))
        self.assertEqual(taken(acl.rt.get_device_res_limit(0, CUBE)), 5)
        stream = taken(acl.rt.create_stream())
        done(acl.rt.set_stream_res_limit(stream, VECTOR, 3))
        self.assertEqual(taken(acl.rt.get_stream_res_limit(stream, VECTOR)), 3)
        done(acl.rt.use_stream_res_in_current_thread(stream))
        self.assertEqual(taken(acl.rt.get_res_in_current_thread(VECTOR)), 3)
        done(acl.rt.unuse_stream_res_in_current_thread(stream))
        done(acl.rt.reset_stream_res_limit(stream))
        done(acl.rt.reset_device_res_limit(0))
        self.assertEqual(taken(acl.rt.get_device_res_limit(0, CUBE)), whole)
        done(acl.rt.destroy_stream(stream))

    def test_what_the_device_has(self):
        # The numbers of aclrtDevAttr that clients ask: cube and vector cores, the architecture.
        cubes, vectors, architecture = (taken(acl.rt.get_device_info(0, attribute))
                                        for attribute in (102, 201, 601))
        self.assertEqual((vectors, architecture), (2 * cubes, 2201))
        least, greatest = taken(acl.rt.device_get_stream_priority_range())
        self.assertGreater(least, greatest)
        self.assertEqual(len(taken(acl.rt.device_get_uuid(0))["bytes"]), 16)
        rates = taken(acl.rt.get_device_utilization_rate(0))
        self.assertEqual(set(rates), {"cube_utilization", "vector_utilization",
                                      "aicpu_utilization", "memory_utilization",
                                      "utilization_extend"})
        attributes, count = taken(acl.get_cann_attribute_list())
        self.assertEqual(len(attributes), count)
        for attribute in attributes:
            self.assertIn(taken(acl.get_cann_attribute(attribute)), (0, 1))
        self.assertTrue(taken(acl.get_version_str("runtime")))
        self.assertTrue(taken(acl.get_cann_version(0))["version"])

    def test_streams_keep_their_attributes(self):
        stream = taken(acl.rt.create_stream_with_config(0, 0))
        for kind, key in enumerate(("failureMode", "overflowSwitch", "userCustomTag"), 1):
            done(acl.rt.set_stream_attribute(stream, kind, {key: 1}))
            self.assertEqual(taken(acl.rt.get_stream_attribute(stream, kind)), {key: 1})
        done(acl.rt.set_stream_overflow_switch(stream, 0))
        self.assertEqual(taken(acl.rt.get_stream_overflow_switch(stream)), 0)
        done(acl.rt.destroy_stream(stream))

    def test_tasks_wait_for_values(self):
        GEQ = 0
        place = taken(acl.rt.malloc(8, 0))
        done(acl.rt.memset(place, 8, 0, 8))
        early, late = (taken(acl.rt.create_stream()) for _ in range(2))
        seen = taken(acl.rt.malloc(8, 0))
        done(acl.rt.value_wait(place, 5, GEQ, late))
        done(acl.rt.memcpy_async(seen, 8, place, 8, DEVICE_TO_DEVICE, late))
        done(acl.rt.value_write(place, 7, 0, early))
        done(acl.rt.synchronize_stream(late))
        self.assertEqual(self.host_bytes(seen, 8), (7).to_bytes(8, "little"))
        for stream in (early, late):
            done(acl.rt.synchronize_stream(stream))
            done(acl.rt.destroy_stream(stream))
        for block in (place, seen):
            done(acl.rt.free(block))

    @needs_numpy
    def test_reduction_on_a_stream_equals_numpy(self):
        kinds = {10: np.add, 11: np.maximum, 12: np.minimum}
        stream = taken(acl.rt.create_stream())
        for kind, function in kinds.items():
            first, second = (np.arange(8, dtype=np.float32) * scale - 3 for scale in (2, -1))
            blocks = [self.device_bytes(array.tobytes()) for array in (first, second)]
            done(acl.rt.reduce_async(*blocks, 32, kind, acl.ACL_FLOAT, stream, 0))
            done(acl.rt.synchronize_stream(stream))
            got = np.frombuffer(self.host_bytes(blocks[0], 32), np.float32)
            self.assertEqual(got.tolist(), function(first, second).tolist(), kind)
            for block in blocks:
                done(acl.rt.free(block))
        done(acl.rt.destroy_stream(stream))

    @needs_numpy
    def test_rows_of_a_matrix_are_copied(self):
        sent = np.arange(60, dtype=np.uint8).reshape(6, 10)
        device = taken(acl.rt.malloc(6 * 16, 0))
        done(acl.rt.memset(device, 96, 255, 96))
        done(acl.rt.memcpy2d(device, 16, acl.util.numpy_to_ptr(sent), 10, 7, 6, HOST_TO_DEVICE))
        expected = np.full((6, 16), 255, np.uint8)
        expected[:, :7] = sent[:, :7]
        self.assertEqual(self.host_bytes(device, 96), expected.tobytes())
        back = np.zeros((6, 10), np.uint8)
        stream = taken(acl.rt.create_stream())
        done(acl.rt.memcpy2d_async(acl.util.numpy_to_ptr(back), 10, device, 16, 7, 6,
                                   DEVICE_TO_HOST, stream))
        done(acl.rt.synchronize_stream(stream))
        self.assertEqual(back[:, :7].tolist(), sent[:, :7].tolist())
        self.assertFalse(back[:, 7:].any())
        done(acl.rt.destroy_stream(stream))
        done(acl.rt.free(device))

    def test_addresses_tell_where_they_are(self):
        DEVICE = 1
        device = taken(acl.rt.malloc(64, 0))
        self.assertEqual(taken(acl.rt.pointer_get_attributes(device))["location"],
                         {"id": 0, "type": DEVICE})
        host = taken(acl.rt.malloc_host(4096))
        self.assertNotEqual(
            taken(acl.rt.pointer_get_attributes(host))["location"]["type"], DEVICE)
        done(acl.rt.free_host(host))
        done(acl.rt.free(device))

    def test_host_memory_is_registered(self):
        MAPPED = 0
        own = ctypes.create_string_buffer(8192)
        page = (ctypes.addressof(own) + 4095) // 4096 * 4096
        mapped = taken(acl.rt.host_register(page, 4096, MAPPED))
        done(acl.rt.memset(mapped, 4096, 6, 4096))
        self.assertEqual(acl.util.ptr_to_bytes(page, 16), b"\6" * 16)
        done(acl.rt.host_unregister(page))
        self.assertNotEqual(acl.rt.host_unregister(page), 0)

    def test_a_notify_takes_one_record(self):
        notify = taken(acl.rt.create_notify(0))
        early, late = (taken(acl.rt.create_stream()) for _ in range(2))
        taken(acl.rt.get_notify_id(notify))
        for _ in range(3):
            done(acl.rt.record_notify(notify, early))
            done(acl.rt.wait_and_reset_notify(notify, late, 0))
            done(acl.rt.synchronize_stream(late))
        done(acl.rt.notify_batch_reset([notify]))
        for stream in (early, late):
            done(acl.rt.destroy_stream(stream))
        done(acl.rt.destroy_notify(notify))

    def test_memory_of_the_media_processor(self):
        address = taken(acl.media.dvpp_malloc(64))
        done(acl.rt.memset(address, 64, 9, 64))
        self.assertEqual(self.host_bytes(address, 64), b"\x09" * 64)
        done(acl.media.dvpp_free(address))
        self.assertNotEqual(acl.media.dvpp_free(address), 0)

    def test_physical_memory_is_mapped(self):
        prop = {"handleType": 0, "allocationType": 0, "memAttr": 1,
                "location": {"id": 0, "type": 1}, "reserve": 0}
        size = taken(acl.rt.mem_get_allocation_granularity(prop, 0))
        self.assertGreater(size, 0)
        handle = taken(acl.rt.malloc_physical(size, prop, 0))
        address = taken(acl.rt.reserve_mem_address(size, 0, 0, 0))
        done(acl.rt.map_mem(address, size, 0, handle, 0))
        done(acl.rt.memset(address, size, 3, size))
        self.assertEqual(self.host_bytes(address, 16), b"\3" * 16)
        done(acl.rt.unmap_mem(address))
        done(acl.rt.release_mem_address(address))
        done(acl.rt.free_physical(handle))

    def test_profile(self):
        with tempfile.TemporaryDirectory() as folder:
            done(acl.prof.init(folder))
            config = acl.prof.create_config([0], 0, 0, 0x1)
            self.assertNotEqual(config, 0)
            done(acl.prof.start(config))
            address = taken(acl.rt.malloc(64, 0))
            done(acl.rt.free(address))
            done(acl.prof.stop(config))
            done(acl.prof.destroy_config(config))
            done(acl.prof.finalize())
            self.assertTrue(os.listdir(folder))


READER = """
import sys
import acl

assert acl.init() == 0 and acl.rt.set_device(0) == 0
key = sys.stdin.readline().rstrip("\\n")
address, code = acl.rt.ipc_mem_import_by_key(key, 0)
assert code == 0, acl.get_recent_err_msg()
host, _ = acl.rt.malloc_host(64)
assert acl.rt.memcpy(host, 64, address, 64, 2) == 0, acl.get_recent_err_msg()
print(acl.util.ptr_to_bytes(host, 64).hex(), flush=True)
assert acl.rt.memset(address, 64, 9, 64) == 0
assert acl.rt.ipc_mem_close(key) == 0, acl.get_recent_err_msg()
assert acl.rt.reset_device(0) == 0 and acl.finalize() == 0
"""


class Processes(unittest.TestCase):
    """Memory that another process reads and writes by its key."""

    setUp, tearDown = Program.setUp, Program.tearDown
    device_bytes, host_bytes = Program.device_bytes, Program.host_bytes

    def test_a_key_leads_to_the_memory(self):
        data = bytes(range(64))
        address = self.device_bytes(data)
        ANY_PROCESS = 1
        key = taken(acl.rt.ipc_mem_get_export_key(address, 64, 65, ANY_PROCESS))
        reader = subprocess.run([sys.executable, "-c", READER], input=key + "\n",
                                capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(reader.returncode, 0, reader.stdout + reader.stderr)
        self.assertEqual(reader.stdout.split()[-1], data.hex())
        self.assertEqual(self.host_bytes(address, 64), b"\x09" * 64)
        done(acl.rt.ipc_mem_close(key))
        done(acl.rt.free(address))


class WithoutDevice(unittest.TestCase):
    """What needs no device."""

    def test_init_and_finalize_count(self):
        for _ in range(2):
            done(acl.init())
            self.assertEqual(acl.init(), acl.ACL_ERROR_REPEAT_INITIALIZE)
            done(acl.finalize())
            self.assertEqual(acl.finalize(), acl.ACL_ERROR_REPEAT_FINALIZE)
        self.assertNotEqual(acl.init("/no/such/file.json"), 0)
        done(acl.init(None))
        self.assertEqual(acl.finalize_reference(), (0, 0))

    @needs_numpy
    def test_every_half_equals_numpy(self):
        halves = np.arange(1 << 16, dtype=np.uint16)
        for half, value in zip(halves.tolist(), halves.view(np.float16).astype(np.float32)):
            got = acl.float16_to_float(half)
            self.assertTrue(got == value or (got != got and value != value), half)
            if value == value:
                self.assertEqual(acl.float_to_float16(float(value)), half)

    def test_sizes_of_types(self):
        sizes = {acl.ACL_FLOAT: 4, acl.ACL_FLOAT16: 2, acl.ACL_INT8: 1, acl.ACL_INT64: 8,
                 acl.ACL_BOOL: 1, acl.ACL_DOUBLE: 8, acl.ACL_BF16: 2, acl.ACL_DT_UNDEFINED: 0}
        self.assertEqual({kind: acl.data_type_size(kind) for kind in sizes}, sizes)

    def test_wrong_arguments(self):
        for call, error, words in (
            (lambda: acl.rt.malloc(1), TypeError, r"malloc\(size, policy\): expected 2 .* seen 1"),
            (lambda: acl.rt.malloc("8", 0), TypeError, "malloc: size: expected an int, seen '8'"),
            (lambda: acl.rt.malloc(-1, 0), OverflowError, "size: expected 0 to .* seen -1"),
            (lambda: acl.rt.set_device(1 << 31), OverflowError, "device_id: expected"),
            (lambda: acl.rt.free(1.5), TypeError, "dev_ptr: expected an int, seen 1.5"),
            (lambda: acl.float_to_float16("x"), TypeError, "expected a float, seen 'x'"),
            (lambda: acl.init(3), TypeError, "config_path: expected a str, seen 3"),
            (lambda: acl.init("a\0b"), ValueError, "without NUL"),
            (lambda: acl.rt.malloc_physical(8, 3, 0), TypeError, "prop: expected a dict, seen 3"),
            (lambda: acl.rt.malloc_physical(8, {}, 0), KeyError, "the key handleType is missing"),
            (lambda: acl.op.set_attr_list_int(0, "n", 3), TypeError, "values: expected a list"),
            (lambda: acl.op.set_attr_list_int(0, "n", ["a"]), TypeError, r"values\[0\]: expected"),
            (lambda: acl.set_tensor_shape_range(0, [[1]]), ValueError, "expected two ints"),
            (lambda: acl.rt.launch_callback(3, 0, 0, 0), TypeError, "expected a function"),
            (lambda: acl.rt.set_stream_attribute(0, 1, {}), KeyError, "the key failureMode"),
            (lambda: acl.rt.malloc_with_cfg(8, 0, {"numAttrs": 2, "attrs": []}), KeyError,
             "numAttrs is 2, but attrs has 0"),
            (lambda: acl.util.bytes_to_ptr("x"), ValueError, "expected bytes, seen str"),
            (lambda: acl.util.numpy_to_ptr([1]), ValueError, "expected a numpy array"),
            (lambda: acl.util.ptr_to_bytes(0, 4), ValueError, "ptr is 0"),
            (lambda: acl.util.start_thread(3, None), TypeError, "expected a function, seen 3"),
        ):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                call()

    @needs_numpy
    def test_wrong_numpy_types(self):
        for number in (17, 9999, "f"):  # 17: objects
            with self.assertRaisesRegex(ValueError, "numpy's number of a type"):
                acl.util.ptr_to_numpy(64, (1,), number)
        with self.assertRaisesRegex(ValueError, "ptr is 0"):
            acl.util.ptr_to_numpy(0, (1,), 11)

    def test_names_that_do_not_exist(self):
        for module, name in ((acl, "sleep"), (acl.rt, "mallok"), (acl.mdl, "load"),
                             (acl.op, "run"), (acl.prof, "begin")):
            with self.assertRaisesRegex(AttributeError, f"{module.__name__} has no {name}; docs"):
                getattr(module, name)
        from acl import mdl
        import acl.rt as rt
        self.assertIs(mdl, acl.mdl)
        self.assertIs(rt, acl.rt)

    def test_media_is_refused_by_name(self):
        for module in (acl.media, acl.himpi, acl.fv, acl.blas):
            with self.assertRaisesRegex(NotImplementedError, f"{module.__name__}.create: npumesh"):
                module.create(1, 2)
            self.assertFalse(hasattr(module, "__wrapped__"))

    def test_function_that_the_library_lacks(self):
        rows = """
give = aclNotThere(device:i32, &first:ptr, &name:text[8], &dims:IODims, &list:[i64 device])
make = aclNotThere(data:ptr) -> ptr
word = aclNotThere() -> str
drop = aclNotThere(data:ptr) -> none
"""
        made = _binding.bind("rt", rows)
        self.assertEqual(made["give"](3), (0, "", {}, [], acl.ACL_ERROR_API_NOT_SUPPORT))
        self.assertIn("acl.rt.give: npumesh has no aclNotThere (docs/acl.md)",
                      acl.get_recent_err_msg())
        self.assertEqual(made["make"](1), 0)
        self.assertIsNone(made["word"]())
        self.assertIsNone(made["drop"](1))
        self.assertIn("acl.rt.drop", acl.get_recent_err_msg())

    def test_thread_that_raises(self):
        def fail(number):
            raise LookupError(f"of {number}")

        thread = taken(acl.util.start_thread(fail, 7))
        with self.assertRaisesRegex(RuntimeError, "ended by LookupError: of 7"):
            acl.util.stop_thread(thread)
        self.assertNotEqual(acl.util.stop_thread(thread), 0)
        seen = []
        done(acl.util.stop_thread(taken(acl.util.start_thread(lambda: seen.append(1), None))))
        self.assertEqual(seen, [1])


def prototypes():
    """The parameters of each function in the headers of the C interface, as text."""
    found = {}
    # Not below build/, where other trees may be linked to.
    rooms = [os.path.join(SOURCE, room, "**", "include", "acl", "*.h") for room in ("runtime", "graph")]
    for path in [path for room in rooms for path in glob.glob(room, recursive=True)]:
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/|//[^\n]*|#[^\n]*", "", file.read(), flags=re.S)
        for name, parameters in re.findall(r"\b(acl\w+)\s*\(([^;{}()]*)\)\s*;", text):
            found[name] = " ".join(parameters.split())
    return found


class Table(unittest.TestCase):
    """The rows of _functions.py against the headers."""

    WIDTHS = {"int8_t": "i8", "uint8_t": "u8", "int16_t": "i16", "uint16_t": "u16",
              "int32_t": "i32", "int": "i32", "uint32_t": "u32", "int64_t": "i64",
              "uint64_t": "u64", "size_t": "size", "float": "f32"}

    def test_rows_are_as_the_headers_say(self):
        known = prototypes()
        compared = 0
        for module, text in _functions.FUNCTIONS.items():
            for row in _binding.rows_of(module, text):
                if row.c_name not in known:
                    continue
                parameters = known[row.c_name]
                expected = [] if parameters in ("", "void") else parameters.split(",")
                words = []
                for each in row.parameters:
                    words += ["i32", "list", "list"] if each.words == "[[i64]]" else [each.words]
                self.assertEqual(len(words), len(expected), (row.name, parameters))
                for word, of_header in zip(words, expected):
                    kind = of_header.replace("const", "").split()[0]
                    if not set("*[") & set(of_header) and kind in self.WIDTHS:
                        self.assertEqual(word, self.WIDTHS[kind], (row.name, of_header))
                compared += 1
        self.assertGreater(compared, 60)

    def test_no_function_is_said_twice(self):
        for module, functions in _by_hand.BY_HAND.items():
            if module not in _functions.FUNCTIONS:
                continue
            names = [row.name for row in _binding.rows_of(module, _functions.FUNCTIONS[module])]
            self.assertEqual(len(names), len(set(names)))
            short = {name.rpartition(".")[2] for name in names}
            self.assertFalse(short & set(functions), module)


PROBES = """
numbers = aclprobeNumbers(a:i8, &a_out:i8, b:u8, &b_out:u8, c:i16, &c_out:i16, d:u16, &d_out:u16,
    e:i32, &e_out:i32, f:u32, &f_out:u32, g:i64, &g_out:i64, h:u64, &h_out:u64, i:size, &i_out:size,
    j:f32, &j_out:f32, k:ptr, &k_out:ptr)
result = aclprobeResult(value:i64) -> i64
nothing = aclprobeNothing(place:ptr=) -> none
text = aclprobeText(text:str?) -> str
bytes = aclprobeBytes(text:str, len(text):size, &copy:text[room], room:size)
turn = aclprobeTurn(given:IODims, &turned:IODims)
counted = aclprobeCounted(count:size, &range:IODimsRange, &batch:Batch, &images:HW)
property = aclprobeProperty(given:PhysicalMemProp, &sum:u64)
list = aclprobeList(len(values):i32, values:[i64], &copy:[i64 room], room:size)
lists = aclprobeLists(values:[[i64]], &sum:i64)
pairs = aclprobePairs(len(pairs):size, pairs:[2 i64], &sum:i64)
texts = aclprobeTexts(len(texts):i32, texts:[str], &length:size)
"""


@unittest.skipUnless(os.path.exists(os.environ.get("NPUMESH_ACL_PROBE", "")),
                     "NPUMESH_ACL_PROBE names no library of acl_probe.c")
class Kinds(unittest.TestCase):
    """Arguments and returns against C functions that hand them back (acl_probe.c)."""

    ROUNDS = 500

    def setUp(self):
        self.at_random = random.Random(4)
        probe = ctypes.CDLL(os.environ["NPUMESH_ACL_PROBE"])
        self.made = _binding.bind("rt", PROBES)
        for name in re.findall(r"= (aclprobe\w+)", PROBES):
            _library._symbols[name] = probe[name]
            self.addCleanup(_library._symbols.pop, name)

    def number(self, bits, signed):
        least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        return self.at_random.choice((least, most, 0, 1, self.at_random.randint(least, most)))

    def test_numbers(self):
        for _ in range(self.ROUNDS):
            given = [self.number(bits, signed) for bits in (8, 16, 32, 64)
                     for signed in (True, False)]
            given += [self.number(64, False), self.at_random.randrange(1 << 20) / 64,
                      self.number(64, False)]
            self.assertEqual(self.made["numbers"](*given), (*given, given[4]))
        for place, bad in ((0, 128), (1, -1), (3, 1 << 16), (7, 1 << 64), (10, -1)):
            wrong = [0] * 11
            wrong[place] = bad
            with self.assertRaisesRegex(OverflowError, f"seen {bad}"):
                self.made["numbers"](*wrong)

    def test_results(self):
        self.assertEqual(self.made["result"](-(1 << 62)), -(1 << 62))
        place = ctypes.c_int(0)
        self.assertIsNone(self.made["nothing"](ctypes.addressof(place)))
        self.assertEqual(place.value, 7)
        self.assertEqual(self.made["text"]("昇腾"), "昇腾")
        self.assertIsNone(self.made["text"]())
        self.assertIsNone(self.made["text"](None))

    def test_texts(self):
        self.assertEqual(self.made["bytes"]("昇腾", 7), ("昇腾", 0))  # six bytes
        self.assertEqual(self.made["bytes"]("昇腾", 6), ("", 1))
        self.assertEqual(self.made["texts"](["a", "bc", ""]), (5, 0))
        self.assertEqual(self.made["texts"]([]), (0, 0))
        with self.assertRaisesRegex(TypeError, r"texts\[1\]: expected a str"):
            self.made["texts"](["a", 3])

    def test_dicts(self):
        for _ in range(self.ROUNDS):
            dims = [self.number(64, True) for _ in range(self.at_random.randint(1, 128))]
            given = {"name": "x" * self.at_random.randrange(128), "dimCount": len(dims),
                     "dims": dims}
            self.assertEqual(self.made["turn"](given), ({**given, "dims": dims[::-1]}, 0))
        self.assertEqual(self.made["turn"]({"dimCount": 0, "dims": []}), ({}, 1))
        with self.assertRaisesRegex(ValueError, "at most 128 values, seen 129"):
            self.made["turn"]({"dimCount": 129, "dims": [1] * 129})
        self.assertEqual(self.made["property"](
            {"handleType": 1, "allocationType": 2, "memAttr": 3,
             "location": {"id": 4, "type": 5}, "reserve": 6}), (654321, 0))

    def test_counted_lists(self):
        for count in (0, 1, 2, 127, 128):
            self.assertEqual(self.made["counted"](count), (
                {"rangeCount": count, "range": [[-i, i] for i in range(count)]},
                {"batchCount": count, "batch": [i << 33 for i in range(count)]},
                {"hwCount": count, "hw": [[i, 2 * i] for i in range(count)]}, 0))

    def test_lists(self):
        for _ in range(self.ROUNDS):
            values = [self.number(64, True) for _ in range(self.at_random.randrange(9))]
            room = self.at_random.randrange(9)
            copy, code = self.made["list"](values, room)
            self.assertEqual((copy[:room], code), ((values + [-1] * 9)[:room], 0))
            small = [[self.at_random.randrange(9) for _ in range(self.at_random.randrange(4))]
                     for _ in range(self.at_random.randrange(4))]
            total = len(small)
            for row in small:
                for value in row:
                    total = 31 * total + value
            self.assertEqual(self.made["lists"](small), (total, 0))
            pairs = [[self.at_random.randrange(-9, 9) for _ in "ab"]
                     for _ in range(self.at_random.randrange(9))]
            total = 0
            for low, high in pairs:
                total = 31 * total + 7 * low + high
            self.assertEqual(self.made["pairs"](pairs), (total, 0))


class Page(unittest.TestCase):
    def test_programs_of_the_page_print_what_it_says(self):
        with open(os.path.join(SOURCE, "docs", "acl.md"), encoding="utf-8") as file:
            blocks = blocks_in(file.read())
        self.assertTrue(blocks)
        for line, code, printed in blocks:
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile(code, f"docs/acl.md:{line}", "exec"), {})
            self.assertEqual(said.getvalue(), printed or "", f"docs/acl.md:{line}")


if __name__ == "__main__":
    unittest.main()
