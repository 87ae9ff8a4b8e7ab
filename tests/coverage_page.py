"""What docs/coverage.md says that a test counts, for that test to compare."""

import os
import re

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "docs", "coverage.md")


def numbers(words):
    """The numbers at the places of "#" in `words`, which the page says once, whatever its line breaks.
    Errors: ValueError."""
    with open(PAGE, encoding="utf-8") as page:
        text = " ".join(page.read().split())
    found = re.findall(r"\b" + re.escape(words).replace(r"\#", r"([0-9,]+)"), text)
    if len(found) != 1:
        raise ValueError(f'docs/coverage.md says "{words}" {len(found)} times, expected once')
    said = found[0] if isinstance(found[0], tuple) else found
    return [int(each.replace(",", "")) for each in said]
