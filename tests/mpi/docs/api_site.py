#!/usr/bin/env python3
"""Makes the API site in a folder of its test, and looks contracts up in it.

  api_site.py --source ROOT --doxyfile FILE

Exit code 77 (skipped) without Doxygen.
"""

import argparse
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

options = None
C_HEADER = "graph/c_interface/include/npumesh/npumesh.h"
# C++ headers whose classes and functions have their contracts directly above them.
HEADERS = ["graph/session/session.h", "graph/ir/graph.h", "runtime/base/status.h", "runtime/device/stream.h",
           "collectives/communicator.h", "graph/ops/core/op_registry.h"]


def words_of(text):
    """Letters and digits alone: marks of comments, markup and line breaks are another matter."""
    return " ".join(re.findall(r"[A-Za-z0-9]+", text))


def text_of_page(path):
    with open(path, encoding="utf-8") as file:
        return words_of(html.unescape(re.sub(r"<[^>]*>", "", file.read())))


def contracts(path):
    """The first words of each comment of `path` that stands directly above a public function."""
    with open(os.path.join(options.source, path), encoding="utf-8") as file:
        text = re.sub(r"\n private:\n.*?\n};", "", file.read(), flags=re.S)
    if path == C_HEADER:
        found = re.findall(r"\n/\* ((?:(?!\*/)[^`])*)\*/\n\w[^;{]*\bnpumesh_\w+\(", text)
    else:
        # Comments in bodies are indented further.
        found = re.findall(r"^(?! *//).*\n {0,2}// (.*)\n(?: {0,2}//.*\n)* {0,2}\w[^/#]*\(.*$", text, re.M)
    return [words_of(comment.replace(" * ", " "))[:60].rsplit(" ", 1)[0] for comment in found]


class ApiSite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="npumesh-api-")
        home = cls.folder.name
        cls.pages = os.path.join(home, "html")
        subprocess.run([os.path.join(options.source, "cmake/api/contracts.py"), options.source,
                        os.path.join(home, "headers")], check=True)
        with open(options.doxyfile, encoding="utf-8") as file:
            built = re.search(r"^OUTPUT_DIRECTORY *= *(.*)$", file.read(), re.M).group(1)
            file.seek(0)
            words = file.read().replace(built, home)
        cls.done = subprocess.run(["doxygen", "-"], input=words, capture_output=True, text=True, check=False)
        names = [name for name in os.listdir(cls.pages) if name.endswith(".html")]
        cls.text = " ".join(text_of_page(os.path.join(cls.pages, name)) for name in names)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_doxygen_has_nothing_to_say(self):
        self.assertEqual((self.done.returncode, self.done.stderr), (0, ""))

    def test_the_main_page_leads_to_all_groups(self):
        with open(os.path.join(self.pages, "index.html"), encoding="utf-8") as file:
            links = re.findall(r'href="(group__\w+\.html)"', file.read())
        self.assertEqual(links, ["group__cpp.html", "group__c__headers.html", "group__operators.html",
                                 "group__collectives.html"])
        for name, members in zip(links, ["Session", "npumesh_run HcclAllReduce aclrtMalloc", "Operator", "Call"]):
            text = text_of_page(os.path.join(self.pages, name))
            for member in members.split():
                self.assertIn(words_of(member), text, name)

    def test_contracts_stand_on_its_pages(self):
        for header in [C_HEADER, *HEADERS]:
            found = contracts(header)
            self.assertGreater(len(found), 1, header)
            missing = [words for words in found if words not in self.text]
            self.assertEqual(missing, [], header)

    def test_comments_in_bodies_are_no_contracts(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "runtime"))
            with open(os.path.join(folder, "runtime/a.h"), "w", encoding="utf-8") as file:
                file.write("// Of the file: 50% <of> @all `a<b>`.\n#ifndef A\n\nnamespace npumesh {\n\n"
                           "// Above.\nint F() {\n  // Within.\n  return 1;  // after\n}\n"
                           "int a = 0;  // beside,\n            // and below\n\n"
                           "// Apart.\n\n}  // namespace npumesh\n")
            subprocess.run([os.path.join(options.source, "cmake/api/contracts.py"), folder, f"{folder}/out"],
                           check=True)
            with open(f"{folder}/out/runtime/a.h", encoding="utf-8") as file:
                said = file.read()
        self.assertEqual(re.findall(r"///.*", said),
                         ["/// \\file", "/// \\ingroup cpp",
                          "/// Of the file: 50\\% \\<of\\> \\@all <code>a\\<b\\></code>.", "/// Above.",
                          "///< beside,", "///< and below"])


def main():
    global options
    parser = argparse.ArgumentParser()
    for name in ("source", "doxyfile"):
        parser.add_argument(f"--{name}", required=True)
    options, words = parser.parse_known_args()
    if shutil.which("doxygen") is None:
        print("skipped: no doxygen (launch/install_deps --lint)")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *words])


if __name__ == "__main__":
    main()
