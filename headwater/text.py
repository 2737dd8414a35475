"""Text that can be written down: Python's may have halves of surrogate pairs, which are no characters."""

from __future__ import annotations

import re

HALVES = re.compile("[\ud800-\udfff]")


def is_unicode(text: str) -> bool:
    """Whether a text has characters alone, so that it can be encoded."""
    return text.isascii() or not HALVES.search(text)
