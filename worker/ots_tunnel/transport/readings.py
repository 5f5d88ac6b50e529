"""Every way to read a text whose characters may be escaped, and secrets in it; pure.

A server that repeats a key writes it as its language does: `a+b` as `a%2Bb` in an address, `a\\u002Bb` in JSON,
`a&#43;b` in a page, `a%252Bb` in an address in an address. To undo all escapes at once would join what is beside the
key with it: in `100%abcd` the key may be `abcd`. So each place keeps all its readings, as bytes of UTF-8 and where they
end:

    a % 2 5 2 B        at 1: "%" up to 2, "%" up to 4 (%25), "+" up to 6 (%252B)

An escape is read from readings, so its own characters may be escaped. Upper and lower case count as equal, and so do
blanks and plus signs, which an address exchanges.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from html.entities import html5

from ots_tunnel.transport.secret_forms import LEAST_SECRET, folded

#: Readings that a text may have beside its own bytes: some, and so many for each byte. One that has more is not looked
#: through, because that would take seconds; no text comes near without a long row of backslashes or percent signs.
SOME_READINGS, READINGS_A_BYTE = 200, 2
#: Numbers of characters, the longest one is that of `&#1114111;`.
_DECIMAL, _HEXADECIMAL = re.compile(rb"[0-9]{1,7}").fullmatch, re.compile(rb"[0-9a-f]{1,7}").fullmatch
#: What may be the first part of an escape, at the end of a text that was cut off.
_BEGUN = re.compile(rb"[%&\\][%&\\#;0-9A-Za-z]{0,31}")

#: What a place reads, and where that ends.
Reading = tuple[bytes, int]
Allowed = Callable[[bytes], object]


def _named() -> dict[bytes, set[bytes]]:
    """Characters by their names, which are folded as readings are: several where the case decides."""
    found: dict[bytes, set[bytes]] = defaultdict(set)
    for name, text in html5.items():
        if name.endswith(";"):
            found[folded(name[:-1].encode())].add(folded(text.encode()))
    return dict(found)


_NAMES = _named()
_BEGUN_NAMES = {name[:length] for name in _NAMES for length in range(1, len(name) + 1)}


def _octet(number: int) -> bytes:
    return folded(bytes((number,)))


def _character(number: int) -> bytes:
    """Nothing for a number that is no character."""
    return folded(chr(number).encode(errors="surrogatepass")) if number < 0x110000 else b""


#: Digits behind \u and \x.
_WIDTHS = {b"u": 4, b"x": 2}


class TooManyReadings(Exception):
    """Raised for a text that can be read in so many ways that it is not looked through."""


class Readings:
    """The readings of a text.

    Raises:
        TooManyReadings: see `READINGS_A_BYTE`.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._at: list[list[Reading]] = [[] for _ in range(len(text) + 1)]
        #: Places by the first byte of what they read.
        self._starts: dict[int, set[int]] = defaultdict(set)
        left = SOME_READINGS + READINGS_A_BYTE * len(text)
        for start in reversed(range(len(text))):
            here = self._at[start]
            here.append((folded(text[start : start + 1]), start + 1))
            known = set(here)
            for first, end in here:  # which grows meanwhile: a percent sign may be read from an escape
                more = set(self._escaped(first, end)) - known
                known |= more
                here += more
                if len(here) > left:
                    raise TooManyReadings
            left -= len(here) - 1
            for read, _ in here:
                self._starts[read[0]].add(start)

    def without(self, secrets: Iterable[bytes], mask: bytes) -> bytes:
        """The text with a mask for each secret, and for the beginning of one where the text ends.

        Args:
            secrets: as `secret_forms` has them.
        """
        plan = bytearray(b"-" * len(self._text))
        for secret in secrets:
            for start in self._starts[secret[0]]:
                if (end := self._end_of(secret, start)) is not None:
                    plan[start:end] = b"*" * (end - start)
        parts = re.finditer(rb"-+|\*+", plan)
        return b"".join(mask if part[0][:1] == b"*" else self._text[slice(*part.span())] for part in parts)

    def _end_of(self, secret: bytes, start: int) -> int | None:
        """Where the secret that begins here ends, the last place of several; None where none begins."""
        ends, size = set(), len(self._text)
        states = {(start, 0)}
        seen = set(states)
        while states:
            place, known = states.pop()
            if known == len(secret):
                ends.add(place)
                continue
            if known >= LEAST_SECRET and (place == size or _BEGUN.fullmatch(self._text, place)):
                ends.add(size)
            following = {(end, known + len(each)) for each, end in self._at[place] if secret.startswith(each, known)}
            states |= following - seen
            seen |= following
        return max(ends, default=None)

    def _escaped(self, first: bytes, start: int) -> Iterator[Reading]:
        """What escapes stand for that have `first` before `start`."""
        if first == b"%":
            yield from self._numbered(start, 2, _octet)
        elif first == b"\\":
            for mark, end in self._at[start]:
                yield mark, end  # \/ and \"
                if mark in _WIDTHS:
                    yield from self._numbered(end, _WIDTHS[mark], _character)
        elif first == b"&":
            yield from self._entities(start)

    def _numbered(self, start: int, width: int, meaning: Callable[[int], bytes]) -> Iterator[Reading]:
        """Escapes with a number of `width` hexadecimal digits."""
        for digits, end in self._rows(start, re.compile(rb"[0-9a-f]{1,%d}" % width).fullmatch):
            if len(digits) == width and (read := meaning(int(digits, 16))):
                yield read, end

    def _entities(self, start: int) -> Iterator[Reading]:
        """Escapes of a page, `&#43;`, `&#x2b;` and `&plus;`, without the ampersand."""
        for name, after in self._rows(start, _BEGUN_NAMES.__contains__):
            if name in _NAMES:
                yield from ((read, end) for end in self._ends_at(after, b";") for read in _NAMES[name])
        for hash_end in self._ends_at(start, b"#"):
            starts = [(hash_end, _DECIMAL, 10), *((end, _HEXADECIMAL, 16) for end in self._ends_at(hash_end, b"x"))]
            for place, allowed, base in starts:
                for digits, after in self._rows(place, allowed):
                    for end in (after, *self._ends_at(after, b";")):  # browsers do without the semicolon, too
                        if read_number := _character(int(digits, base)):
                            yield read_number, end

    def _ends_at(self, start: int, wanted: bytes) -> list[int]:
        return [end for read, end in self._at[start] if read == wanted]

    def _rows(self, start: int, allowed: Allowed) -> Iterator[Reading]:
        """Every row of bytes of which each beginning is allowed."""
        rows = [(b"", start)]
        seen = set(rows)
        while rows:
            row, place = rows.pop()
            more = {(row + read, end) for read, end in self._at[place] if allowed(row + read)} - seen
            seen |= more
            rows += more
            yield from more
