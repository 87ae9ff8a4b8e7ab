#!/usr/bin/env python3
"""The pictures of README.md (docs/pictures), made by the program itself: the page of a comparison, and that of a
flight record, light and dark.

  pictures.py <npumesh> <source> [--update] [--chromium FILE]

Runs a sample of the command with a planted fault and one that hangs, writes both pages, and takes pictures of them in a
browser without a window. With --update it writes them; without, it compares them with those that are there:
the size, and the mean colour of squares of 8 by 8 pixels, because times and fonts differ. Skipped (77) when there is
no Chromium.
"""

import argparse
import base64
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

from open_page import NAMES, SKIPPED, Browser

WIDTH, HEIGHT = 900, 640
SQUARE = 8
MOST_DIFFERENT = 0.12  # the part of squares whose colour may differ visibly
VISIBLE = 40  # of 255
PACKAGE = "s/decoder_4/package/"
LAUNCH = ["launch", "-n", "4", "--", "run", PACKAGE]
STEPS = (
    ({}, ["samples", "--write", "s"], 0),
    ({}, [*LAUNCH, "--dump", "all", "--dump-path", "right/"], 0),
    ({}, [*LAUNCH, "--dump", "all", "--dump-path", "wrong/", "--inject", "corrupt:rank=2,op=RmsNorm_1"], 0),
    ({}, ["dump", "compare", "wrong/", "right/", "--model", PACKAGE, "-o", "tables/", "--html", "compare.html"], 1),
    ({"NPUMESH_RECORD": "flight/", "HCCL_EXEC_TIMEOUT": "3"},
     [*LAUNCH, "--steps", "3", "--inject", "delay:rank=2,op=RmsNorm_1,ms=30000,step=1"], 5),
    ({}, ["record", "flight/", "--html", "record.html"], 1),
)


def make_pages(npumesh, folder):
    for name in ("right", "wrong", "tables"):
        os.mkdir(os.path.join(folder, name))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NPUMESH_")}
    for more, words, code in STEPS:
        done = subprocess.run([npumesh, *words], cwd=folder, env={**kept, **more}, capture_output=True, text=True,
                              check=False, stdin=subprocess.DEVNULL, timeout=600)
        if done.returncode != code:
            sys.exit(f"npumesh {' '.join(words)} ended with {done.returncode}, not {code}\n{done.stdout}{done.stderr}")


def take(browser, page, theme):
    browser.open(page, WIDTH, theme, drawn="true")
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 1}
    return base64.b64decode(browser.call("Page.captureScreenshot", format="png", clip=clip)["data"])


def pixels(png):
    """Width, height, and rows of bytes of red, green and blue; of a picture of 8 bits a colour."""
    at, data, head = 8, b"", None
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            head = struct.unpack(">IIBBBBB", png[at + 8:at + 8 + size])
        elif kind == b"IDAT":
            data += png[at + 8:at + 8 + size]
        at += size + 12
    width, height, bits, colour = head[:4]
    if bits != 8 or colour not in (2, 6):
        sys.exit(f"a picture of {bits} bits and colour type {colour}; expected 8 bits, red green blue")
    step = 3 if colour == 2 else 4
    raw, line = zlib.decompress(data), width * step
    rows, before = [], bytes(line)
    for row in range(height):
        start = row * (line + 1)
        before = unfiltered(raw[start], bytearray(raw[start + 1:start + 1 + line]), before, step)
        rows.append(bytes(value for i, value in enumerate(before) if step == 3 or i % 4 != 3))
    return width, height, rows


def unfiltered(kind, line, above, step):
    for i, value in enumerate(line):
        left = line[i - step] if i >= step else 0
        corner = above[i - step] if i >= step else 0
        if kind == 1:
            value += left
        elif kind == 2:
            value += above[i]
        elif kind == 3:
            value += (left + above[i]) // 2
        elif kind == 4:
            near = left + above[i] - corner
            value += min((left, above[i], corner), key=lambda each: abs(near - each))
        line[i] = value & 0xFF
    return bytes(line)


def squares(png):
    """The mean colour of each square."""
    width, height, rows = pixels(png)
    means = []
    for top in range(0, height - height % SQUARE, SQUARE):
        for left in range(0, width - width % SQUARE, SQUARE):
            parts = [row[left * 3:(left + SQUARE) * 3] for row in rows[top:top + SQUARE]]
            joined = b"".join(parts)
            means.append(tuple(sum(joined[colour::3]) / (SQUARE * SQUARE) for colour in range(3)))
    return (width, height), means


def difference(seen, expected):
    """What is different, or "" for nothing to speak of."""
    (size, mine), (other, theirs) = squares(seen), squares(expected)
    if size != other:
        return f"is {size[0]}x{size[1]}, the one that is there {other[0]}x{other[1]}"
    visible = sum(max(abs(a - b) for a, b in zip(one, two)) > VISIBLE for one, two in zip(mine, theirs))
    part = visible / len(mine)
    return f"{part:.0%} of it looks different" if part > MOST_DIFFERENT else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("npumesh")
    parser.add_argument("source")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--chromium")
    options = parser.parse_args()
    program = options.chromium or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        print("SKIPPED: no Chromium")
        sys.exit(SKIPPED)
    shown = os.path.join(options.source, "docs", "pictures")
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        make_pages(os.path.abspath(options.npumesh), folder)
        browser = Browser(program, os.path.join(folder, "browser"))
        try:
            for page in ("compare", "record"):
                for theme in ("light", "dark"):
                    picture = take(browser, os.path.join(folder, f"{page}.html"), theme)
                    path = os.path.join(shown, f"{page}_{theme}.png")
                    if options.update:
                        with open(path, "wb") as file:
                            file.write(picture)
                        print(f"{path}: {len(picture)} bytes")
                        continue
                    with open(path, "rb") as file:
                        said = difference(picture, file.read())
                    if said:
                        problems.append(f"{page}_{theme}.png {said}; look at it, then pictures.py --update")
        finally:
            browser.close()
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
