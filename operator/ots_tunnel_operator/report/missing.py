"""What is known to be missing in the sink, so that nothing says that every change was delivered. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ots_tunnel_operator.assess.gap import Gap
from ots_tunnel_operator.reset.record import recorded_loss
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.resource import Resource


@dataclass(frozen=True, slots=True)
class Missing:
    """What never reached the sink, or may not have.

    Args:
        message: what it is, in words, with the field of the status that has all of it.
        accepted: whether a person has accepted all of it.
    """

    message: str
    accepted: bool


def find_missing(resource: Resource, gaps: Sequence[Gap]) -> Missing | None:
    """What is known to be missing; None where nothing is.

    Args:
        resource: the object.
        gaps: those of `find_gaps`, in their order.
    """
    found, accepted = [], all(gap.accepted for gap in gaps)
    if (loss := recorded_loss(resource.status)) is not None:
        start = "a time that is not known" if loss.start is None else timestamp(loss.start)
        end = "the creation of the tunnel" if loss.end is None else timestamp(loss.end)
        found.append(f"{loss.what.lower()} committed between {start} and {end} are missing (status.lost)")
        # a reset that says what it loses is refused with an end time: what is lost there, no person was asked about
        accepted = accepted and resource.spec.source.end_time is None
    if gaps:
        gap = gaps[0]
        more = " and others" if len(gaps) > 1 else ""
        found.append(
            f"changes of {resource.spec.source.part} {gap.channel} committed between {timestamp(gap.start)} and "
            f"{timestamp(gap.end)}{more} may be missing (status.possibleGaps)"
        )
    return Missing("; ".join(found), accepted) if found else None
