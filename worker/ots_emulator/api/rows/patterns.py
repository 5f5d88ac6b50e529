"""Regular expressions of filters, whose work is bounded for each request, so that none blocks the service for long.

RE2 takes at most time linear in the text times the states of the expression. A request may spend `WORK` such steps,
which take about half a second at worst; most expressions need a hundredth of their time, because RE2 remembers states.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from ots_emulator.refusal import parameter_invalid

#: Characters of an expression ; own design.
_EXPRESSION: Final = 256
#: Characters of a text that are searched; own design.
_TEXT: Final = 1 << 14
#: Bytes of the states of one expression; own design.
_MEMORY: Final = 1 << 20


#: Steps of one request: characters that are searched times states of the expression; own design.
WORK: Final = 100_000_000
#: Steps that take as long as making one state of an expression.
_COMPILE_STEPS: Final = 40


@dataclass(slots=True)
class Work:
    """What the expressions of one request may still do."""

    left: int = WORK

    @property
    def is_low(self) -> bool:
        """Whether half of it is spent, so that a scan had better end here."""
        return self.left < WORK // 2

    def take(self, steps: int) -> None:
        """Spend some of it.

        Raises:
            Refusal: OTSParameterInvalid, there is not so much left.
        """
        self.left -= steps
        if self.left < 0:
            raise parameter_invalid(
                f"Invalid filter: the regular expressions of one request exceed {WORK} steps, which are the characters "
                "searched times the states of an expression."
            )


class PatternError(ValueError):
    """An expression cannot be used; the text has the reason."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled regular expression."""

    compiled: Any
    states: int

    def find(self, text: str, work: Work) -> str | None:
        """Return the match of the first group, or of the whole expression if it has no groups; None without a match.

        Raises:
            Refusal: the request has no work left for it.
        """
        searched = text[:_TEXT]
        work.take(len(searched) * self.states)
        found = self.compiled.search(searched)
        if found is None:
            return None
        part = found.group(1 if self.compiled.groups else 0)
        return None if part is None else str(part)


def pattern_of(expression: str, work: Work) -> Pattern:
    """Compile an expression.

    Raises:
        PatternError: it is malformed, too long, or uses a feature that RE2 does not have, such as look-behind.
        Refusal: the request has no work left for it.
    """
    pattern = _compiled(expression)
    work.take(pattern.states * _COMPILE_STEPS)
    return pattern


@lru_cache(maxsize=64)
def _compiled(expression: str) -> Pattern:
    import re2  # takes memory, and few clients filter by expressions

    if len(expression) > _EXPRESSION:
        raise PatternError(f"longer than {_EXPRESSION} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        compiled = re2.compile(expression, options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        raise PatternError(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from error
    return Pattern(compiled, compiled.programsize)
