#!/usr/bin/env python3
"""The programs that a page shows.

  page_programs.py --write PAGE FOLDER
  page_programs.py --run PAGE NAME COMMAND...

A program is a ```cpp block that begins with "// file: NAME". --write makes these files, and fails
for a ```cpp block without a name. --run starts COMMAND in an empty folder; it must end with 0 and
print just what stands below <!-- printed --> after the block.
"""

import os
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```cpp\n(.*?)^```\n(?:\n<!-- printed -->\n```\n(.*?)^```\n)?", re.S | re.M)
NAME = re.compile(r"// file: (\w+\.cc)")


def programs_of(page):
    """Code and output by name."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    found = {}
    for code, printed in BLOCK.findall(text):
        name = NAME.match(code)
        if name is None:
            sys.exit(f'{page}: a block has no "// file: NAME" and is not compiled:\n{code[:200]}')
        found[name.group(1)] = (code, printed)
    return found


def write(page, folder):
    os.makedirs(folder, exist_ok=True)
    for name, (code, _) in programs_of(page).items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(code)


def run(page, name, command):
    _, expected = programs_of(page)[name]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=1200, check=False)
    if done.returncode != 0 or done.stdout != expected:
        sys.exit(f"{name} ended with {done.returncode}\nexpected:\n{expected}\n"
                 f"printed:\n{done.stdout}\n{done.stderr}")


def main(words):
    if words[:1] == ["--write"] and len(words) == 3:
        write(*words[1:])
    elif words[:1] == ["--run"] and len(words) > 3:
        run(words[1], words[2], words[3:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
