"""Regular expressions of filters; RE2 matches in linear time, so no request can block the service."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

#: Characters of an expression ; own design.
_EXPRESSION: Final = 256
#: Characters of a text that are searched; own design.
_TEXT: Final = 1 << 14
#: Bytes of the states of one expression; own design.
_MEMORY: Final = 1 << 20


class PatternError(ValueError):
    """An expression cannot be used; the text has the reason."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled regular expression."""

    compiled: Any

    def find(self, text: str) -> str | None:
        """Return the match of the first group, or of the whole expression if it has no groups; None without a match."""
        found = self.compiled.search(text[:_TEXT])
        if found is None:
            return None
        part = found.group(1 if self.compiled.groups else 0)
        return None if part is None else str(part)


@lru_cache(maxsize=64)
def pattern_of(expression: str) -> Pattern:
    """Compile an expression.

    Raises:
        PatternError: it is malformed, too long, or uses a feature that RE2 does not have, such as look-behind.
    """
    import re2  # takes memory, and few clients filter by expressions

    if len(expression) > _EXPRESSION:
        raise PatternError(f"longer than {_EXPRESSION} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        return Pattern(re2.compile(expression, options=options))
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        raise PatternError(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from error
