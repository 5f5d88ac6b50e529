"""What may be created, and who has to stop, in every combination of what can be observed.

The conditions here are written from the rules (docs/architecture.md 3.2), not from the code: a world is a choice of one
answer for source, destination, tunnel, record, elder object, gap and workers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelId, ChannelStatus, Checkpoint, Stage, Token, TunnelId
from ots_tunnel_operator.kube.kinds import DEPLOYMENT
from ots_tunnel_operator.plan.actions import (
    Action,
    ApplyObject,
    CreateTunnel,
    EnsureDestination,
    RecordStatus,
    ScaleDown,
)
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Failure, Missing, Unread
from ots_tunnel_operator.world.report import ReportedGap
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import Competitor, World
from tests.support.operator.worlds import (
    COPY,
    FRESH,
    NOW,
    PLACE,
    SCHEMA,
    base,
    channel,
    deployment,
    description,
    planned,
    pod,
    recorded,
    report_channel,
    resource,
    world,
)

DENIED = Failure(Problem(Reason.AUTH_FAILED, "not accepted"))
SILENT = Failure(Problem(Reason.ENDPOINT_UNREACHABLE, "no answer"))
EXPIRED = Failure(Problem(Reason.TUNNEL_EXPIRED, "expired"))
UNMOVED = Tunnel(description(base("b1", ChannelStatus.WAIT), stage=Stage.BASE), {ChannelId("b1"): FRESH})
MOVED = Tunnel(description(channel("c1", consumed=NOW - 5), base("b1", ChannelStatus.TERMINATED, rows=100)))
READ = Tunnel(description(base("b1"), stage=Stage.BASE), {ChannelId("b1"): Checkpoint(Token("t"), 4)})
INTENT = {"createIntentTime": timestamp(NOW - 9), "createdByOperator": True}

SOURCES = {"source": Table(SCHEMA), "no source": Missing(), "source silent": SILENT}
DESTINATIONS = {
    "empty": Table(COPY, empty=True),
    "filled": Table(COPY, empty=False),
    "other keys": Table(replace(COPY, max_versions=1), empty=True),
    "no destination": Missing(),
    "destination silent": SILENT,
    "destination unread": Unread(),
}
TUNNELS = {
    "moved": MOVED,
    "read": READ,
    "unmoved": UNMOVED,
    "expired": replace(MOVED, description=description(channel("c1"), expired=True)),
    "replaced": replace(MOVED, description=description(channel("c1"), tunnel_id=TunnelId("another"))),
    "not initialised": Tunnel(description(stage=Stage.INIT)),
    "no tunnel": Missing(),
    "refused as expired": EXPIRED,
    "tunnel silent": SILENT,
    "tunnel unread": Unread(),
}
RECORDS = {
    "new": {},
    "intents": {"destination": PLACE | INTENT, "tunnel": INTENT},
    "destination only": {"destination": recorded()["destination"]},
    "used": recorded(),
    "another sink": recorded(destination=recorded()["destination"] | {"table": "another"}),
}
ELDER = Competitor("elder", "shop", NOW - 5000, "a")


@dataclass(frozen=True)
class Case:
    """One choice."""

    source: str
    destination: str
    tunnel: str
    record: str
    has_elder: bool
    has_gap: bool
    has_workers: bool
    has_key: bool

    @property
    def world(self) -> World:
        gaps = (ReportedGap("c1", NOW - 900, NOW - 100),) if self.has_gap else ()
        pods = (replace(pod("pod-1", report_channel("c1")), gaps=gaps),) if self.has_workers else ()
        changes: dict[str, Any] = {} if self.has_key else {"source_credentials": DENIED}
        return world(
            resource(RECORDS[self.record]),
            source=SOURCES[self.source],
            destination=DESTINATIONS[self.destination],
            tunnel=TUNNELS[self.tunnel],
            elder=ELDER if self.has_elder else None,
            pods=pods,
            children=deployment() if self.has_workers else {},
            **changes,
        )

    @property
    def is_used(self) -> bool:
        return self.record in ("used", "another sink")

    @property
    def stops(self) -> bool:
        """Whether workers could only fail or do harm."""
        is_gone = self.tunnel in ("no tunnel", "replaced", "expired") or self.source == "no source"
        has_moved = self.tunnel in ("moved", "read", "expired", "replaced")
        return (
            self.has_elder
            or (self.has_gap and self.has_workers)
            or self.record == "another sink"
            or self.tunnel in ("expired", "refused as expired")
            or (self.is_used and (is_gone or (has_moved and self.destination == "no destination")))
        )

    @property
    def may_create(self) -> bool:
        """Whether everything that decides about the first call that creates something was seen, and allows it."""
        return (
            self.has_key
            and not self.stops
            and self.source == "source"
            and self.destination in ("empty", "filled", "no destination")
            and self.tunnel in ("moved", "read", "unmoved", "not initialised", "no tunnel", "replaced")
        )


def cases() -> Iterator[Case]:
    flags = (False, True)
    choices = SOURCES, DESTINATIONS, TUNNELS, RECORDS, flags, flags, flags, flags
    return (Case(*choice) for choice in itertools.product(*choices))


CASES = tuple(cases())


def intents(actions: tuple[Action, ...], part: str) -> list[int]:
    """Places of the actions that record an intent."""
    return [
        place
        for place, action in enumerate(actions)
        if isinstance(action, RecordStatus) and "createIntentTime" in action.change.get(part, {})
    ]


def replicas(actions: tuple[Action, ...]) -> int:
    """Workers that the actions ask for; -1 where they do not touch the Deployment."""
    for action in actions:
        if isinstance(action, ScaleDown):
            return 0
        if isinstance(action, ApplyObject) and action.manifest["kind"] == DEPLOYMENT.kind:
            return int(action.manifest["spec"]["replicas"])
    return -1


def broken(case: Case) -> Iterator[str]:
    found = planned(case.world)
    actions = found.actions
    creates_tunnel = [place for place, action in enumerate(actions) if isinstance(action, CreateTunnel)]
    ensures = [place for place, action in enumerate(actions) if isinstance(action, EnsureDestination)]
    if case.stops and case.has_workers and replicas(actions) != 0:
        yield "workers that do harm run on"
    if case.stops and replicas(actions) > 0:
        yield "workers that do harm are started"
    if (creates_tunnel or ensures) and not case.may_create:
        yield "something is created on partial evidence"
    if creates_tunnel and case.record not in ("used", "destination only"):
        yield "the tunnel comes before the record of its destination"
    if creates_tunnel and case.record != "intents" and intents(actions, "tunnel") != [creates_tunnel[0] - 1]:
        yield "the tunnel is created without a recorded intent"
    if (
        ensures
        and case.destination == "no destination"
        and case.record == "new"
        and intents(actions, "destination") != [0]
    ):
        yield "the destination is created without a recorded intent"
    if replicas(actions) > 0 and not case.has_workers and not (case.record == "used" and case.may_create):
        yield "workers start before the tunnel and the destination are recorded and seen"
    if found.problem is not None and (creates_tunnel or ensures):
        yield "something is created beside a problem"


@pytest.mark.timeout(600)  # all combinations: half a minute of a processor that others share
def test_no_combination_creates_or_keeps_what_does_harm() -> None:
    found = [f"{text}: {case}" for case in CASES for text in broken(case)]

    assert not found, f"{len(found)} of {len(CASES)}:\n" + "\n".join(found[:10])


@pytest.mark.parametrize("part", ["destination", "tunnel", "workers"])
def test_the_combinations_reach_every_step(part: str) -> None:
    plans = [planned(case.world).actions for case in CASES if case.may_create]
    kind = {"destination": EnsureDestination, "tunnel": CreateTunnel, "workers": ApplyObject}[part]

    assert any(isinstance(action, kind) for actions in plans for action in actions)
