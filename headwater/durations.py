"""Spans of time as people write them: `"10 minutes"`, `"1 hour 30 minutes"`."""

from __future__ import annotations

import re

_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(millisecond|second|minute|hour|day|week)s?\s*", re.IGNORECASE)
_MICROSECONDS = {
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}


def microseconds(text: str) -> int | None:
    """How long a span is; None if the text is none."""
    place, total = 0, 0.0
    while place < len(text) or not place:
        match = _PART.match(text, place)
        if match is None:
            return None
        total += float(match[1]) * _MICROSECONDS[match[2].lower()]
        place = match.end()
    return round(total)
