#!/usr/bin/env python3
"""What a block of printed output lets vary, and what not (typed_commands.py)."""

import sys
import typed_commands

HOLDS = [
    ("rank 2 waits", "rank 2 waits\n"),
    ("total 1.07e-06 ms", "total 3 ms\n"),
    ("mean -0.5", "mean 2e-05\n"),
    ("took 51.6 ms in all", "took 1.2 s in all\n"),
    ("   a    b", "a  b\n"),
    ("begun ...", "begun 2026-11-23 03:35:02 UTC\n"),
    ("first\n...\nlast", "first\nlast\n"),
    ("first\n...\nlast", "first\nmore\nand more\nlast\n"),
    ("...\nlast", "last\n"),
]
DIFFERS = [
    ("rank 2 waits", "rank 3 waits\n"),
    ("rank 2 waits", "rank 2 waits\nrank 3 waits\n"),
    ("rank 2 waits", ""),
    ("total 1.5 ms", "total - ms\n"),
    ("took 51.6 ms in all", "took 51.6 kB in all\n"),
    ("RmsNorm_1", "RmsNorm_2\n"),
    ("a b", "ab\n"),
    ("1 of 2 ...", "1 of 3 differ\n"),
    ("first\n...\nlast", "first\nlast\nmore\n"),
    ("a.b", "axb\n"),
]
PAGE = """
```sh
one    # first
two
```

<!-- printed -->
```
second
```

<!-- may end with 5: it is killed -->
```sh
three
```
"""


def main():
    wrong = [pair for pair in HOLDS if not typed_commands.prints(*pair)]
    wrong += [pair for pair in DIFFERS if typed_commands.prints(*pair)]
    seen = [(command.text, command.code, command.printed)
            for command in typed_commands.commands_in(PAGE, "page.md")]
    if seen != [("one    # first", 0, None), ("two", 0, "second\n"), ("three", 5, None)]:
        wrong.append(seen)
    for what in wrong:
        print(f"not so: {what!r}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
