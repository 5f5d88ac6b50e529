"""Spans of time and counts as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

#: Unit in a table, unit in a sentence, seconds.
_UNITS = (("d", " d", 86400), ("h", " h", 3600), ("m", " min", 60), ("s", " s", 1))
#: What is not known.
UNKNOWN = "-"


def short(seconds: float | None) -> str:
    """A span for a table, such as `3m20s`; at most two units; `-` where it is unknown."""
    return UNKNOWN if seconds is None else "".join(f"{count}{unit}" for count, unit, _ in _parts(seconds))


def words(seconds: float) -> str:
    """A span for a sentence, such as `3 min 20 s`."""
    return " ".join(f"{count}{unit}" for count, _, unit in _parts(seconds))


def clock(moment: float) -> str:
    """A moment in Unix seconds as date and time in UTC, to the second."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def count(number: int | None) -> str:
    """A number with separators; `-` where it is unknown."""
    return UNKNOWN if number is None else f"{number:,}"


def of(number: int, noun: str) -> str:
    """A number and its noun, such as `1 worker` or `3 workers`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _parts(seconds: float) -> Iterator[tuple[int, str, str]]:
    """The largest unit and the next smaller one, that one only where it is not 0."""
    left = max(0, int(seconds))
    for index, (brief, long, size) in enumerate(_UNITS):
        if left >= size or size == 1:
            yield left // size, brief, long
            if size > 1 and (rest := left % size // _UNITS[index + 1][2]):
                yield rest, *_UNITS[index + 1][:2]
            return
