"""Citations of documents in code: what a comment such as `docs/protocol.md 5.7 and 6.1, G8` points to.

A citation is the path of a page, then optionally sections (`4.2 to 4.6`, `5.1, 5.5`), rules (`rule 4`, `rules 1 and 2`)
and names of known defects (`G8`, `J1, J2`). Words in between end it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import ROOT, page

FOLDERS = ("operator", "worker", "tests", "charts", "docs")
SUFFIXES = {".py", ".pyx", ".sh", ".yaml", ".toml", ".tpl", ".html", ".proto"}
#: A path of a page, with whatever follows it up to the next one.
_PAGE = re.compile(r"(?<![\w/])((?:docs/[\w/-]+|README|CONTRIBUTING|CHANGELOG)\.md)")
_SECTIONS = re.compile(r"(?P<first>\d+(?:\.\d+)?)(?:(?: to |-)(?P<last>\d+(?:\.\d+)?))?(?![\w.]*\w)")
_RULES = re.compile(r"rules? (?P<first>\d+)(?: to (?P<last>\d+))?")
_NUMBER = re.compile(r"(?P<first>\d+)(?: to (?P<last>\d+))?(?![\w.]*\w)")
_EDGE = re.compile(r"[GJ]\d{1,2}\b")
_JOINT = re.compile(r",? and |, or | or |, |: ")
#: Any document, and a name that is followed by the number of a section.
_DOCUMENT = re.compile(r"(?<![\w/.-])(?:[\w-]+/)*[\w-]+\.md\b")
_NAMED_SECTION = re.compile(r"(?<![\w./-])[a-z]+(?:-[a-z]+)+ \d+\.\d+(?![\d.]*\w)")


@dataclass(frozen=True)
class Citation:
    """One place of a page that a file cites.

    Args:
        where: file and line.
        page: path of the page.
        place: `5.7`, `rule 4`, `G8`, or empty for the page itself.
    """

    where: str
    page: str
    place: str

    def __str__(self) -> str:
        return f"{self.where}: {self.page} {self.place}".rstrip()

    @property
    def resolves(self) -> bool:
        """Whether the page exists and has a heading, or a row, for the place."""
        if not (ROOT / self.page).is_file():
            return False
        return not self.place or self.place in places(self.page)


_PLACES: dict[str, frozenset[str]] = {}


def places(name: str) -> frozenset[str]:
    """Everything of a page that can be cited: numbers of headings, rules, names of known defects."""
    if name not in _PLACES:
        found = page(name)
        numbers = {match[1] for heading in found.headings if (match := re.match(r"(\d+(?:\.\d+)?) ", heading))}
        rules = {f"rule {match[1]}" for heading in found.headings if (match := re.match(r"Rule (\d+):", heading))}
        edges = set(re.findall(r"^\| \*\*([GJ]\d+)\*\* \|", found.text, re.MULTILINE))
        _PLACES[name] = frozenset(numbers | rules | edges)
    return _PLACES[name]


def files() -> Iterator[Path]:
    """Every file whose comments may cite a page."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file() and not path.name.endswith("_pb2.py"):
                yield path
    yield from (ROOT / name for name in ("Makefile", "pyproject.toml"))


def foreign_documents(path: Path) -> Iterator[str]:
    """Names of documents in a file that are not in the repository."""
    text = path.read_text()
    for match in _DOCUMENT.finditer(text):
        if not ((ROOT / match[0]).is_file() or (path.parent / match[0]).is_file()):
            yield match[0]
    for match in _NAMED_SECTION.finditer(text):
        yield match[0]


def citations_of(path: Path) -> Iterator[Citation]:
    """The citations of one file; a comment's line breaks do not end one."""
    text = path.read_text()
    for match in _PAGE.finditer(text):
        where = f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}"
        following = re.sub(r"\s*\n\s*(?:#:?|//)?\s*", " ", text[match.end() : match.end() + 200])
        cited = list(_cited(following))
        if not cited:
            # the page as a whole
            yield Citation(where, match[1], "")
        for place in cited:
            yield Citation(where, match[1], place)


def _cited(text: str) -> Iterator[str]:
    """The places named at the beginning of a text: sections, rules, defects, joined by commas and `and`."""
    if not text.startswith((" ", ", ")):
        return
    rest = text.lstrip(", ") if text.startswith(", ") else text[1:]
    in_rules = False
    while True:
        if match := _EDGE.match(rest):
            yield match[0]
        elif match := _RULES.match(rest):
            in_rules = True
            yield from (f"rule {number}" for number in _span(match))
        elif in_rules and (match := _NUMBER.match(rest)):
            yield from (f"rule {number}" for number in _span(match))
        elif not in_rules and (match := _SECTIONS.match(rest)):
            yield from _span(match)
        else:
            return
        rest = rest[match.end() :]
        joint = _JOINT.match(rest)
        if joint is None:
            joint = re.match(r" (?=[GJ]\d)", rest)
        if joint is None:
            return
        rest = rest[joint.end() :]


def _span(match: re.Match[str]) -> Iterator[str]:
    first, last = match["first"], match["last"]
    if last is None:
        yield first
        return
    *chapter, start = first.split(".")
    end = last.split(".")[-1]
    yield from (".".join((*chapter, str(number))) for number in range(int(start), int(end) + 1))
