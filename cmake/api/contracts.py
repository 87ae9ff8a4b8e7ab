#!/usr/bin/env python3
"""Writes the headers of runtime, collectives and graph with their contracts as Doxygen reads them.

  contracts.py ROOT TARGET

A contract is the comment directly above a declaration, or after it on its line; the comment at the top is the
file's. Comments in the bodies of functions, above a blank line or above a preprocessor line are none. The whole
header belongs to one group of the site, by its folder.
"""

import os
import re
import shutil
import sys

# The group of a header: that of the first folder that fits.
GROUPS = [
    (r"/include/(acl|hccl|npumesh)/", "c_headers"),
    (r"\bgraph/ops/", "operators"),
    (r"\bcollectives/", "collectives"),
    (r"", "cpp"),
]
SCOPE = re.compile(r"^(template\s*<.*>\s*)?(typedef\s+|inline\s+)?(namespace|class|struct|union|enum|extern)\b")
LITERAL = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'')
LINE_COMMENT = re.compile(r"^(\s*)//(?!/)(.*)$")


def escaped(text):
    """Words as they are written: no command, tag, link or emphasis of Doxygen."""
    text = re.sub(r"([\\@<>#%&|$])", r"\\\1", text)
    return re.sub(r"(?<![\w.)\]])\*(?=\S)", "&lowast;", text).replace("~", "&tilde;")


class Prose:
    """The lines of one comment: examples, which are indented by three blanks, become code."""

    def __init__(self):
        self.code = False
        self.before = ""
        self.tag = "<code>"  # that the next backtick becomes

    def line(self, text):
        """`text` is what follows the mark of the comment. Returns what replaces it."""
        is_item = re.match(r" +(-|\d+\.) ", text)
        starts = not self.code and text.startswith("   ") and not is_item and not re.match(r" +\S", self.before)
        if self.code and text.strip() and not text.startswith("  "):
            self.code = False
        elif starts:
            self.code = True
        self.before = text if is_item or (re.match(r"  ", self.before) and text.startswith("  ")) else ""
        # An example is indented code of Markdown; its characters are shown as they are.
        return "     " + text if self.code else self.words(text)

    def words(self, text):
        if not text.strip():
            self.tag = "<code>"
        # A full stop before a blank or a sign would end the brief sentence in the middle of the code.
        text = re.sub(r"`([^`]*\.(?!\w)[^`]*)`", r'"\1"', text)
        parts = text.split("`")
        said = escaped(parts[0])
        for part in parts[1:]:
            said += self.tag + escaped(part)
            self.tag = "</code>" if self.tag == "<code>" else "<code>"
        return said


class Scopes:
    """Which braces are open around a line: those of types and namespaces, or of a function."""

    def __init__(self):
        self.open = []  # True: a function or a list of values
        self.statement = ""

    @property
    def in_body(self):
        return any(self.open)

    def take(self, code):
        for character in LITERAL.sub("0", code):
            if character == "{":
                self.open.append(not SCOPE.match(self.statement.strip()))
                self.statement = ""
            elif character == "}":
                if self.open:
                    self.open.pop()
                self.statement = ""
            elif character == ";":
                self.statement = ""
            else:
                self.statement += character
        if code.lstrip().startswith("#"):
            self.statement = ""
        elif self.statement:
            self.statement += " "
        self.statement = re.sub(r"^\s*(public|private|protected)\s*:", "", self.statement)


def split_code(line):
    """(code, comment) of a line with `//`; comment None: it has none. Marks in literals are no comments."""
    at = LITERAL.sub(lambda match: "0" * len(match.group()), line).find("//")
    return (line, None) if at < 0 else (line[:at], line[at + 2:])


def documents(following):
    """Whether the line after a comment is a declaration."""
    text = following.strip()
    return bool(text) and not text.startswith(("#", "//", "}", "/*", "public", "private", "protected"))


def readable(lines):
    """Blank lines in the place of what Doxygen cannot follow: specialisations of fmt's templates name a class that it
    never sees, and included files are not all on the site."""
    left, drops = [], False
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        drops = drops or "struct fmt::formatter" in line or (
            line.startswith("template <") and following.startswith("struct fmt::formatter"))
        left.append("" if drops or line.startswith('#include "') else line)
        drops = drops and line != "};"
    return left


class Filter:
    def __init__(self, lines, group):
        self.lines = lines
        self.group = group
        self.begin = f" /** \\addtogroup {group} */ /** @{{ */"
        self.scopes = Scopes()
        self.out = []

    def run(self):
        at = self.top()
        column = -1  # of a comment that the line before had after its code
        while at < len(self.lines):
            line = self.lines[at]
            if line.lstrip().startswith("/*"):
                at = self.block(at)
                column = -1
                continue
            comment = LINE_COMMENT.match(line)
            if comment and len(comment.group(1)) == column and not self.scopes.in_body:
                self.out.append(f"{comment.group(1)}///<{prose.words(comment.group(2))}")
                at += 1
            elif comment:
                at = self.comment(at)
                column = -1
            else:
                prose = Prose()
                column = self.code(line, prose)
                at += 1
        return self.out

    def top(self):
        """The comment at the head of the file."""
        at, prose = 0, Prose()
        while at < len(self.lines) and LINE_COMMENT.match(self.lines[at]):
            text = prose.line(LINE_COMMENT.match(self.lines[at]).group(2))
            self.out.append((f"/// \\file\n/// \\ingroup {self.group}\n///" if at == 0 else "///") + text)
            at += 1
        if at == 0 and self.lines and self.lines[0].startswith("/*"):
            return self.block(0, f"\\file\n * \\ingroup {self.group}")
        return at

    def comment(self, at):
        end = at
        while end < len(self.lines) and LINE_COMMENT.match(self.lines[end]):
            end += 1
        is_contract = not self.scopes.in_body and end < len(self.lines) and documents(self.lines[end])
        prose = Prose()
        for line in self.lines[at:end]:
            indent, text = LINE_COMMENT.match(line).groups()
            keep = not is_contract or text.strip().startswith("NOLINT")
            self.out.append(line if keep else f"{indent}///{prose.line(text)}")
        return end

    def block(self, at, command=""):
        """A comment of C, on one line or more."""
        end = at
        while end < len(self.lines) and "*/" not in self.lines[end]:
            end += 1
        following = self.lines[end + 1] if end + 1 < len(self.lines) else ""
        title = re.match(r"\s*/\* -+", self.lines[at])
        is_contract = command or (documents(following) and not title and not self.scopes.in_body)
        prose = Prose()
        for number in range(at, min(end + 1, len(self.lines))):
            line = self.lines[number]
            if is_contract:
                start, text = re.match(r"(\s*(?:/\*| \*(?!/))?)(.*)$", line).groups()
                text, closing, rest = text.partition("*/")
                line = (start.replace("/*", f"/**\n * {command}\n *" if command else "/**") + prose.line(text)
                        + closing + rest)
            self.out.append(line)
        return end + 1

    def code(self, line, prose):
        """A line with code. Returns the column of a contract after it, or -1."""
        in_body = self.scopes.in_body
        code, comment = split_code(line)
        self.scopes.take(code)
        if re.match(r'namespace npumesh\b.*\{$|extern "C" \{', line):
            self.out.append(line + self.begin)
            return -1
        if not in_body and re.match(r"\}( +//.*namespace npumesh.*)?$", line):
            self.out.append("/** @} */ }")
            return -1
        if comment is not None and not in_body and not self.scopes.in_body and code.rstrip().endswith((";", ",")):
            self.out.append(f"{code}///<{prose.words(comment)}")
            return len(code)
        after = re.match(r"^(.*[;,]\s*)/\*(.*)\*/\s*$", line)
        if after and not in_body:
            self.out.append(f"{after.group(1)}/**<{prose.words(after.group(2))}*/")
        else:
            self.out.append(line)
        return -1


def headers(root):
    """The headers of the site, relative to `root`: not those that are included into the middle of others."""
    found = []
    for floor in ("runtime", "collectives", "graph"):
        for folder, _, names in os.walk(os.path.join(root, floor)):
            found += [os.path.relpath(os.path.join(folder, name), root) for name in names
                      if name.endswith(".h") and not name.endswith((".lanes.h", "-inl.h", "_impl.h"))]
    return sorted(found)


def main():
    root, target = sys.argv[1:]
    shutil.rmtree(target, ignore_errors=True)
    for header in headers(root):
        with open(os.path.join(root, header), encoding="utf-8") as file:
            lines = readable(file.read().splitlines())
        group = next(name for pattern, name in GROUPS if re.search(pattern, header))
        text = "\n".join(Filter(lines, group).run())
        os.makedirs(os.path.join(target, os.path.dirname(header)), exist_ok=True)
        with open(os.path.join(target, header), "w", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
