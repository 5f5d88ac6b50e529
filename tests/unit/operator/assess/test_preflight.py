"""Problems that stop an object, one row per case: reason, and field and value in the message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from ots_tunnel.errors import AuthFailed, ConnectError, PermissionDenied, ServerUnavailable
from ots_tunnel.model import ChannelId, ChannelStatus, Checkpoint, Stage, StreamConfig, Token, TunnelId, TunnelType
from ots_tunnel_operator.diagnosis import Place, service_problem
from ots_tunnel_operator.manifests.spark.snapshot_document import snapshot_progress_map
from ots_tunnel_operator.observe.access_key import read_credentials
from ots_tunnel_operator.plan.actions import ApplyObject
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.report.status import build_status
from ots_tunnel_operator.report.status_change import is_urgent
from ots_tunnel_operator.report.unobserved import unobserved_status
from ots_tunnel_operator.times import exact_timestamp
from ots_tunnel_operator.world.absence import Failure, Missing, Unread
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import Competitor, World
from tests.support.operator.spark_worlds import NAME, READABLE, SPARK, progress_record, spark_application, spark_world
from tests.support.operator.worlds import (
    COPY,
    FRESH,
    NOW,
    SCHEMA,
    TUNNEL_ID,
    UID,
    assessed,
    base,
    channel,
    description,
    planned,
    recorded,
    reported,
    resource,
    world,
)

UNMOVED = Tunnel(description(base("b1", ChannelStatus.WAIT), stage=Stage.BASE), {ChannelId("b1"): FRESH})
MOVED = Tunnel(description(base("b1"), stage=Stage.BASE), {ChannelId("b1"): Checkpoint(Token("t"), 4)})
FULL, EMPTY = Table(COPY, empty=False), Table(COPY, empty=True)
ELDER = Competitor("elder", "shop", NOW - 5000, "a")


def problem_of(found: Any) -> Problem:
    problem = assessed(found).problem
    assert problem is not None
    return problem


def test_a_world_that_runs_has_no_problem() -> None:
    assert assessed(world()).problem is None
    assert assessed(world(resource(), tunnel=Missing(), destination=Missing())).problem is None


CASES: list[tuple[str, Any, Reason, str]] = [
    ("elder", world(elder=ELDER), Reason.TUNNEL_IN_USE, "shop/elder"),
    (
        "copied back",
        world(elder=replace(ELDER, way_back=("shop/elder", "lake/b"))),
        Reason.COPY_CIRCLE,
        "by elder objects, shop/elder, lake/b,",
    ),
    ("source table", world(resource(), source=Missing()), Reason.TABLE_NOT_FOUND, "spec.source.table 'flights'"),
    (
        "source table deleted",
        world(source=Missing(), tunnel=Unread()),
        Reason.TUNNEL_NOT_FOUND,
        "neither does table 'flights'",
    ),
    ("vanished", world(tunnel=Missing()), Reason.TUNNEL_NOT_FOUND, "never created again silently"),
    (
        "use existing",
        world(resource(source__tunnel__managementPolicy="UseExisting"), tunnel=Missing(), destination=EMPTY),
        Reason.TUNNEL_NOT_FOUND,
        "managementPolicy is UseExisting",
    ),
    (
        "replaced",
        world(resource(recorded(tunnel={"id": "other"})), tunnel=UNMOVED),
        Reason.TUNNEL_REPLACED,
        "this object used other",
    ),
    (
        "expired",
        world(tunnel=Tunnel(description(channel("c1"), expired=True))),
        Reason.TUNNEL_EXPIRED,
        "spec.source.tunnel.name 'flights-copy'",
    ),
    (
        "type",
        world(resource(), tunnel=Tunnel(description(kind=TunnelType.Stream)), destination=Missing()),
        Reason.SPEC_MISMATCH,
        "its type is Stream, needed is BaseAndStream",
    ),
    (
        "behind, missing",
        world(resource(), tunnel=MOVED, destination=Missing()),
        Reason.DESTINATION_BEHIND_TUNNEL,
        "if nothing else uses the tunnel, delete it by `ots-tunnel tunnel delete flights flights-copy --from-object ",
    ),
    ("behind, empty", world(resource(), tunnel=MOVED, destination=EMPTY), Reason.DESTINATION_BEHIND_TUNNEL, "is empty"),
    ("lost", world(tunnel=MOVED, destination=Missing()), Reason.DESTINATION_BEHIND_TUNNEL, "is missing"),
    (
        "never create",
        world(resource(sink__tablestore__createTable="Never"), tunnel=Missing(), destination=Missing()),
        Reason.DESTINATION_NOT_FOUND,
        "createTable is Never",
    ),
    (
        "incompatible",
        world(resource(), tunnel=Missing(), destination=Table(replace(COPY, max_versions=1), empty=True)),
        Reason.DESTINATION_INCOMPATIBLE,
        "max versions: found 1",
    ),
    (
        "rows",
        world(resource(), tunnel=Missing(), destination=FULL),
        Reason.DESTINATION_NOT_EMPTY,
        "onExisting is Refuse",
    ),
    (
        "rows, unmoved",
        world(resource(), tunnel=UNMOVED, destination=FULL),
        Reason.DESTINATION_NOT_EMPTY,
        "flights_copy",
    ),
    (
        "snapshot unknown",
        world(
            resource(engine__baseData="Spark"),
            tunnel=Tunnel(description(channel("c1", consumed=5.0), kind=TunnelType.Stream)),
            destination=FULL,
        ),
        Reason.SNAPSHOT_UNKNOWN,
        "spec.engine.baseData",
    ),
]


@pytest.mark.parametrize(("found", "reason", "text"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_problem(found: Any, reason: Reason, text: str) -> None:
    problem = problem_of(found)

    assert problem.reason is reason
    assert text in problem.message


def test_merge_takes_a_table_with_rows() -> None:
    merging = resource(sink__tablestore__onExisting="Merge")

    assert assessed(world(merging, tunnel=Missing(), destination=FULL)).problem is None


def test_rows_do_not_matter_once_the_destination_was_accepted() -> None:
    assert assessed(world(resource(recorded()), tunnel=UNMOVED, destination=FULL)).problem is None


OTHER_PLACES: list[dict[str, Any]] = [
    {"table": "flights_other"},
    {"instance": "other"},
    {"instance": "other", "table": "flights_other", "ensuredTime": None},
]


@pytest.mark.parametrize("other", OTHER_PLACES)
@pytest.mark.parametrize("destination", [FULL, EMPTY, Missing(), Unread()])
def test_a_record_of_another_destination_is_not_believed(other: dict[str, Any], destination: Any) -> None:
    record = recorded()["destination"] | other
    problem = problem_of(world(resource(recorded(destination=record)), tunnel=MOVED, destination=destination))

    assert problem.reason is Reason.DESTINATION_CHANGED
    assert "set the field back" in problem.message
    assert problem.stops_workers


def verdict(reason: str) -> dict[str, Any]:
    """The status of an object with a lasting verdict."""
    return recorded(verdict={"reason": reason, "message": "as found"})


BUSY = Failure(Problem(Reason.SERVICE_UNAVAILABLE, "busy", ("TunnelReady",)))
UNSEEN: list[dict[str, Any]] = [
    {"tunnel": Unread(), "source": BUSY},
    {"tunnel": Unread(), "source": Unread(), "source_credentials": BUSY},
    {"tunnel": BUSY},
]


@pytest.mark.parametrize("unseen", UNSEEN)
@pytest.mark.parametrize(
    "reason", ["TunnelNotFound", "TunnelReplaced", "TunnelExpired", "DestinationBehindTunnel"], ids=str
)
def test_a_verdict_lasts_while_nobody_answers(reason: str, unseen: dict[str, Any]) -> None:
    problem = problem_of(world(resource(verdict(reason)), **unseen))

    assert (problem.reason, problem.message) == (reason, "as found")
    assert problem.stops_workers


@pytest.mark.parametrize(
    "reason", ["TunnelNotFound", "TunnelReplaced", "TunnelExpired", "DestinationBehindTunnel"], ids=str
)
def test_a_verdict_outlives_whatever_problem_comes_before_it(reason: str) -> None:
    unread = {"source": Unread(), "tunnel": Unread(), "destination": Unread()}
    behind = reported(world(resource(verdict(reason)), elder=ELDER, **unread))
    stalled = next(item for item in behind["conditions"] if item["type"] == "Stalled")
    after = world(resource(recorded(**behind)), source_credentials=BUSY, **unread)

    assert stalled["reason"] == "TunnelInUse"
    assert behind["verdict"] == {"reason": reason, "message": "as found"}
    assert problem_of(after).reason == reason
    assert problem_of(after).stops_workers


def test_a_verdict_is_recorded_with_the_look_that_finds_it_and_ends_with_the_one_that_refutes_it() -> None:
    record = recorded()["destination"] | {"table": "flights_other"}
    hidden = reported(world(resource(recorded(destination=record)), tunnel=Missing()))
    found = reported(world(tunnel=Missing()))
    refuted = reported(world(resource(verdict("TunnelNotFound"))))
    unused = reported(world(resource({}, source__tunnel__managementPolicy="UseExisting"), tunnel=Missing()))

    assert (hidden["verdict"]["reason"], found["verdict"]["reason"]) == ("TunnelNotFound", "TunnelNotFound")
    assert "verdict" not in refuted
    assert "verdict" not in unused
    assert is_urgent(verdict("TunnelNotFound"), recorded())


def test_a_tunnel_that_the_service_refuses_as_expired_is_a_verdict_behind_whatever_does_not_answer() -> None:
    expired = Failure(Problem(Reason.TUNNEL_EXPIRED, "expired", ("TunnelReady",)))
    found = world(tunnel=expired, destination=BUSY)
    after = world(resource(recorded(**reported(found))), tunnel=Unread(), source=BUSY)

    assert problem_of(found).reason is Reason.TUNNEL_EXPIRED
    assert problem_of(after).reason is Reason.TUNNEL_EXPIRED


def test_a_verdict_ends_when_the_tunnel_is_seen() -> None:
    assert assessed(world(resource(verdict("TunnelExpired")))).problem is None


def test_a_verdict_on_the_destination_lasts_until_it_is_seen() -> None:
    unseen = world(resource(verdict("DestinationBehindTunnel")), tunnel=MOVED, destination=BUSY)

    assert problem_of(unseen).reason is Reason.DESTINATION_BEHIND_TUNNEL


OTHERS = Tunnel(description(channel("x1", consumed=NOW - 5), tunnel_id=TunnelId("of-somebody-else")))


@pytest.mark.parametrize(
    ("unseen", "reason"),
    [
        ({"source": Missing(), "tunnel": Unread()}, Reason.TUNNEL_NOT_FOUND),
        ({"tunnel": Missing()}, Reason.TUNNEL_NOT_FOUND),
        ({"tunnel": OTHERS}, Reason.TUNNEL_REPLACED),
    ],
    ids=["no table", "no tunnel", "replaced"],
)
@pytest.mark.parametrize("destination", [FULL, EMPTY, Missing(), Unread()])
def test_a_lost_destination_outlasts_a_tunnel_that_is_gone_for_a_while(
    unseen: dict[str, Any], reason: Reason, destination: Any
) -> None:
    lost = resource(recorded(**reported(world(tunnel=MOVED, destination=Missing()))))
    gone = world(lost, **(unseen | {"destination": destination}))
    back = replace(gone, resource=resource(recorded(**reported(gone))), source=Table(SCHEMA), tunnel=MOVED)

    assert problem_of(gone).reason is reason
    assert reported(gone)["verdict"]["reason"] == Reason.DESTINATION_BEHIND_TUNNEL
    assert problem_of(replace(back, destination=EMPTY)).reason is Reason.DESTINATION_BEHIND_TUNNEL
    assert planned(replace(back, destination=EMPTY)).replicas == 0
    assert assessed(replace(back, destination=FULL)).problem is None


def test_an_expired_tunnel_does_not_hide_a_lost_destination() -> None:
    lost = resource(recorded(**reported(world(tunnel=MOVED, destination=Missing()))))
    expired = world(lost, tunnel=Tunnel(description(channel("c1", consumed=NOW - 5), expired=True)), destination=EMPTY)

    assert problem_of(expired).reason is Reason.TUNNEL_EXPIRED
    assert reported(expired)["verdict"]["reason"] == Reason.DESTINATION_BEHIND_TUNNEL
    assert reported(replace(expired, destination=FULL))["verdict"]["reason"] == Reason.TUNNEL_EXPIRED


def test_a_destination_that_is_lost_together_with_the_tunnel_is_the_verdict_that_stays() -> None:
    both = replace(spark_world({}, COPIED), destination=Missing(), tunnel=Missing())

    assert problem_of(both).reason is Reason.TUNNEL_NOT_FOUND
    assert reported(both)["verdict"]["reason"] == Reason.DESTINATION_BEHIND_TUNNEL


def test_a_table_of_which_nobody_knows_whether_it_has_rows_refutes_nothing() -> None:
    unchecked = world(resource(verdict("DestinationBehindTunnel")), tunnel=MOVED, destination=Table(COPY))

    assert problem_of(unchecked).reason is Reason.DESTINATION_BEHIND_TUNNEL


@pytest.mark.parametrize("reason", ["SpecMismatch", "TunnelNotFound"])
def test_a_verdict_before_a_tunnel_was_used_does_not_last(reason: str) -> None:
    found = world(resource(verdict(reason) | {"tunnel": {}}), tunnel=Unread(), source=BUSY)

    assert problem_of(found).reason is Reason.SERVICE_UNAVAILABLE


def test_a_deleted_source_table_hides_behind_no_other_problem() -> None:
    secret = Failure(Problem(Reason.SECRET_NOT_FOUND, "no", ("CredentialsValid", "SinkReady")))
    found = world(source=Missing(), tunnel=Unread(), sink_credentials=secret, destination=Unread())

    assert problem_of(found).reason is Reason.TUNNEL_NOT_FOUND


def test_a_table_that_became_another_sink_is_not_forgotten() -> None:
    of = resource(recorded(), sink__tablestore=None, sink__stdout={})

    assert problem_of(world(of, tunnel=MOVED, destination=Unread())).reason is Reason.DESTINATION_CHANGED


UNPLACED = {"endpoint": None, "instance": None, "table": None}


@pytest.mark.parametrize("other", [UNPLACED, {"endpoint": "http://elsewhere"}])
def test_a_table_that_is_new_to_the_record_has_to_hold_what_was_consumed(other: dict[str, Any]) -> None:
    of = resource(recorded(destination=recorded()["destination"] | other))

    assert of.undecided
    assert assessed(world(of, tunnel=MOVED, destination=FULL)).problem is None
    assert problem_of(world(of, tunnel=MOVED, destination=EMPTY)).reason is Reason.DESTINATION_BEHIND_TUNNEL


def test_a_destination_that_was_lost_stays_behind_until_it_has_rows_again() -> None:
    of = resource(verdict("DestinationBehindTunnel"))

    assert problem_of(world(of, tunnel=MOVED, destination=EMPTY)).reason is Reason.DESTINATION_BEHIND_TUNNEL
    assert assessed(world(of, tunnel=MOVED, destination=FULL)).problem is None


OURS = recorded(destination=recorded()["destination"] | {"createdTime": exact_timestamp(NOW - 880.25)})
AGAIN = Table(COPY, empty=False, created=NOW - 20)


def test_rows_in_a_table_that_was_dropped_and_created_again_prove_nothing() -> None:
    found = world(resource(OURS), tunnel=MOVED, destination=AGAIN)
    ours = replace(found, destination=replace(AGAIN, created=NOW - 880.25))

    assert (problem_of(found).reason, problem_of(found).stops_workers) == (Reason.DESTINATION_BEHIND_TUNNEL, True)
    assert "created again at 2027-01-15T07:59:40.000000Z" in problem_of(found).message
    # a verdict that was found before is refuted by the former table alone
    behind = resource(verdict("DestinationBehindTunnel") | {"destination": OURS["destination"]})
    assert problem_of(replace(found, resource=behind)).reason is Reason.DESTINATION_BEHIND_TUNNEL
    assert assessed(ours).problem is None
    assert assessed(replace(ours, resource=behind)).problem is None
    # nothing was consumed, so nothing is lost
    assert assessed(replace(found, tunnel=UNMOVED)).problem is None
    elsewhere = OURS["destination"] | {"endpoint": "http://elsewhere:8080"}
    assert assessed(replace(found, resource=resource(OURS | {"destination": elsewhere}))).problem is None


def test_the_tasks_of_a_copy_do_not_refute_that_its_table_was_lost() -> None:
    copying = progress_record(3, 8, age=5) | spark_application("RUNNING")
    status = OURS | {"snapshot": {"tunnelId": TUNNEL_ID}}
    lost = spark_world(copying, status, destination=Missing())
    again = spark_world(copying, status | verdict_of(lost), destination=AGAIN)

    for found in (lost, again):
        assert problem_of(found).reason is Reason.DESTINATION_BEHIND_TUNNEL
        (suspension,) = planned(found).actions
        assert isinstance(suspension, ApplyObject)
        assert suspension.manifest["spec"]["suspend"] is True


def test_rows_in_a_table_that_was_only_intended_are_not_ours() -> None:
    intended = resource({"destination": recorded()["destination"] | {"ensuredTime": None}})

    assert assessed(world(intended, tunnel=Missing(), destination=EMPTY)).problem is None
    found = problem_of(world(intended, tunnel=Missing(), destination=FULL))
    assert (found.reason, found.stops_workers) == (Reason.DESTINATION_NOT_EMPTY, True)


def test_hosts_of_one_instance_are_one_place() -> None:
    public, vpc = (
        "https://demo.cn-hangzhou.ots.aliyuncs.com",
        "https://demo.cn-hangzhou.vpc.tablestore.aliyuncs.com:443",
    )
    of = resource({"destination": recorded()["destination"] | {"endpoint": public}}, sink__tablestore__endpoint=vpc)

    assert of.is_destination_recorded
    assert of.is_destination_intended


def test_a_moved_tunnel_with_a_filled_destination_is_adopted() -> None:
    assert assessed(world(resource(), tunnel=MOVED, destination=FULL)).problem is None


START = datetime(2026, 11, 1, tzinfo=UTC)
START_NS = int(START.timestamp()) * 10**9
LATEST, EARLIEST = {"startFrom": "Latest"}, {"startFrom": "Earliest"}
FROM_TIME = {"startFrom": "Timestamp", "startTime": "2026-11-01T00:00:00Z"}
FROM_FRACTION = {"startFrom": "Timestamp", "startTime": "2026-11-01T00:00:00.500Z"}


@pytest.mark.parametrize(
    ("wanted", "found", "equal"),
    [
        (LATEST, StreamConfig(), True),
        (None, StreamConfig(), True),
        (LATEST, StreamConfig(earliest=True), False),
        (EARLIEST, StreamConfig(earliest=True), True),
        (EARLIEST, StreamConfig(), False),
        (FROM_TIME, StreamConfig(start_offset_ns=START_NS), True),
        (FROM_TIME, StreamConfig(start_offset_ns=START_NS + 10**9), False),
        (FROM_TIME, StreamConfig(), False),
        (FROM_FRACTION, StreamConfig(start_offset_ns=START_NS + 5 * 10**8), True),
        # an earlier release cut the fraction off, and delivers more
        (FROM_FRACTION, StreamConfig(start_offset_ns=START_NS), True),
        (FROM_FRACTION, StreamConfig(start_offset_ns=START_NS + 10**9), False),
        (FROM_FRACTION, StreamConfig(start_offset_ns=START_NS + 10**8), False),
        (LATEST, StreamConfig(end_offset_ns=5), False),
        (LATEST | {"endTime": "2030-01-01T00:00:00Z"}, StreamConfig(), True),
    ],
)
def test_a_tunnel_is_adopted_only_from_the_same_start(wanted: Any, found: StreamConfig, equal: bool) -> None:
    of = resource(source__tunnel__type="Stream", source__tunnel__stream=wanted or {})
    tunnel = Tunnel(description(channel("c1"), kind=TunnelType.Stream, stream=found), {ChannelId("c1"): FRESH})

    problem = assessed(world(of, tunnel=tunnel, destination=EMPTY)).problem

    assert (problem is None) is equal
    assert problem is None or problem.reason is Reason.SPEC_MISMATCH


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (
            StreamConfig(start_offset_ns=START_NS + 5),
            "starts at 2026-11-01T00:00:00.000000005Z, needed is 2026-11-01T00:00:00.5Z",
        ),
        (
            StreamConfig(start_offset_ns=START_NS, end_offset_ns=START_NS + 60 * 10**9),
            "ends at 2026-11-01T00:01:00Z, needed is 2026-11-01T00:01:00.25Z",
        ),
    ],
)
def test_a_difference_of_less_than_a_second_is_shown(found: StreamConfig, text: str) -> None:
    window = FROM_FRACTION | {"endTime": "2026-11-01T00:01:00.250Z"}
    of = resource(source__tunnel__type="Stream", source__tunnel__stream=window)
    tunnel = Tunnel(description(channel("c1"), kind=TunnelType.Stream, stream=found), {ChannelId("c1"): FRESH})

    assert text in problem_of(world(of, tunnel=tunnel, destination=EMPTY)).message


PLACE = Place.of_source(resource().spec.source)
SINK = Place("spec.sink.tablestore", "http://x", "demo", "flights_copy", "keys", "SinkReady")


@pytest.mark.parametrize(
    ("error", "reason", "field"),
    [
        (AuthFailed("OTSAuthFailed", "signature"), Reason.AUTH_FAILED, "spec.source.credentials.secretRef.name"),
        (PermissionDenied("OTSNoPermissionAccess", "no"), Reason.ACCESS_DENIED, "spec.source.instance 'demo'"),
        (ConnectError("refused"), Reason.ENDPOINT_UNREACHABLE, "spec.source.endpoint"),
        (TimeoutError(), Reason.ENDPOINT_UNREACHABLE, "spec.source.endpoint"),
        (ServerUnavailable("OTSServerBusy", "busy"), Reason.SERVICE_UNAVAILABLE, "tries again"),
        (RuntimeError("odd"), Reason.INTERNAL_ERROR, "RuntimeError"),
    ],
)
def test_errors_name_the_field_to_correct(error: Exception, reason: Reason, field: str) -> None:
    problem = service_problem(error, PLACE)

    assert problem.reason is reason
    assert field in problem.message


@pytest.mark.parametrize(
    ("secret", "reason", "text"),
    [
        (None, Reason.SECRET_NOT_FOUND, "'keys'"),
        ({"data": {}}, Reason.KEY_MISSING, "accessKeyId and no accessKeySecret"),
        ({"data": {"accessKeyId": "aWQ=", "ak": "eA=="}}, Reason.KEY_MISSING, "['accessKeyId', 'ak']"),
        ({"data": {"accessKeyId": "aWQ=", "accessKeySecret": "%%%"}}, Reason.KEY_MISSING, "accessKeySecret"),
    ],
)
def test_a_secret_that_cannot_be_used(secret: Any, reason: Reason, text: str) -> None:
    found = read_credentials(secret, "keys", SINK)

    assert isinstance(found, Failure)
    assert found.problem.reason is reason
    assert text in found.problem.message
    assert found.problem.conditions == ("CredentialsValid", "SinkReady")


def test_schema_of_the_copy_fits_the_source() -> None:
    assert SCHEMA.keys == COPY.keys


def test_a_snapshot_after_a_consumed_tunnel_that_must_exist_is_impossible() -> None:
    of = resource({}, engine__baseData="Spark", source__tunnel__managementPolicy="UseExisting")
    moved = Tunnel(description(channel("c1", rows=1), kind=TunnelType.Stream), {ChannelId("c1"): FRESH})
    found = problem_of(world(of, tunnel=moved, children={}, pods=()))

    assert found.reason is Reason.SNAPSHOT_IMPOSSIBLE


def test_a_gap_seen_from_outside_does_not_hide_a_lost_destination() -> None:
    old = Tunnel(description(channel("c1", ChannelStatus.WAIT, client="", consumed=NOW - 200_000)))
    found = world(resource(verdict("DestinationBehindTunnel")), tunnel=old, destination=EMPTY, pods=())

    assert problem_of(replace(found, destination=FULL)).reason is Reason.POSSIBLE_GAP
    assert problem_of(found).reason is Reason.DESTINATION_BEHIND_TUNNEL
    assert problem_of(found).stops_workers


UNREAD: dict[str, Any] = dict.fromkeys(
    ("source", "destination", "tunnel", "source_credentials", "sink_credentials"), Unread()
)


@pytest.mark.parametrize(
    "between",
    [
        # the call that was to stop the workers is refused
        lambda of: report(world(of, destination=Missing()), Problem(Reason.API_SERVER_REFUSED, "403")),
        lambda of: report(world(of, elder=ELDER, **UNREAD)),
        lambda of: unobserved_status(
            of.status, Problem(Reason.SPEC_UNREADABLE, "no"), generation=1, observed=None, now=NOW
        ),
    ],
    ids=["refused", "elder", "unreadable"],
)
def test_a_lost_destination_outlasts_another_problem(between: Callable[[Resource], dict[str, Any]]) -> None:
    status = between(resource(verdict("DestinationBehindTunnel")))
    kept = recorded(conditions=status["conditions"], verdict=status["verdict"])
    found = world(resource(kept), tunnel=MOVED, destination=EMPTY)

    assert problem_of(found).reason is Reason.DESTINATION_BEHIND_TUNNEL
    assert assessed(replace(found, destination=FULL)).problem is None


def report(found: World, problem: Problem | None = None) -> dict[str, Any]:
    """The status of a pass, whose actions ended with a problem."""
    decided = planned(found)
    return build_status(found, assessed(found), replace(decided, problem=problem or decided.problem))


COPIED = recorded(snapshot={"tunnelId": TUNNEL_ID, "state": "Completed"})


@pytest.mark.parametrize(
    "found",
    [
        spark_world({}, COPIED),
        spark_world(progress_record(1, 2), recorded(snapshot={"tunnelId": TUNNEL_ID})),
        spark_world(spark_application("RUNNING") | progress_record(0, 2), recorded(snapshot={"tunnelId": TUNNEL_ID})),
        spark_world(progress_record(2, 2), {}),
        world(
            resource(
                recorded(snapshot={"tunnelId": UID, "state": "Completed"}) | {"tunnel": {}},
                engine__baseData="Spark",
                source__tunnel__type="BaseData",
            ),
            tunnel=Unread(),
        ),
    ],
    ids=["copied", "copying", "in the first splits", "another object copied", "without a tunnel"],
)
def test_a_table_that_is_lost_after_a_copy_by_spark_is_not_created_again(found: World) -> None:
    lost = replace(found, destination=Missing())
    again = replace(found, resource=replace(found.resource, status=found.resource.status | verdict_of(lost)))

    assert problem_of(lost).reason is Reason.DESTINATION_BEHIND_TUNNEL
    assert problem_of(replace(again, destination=EMPTY)).reason is Reason.DESTINATION_BEHIND_TUNNEL
    if not found.resource.undecided:
        assert assessed(replace(found, destination=EMPTY)).problem is None
    if found.resource.recorded_tunnel or found.resource.spec.wire_type is None:
        assert problem_of(replace(again, destination=BUSY)).reason is Reason.DESTINATION_BEHIND_TUNNEL


ELSEWHERE = recorded()["destination"] | {"endpoint": "http://elsewhere:8080"}


@pytest.mark.parametrize("done", [1, 2])
@pytest.mark.parametrize("status", [{}, recorded(destination=ELSEWHERE)], ids=["applied again", "endpoint edited"])
def test_an_empty_table_that_is_new_to_the_object_lacks_the_rows_that_spark_has_recorded(
    status: dict[str, Any], done: int
) -> None:
    found = world(resource(status, **SPARK), tunnel=READABLE, children=progress_record(done, 2), destination=EMPTY)

    assert (problem_of(found).reason, problem_of(found).stops_workers) == (Reason.DESTINATION_BEHIND_TUNNEL, True)


def test_another_table_than_the_one_of_a_copy_is_refused_after_workers_went_on_as_well() -> None:
    record = progress_record(2, 2)
    mine = snapshot_progress_map(resource(**SPARK).object, label=TUNNEL_ID)["metadata"]["annotations"]
    moved = Tunnel(description(channel("c1", consumed=NOW - 5), kind=TunnelType.Stream), {ChannelId("c1"): FRESH})
    found = world(resource(**SPARK), tunnel=moved, children=record, destination=FULL)

    def with_record_of(old: str, new: str) -> World:
        named = {key: value.replace(old, new) for key, value in mine.items()}
        metadata = record["ConfigMap", NAME]["metadata"] | {"annotations": named}
        return replace(found, children={("ConfigMap", NAME): record["ConfigMap", NAME] | {"metadata": metadata}})

    other = with_record_of("flights_copy", "flights_of_yesterday")
    assert problem_of(other).reason is Reason.DESTINATION_BEHIND_TUNNEL
    # the same table by another way
    assert assessed(with_record_of("127.0.0.1", "127.0.0.2")).problem is None


def test_an_empty_table_at_another_endpoint_lacks_what_the_status_records_as_copied() -> None:
    """Without a tunnel and without the record: the object is not Ready over an empty table."""
    copied = recorded(snapshot={"tunnelId": UID, "state": "Completed"}, destination=ELSEWHERE) | {"tunnel": {}}
    of = resource(copied, **SPARK, source__tunnel__type="BaseData")
    found = world(of, tunnel=Unread(), destination=EMPTY, pods=())

    assert problem_of(found).reason is Reason.DESTINATION_BEHIND_TUNNEL
    assert {item["type"]: item["status"] for item in reported(found)["conditions"]}["Ready"] == "False"


@pytest.mark.parametrize("done", [0, 1, 2])
def test_a_copy_by_spark_that_was_begun_goes_on_in_its_table(done: int) -> None:
    again = world(resource({}, **SPARK), tunnel=READABLE, children=progress_record(done, 2), destination=FULL, pods=())

    assert problem_of(again).reason is Reason.DESTINATION_NOT_EMPTY  # a record of an earlier release names no table
    assert assessed(replace(again, children=of_table(again.resource, done))).problem is None


@pytest.mark.parametrize("done", [0, 1, 2])
@pytest.mark.parametrize("destination", [FULL, EMPTY], ids=["full", "empty"])
@pytest.mark.parametrize("on_existing", ["Refuse", "Merge"])
def test_a_copy_by_spark_that_was_begun_does_not_go_on_in_another_table(
    on_existing: str, destination: Table, done: int
) -> None:
    children = of_table(resource({}, **SPARK, sink__tablestore__table="another"), done)
    again = resource({}, **SPARK, sink__tablestore__onExisting=on_existing)
    found = world(again, tunnel=READABLE, children=children, destination=destination, pods=())

    assert problem_of(found).reason is Reason.DESTINATION_BEHIND_TUNNEL


def test_a_stream_that_moved_goes_on_at_another_address_of_the_table() -> None:
    """The record of the snapshot keeps the address from before."""
    children = of_table(resource({}, **SPARK, sink__tablestore__endpoint="http://elsewhere:8080"), 2)
    moved = Tunnel(description(channel("c1", rows=1), kind=TunnelType.Stream))
    of = resource(COPIED | {"destination": ELSEWHERE}, **SPARK)

    assert assessed(world(of, tunnel=moved, children=children, destination=FULL)).problem is None


def of_table(resource: Resource, done: int) -> dict[tuple[str, str], Any]:
    """A record of 2 splits as the operator has applied it for this object."""
    record = progress_record(done, 2)
    applied = snapshot_progress_map(resource.object, label=TUNNEL_ID)
    record["ConfigMap", NAME]["metadata"]["annotations"] = applied["metadata"]["annotations"]
    return record


def verdict_of(found: World) -> dict[str, Any]:
    status = report(found)
    return {key: status[key] for key in ("conditions", "verdict") if key in status}


UNFIT = Table(replace(COPY, max_versions=1), empty=True)


@pytest.mark.parametrize(
    ("of", "may_be_dropped"),
    [
        (world(resource(), tunnel=Missing(), destination=UNFIT), True),
        (world(resource(), tunnel=UNMOVED, destination=UNFIT), True),
        (world(resource(), tunnel=Missing(), destination=replace(UNFIT, empty=False)), False),
        (world(resource(), tunnel=Missing(), destination=replace(UNFIT, empty=None)), False),
        (world(resource(), tunnel=MOVED, destination=UNFIT), False),
        (world(resource(recorded()), tunnel=UNMOVED, destination=UNFIT), False),
        (world(resource({"snapshot": {"tunnelId": "t"}}), tunnel=UNMOVED, destination=UNFIT), False),
        (world(resource(), destination=UNFIT, tunnel=Unread()), False),
    ],
)
def test_an_unfit_destination_may_be_dropped_only_before_anything_is_copied(of: World, may_be_dropped: bool) -> None:
    problem = assessed(of).problem

    assert problem is not None
    assert ("drop the table, and the operator creates it anew" in problem.message) == may_be_dropped
