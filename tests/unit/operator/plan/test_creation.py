"""Destination and tunnel are created or taken over once, and no worker is sent to another table before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelId, Stage, StreamConfig, TunnelType
from ots_tunnel.protocol.http.rpc import MOST_APART
from ots_tunnel_operator.assess.creation import REPEAT_SECONDS, STANDING_SECONDS
from ots_tunnel_operator.plan.actions import (
    CreateTunnel,
    EnsureDestination,
    RecordStatus,
)
from ots_tunnel_operator.plan.planner import OF_TABLE
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.times import exact_timestamp, timestamp
from ots_tunnel_operator.world.absence import Missing, Unread
from ots_tunnel_operator.world.service import Table, Tunnel
from tests.support.operator.objects import EMULATOR
from tests.support.operator.planned_steps import BUSY, ENSURED, INIT, new_world, steps
from tests.support.operator.worlds import (
    COPY,
    FRESH,
    NOW,
    PLACE,
    TUNNEL_ID,
    base,
    channel,
    deployment,
    description,
    planned,
    pod,
    recorded,
    resource,
    world,
)


def test_a_table_that_was_created_anew_before_anything_was_consumed_is_a_new_destination() -> None:
    ours = PLACE | {"ensuredTime": "t", "createdByOperator": True, "createdTime": exact_timestamp(NOW - 800)}
    unmoved = Tunnel(description(base("b1"), stage=Stage.BASE), {ChannelId("b1"): FRESH})
    now = world(resource(recorded(destination=ours)), tunnel=unmoved, destination=Table(COPY, created=NOW - 5.5))

    assert steps(now) == ["ScaleDown"]
    freed = Tunnel(description(base("b1", client=""), stage=Stage.BASE), {ChannelId("b1"): FRESH})
    ended = replace(now, children=deployment(0), pods=(), tunnel=freed)
    (forgotten,) = planned(ended).actions
    assert isinstance(forgotten, RecordStatus)
    assert forgotten.change["destination"] == dict.fromkeys(OF_TABLE)
    (_, record) = planned(replace(ended, resource=resource(recorded(destination=PLACE)))).actions
    assert isinstance(record, RecordStatus)
    assert record.change["destination"]["createdTime"] == exact_timestamp(NOW - 5.5)
    assert record.change["destination"]["createdByOperator"] is False
    # while the tunnel cannot be read, nobody knows whether anything was consumed
    assert planned(replace(now, tunnel=BUSY)).actions == ()


def test_a_new_object_records_its_intent_before_each_creating_call() -> None:
    fresh = new_world(resource())
    intended = resource({"destination": {"createIntentTime": "t", "createdByOperator": True}})
    made = world(intended, tunnel=Missing(), destination=Table(COPY, empty=True), children={}, pods=())
    ensured = world(resource(ENSURED), tunnel=Missing(), destination=Table(COPY, empty=True), children={}, pods=())

    assert steps(fresh) == ["RecordStatus", "EnsureDestination"]
    assert steps(made) == ["EnsureDestination", "RecordStatus"]
    assert steps(ensured) == ["RecordStatus", "CreateTunnel"]


def test_an_operator_that_died_after_an_intent_repeats_the_call_and_keeps_the_intent() -> None:
    intent = {"createIntentTime": timestamp(NOW - REPEAT_SECONDS + 1)}
    intended = resource({"destination": PLACE | intent})
    assert planned(new_world(intended)).actions == (EnsureDestination(),)

    again = resource(ENSURED | {"tunnel": intent})
    (create,) = planned(world(again, tunnel=Missing())).actions
    assert create == CreateTunnel(TunnelType.BaseAndStream, None)


@pytest.mark.parametrize(("age", "stands"), [(REPEAT_SECONDS, True), (STANDING_SECONDS, False)])
def test_a_refusal_takes_back_the_intent_of_its_own_call_only(age: float, stands: bool) -> None:
    before = {"createIntentTime": timestamp(NOW - age)}
    intended = resource({"destination": PLACE | before | {"createdByOperator": True}})
    again = resource(ENSURED | {"tunnel": before})

    intent, ensure = planned(new_world(intended)).actions
    assert isinstance(intent, RecordStatus)
    assert intent.change["destination"]["createIntentTime"] == timestamp(NOW)
    assert isinstance(ensure, EnsureDestination)
    empty = dict.fromkeys((*PLACE, "createIntentTime", "createdByOperator"))
    old = PLACE | before | {"createdByOperator": True}
    assert ensure.withdrawal["destination"] == (old if stands else empty)

    intent, create = planned(world(again, tunnel=Missing())).actions
    assert isinstance(intent, RecordStatus)
    assert intent.change["tunnel"] == {"createIntentTime": timestamp(NOW), "endpoint": EMULATOR}
    assert isinstance(create, CreateTunnel)
    withdrawn = {"endpoint": None, "createIntentTime": before["createIntentTime"] if stands else None}
    assert create.withdrawal["tunnel"] == withdrawn


def test_a_table_that_was_found_before_is_not_restored_as_found() -> None:
    gone = resource(
        {"destination": PLACE | {"createIntentTime": timestamp(NOW - 9), "ensuredTime": timestamp(NOW - 5)}}
    )

    intent, ensure = planned(new_world(gone)).actions

    assert isinstance(intent, RecordStatus)
    assert isinstance(ensure, EnsureDestination)
    assert intent.change["destination"]["ensuredTime"] is None
    assert ensure.withdrawal["destination"]["ensuredTime"] is None


ELSEWHERE = {"destination": PLACE | {"endpoint": "http://another", "ensuredTime": "t"}}


@pytest.mark.parametrize(
    ("before", "destination"),
    [(ENSURED, Missing()), (ELSEWHERE, Missing()), (ELSEWHERE, Table(COPY, empty=True))],
    ids=["gone", "elsewhere and missing", "elsewhere"],
)
def test_no_worker_of_the_former_table_is_left_when_another_one_is_used(
    before: dict[str, Any], destination: Table | Missing
) -> None:
    unmoved = Tunnel(description(base("b1"), stage=Stage.BASE), {ChannelId("b1"): FRESH})
    now = world(resource(recorded() | before), tunnel=unmoved, destination=destination)

    assert steps(now) == ["ScaleDown"]
    freed = Tunnel(description(base("b1", client=""), stage=Stage.BASE), {ChannelId("b1"): FRESH})
    ending = replace(now, children=deployment(0), tunnel=freed)
    waits = Reason.CREATING_DESTINATION
    assert (steps(ending), planned(ending).wait.reason) == ([], waits)
    assert "EnsureDestination" in steps(replace(ending, pods=()))
    # its controller, which may still start one, has not seen that none is wanted
    late = deployment(0, observedGeneration=0)
    assert (steps(replace(ending, pods=(), children=late)), planned(ending).wait.reason) == ([], waits)
    # nobody removes an evicted pod
    evicted = pod(ready=False, phase="Failed", message="Evicted")
    assert "EnsureDestination" in steps(replace(ending, pods=(evicted,)))


@pytest.mark.parametrize(
    ("before", "seen"),
    [
        (ELSEWHERE, {"destination": BUSY}),
        (ELSEWHERE, {"sink_credentials": BUSY, "destination": Unread()}),
        (ELSEWHERE, {"destination": Table(replace(COPY, max_versions=1), empty=False)}),
        ({"destination": PLACE | {"createIntentTime": "t"}}, {"destination": Table(COPY, empty=True), "tunnel": BUSY}),
    ],
    ids=["unread", "without credentials", "unfit", "created anew, tunnel unread"],
)
def test_no_worker_is_sent_to_a_table_that_nobody_has_looked_at(before: dict[str, Any], seen: dict[str, Any]) -> None:
    moved = Tunnel(description(channel("c1", consumed=NOW - 5)), {ChannelId("c1"): FRESH})
    now = world(resource(recorded() | before), **{"tunnel": moved} | seen)

    found = planned(now)
    # the workers of the former table go on with it
    assert (found.actions, found.replicas) == ((), 1)
    assert found.problem is not None
    assert found.problem.reason in {Reason.SERVICE_UNAVAILABLE, Reason.DESTINATION_INCOMPATIBLE}
    assert planned(replace(now, children=deployment(0), pods=())).actions == ()


@pytest.mark.parametrize(
    "record",
    [
        # what an older definition of the object keeps of an intent
        {"createIntentTime": timestamp(NOW - 5), "createdByOperator": True},
        PLACE | {"endpoint": "http://another", "createIntentTime": timestamp(NOW - 5), "ensuredTime": "t"},
        PLACE | {"createdByOperator": True},
    ],
)
def test_an_intent_that_does_not_name_the_destination_is_recorded_again(record: dict[str, Any]) -> None:
    (intent, ensure) = planned(new_world(resource({"destination": record}))).actions

    assert isinstance(ensure, EnsureDestination)
    assert isinstance(intent, RecordStatus)
    stored = {key: value for key, value in (record | intent.change["destination"]).items() if value is not None}
    assert stored == PLACE | {"createIntentTime": timestamp(NOW), "createdByOperator": True}


INTENT = {"createIntentTime": timestamp(NOW - 15), "endpoint": EMULATOR}


@pytest.mark.parametrize(
    ("tunnel", "ours"),
    [
        (INTENT, True),
        ({"createIntentTime": INTENT["createIntentTime"]}, True),
        ({}, False),
        (INTENT | {"endpoint": "http://elsewhere"}, False),
        (INTENT | {"createIntentTime": timestamp(NOW - STANDING_SECONDS - MOST_APART - 15)}, False),
    ],
    ids=["intended", "by an earlier release", "not intended", "elsewhere", "long after the intent"],
)
def test_a_tunnel_counts_as_created_by_us_only_with_a_recorded_intent(tunnel: dict[str, str], ours: bool) -> None:
    (record,) = planned(world(resource(ENSURED | {"tunnel": tunnel}), tunnel=INIT)).actions

    assert isinstance(record, RecordStatus)
    assert record.change["tunnel"]["createdByOperator"] is ours
    assert record.change["tunnel"]["id"] == TUNNEL_ID


def test_no_worker_starts_before_the_tunnel_lists_its_channels() -> None:
    found = planned(world(tunnel=INIT, children={}))

    assert found.actions == ()
    assert found.wait is not None
    assert found.wait.reason is Reason.TUNNEL_INITIALISING
    assert found.problem is None


def test_a_tunnel_that_stays_in_its_first_stage_is_reported() -> None:
    stuck = Tunnel(description(stage=Stage.INIT, create_time_ns=int((NOW - 301) * 1e9)), {})

    problem = planned(world(tunnel=stuck, children={})).problem

    assert problem is not None
    assert problem.reason is Reason.TUNNEL_INITIALISING


def test_an_end_time_in_the_past_goes_to_the_service_and_one_ahead_stays_here() -> None:
    def created(end: float) -> CreateTunnel:
        window = {"startFrom": "Earliest", "endTime": timestamp(end)}
        of = resource(ENSURED, source__tunnel__type="Stream", source__tunnel__stream=window)
        action = planned(world(of, tunnel=Missing())).actions[-1]
        assert isinstance(action, CreateTunnel)
        return action

    past, ahead = created(NOW - 60).stream, created(NOW + 60).stream

    assert past is not None
    assert ahead is not None
    assert (past.earliest, past.end_offset_ns) == (True, int(NOW - 60) * 10**9)
    assert ahead.end_offset_ns == 0


def test_a_fraction_of_the_end_time_is_not_cut_off() -> None:
    window = {"startFrom": "Earliest", "endTime": timestamp(NOW - 60).replace("Z", ".7Z")}
    of = resource(ENSURED, source__tunnel__type="Stream", source__tunnel__stream=window)

    action = planned(world(of, tunnel=Missing())).actions[-1]

    assert isinstance(action, CreateTunnel)
    assert action.stream == StreamConfig(earliest=True, end_offset_ns=int(NOW - 60) * 10**9 + 7 * 10**8)


@pytest.mark.parametrize(
    ("place", "created"),
    [({}, True), ({"endpoint": "http://elsewhere"}, False), (PLACE, True)],
    ids=["of an earlier release", "elsewhere", "here"],
)
def test_a_table_that_was_meant_to_be_created_here_counts_as_created(place: dict[str, str], created: bool) -> None:
    assert created_here(place | {"createIntentTime": timestamp(NOW - 9)}, Table(COPY, empty=True)) is created


@pytest.mark.parametrize(
    ("age", "exists_for", "created"),
    [(9, None, True), (604_800, None, False), (604_800, 604_800 - 9, True), (604_800, 9, False)],
    ids=["now", "a week later", "then, and recorded a week later", "by somebody, a week later"],
)
def test_an_intent_makes_no_table_of_a_later_time_this_objects(age: int, exists_for: int | None, created: bool) -> None:
    created_time = None if exists_for is None else NOW - exists_for
    record = PLACE | {"createIntentTime": timestamp(NOW - age), "createdByOperator": True}

    assert created_here(record, Table(COPY, empty=True, created=created_time)) is created


def created_here(destination: dict[str, Any], found: Table) -> bool:
    """Whether the record of a table that is found after an intent calls it created by this object."""
    of = resource({"destination": destination})

    _, record = planned(world(of, tunnel=Missing(), destination=found, children={}, pods=())).actions

    assert isinstance(record, RecordStatus)
    return bool(record.change["destination"]["createdByOperator"])
