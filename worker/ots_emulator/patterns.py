"""Regular expressions in time proportional to the text, so that no request can stop the service; pure.

Python's own matcher can take for ever. Here all ways through an expression are followed at once, one character after
the other (Pike's machine). What is found is what Perl and Python find: the leftmost match, alternatives in order,
greedy unless said otherwise. Only where nothing at all is repeated may they differ, as others do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ots_emulator.pattern_code import Step, compiled

#: Most characters of a text that are looked at.
_TEXT: Final = 1 << 14
#: Where a match and its first group begin and end; -1 is unknown.
_Places = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression that is ready for use."""

    code: tuple[Step, ...]

    def find(self, text: str) -> str | None:
        """Return what the first group matches, of an expression without groups what all of it matches; else None."""
        text = text[:_TEXT]
        found: _Places | None = None
        ways: list[tuple[int, _Places]] = []
        for at in range(len(text) + 1):
            if found is None:
                ways.append((0, (at, -1, -1, -1)))
            elif not ways:
                break
            reached = self._follow(ways, at, len(text))
            ways = []
            for step, places in reached:
                if step == len(self.code):
                    # What comes behind is less wanted.
                    found = (places[0], at, places[2], places[3])
                    break
                test = self.code[step].test
                if at < len(text) and test is not None and test(text[at]):
                    ways.append((step + 1, places))
        if found is None:
            return None
        return text[found[2] : found[3]] if found[3] >= 0 else text[found[0] : found[1]]

    def _follow(self, ways: list[tuple[int, _Places]], at: int, end: int) -> list[tuple[int, _Places]]:
        """Return the steps that take a character or end the match, the most wanted first, each once."""
        seen: set[int] = set()
        reached: list[tuple[int, _Places]] = []
        waiting = list(reversed(ways))
        while waiting:
            step, places = waiting.pop()
            if step in seen:
                continue
            seen.add(step)
            now = self.code[step] if step < len(self.code) else None
            if now is None or now.test is not None:
                reached.append((step, places))
            elif now.forks:
                waiting.extend((step + fork, places) for fork in reversed(now.forks))
            elif now.note is not None:
                noted = (places[0], places[1], at, -1) if now.note == 2 else (*places[:3], at)
                waiting.append((step + 1, noted))
            elif at == (0 if now.at == "^" else end):
                waiting.append((step + 1, places))
        return reached


def pattern_of(text: str) -> Pattern:
    """Read a regular expression.

    Raises:
        PatternError: says why it cannot be used.
    """
    return Pattern(tuple(compiled(text)))
