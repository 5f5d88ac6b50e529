"""The Markdown pages of the repository: headings, anchors, links and code blocks."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

_FENCE = re.compile(r"^( *)```(\S*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^(#{1,6}) (.+)$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A code block: its language, its text, and the line on which it begins."""

    language: str
    text: str
    line: int


@dataclass(frozen=True)
class Page:
    """One Markdown file.

    Args:
        path: relative to the repository.
    """

    path: Path
    text: str

    def __str__(self) -> str:
        return str(self.path)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Fenced code blocks in their order."""
        found = _FENCE.finditer(self.text)
        return tuple(
            Block(match[2], textwrap.dedent(match[3]), self.text.count("\n", 0, match.start()) + 1) for match in found
        )

    @cached_property
    def prose(self) -> str:
        """The text without code blocks and comments."""
        return _COMMENT.sub("", _FENCE.sub("", self.text))

    @cached_property
    def headings(self) -> tuple[str, ...]:
        """Texts of the headings, without the marks of code."""
        return tuple(match[2].replace("`", "") for match in _HEADING.finditer(_FENCE.sub("", self.text)))

    @cached_property
    def anchors(self) -> frozenset[str]:
        """Fragments that a link to this page may have, as GitHub makes them."""
        seen: Counter[str] = Counter()
        anchors = set()
        for heading in self.headings:
            anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            anchors.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
            seen[anchor] += 1
        return frozenset(anchors)

    @cached_property
    def links(self) -> tuple[str, ...]:
        """Targets of links, code excluded."""
        return tuple(re.findall(_LINK, re.sub(r"`[^`\n]*`", "`code`", self.prose)))

    def section(self, heading: str) -> str:
        """The text below a heading, up to the next heading of the same or a higher level.

        Raises:
            ValueError: the page has no such heading.
        """
        found = re.search(rf"^(#+) {re.escape(heading)}$", self.text, re.MULTILINE)
        if found is None:
            raise ValueError(f"{self} has no heading {heading!r}")
        rest = self.text[found.end() :]
        following = re.search(rf"^#{{1,{len(found[1])}}} ", _without_code(rest), re.MULTILINE)
        return rest[: following.start()] if following else rest

    def block(self, heading: str, language: str) -> str:
        """The first code block of a language below a heading."""
        section = Page(self.path, self.section(heading))
        return next(block.text for block in section.blocks if block.language == language)


def _without_code(text: str) -> str:
    """The text of the same length with code blocks blanked, whose comments look like headings."""
    return _FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def page(name: str) -> Page:
    """The page of a path relative to the repository, such as `docs/worker.md`."""
    return Page(Path(name), (ROOT / name).read_text())


def pages() -> Iterator[Page]:
    """Every page for readers of the repository."""
    for path in (*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("charts/*/*.md")), *sorted(DOCS.rglob("*.md"))):
        yield page(str(path.relative_to(ROOT)))
