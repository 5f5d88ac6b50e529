"""Where a query by Spark stands, by its application and its record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.errors import PossibleGap
from ots_tunnel.model import TunnelType
from ots_tunnel.query.record import PassedGap, QueryProgress
from ots_tunnel_operator.api.status.records import MAX_GAPS
from ots_tunnel_operator.assess.gap import Gap, gap_documents
from ots_tunnel_operator.assess.read_mark import ReadMark
from ots_tunnel_operator.assess.spark.application_state import AppState
from ots_tunnel_operator.assess.spark.query import ATTEMPT_SECONDS, SILENT_SECONDS
from ots_tunnel_operator.assess.spark.query_state import BY_APPLICATION, QueryState
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.observe.stillness import observe_spark
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.world.pod import SparkPod
from ots_tunnel_operator.world.service import Tunnel
from tests.support.operator.query_worlds import (
    CLIENT,
    DRIVER,
    NAME,
    WELL,
    Children,
    query_app,
    query_record,
    query_resource,
    query_status,
    query_world,
)
from tests.support.operator.worlds import NOW, TUNNEL_ID, assessed, channel, description, reported, world

BROKEN = replace(WELL, error="option 'tunnel': found 'flights-copy', which client x consumes")
OLD = 50_000.0
FINAL = replace(WELL, error="records of a logged batch are gone", is_final=True)


def state_of(children: Children, **changes: Any) -> QueryState:
    return assessed(query_world(children, **changes)).query.state


@pytest.mark.parametrize("state", AppState)
def test_every_state_of_an_application_has_one_of_the_query(state: AppState) -> None:
    assert state_of(query_app(state)) is BY_APPLICATION[state]


@pytest.mark.parametrize(
    ("children", "state"),
    [
        ({}, QueryState.STARTING),
        (query_record(), QueryState.STARTING),
        (query_app("RUNNING") | query_record(), QueryState.FOLLOWING),
        (query_app("RUNNING") | query_record(age=359), QueryState.FOLLOWING),
        (query_app("RUNNING") | query_record(age=361), QueryState.STARTING),
        (query_app("RUNNING", age=OLD) | query_record(age=SILENT_SECONDS), QueryState.FOLLOWING),
        (query_app("RUNNING", age=OLD) | query_record(age=SILENT_SECONDS + 1), QueryState.SILENT),
        (query_app("RUNNING", age=OLD) | query_record(BROKEN, age=OLD), QueryState.RETRYING),
        (query_app("SUBMITTED", age=OLD) | query_record(age=OLD), QueryState.STARTING),
        (query_app("SUSPENDED", age=OLD) | query_record(age=OLD), QueryState.INTERRUPTED),
        (query_app("PENDING_RERUN", age=OLD) | query_record(age=OLD), QueryState.INTERRUPTED),
        (query_app("RUNNING") | query_record(label="another"), QueryState.STARTING),
        (query_app("RUNNING") | query_record(BROKEN), QueryState.RETRYING),
        (query_app("PENDING_RERUN") | query_record(BROKEN), QueryState.RETRYING),
        (query_app("SUBMITTED") | query_record(BROKEN), QueryState.RETRYING),
        (query_app("PENDING_RERUN", error="driver container failed with ExitCode: 2"), QueryState.RETRYING),
        (query_app("SUSPENDING") | query_record(BROKEN), QueryState.INTERRUPTED),
        (query_app("INVALIDATING") | query_record(BROKEN), QueryState.INTERRUPTED),
        (query_app("COMPLETED") | query_record(FINAL), QueryState.FAILED),
        (query_app("COMPLETED") | query_record(), QueryState.FAILED),
    ],
)
def test_the_record_tells_whether_a_driver_follows(children: Children, state: QueryState) -> None:
    assert state_of(children) is state


@pytest.mark.parametrize(
    ("started", "state"),
    [(NOW - 90, QueryState.STARTING), (NOW - 120, QueryState.FOLLOWING), (None, QueryState.FOLLOWING)],
)
def test_figures_of_the_driver_before_prove_nothing_of_the_next_one(started: float | None, state: QueryState) -> None:
    """The former one has written 10 s before its end, and the Spark operator submits the next one 10 s later."""
    driver = replace(DRIVER, started=started)

    assert state_of(query_app("RUNNING", age=80) | query_record(age=100), query_pods=(driver,)) is state


@pytest.mark.parametrize(
    ("phase", "state", "told"),
    [
        ("Pending", "SUBMITTED", "the Spark operator has submitted the driver"),
        ("Running", "RUNNING", "the driver runs, and does not follow the tunnel yet"),
    ],
)
def test_a_driver_that_is_there_for_long_is_judged_by_itself(phase: str, state: str, told: str) -> None:
    """It may wait for a node, or bring the existing rows of a mirror: the error is that of the one before."""
    children = query_app(state, age=400) | query_record(BROKEN, age=500)
    waiting = SparkPod(DRIVER.name, phase, terminated=False, message="Unschedulable", created=NOW - 400)
    young = replace(waiting, created=NOW - ATTEMPT_SECONDS + 1)
    former = replace(waiting, created=NOW - 600)

    found = assessed(query_world(children, query_pods=(waiting,)))

    assert (found.query.state, found.query.problem) == (QueryState.STARTING, None)
    assert found.query.message == f"{told}; the one before it has ended: {BROKEN.error}"
    assert state_of(children, query_pods=(young,)) is QueryState.RETRYING
    assert state_of(children, query_pods=(former,)) is QueryState.RETRYING
    # the clock of the node of the one before is ahead
    skewed = query_app(state, age=400) | query_record(BROKEN, age=392)
    assert state_of(skewed, query_pods=(replace(waiting, started=NOW - 395),)) is QueryState.STARTING
    # it has written the error itself, and hangs
    own = query_app(state, age=400) | query_record(BROKEN, age=380)
    assert state_of(own, query_pods=(replace(waiting, started=NOW - 395),)) is QueryState.RETRYING
    seen = LoopCache()
    observe_spark(replace(query_world(children, query_pods=(waiting,)), now=NOW - 400), seen)
    late = assessed(observe_spark(query_world(children, query_pods=(waiting,)), seen)).degradation
    assert (late is not None and late.reason is Reason.NOT_PROGRESSING) is (phase == "Pending")


@pytest.mark.parametrize(
    "pods",
    [(), (replace(DRIVER, phase="Failed"),), (replace(DRIVER, name="exec-1", is_executor=True),)],
    ids=["gone", "ended", "executors alone"],
)
def test_an_application_that_runs_without_a_driver_follows_nothing(pods: tuple[SparkPod, ...]) -> None:
    """Where the Spark operator is gone, its state stays as it was."""
    found = assessed(query_world(query_pods=pods)).query

    assert (found.state, found.figures) == (QueryState.INTERRUPTED, None)
    assert found.message == "the SparkApplication is RUNNING, and has no driver"


def test_a_damaged_record_is_none() -> None:
    record = query_record()
    record["ConfigMap", NAME]["data"]["batchId"] = "many"

    assert state_of(query_app("RUNNING") | record) is QueryState.STARTING


def test_an_object_with_workers_has_no_query() -> None:
    assert assessed(world()).query.state is QueryState.NOT_USED


def test_an_application_that_nothing_picks_up_needs_a_spark_operator() -> None:
    new = query_app("", age=61)

    assert state_of(new, query_pods=()) is QueryState.OPERATOR_MISSING
    assert state_of(new, query_pods=(DRIVER,)) is QueryState.STARTING
    assert state_of(query_app("", age=59), query_pods=()) is QueryState.STARTING


@pytest.mark.parametrize(
    ("children", "reason", "told"),
    [
        (query_app("COMPLETED") | query_record(FINAL), Reason.QUERY_FAILED, "cannot go on: records of a logged batch"),
        (query_app("COMPLETED"), Reason.QUERY_FAILED, "has ended without a recorded error"),
        (query_app("FAILED", error="spark-submit failed"), Reason.QUERY_FAILED, "is FAILED: spark-submit failed"),
        (query_app("FAILING") | query_record(BROKEN), Reason.QUERY_RETRYING, "has ended: option 'tunnel': found"),
        (
            query_app("FAILING", error="driver container failed with ExitCode: 2, Reason: Error"),
            Reason.QUERY_RETRYING,
            "is FAILING: driver container failed with ExitCode: 2",
        ),
    ],
)
def test_a_problem_says_why_the_driver_has_ended(children: Children, reason: Reason, told: str) -> None:
    problem = assessed(query_world(children)).query.problem

    assert problem is not None
    assert problem.reason is reason
    assert problem.message.startswith(f"SparkApplication '{NAME}': ")
    assert told in problem.message
    assert problem.stalled == (reason is Reason.QUERY_FAILED)


@pytest.mark.parametrize(
    ("children", "seconds", "caught_up"),
    [
        (query_app("RUNNING") | query_record(), 0, True),
        (query_app("RUNNING") | query_record(replace(WELL, lag_seconds=40)), 40, False),
        (query_app("RUNNING") | query_record(replace(WELL, lag_seconds=None)), None, None),
        (query_app("RUNNING", age=OLD) | query_record(age=OLD), None, None),
        (query_app("SUBMITTED") | query_record(), None, None),
        (query_app("FAILING") | query_record(), 3000, None),
    ],
)
def test_the_lag_is_the_drivers_and_by_consume_points_only_beside_a_problem(
    children: Children, seconds: int | None, caught_up: bool | None
) -> None:
    """The table has not changed for 3,000 s: in a restart it does not look late."""
    lag = assessed(query_world(children)).lag

    assert lag is not None
    assert (lag.seconds, lag.caught_up) == (seconds, caught_up)


def test_a_table_that_is_idle_for_longer_than_its_retention_has_no_gap_while_a_query_reads_it() -> None:
    """The service leaves consume points where they are; what the driver has read outlives it in the object's status."""
    retention = 100_000
    old = Tunnel(description(channel("c1", client=CLIENT, consumed=NOW - 2 * retention), kind=TunnelType.Stream))
    read = replace(WELL, read_until=int(NOW) - 60)
    unread = assessed(query_world(query_app("RUNNING") | query_record(), tunnel=old))
    found = assessed(query_world(query_app("RUNNING") | query_record(read), tunnel=old))
    assert found.read_mark is not None
    status = query_status(readUntil=found.read_mark.document())
    later = assessed(query_world(query_app("RUNNING"), query_resource(status), tunnel=old))
    of_another = assessed(query_world(query_app("RUNNING") | query_record(read, label="another"), tunnel=old))

    assert [len(seen.gaps) for seen in (unread, found, later, of_another)] == [1, 0, 0, 1]
    assert found.problem is None
    assert found.read_mark.time == NOW - 60


@pytest.mark.parametrize(
    ("age", "read_until", "used"),
    [
        (60.0, None, 0),
        (OLD, None, 90),
        (36_000.0, NOW - 36_000, 36),
        (OLD, NOW - 95_000, 90),
    ],
    ids=["a driver that writes", "silent", "silent, of an idle table", "silent, of a table with changes"],
)
def test_behind_a_silent_driver_the_retention_counts_from_what_was_certainly_read(
    age: float, read_until: float | None, used: int
) -> None:
    """The retention is 100,000 s. Consume points of an idle table stand still; what was read stays read."""
    stood = Tunnel(description(channel("c1", client=CLIENT, consumed=NOW - 90_000), kind=TunnelType.Stream))
    progress = replace(WELL, read_until=None if read_until is None else int(read_until))
    children = query_app("RUNNING", age=2 * OLD) | query_record(progress, age=age)
    found = assessed(query_world(children, tunnel=stood))

    assert found.retention_used == used
    assert (found.degradation is not None and found.degradation.reason is Reason.RETENTION_AT_RISK) == (used == 90)


@pytest.mark.parametrize(
    ("children", "read_until", "used"),
    [
        (query_app("SUBMITTED", age=OLD), None, 90),
        (query_app("SUBMITTED", age=OLD), NOW - 30_000, 30),
        (query_app("PENDING_RERUN", age=OLD), NOW - 95_000, 90),
        (query_app("SUSPENDED", age=OLD, suspend=True), NOW - 30_000, 30),
        (query_app("FAILED", age=OLD), NOW - 30_000, 30),
        (query_app("RUNNING", age=OLD), None, 90),
        ({}, NOW - 30_000, 30),
    ],
    ids=[
        "starting",
        "starting, idle",
        "between two",
        "suspended, idle",
        "failed, idle",
        "of unknown lag",
        "gone, idle",
    ],
)
def test_while_no_driver_tells_the_lag_the_retention_counts_from_what_was_certainly_read(
    children: Children, read_until: float | None, used: int
) -> None:
    """The retention is 100,000 s, and goes on while drivers start and end."""
    stood = Tunnel(description(channel("c1", client=CLIENT, consumed=NOW - 90_000), kind=TunnelType.Stream))
    progress = replace(WELL, lag_seconds=None, read_until=None if read_until is None else int(read_until))
    found = assessed(query_world(children | query_record(progress), tunnel=stood))

    assert found.retention_used == used
    assert (found.degradation is not None and found.degradation.reason is Reason.RETENTION_AT_RISK) == (used == 90)


def test_a_channel_that_was_never_written_makes_no_restart_look_late() -> None:
    """Consume points of an idle table stand still, and one partition has never had a change."""
    idle = channel("c1", client=CLIENT, consumed=NOW - 90_000), channel("c2", client=CLIENT)
    tunnel = Tunnel(description(*idle, kind=TunnelType.Stream))
    read = replace(WELL, lag_seconds=None, read_until=int(NOW) - 60)
    found = assessed(query_world(query_app("SUBMITTED") | query_record(read), tunnel=tunnel))

    assert (found.retention_used, found.degradation) == (0, None)


def test_the_retention_counts_from_the_read_mark_where_the_record_is_gone() -> None:
    """The operator removes the record of a query that has ended with an error, before it starts another one."""
    stood = Tunnel(description(channel("c1", client=CLIENT, consumed=NOW - 90_000), kind=TunnelType.Stream))
    status = query_status(readUntil=ReadMark(TUNNEL_ID, NOW - 3600).document())
    found = assessed(query_world(query_app("SUBMITTED"), of=query_resource(status), tunnel=stood))

    assert (found.retention_used, found.degradation) == (3, None)


def test_a_risk_while_no_driver_runs_names_the_driver() -> None:
    stood = Tunnel(description(channel("c1", client=CLIENT, consumed=NOW - 90_000), kind=TunnelType.Stream))
    found = assessed(query_world(query_app("SUBMITTED"), tunnel=stood))

    assert found.degradation is not None
    assert "no driver follows the tunnel (the Spark operator has submitted the driver)" in found.degradation.message


def passed(number: int) -> PassedGap:
    return PassedGap(f"c{number:02}", int(NOW) - 50_000 + number, int(NOW) - 40_000 + number)


def test_a_gap_that_ends_a_query_is_accepted_by_none_that_it_had_passed() -> None:
    """The status has 20 of those that were passed, the record all."""
    gaps = tuple(map(passed, range(40)))
    seen = assessed(query_world(query_app("RUNNING") | query_record(replace(WELL, passed_gaps=gaps)))).gaps
    error = PossibleGap("c05", NOW - 50_000 + 5, NOW - 1000)
    record = query_record(replace(WELL, passed_gaps=gaps, error=str(error), is_final=True))
    status = query_status(possibleGaps=gap_documents(seen[:MAX_GAPS]))
    found = assessed(query_world(query_app("COMPLETED") | record, of=query_resource(status)))

    assert "c05" not in {gap.channel for gap in seen[:MAX_GAPS]}
    assert found.gaps[0] == Gap("c05", NOW - 40_000 + 5, NOW - 1000, by_worker=True)
    assert found.problem is not None
    assert found.problem.reason is Reason.POSSIBLE_GAP


def test_of_many_accepted_gaps_the_latest_are_shown() -> None:
    gaps = (*map(passed, range(40)), PassedGap("zz", int(NOW) - 90_000, int(NOW) - 100))
    found = query_world(query_app("RUNNING") | query_record(replace(WELL, passed_gaps=gaps)))

    assert reported(found)["possibleGaps"][0]["channel"] == "zz"


def test_a_query_that_an_accepted_gap_has_ended_says_how_it_goes_on() -> None:
    """Continue was set back to Stop before the query had passed the gap."""
    gap = Gap("c1", NOW - 5000, NOW - 4000, by_worker=True, accepted=True)
    of = query_resource(query_status(possibleGaps=gap_documents([gap])))
    children = query_app("COMPLETED") | query_record(replace(WELL, error=str(MISSING), is_final=True))
    problem = assessed(query_world(children, of=of)).query.problem

    assert problem is not None
    assert "set onPossibleGap to Continue until the query has passed it" in problem.message


MISSING = PossibleGap("c1", NOW - 5000, NOW - 4000)


def test_a_gap_that_a_driver_has_passed_is_in_the_status_for_good() -> None:
    gap = PassedGap("c1", int(NOW) - 5000, int(NOW) - 4000)
    going_on = query_resource(source__tunnel__onPossibleGap="Continue")
    children = query_app("RUNNING", of=going_on) | query_record(replace(WELL, passed_gaps=(gap,)))
    found = assessed(query_world(children, of=going_on))
    status = query_status(possibleGaps=gap_documents(found.gaps))
    later = assessed(query_world(of=query_resource(status)))

    assert found.gaps == (Gap("c1", NOW - 5000, NOW - 4000, by_worker=True, accepted=True),)
    assert later.gaps == found.gaps
    assert found.problem is None


def test_a_gap_that_ends_a_query_is_one_until_it_is_accepted() -> None:
    children = query_app("COMPLETED") | query_record(replace(WELL, error=str(MISSING), is_final=True))
    found = assessed(query_world(children))
    accepting = query_resource(
        query_status(possibleGaps=gap_documents(found.gaps)), source__tunnel__onPossibleGap="Continue"
    )
    accepted = assessed(query_world(children, of=accepting))

    assert found.gaps == (Gap("c1", NOW - 5000, NOW - 4000, by_worker=True),)
    assert found.problem is not None
    assert found.problem.reason is Reason.POSSIBLE_GAP
    assert accepted.gaps == (replace(found.gaps[0], accepted=True),)
    assert accepted.problem is None
    assert assessed(query_world(children | query_record(replace(WELL, error=str(MISSING)), label="another"))).gaps == ()


def test_a_high_lag_of_the_driver_is_told() -> None:
    late = query_app("RUNNING") | query_record(QueryProgress(batch_id=1, lag_seconds=1000))
    problem = assessed(query_world(late)).degradation

    assert problem is not None
    assert problem.reason is Reason.LAG_HIGH
    assert "spec.monitoring.lagDegradedSeconds 900 behind: give spark.driver" in problem.message
    assert (
        assessed(query_world(query_app("RUNNING") | query_record(QueryProgress(lag_seconds=900)))).degradation is None
    )
