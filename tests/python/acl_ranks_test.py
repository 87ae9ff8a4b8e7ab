"""pyACL under mpirun: each process has the device of its rank."""

import subprocess
import sys
import unittest

import case

PROGRAM = """
import os, sys
import acl

rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0")))
assert acl.init() == 0 and acl.rt.set_device(rank) == 0, acl.get_recent_err_msg()
data = bytes([rank + 1]) * 4096
device, code = acl.rt.malloc(len(data), 0)
assert code == 0
assert acl.rt.memcpy(device, len(data), acl.util.bytes_to_ptr(data), len(data), 1) == 0
host, code = acl.rt.malloc_host(len(data))
assert acl.rt.memcpy(host, len(data), device, len(data), 2) == 0
same = acl.util.ptr_to_bytes(host, len(data)) == data
# One write, because mpirun joins what its ranks write.
print(f"device {acl.rt.get_device()[0]} of {acl.rt.get_device_count()[0]}: {same}\\n", end="",
      flush=True)
assert acl.rt.free(device) == 0 and acl.rt.free_host(host) == 0
assert acl.rt.set_device(7) != 0 and "7" in acl.get_recent_err_msg()
assert acl.rt.reset_device(rank) == 0 and acl.finalize() == 0
"""


class Ranks(unittest.TestCase):
    def test_each_rank_has_its_device(self):
        done = subprocess.run([*case.mpirun(), "-n", "2", sys.executable, "-c", PROGRAM],
                              capture_output=True, text=True, timeout=1200,
                              env=case.plain_environment(), check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(sorted(done.stdout.split("\n"))[-2:],
                         ["device 0 of 2: True", "device 1 of 2: True"])


if __name__ == "__main__":
    unittest.main()
