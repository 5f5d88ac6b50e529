"""What is known to be missing in the sink, so that nothing says that every change was delivered. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ots_tunnel_operator.assess.gap import Gap
from ots_tunnel_operator.report.refusals import are_accepted, find_refusals
from ots_tunnel_operator.reset.record import recorded_loss
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.world import World

_LEFT_OUT = "records that the sink refused were left out (status.refused)"
_LETTERS = f"{_LEFT_OUT}, those of onPermanentError DeadLetter into delivery.deadLetter"


@dataclass(frozen=True, slots=True)
class Missing:
    """What never reached the sink, or may not have.

    Args:
        message: what it is, in words, with the field of the status that has all of it.
        accepted: whether a person has accepted all of it but the refused records, which have a reason of their own
            until they are accepted (`find_refused`).
    """

    message: str
    accepted: bool


def find_missing(world: World, gaps: Sequence[Gap]) -> Missing | None:
    """What is known to be missing at the end; None where nothing is.

    Args:
        world: what was observed.
        gaps: those of `find_gaps`, in their order.
    """
    unread = find_unread(world.resource, gaps)
    refused = _refused(world)
    if unread is None or refused is None:
        return unread or refused
    return Missing(f"{unread.message}; {refused.message}", accepted=unread.accepted and refused.accepted)


def _refused(world: World) -> Missing | None:
    """What the sink refused and that was left out, or may have been; None where nothing is known of that."""
    found = find_refusals(world, completed=True)
    records, texts = found.total.records, []
    if records:
        texts.append(_LEFT_OUT if world.resource.spec.delivery.dead_letter is None else _LETTERS)
    if found.unknown:
        texts.append("what workers refused that did not answer at the end is not known (status.refused.unknownWorkers)")
    # records that are counted have a reason of their own until then
    return Missing("; ".join(texts), bool(records) or are_accepted(world, 0)) if texts else None


def find_unread(resource: Resource, gaps: Sequence[Gap]) -> Missing | None:
    """What no worker has read, or may not have; None where nothing is known of that.

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
