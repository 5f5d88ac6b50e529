"""A possible gap, and its entry in status.possibleGaps. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ots_tunnel_operator.times import parse_time, timestamp


@dataclass(frozen=True, slots=True)
class Gap:
    """Changes of a channel committed after `start` and before `end`, Unix seconds, may be missing."""

    channel: str
    start: float
    end: float
    by_worker: bool
    """Whether a worker found it; else only the operator did."""
    accepted: bool = False
    lasting: bool = False
    """Whether only its acceptance ends the operator's finding: no worker notices it any more."""

    @property
    def is_final(self) -> bool:
        """Whether no look can refute it."""
        return self.by_worker or self.lasting

    @property
    def key(self) -> tuple[str, int]:
        """What makes two findings one: channel and start, in whole seconds as the status has it."""
        return self.channel, int(self.start)


def beyond(gap: Gap, accepted: Iterable[Gap]) -> Gap:
    """A gap without the changes that were accepted; an accepted one that includes all of it in its place.

    Where a worker stops, what only an operator had found excuses it not: the operator's end is rounded up. One that has
    ended before the accepted one begins is another gap.
    """
    for known in sorted((known for known in accepted if known.channel == gap.channel), key=lambda known: known.start):
        is_apart = int(gap.start) > int(known.start) or int(gap.end) <= int(known.start)
        if is_apart or (gap.by_worker and not known.by_worker):
            continue
        if int(gap.end) <= int(known.end):
            return known
        gap = replace(gap, start=known.end)
    return gap


def gap_documents(gaps: Iterable[Gap]) -> list[dict[str, Any]]:
    """The gaps as status.possibleGaps has them."""
    return [
        {
            "channel": gap.channel,
            "from": timestamp(gap.start),
            "to": timestamp(gap.end),
            "foundBy": "Worker" if gap.by_worker else "Operator",
            "accepted": gap.accepted,
            **({"lasting": True} if gap.lasting else {}),
        }
        for gap in gaps
    ]


def recorded_gaps(status: Mapping[str, Any]) -> Iterable[Gap]:
    """The gaps of an object's status; an entry without its times is left out."""
    for item in status.get("possibleGaps") or ():
        start, end = parse_time(item.get("from")), parse_time(item.get("to"))
        if start is not None and end is not None:
            by_worker = item.get("foundBy") == "Worker"
            is_accepted, is_lasting = bool(item.get("accepted")), bool(item.get("lasting"))
            yield Gap(str(item.get("channel")), start, end, by_worker, is_accepted, is_lasting)
