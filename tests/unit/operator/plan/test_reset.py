"""A reset in every situation: refused, waiting, begun, and each of its steps by the records alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelId, ChannelStatus, Stage, TunnelId, TunnelType
from ots_tunnel_operator import names
from ots_tunnel_operator.kube.kinds import CONFIG_MAP, SPARK_APPLICATION
from ots_tunnel_operator.plan.actions import (
    Action,
    CreateTunnel,
    DeleteObject,
    DeleteTunnel,
    Plan,
    RecordStatus,
    ScaleDown,
)
from ots_tunnel_operator.plan.reset_steps import SPARK_SECONDS
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.report.notices import record_notices
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Failure, Missing, Unread
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import Competitor, World
from tests.support.operator.spark_worlds import NAME, SPARK, progress_record, spark_application
from tests.support.operator.worlds import (
    COPY,
    FRESH,
    NOW,
    SCHEMA,
    TUNNEL_ID,
    base,
    channel,
    deployment,
    description,
    planned,
    pod,
    recorded,
    reported,
    resource,
    world,
)

SOURCE = Table(SCHEMA, stream_retention_seconds=7 * 86_400)
CONSUMED = Tunnel(
    description(
        channel("c1", ChannelStatus.CLOSE, client="", consumed=NOW - 3600), base("b1", ChannelStatus.TERMINATED)
    )
)
ANOTHER = Tunnel(description(base("b1"), stage=Stage.BASE, tunnel_id=TunnelId("another")), {ChannelId("b1"): FRESH})
EXPIRED = Failure(Problem(Reason.TUNNEL_EXPIRED, "expired"))
SILENT = Failure(Problem(Reason.ENDPOINT_UNREACHABLE, "no answer"))
NEW_BASE = {"token": "t", "form": "NewBase", "existingTunnel": "Delete"}
REWIND = {"token": "t", "form": "Rewind", "existingTunnel": "Delete"}
RUNNING = {
    "state": "Running",
    "requestedTime": timestamp(NOW - 9),
    "formerTunnelId": TUNNEL_ID,
    "deliveredUntil": timestamp(NOW - 3600),
}
BEHIND = {"reason": "DestinationBehindTunnel", "message": "m"}


def annotated(of: Resource, asked: Any) -> Resource:
    """The object with the annotation."""
    text = asked if isinstance(asked, str) else json.dumps(asked)
    metadata = of.object.metadata.model_copy(update={"annotations": {names.ANNOTATION_RESET: text}})
    return replace(of, object=of.object.model_copy(update={"metadata": metadata}))


def suspended(
    asked: Any = None, status: dict[str, Any] | None = None, *, suspend: bool = True, **changes: Any
) -> World:
    """An object at rest whose tunnel was consumed up to an hour ago; `changes` with two underscores are of the spec."""
    spec = {key: value for key, value in changes.items() if "__" in key or key == "engine"}
    seen = {key: value for key, value in changes.items() if key not in spec}
    of = resource(recorded() if status is None else status, suspend=suspend, **spec)
    of = of if asked is None else annotated(of, asked)
    rest = {"tunnel": CONSUMED, "children": deployment(0), "pods": (), "source": SOURCE}
    return world(of, **(rest | seen))


def going_on(asked: dict[str, Any], status: dict[str, Any] | None = None, **changes: Any) -> World:
    """The same with a reset under way."""
    stored = recorded() if status is None else status
    return suspended(None, {**stored, "reset": asked | RUNNING}, **changes)


def records(plan: Plan) -> dict[str, Any]:
    """What is recorded about the reset; empty without a record."""
    found = [action.change["reset"] for action in plan.actions if isinstance(action, RecordStatus)]
    return {key: value for key, value in found[0].items() if value is not None} if found else {}


def kinds(plan: Plan) -> list[type[Action]]:
    return [type(action) for action in plan.actions]


# Before


def test_a_reset_begins_with_the_record_of_its_whole_request() -> None:
    plan = planned(suspended(NEW_BASE))

    assert plan.again
    assert plan.wait is not None
    assert plan.wait.reason is Reason.RESETTING
    found = records(plan)
    assert found.pop("message").startswith(f"It deletes tunnel {TUNNEL_ID}, and creates")
    assert found == NEW_BASE | RUNNING | {"requestedTime": timestamp(NOW)}


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (suspended("nonsense"), "annotation ots-tunnel.dev/reset: it is no JSON"),
        (suspended(NEW_BASE, suspend=False), "the object is not suspended: `kubectl ott pause flights-copy -n default"),
        (suspended(NEW_BASE, elder=Competitor("elder", "shop", NOW - 5000, "a")), "elder object shop/elder consumes"),
        (
            suspended(
                NEW_BASE, later_elder=Competitor("back", "shop", NOW - 5000, "a", ("shop/back", "shop/on"), True)
            ),
            "elder objects, shop/back, shop/on, copy its changes back to the source",
        ),
        (suspended(NEW_BASE | {"existingTunnel": "Keep"}), "ask with existingTunnel Delete"),
        (suspended(NEW_BASE, {}), "nothing is recorded that could be reset"),
        (suspended(REWIND, recorded(verdict=BEHIND), destination=Missing()), "the rows in the destination are lost"),
        (
            suspended(REWIND, tunnel=Tunnel(description(base("b1", client=""), stage=Stage.BASE))),
            "not every existing row",
        ),
        (suspended(REWIND, tunnel=Tunnel(description(stage=Stage.INIT))), "not every existing row was copied"),
        (suspended(REWIND, tunnel=Missing()), "it is not known whether every existing row was copied"),
    ],
)
def test_a_refusal_is_recorded_and_changes_nothing_else(now: World, said: str) -> None:
    without = planned(replace(now, resource=replace(now.resource, object=resource(suspend=True).object)))
    plan = planned(now)

    record = records(plan)
    assert said in record["message"]
    assert record["message"].startswith("nothing was reset: ")
    assert record["state"] == "Refused"
    if now.resource.spec.suspend:
        assert replace(plan, actions=plan.actions[1:]) == without


def test_a_refusal_is_remembered() -> None:
    refused = records(planned(suspended("nonsense")))

    assert planned(suspended("nonsense", {**recorded(), "reset": refused})).actions == ()


def test_consumers_are_stopped_before_a_reset_begins() -> None:
    plan = planned(suspended(NEW_BASE, children=deployment(1), pods=(pod(),)))

    assert kinds(plan) == [ScaleDown]
    assert plan.wait is not None
    assert plan.wait.reason is Reason.SUSPENDING


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ({"source": SILENT}, "the source table could not be read"),
        ({"tunnel": SILENT}, "the tunnel could not be read"),
        ({"destination": Unread()}, "the destination could not be read"),
    ],
)
def test_what_could_not_be_seen_is_waited_for(seen: dict[str, Any], said: str) -> None:
    plan = planned(suspended(NEW_BASE, **seen))

    assert plan.actions == ()
    assert plan.wait is not None
    assert plan.wait.message == f"the reset waits: {said}"


@pytest.mark.parametrize(
    ("now", "until"),
    [
        (suspended(NEW_BASE), NOW - 3600),
        (suspended(NEW_BASE, tunnel=EXPIRED), None),
        (suspended(NEW_BASE, recorded(lag={"consumedUpTo": timestamp(NOW - 7)})), NOW - 7),
        (suspended(NEW_BASE, tunnel=Tunnel(description(base("b1"), stage=Stage.BASE))), None),
    ],
)
def test_until_when_everything_was_delivered_is_recorded_first(now: World, until: float | None) -> None:
    assert records(planned(now)).get("deliveredUntil") == (None if until is None else timestamp(until))


def test_a_tunnel_that_has_taken_the_name_is_measured_by_nothing() -> None:
    stored = recorded(tunnel=recorded()["tunnel"] | {"lastStage": "ProcessStream"})
    adopt = {"token": "t", "form": "NewTunnel", "existingTunnel": "Adopt"}
    found = records(planned(suspended(adopt, stored, tunnel=ANOTHER)))
    unfit = Tunnel(description(channel("c1"), kind=TunnelType.Stream, tunnel_id=TunnelId("another")))

    assert found["state"] == "Running"
    assert "deliveredUntil" not in found
    assert "does not fit the spec" in records(planned(suspended(adopt, stored, tunnel=unfit)))["message"]


def test_the_base_phase_of_a_tunnel_that_is_gone_is_known_by_its_last_stage() -> None:
    gone = {"tunnel": recorded()["tunnel"] | {"lastStage": "ProcessStream", "consumedUpTo": timestamp(NOW - 60)}}
    found = records(planned(suspended(REWIND, {**recorded(), **gone}, tunnel=Missing())))

    assert (found["state"], found["deliveredUntil"]) == ("Running", timestamp(NOW - 60))


def test_a_stream_that_was_enabled_again_has_no_older_changes() -> None:
    of_then = {"createdTime": timestamp(NOW - 90_000), "startFrom": "Latest"}
    status = recorded(tunnel=recorded()["tunnel"] | of_then)
    again = replace(SOURCE, stream_start=NOW - 60)
    old = replace(SOURCE, stream_start=NOW - 95_000)

    assert "It loses changes" in records(planned(suspended(REWIND, status, source=again)))["message"]
    assert "It loses nothing" in records(planned(suspended(REWIND, status, source=old)))["message"]


def test_an_object_that_only_follows_changes_has_no_base_phase() -> None:
    kind = Tunnel(description(channel("c1", client="", consumed=NOW - 60), kind=TunnelType.Stream))
    window = {"source__tunnel__type": "Stream", "source__tunnel__stream": {"startFrom": "Earliest"}}

    assert records(planned(suspended(REWIND, tunnel=kind, **window)))["state"] == "Running"


# Under way


def test_the_tunnel_is_deleted_by_its_id() -> None:
    plan = planned(going_on(NEW_BASE))

    assert plan.actions == (DeleteTunnel(str(TUNNEL_ID)),)
    assert plan.again
    assert planned(going_on(NEW_BASE, tunnel=EXPIRED)).actions == plan.actions


@pytest.mark.parametrize(
    ("asked", "ours"), [(NEW_BASE | {"existingTunnel": "Keep"}, True), (NEW_BASE, False)], ids=["kept", "not ours"]
)
def test_a_tunnel_that_may_not_be_deleted_is_not(asked: dict[str, Any], ours: bool) -> None:
    status = recorded(tunnel=recorded()["tunnel"] | {"createdByOperator": ours})
    plan = planned(going_on(asked, status))

    assert plan.actions == ()
    assert plan.wait is not None
    assert "may not be deleted" in plan.wait.message


@pytest.mark.parametrize(
    ("asked", "start", "lost"),
    [
        (NEW_BASE, None, {"what": "Deletions", "from": timestamp(NOW - 3600), "to": None}),
        (REWIND, {"startFrom": "Earliest", "startTime": None}, None),
        (
            REWIND | {"startTime": timestamp(NOW - 60)},
            {"startFrom": "Timestamp", "startTime": timestamp(NOW - 60)},
            {"what": "Changes", "from": timestamp(NOW - 3600), "to": timestamp(NOW - 60)},
        ),
        (
            {"token": "t", "form": "NewTunnel"},
            {"startFrom": "Latest", "startTime": None},
            {"what": "Changes", "from": timestamp(NOW - 3600), "to": None},
        ),
    ],
)
def test_what_is_gone_is_forgotten_with_all_that_was_known_of_it(
    asked: dict[str, Any], start: dict[str, Any] | None, lost: dict[str, Any] | None
) -> None:
    (action,) = planned(going_on(asked, tunnel=Missing())).actions

    assert isinstance(action, RecordStatus)
    change = dict(action.change)
    tunnel = change.pop("tunnel")
    assert ({key: tunnel[key] for key in start} if start else tunnel) == start
    assert start is None or {tunnel[key] for key in set(tunnel) - set(start)} == {None}
    assert change.pop("lost") == lost
    assert change.pop("snapshot", None) is None
    assert set(change) == {"verdict", "possibleGaps", "readUntil", "channels", "base", "lag", "throughput"}
    assert set(change.values()) == {None}


def test_a_start_like_that_of_the_spec_needs_no_record() -> None:
    stream = {"source__tunnel__type": "Stream"}
    asked = {"token": "t", "form": "NewTunnel"}
    earliest = stream | {"source__tunnel__stream": {"startFrom": "Earliest"}}

    found = [planned(going_on(asked, tunnel=Missing(), **spec)).actions[0] for spec in (stream, earliest)]

    assert [action.change["tunnel"] is None for action in found if isinstance(action, RecordStatus)] == [True, False]


def test_a_sink_that_has_changed_is_forgotten_with_a_new_base_phase() -> None:
    elsewhere = recorded(destination=recorded()["destination"] | {"table": "another"})
    (action,) = planned(going_on(NEW_BASE, elsewhere, tunnel=Missing())).actions

    assert isinstance(action, RecordStatus)
    assert action.change["destination"] is None


FORGOTTEN = {"destination": recorded()["destination"], "tunnel": {}}
CREATED = {
    "destination": recorded()["destination"],
    "tunnel": {"createIntentTime": timestamp(NOW - 905), "startFrom": "Latest"},
    "lost": {"what": "Changes", "from": timestamp(NOW - 3600)},
}


def test_the_next_tunnel_is_created_with_its_intent_before_it() -> None:
    rewound = FORGOTTEN | {"tunnel": {"startFrom": "Timestamp", "startTime": timestamp(NOW - 60)}}
    plan = planned(going_on(REWIND, rewound, tunnel=Missing()))

    assert kinds(plan) == [RecordStatus, CreateTunnel]
    create = plan.actions[1]
    assert isinstance(create, CreateTunnel)
    assert create.type is TunnelType.Stream
    assert create.stream is not None
    assert create.stream.start_offset_ns == int((NOW - 60) * 1e9)
    assert plan.wait is not None
    assert plan.wait.reason is Reason.RESETTING


def test_a_new_base_phase_gets_a_tunnel_as_the_spec_has_it() -> None:
    create = planned(going_on(NEW_BASE, FORGOTTEN, tunnel=Missing())).actions[1]

    assert isinstance(create, CreateTunnel)
    assert (create.type, create.stream) == (TunnelType.BaseAndStream, None)


def test_the_record_of_the_next_tunnel_ends_the_reset() -> None:
    ours = Tunnel(description(channel("c1"), kind=TunnelType.Stream, tunnel_id=TunnelId("next")))
    asked = {"token": "t", "form": "NewTunnel"}
    (action,) = planned(going_on(asked, CREATED, tunnel=ours, destination=Table(COPY, empty=False))).actions

    assert isinstance(action, RecordStatus)
    assert action.change["tunnel"]["id"] == "next"
    assert action.change["reset"]["state"] == "Done"
    assert action.change["reset"]["tunnelId"] == "next"
    assert action.change["lost"] == {
        "what": "Changes",
        "from": timestamp(NOW - 3600),
        "to": timestamp(NOW - 900),
    }
    assert f"tunnel next replaces {TUNNEL_ID}. It loses changes" in action.change["reset"]["message"]


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({}, None),
        (
            {"lost": {"what": "Deletions", "from": timestamp(NOW - 3600), "to": timestamp(NOW - 60)}},
            timestamp(NOW - 60),
        ),
        ({"lost": {"what": "Deletions"}}, timestamp(NOW - 900)),
    ],
)
def test_the_end_of_what_is_lost_is_the_creation_of_the_next_tunnel(changes: dict[str, Any], lost: str | None) -> None:
    stored = FORGOTTEN | {"tunnel": {"createIntentTime": timestamp(NOW - 905)}} | changes
    rows = Table(COPY, empty=False)
    ours = Tunnel(description(base("b1"), stage=Stage.BASE, tunnel_id=TunnelId("next")), {ChannelId("b1"): FRESH})
    (action,) = planned(going_on(NEW_BASE, stored, tunnel=ours, destination=rows)).actions

    assert isinstance(action, RecordStatus)
    assert (action.change["lost"] or {}).get("to") == lost


def test_existing_rows_lose_nothing_in_an_empty_destination() -> None:
    stored = FORGOTTEN | {
        "tunnel": {"createIntentTime": timestamp(NOW - 905)},
        "lost": {"what": "Deletions", "from": timestamp(NOW - 3600)},
    }
    ours = Tunnel(description(base("b1"), stage=Stage.BASE, tunnel_id=TunnelId("next")), {ChannelId("b1"): FRESH})
    (action,) = planned(going_on(NEW_BASE, stored, tunnel=ours, destination=Table(COPY, empty=True))).actions

    assert isinstance(action, RecordStatus)
    assert action.change["lost"] is None


def test_a_tunnel_of_somebody_else_is_taken_only_to_adopt_it() -> None:
    other = going_on(NEW_BASE, FORGOTTEN, tunnel=ANOTHER, destination=Table(COPY, empty=False))
    adopt = {"token": "t", "form": "NewTunnel", "existingTunnel": "Adopt"}
    stored = FORGOTTEN | {"lost": {"what": "Changes", "from": timestamp(NOW - 3600)}}
    refused = planned(other)
    (action,) = planned(going_on(adopt, stored, tunnel=ANOTHER, destination=Table(COPY, empty=False))).actions
    gone = planned(going_on(adopt, FORGOTTEN, tunnel=Missing()))

    assert refused.actions == ()
    assert refused.problem is not None
    assert refused.problem.reason is Reason.TUNNEL_REPLACED
    assert isinstance(action, RecordStatus)
    assert action.change["tunnel"]["id"] == "another"
    assert action.change["tunnel"]["createdByOperator"] is False
    assert action.change["lost"]["to"] == timestamp(NOW)
    assert gone.problem is not None
    assert "is gone" in gone.problem.message


def test_an_adopted_tunnel_is_as_the_spec_has_it() -> None:
    adopt = {"token": "t", "form": "NewTunnel", "existingTunnel": "Adopt"}
    (action,) = planned(going_on(adopt, tunnel=ANOTHER)).actions

    assert isinstance(action, RecordStatus)
    assert action.change["tunnel"] is None


@pytest.mark.parametrize(
    "seen",
    [
        {"source_credentials": Failure(Problem(Reason.AUTH_FAILED, "no"))},
        {"source": SILENT},
        {"destination": Unread()},
    ],
)
def test_nothing_is_created_while_there_is_a_problem(seen: dict[str, Any]) -> None:
    plan = planned(going_on(REWIND, FORGOTTEN, tunnel=Missing(), **seen))

    assert plan.actions == ()
    assert plan.wait is not None


@pytest.mark.parametrize("seen", [{"tunnel": SILENT}, {"tunnel": Missing(), "source": SILENT}])
def test_nothing_is_forgotten_that_was_not_seen_to_be_gone(seen: dict[str, Any]) -> None:
    plan = planned(going_on(REWIND, **seen))

    assert plan.actions == ()
    assert plan.problem is not None


def test_somebody_who_resumes_meanwhile_starts_nothing() -> None:
    assert kinds(planned(going_on(NEW_BASE, suspend=False))) == [DeleteTunnel]


def test_workers_that_somebody_has_started_end_first() -> None:
    plan = planned(going_on(NEW_BASE, children=deployment(1), pods=(pod(),)))
    ending = planned(going_on(NEW_BASE, pods=(pod(),)))

    assert kinds(plan) == [ScaleDown]
    assert ending.actions == ()
    assert ending.wait is not None
    assert ending.wait.message == "the reset waits: workers are draining"


def test_an_elder_object_is_left_alone() -> None:
    plan = planned(going_on(NEW_BASE, elder=Competitor("elder", "shop", NOW - 5000, "a")))

    assert plan.actions == ()
    assert plan.problem is not None
    assert plan.problem.reason is Reason.TUNNEL_IN_USE


def test_completion_is_taken_back_before_anything_else() -> None:
    completed = {"conditions": [{"type": "Completed", "status": "True", "reason": "r"}]}
    now = going_on(NEW_BASE, recorded(**completed))
    (shown,) = (item for item in reported(now)["conditions"] if item["type"] == "Completed")

    assert planned(now).actions == ()
    assert shown["status"] == "False"


def test_another_token_takes_over_what_cannot_end() -> None:
    stuck = suspended({"token": "u", "form": "Rewind"}, FORGOTTEN | {"reset": REWIND | RUNNING}, tunnel=Missing())
    worse = suspended({"token": "u", "form": "Rewind"}, FORGOTTEN | {"reset": NEW_BASE | RUNNING}, tunnel=Missing())
    found = records(planned(stuck))

    assert (found["token"], found["state"], found["formerTunnelId"]) == ("u", "Running", TUNNEL_ID)
    assert found["deliveredUntil"] == timestamp(NOW - 3600)
    assert kinds(planned(worse)) == [RecordStatus, CreateTunnel]


# What the status says


def test_a_verdict_about_the_tunnel_ends_with_the_reset_that_replaces_it() -> None:
    gone = {"reason": "TunnelNotFound", "message": "m"}
    silent = {"tunnel": SILENT}

    assert reported(suspended(None, recorded(verdict=gone), **silent))["verdict"] == gone
    assert "verdict" not in reported(going_on(NEW_BASE, recorded(verdict=gone), **silent))
    assert reported(going_on(NEW_BASE, recorded(verdict=BEHIND), **silent))["verdict"] == BEHIND


@pytest.mark.parametrize("seen", [Missing(), EXPIRED])
def test_how_far_a_tunnel_came_stays_when_it_is_gone(seen: Any) -> None:
    point = timestamp(NOW - 60)
    known = recorded(tunnel=recorded()["tunnel"] | {"stage": "ProcessStream"}, lag={"consumedUpTo": point})
    gone = reported(suspended(None, known, tunnel=seen))["tunnel"]
    later = reported(suspended(None, recorded(tunnel=gone), tunnel=seen))["tunnel"]
    again = reported(suspended(None, recorded(tunnel=gone)))["tunnel"]

    assert (gone["lastStage"], gone["consumedUpTo"]) == ("ProcessStream", point)
    assert later == gone
    assert not {"lastStage", "consumedUpTo"} & again.keys()


@pytest.mark.parametrize(("lost", "caught_up"), [(None, True), ({"what": "Deletions"}, False)])
def test_an_object_that_has_lost_changes_is_never_caught_up(lost: dict[str, str] | None, caught_up: bool) -> None:
    status = recorded() if lost is None else recorded(lost=lost)
    found = reported(world(resource(status)))

    assert found["lag"]["caughtUp"] is caught_up
    assert found.get("lost") == lost


@pytest.mark.parametrize(
    ("state", "kind"), [("Running", "ResetStarted"), ("Done", "ResetDone"), ("Refused", "ResetRefused")]
)
def test_each_step_of_a_reset_that_is_recorded_is_an_event(state: str, kind: str) -> None:
    (notice,) = record_notices({"reset": {"state": state, "message": "m"}}, {})

    assert (notice.reason, notice.message) == (kind, "m")
    assert (notice.kind == "Warning") == (state == "Refused")


# Spark


def copied(**changes: Any) -> dict[str, Any]:
    """The record of a copy by Spark."""
    return {"application": NAME, "tunnelId": TUNNEL_ID, "state": "Completed"} | changes


def test_what_is_left_of_a_copy_by_spark_goes_first() -> None:
    left = spark_application("COMPLETED") | progress_record(4, 4)
    stored = recorded(snapshot=copied())
    now = going_on(NEW_BASE, stored, tunnel=Missing(), children=deployment(0) | left, **SPARK)
    gone = going_on(NEW_BASE, stored, tunnel=Missing(), **SPARK)

    assert planned(now).actions == (DeleteObject(SPARK_APPLICATION, NAME), DeleteObject(CONFIG_MAP, NAME))
    (action,) = planned(gone).actions
    assert isinstance(action, RecordStatus)
    assert action.change["snapshot"] is None


def test_tasks_of_a_copy_that_was_not_over_may_still_write() -> None:
    stored = recorded(snapshot=copied(state="FAILED"))
    now = going_on(NEW_BASE, stored, tunnel=Missing(), **SPARK)
    later = replace(now, now=NOW + SPARK_SECONDS)
    early = planned(now)

    assert early.actions == ()
    assert early.wait is not None
    assert early.wait.message.startswith("tasks of the former copy may write until ")
    assert kinds(planned(later)) == [RecordStatus]


def test_changes_alone_follow_a_copy_by_spark_that_was_over() -> None:
    begins = planned(suspended(REWIND, recorded(snapshot=copied()), **SPARK))
    incomplete = planned(suspended(REWIND, recorded(snapshot=copied(state="FAILED")), **SPARK))
    rewound = recorded(snapshot=copied(), tunnel=recorded()["tunnel"] | {"id": "next", "startFrom": "Earliest"})
    later = resource(rewound, **SPARK)

    assert records(begins)["state"] == "Running"
    assert records(incomplete)["state"] == "Refused"
    assert (later.wire_type, later.uses_spark, later.stream.start_from) == ("Stream", False, "Earliest")
    assert records(planned(suspended(REWIND | {"token": "u"}, rewound, **SPARK)))["state"] == "Refused"


def test_a_copy_by_spark_alone_is_forgotten_with_its_record() -> None:
    alone = SPARK | {"source__tunnel__type": "BaseData"}
    stored = {"destination": recorded()["destination"], "snapshot": copied(tunnelId="uid")}
    begins = planned(suspended(NEW_BASE, stored, tunnel=Unread(), **alone))
    (action,) = planned(going_on(NEW_BASE, stored, tunnel=Unread(), **alone)).actions

    assert records(begins)["state"] == "Running"
    assert isinstance(action, RecordStatus)
    assert action.change["snapshot"] is None
    assert action.change["reset"]["state"] == "Done"


def test_a_copy_by_spark_that_runs_is_suspended_first() -> None:
    left = spark_application("RUNNING")
    now = going_on(NEW_BASE, recorded(snapshot=copied(state="RUNNING")), children=deployment(0) | left, **SPARK)

    assert [type(action).__name__ for action in planned(now).actions] == ["ApplyObject"]
