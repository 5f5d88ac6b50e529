"""One thing to do. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do: words, and the commands that do it."""

    text: str
    commands: tuple[str, ...] = ()
