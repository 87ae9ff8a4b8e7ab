"""`npumesh doctor --torch` (python/npumesh/torch_facts.py): what it says of folders that look like wheels. A real one
is examined by wheel_test.py."""

import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from npumesh import torch_facts

LIBRARY = os.environ["NPUMESH_LIBRARY"]
HOME = os.environ["NPUMESH_VENDOR_HOME"]


def examined(folder):
    """The findings with FOLDER in front of sys.path, by subject."""
    sys.path.insert(0, folder)
    try:
        return {subject: (level, text) for level, subject, text, _ in
                torch_facts.examine(os.path.join(HOME, "lib64")).findings}
    finally:
        sys.path.remove(folder)


class TorchFacts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def wheel(self, data=b"", version=None):
        """A folder with a wheel whose library has these bytes."""
        os.makedirs(os.path.join(self.folder, "torch_npu", "lib"))
        with open(os.path.join(self.folder, "torch_npu", "lib", "libtorch_npu.so"), "wb") as file:
            file.write(data)
        if version:
            facts = os.path.join(self.folder, f"torch_npu-{version}.dist-info")
            os.makedirs(facts)
            with open(os.path.join(facts, "METADATA"), "w") as file:
                file.write(f"Metadata-Version: 2.1\nName: torch_npu\nVersion: {version}\n")

    def test_undefined_names_of_a_library(self):
        names = torch_facts.undefined_names(LIBRARY)
        self.assertIn("malloc", names)
        self.assertNotIn("npumesh_session_create", names)
        self.assertTrue(all(names), "an empty name")

    def test_files_that_are_no_libraries(self):
        path = os.path.join(self.folder, "x.so")
        for data in (b"", b"text", b"\x7fELF\x01\x01" + bytes(100)):
            with open(path, "wb") as file:
                file.write(data)
            with self.assertRaisesRegex(ValueError, "no ELF file"):
                torch_facts.undefined_names(path)
        with open(LIBRARY, "rb") as file:
            data = file.read(4096)  # its sections are at the end
        with open(path, "wb") as file:
            file.write(data)
        with self.assertRaises(struct.error):
            torch_facts.undefined_names(path)

    def test_a_function_counts_with_its_first_phase(self):
        path = os.path.join(self.folder, "x.so")
        with open(path, "wb") as file:
            file.write(b"\0aclnnAdd\0aclnnAddGetWorkspaceSize\0aclnnOperator\0aclrtMalloc\0call aclnnSub\0")
        self.assertEqual(torch_facts.looked_up(path), {"aclnnAdd", "aclrtMalloc"})

    def test_a_broken_wheel_is_named(self):
        self.wheel(b"text")
        level, text = examined(self.folder)["wheel"]
        self.assertEqual(level, "wrong")
        self.assertIn("no ELF file", text)

    def test_absent_names_are_listed(self):
        self.wheel()
        shutil.copy(LIBRARY, os.path.join(self.folder, "torch_npu", "lib", "libtorch_npu.so"))
        with open(os.path.join(self.folder, "torch_npu", "lib", "libtorch_npu.so"), "ab") as file:
            file.write(b"\0aclnnAdd\0aclnnAddGetWorkspaceSize\0aclnnNever\0aclnnNeverGetWorkspaceSize\0aclrtNever\0")
        seen = examined(self.folder)
        self.assertEqual(seen["aclnn functions"][0], "note")
        self.assertIn("1 of 2 are there", seen["aclnn functions"][1])
        self.assertTrue(seen["aclnn functions"][1].endswith(": aclnnNever"), seen)
        self.assertTrue(seen["names looked up"][1].endswith(": aclrtNever"), seen)

    def test_another_release(self):
        self.wheel(b"text", version="1.2.3")
        facts = torch_facts.Facts()
        sys.path.insert(0, self.folder)
        self.addCleanup(sys.path.remove, self.folder)
        self.assertEqual(facts.wheel("2.13.0+cpu"), os.path.join(self.folder, "torch_npu"))
        self.assertEqual(facts.findings, [("wrong", "wheel", "torch_npu 1.2.3 is for another torch than 2.13.0+cpu",
                                           "pip install torch_npu==2.13.0")])

    def test_the_command(self):
        """It ends as the module does, and says what is missing."""
        environment = {**os.environ, "PYTHONPATH": "", "ASCEND_HOME_PATH": HOME}
        done = subprocess.run([os.environ["NPUMESH_COMMAND"], "doctor", "--torch"], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertIn("torch: ", done.stdout)
        self.assertEqual(done.returncode, 1 if "\nwrong" in "\n" + done.stdout else 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
