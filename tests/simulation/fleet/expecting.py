"""Waits of a story for what has to come within a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet


async def expect(
    fleet: Fleet,
    holds: Callable[[], object],
    seconds: float,
    rule: str,
    otherwise: str,
    *,
    why: Callable[[], str] = str,
    every: float = 1.0,
) -> None:
    """Wait until something holds.

    Args:
        holds: asked at once, and again and again.
        seconds: in which it has to come; after them the rule is broken, which ends the story.
        otherwise: what is wrong then.
        why: says more.
        every: seconds between two questions.
    """
    until = fleet.loop.now + seconds
    while not holds():
        if fleet.loop.now > until:
            fleet.violate(rule, otherwise + why())
            return
        await asyncio.sleep(every)


def is_ready(fleet: Fleet) -> bool:
    """Whether the object says that it is Ready, of its spec as it is."""
    found = fleet.stored() or {}
    conditions = (found.get("status") or {}).get("conditions") or ()
    of_now = [one for one in conditions if one.get("observedGeneration") == found["metadata"]["generation"]]
    return any((one["type"], one["status"]) == ("Ready", "True") for one in of_now)
