"""Regular expressions of filters, in time proportional to the text: no request can stop the service (RE2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import re2

_EXPRESSION: Final = 256
#: Most characters of a text that are looked at.
_TEXT: Final = 1 << 14
#: Bytes that the states of one expression may take.
_MEMORY: Final = 1 << 20


class PatternError(ValueError):
    """An expression cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression that is ready for use."""

    compiled: Any

    def find(self, text: str) -> str | None:
        """Return what the first group matches, of an expression without groups what all of it matches; else None."""
        found = self.compiled.search(text[:_TEXT])
        if found is None:
            return None
        part = found.group(1 if self.compiled.groups else 0)
        return None if part is None else str(part)


@lru_cache(maxsize=64)
def pattern_of(expression: str) -> Pattern:
    """Make an expression ready for use.

    Raises:
        PatternError: it is malformed, too long, or asks for what RE2 has not, such as looking back.
    """
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
