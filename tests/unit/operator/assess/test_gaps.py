"""Changes that may be missing: what refutes a finding, what stops workers, and what a user accepts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.errors import PossibleGap
from ots_tunnel.model import ChannelStatus, Stage, StreamConfig, TunnelType
from ots_tunnel_operator.assess.completion import is_completed
from ots_tunnel_operator.assess.gap import Gap, beyond, gap_documents
from ots_tunnel_operator.assess.gaps import find_gaps
from ots_tunnel_operator.assess.read_mark import read_mark
from ots_tunnel_operator.observe.pods import worker_pod
from ots_tunnel_operator.plan.actions import ScaleDown
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Failure, Unread
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.report import ReportedGap
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Peek, Table, Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.stream_worlds import (
    LEASES,
    stream_description,
    stream_pod,
    stream_recorded,
    stream_resource,
    stream_world,
)
from tests.support.operator.worlds import (
    NOW,
    SCHEMA,
    base,
    channel,
    deployment,
    description,
    planned,
    pod,
    recorded,
    report_channel,
    reported,
    resource,
    world,
)

#: What the stream of `world` keeps, seconds.
RETENTION = 100_000
OLD = NOW - RETENTION - 500
COMPLETED = {"conditions": [{"type": "Completed", "status": "True"}]}
CONTINUE = {"source__tunnel__onPossibleGap": "Continue"}
FOUND = ReportedGap("c1", OLD, NOW - 5)


def left(
    consumed: float = OLD, *, pods: tuple[Pod, ...] = (), status: dict[str, Any] | None = None, **of: Any
) -> World:
    """A channel that was consumed until then, and the workers there are."""
    tunnel = Tunnel(description(channel("c1", consumed=consumed), base("b1", ChannelStatus.TERMINATED)))
    return world(resource(status or recorded(), **of), tunnel=tunnel, pods=pods)


def ended(gap: ReportedGap = FOUND) -> Pod:
    """A pod whose worker ended with a gap."""
    return pod("pod-1", ready=False, gaps=(gap,))


def gaps_of(of: World) -> tuple[Gap, ...]:
    return find_gaps(of, read_mark(of))


def found(of: World) -> list[tuple[str, bool, bool]]:
    return [(gap.channel, gap.by_worker, gap.accepted) for gap in gaps_of(of)]


OUTSIDE, INSIDE = [("c1", False, False)], [("c1", True, False)]


def test_a_consume_point_older_than_the_retention_is_a_possible_gap() -> None:
    (gap,) = gaps_of(left())

    assert gap.start == OLD
    assert NOW - RETENTION <= gap.end < NOW - RETENTION + 3600
    assert found(left(NOW - RETENTION + 1)) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"source": Table(SCHEMA)},
        {"source": Unread()},
        {"tunnel": Tunnel(description(channel("c1", consumed=OLD), service_time=None))},
        {"tunnel": Tunnel(description(channel("c1", consumed=OLD), stage=Stage.INIT))},
        {"tunnel": Tunnel(description(channel("c1", ChannelStatus.TERMINATED, consumed=OLD)))},
        {"tunnel": Tunnel(description(base("b1", consumed=OLD), stage=Stage.BASE))},
        # a worker reads the channel, or did until a moment ago
        {"pods": (pod("pod-1", report_channel("c1", consumed_up_to=NOW - 60)),)},
        {"consumed_until": {"c1": NOW - 60}},
    ],
)
def test_what_is_unknown_or_read_is_no_gap(changes: dict[str, Any]) -> None:
    assert found(replace(left(), **changes)) == []


def test_the_report_of_a_channel_that_was_handed_back_is_the_past() -> None:
    assert found(left(pods=(pod("pod-1", report_channel("c1", state="CLOSE", consumed_up_to=NOW)),))) == OUTSIDE


def test_a_channel_that_was_never_consumed_counts_from_the_start_of_its_tunnel() -> None:
    def late(created: float, start: float = 0.0) -> World:
        config = StreamConfig(start_offset_ns=int(start * 1e9))
        info = description(channel("c1"), kind=TunnelType.Stream, stream=config, create_time_ns=int(created * 1e9))
        return replace(left(), tunnel=Tunnel(info))

    assert found(late(0.0)) == [], "unknown"
    assert found(late(NOW - 1000)) == []
    assert found(late(OLD)) == found(late(NOW - 1000, start=OLD)) == OUTSIDE


def test_a_stream_that_was_enabled_again_has_not_what_came_before() -> None:
    again = Table(SCHEMA, stream_retention_seconds=RETENTION, stream_start=NOW - 100)

    assert found(replace(left(NOW - 1000), source=again)) == OUTSIDE
    assert found(replace(left(NOW - 50), source=again)) == []
    # a tunnel enables the stream a moment after its own creation
    assert found(replace(left(0.0), source=again)) == []


def test_nothing_after_the_end_time_matters() -> None:
    window = {"startFrom": "Latest", "endTime": timestamp(OLD - 10)}
    assert found(left(source__tunnel__stream=window)) == []

    completed = recorded(**COMPLETED)
    later = {"startFrom": "Latest", "endTime": timestamp(NOW - 10)}
    assert found(left(source__tunnel__stream=later)) == OUTSIDE
    assert found(left(source__tunnel__stream=later, status=completed)) == []


def test_the_operator_s_own_finding_stalls_and_stops_no_worker() -> None:
    of = replace(left(pods=(pod("pod-1"),)), children=deployment(1))
    status = reported(of)

    stalled = next(item for item in status["conditions"] if item["type"] == "Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "PossibleGap")
    for text in ("channel c1", timestamp(OLD), "onPossibleGap Continue", "reset"):
        assert text in stalled["message"]
    assert ScaleDown() not in planned(of).actions
    assert status["possibleGaps"][0]["foundBy"] == "Operator"
    assert status["phase"] == "Failed"


LONGER = Table(SCHEMA, stream_retention_seconds=10 * RETENTION)


def test_the_first_look_at_a_longer_retention_stops_the_workers() -> None:
    """Started in between, they would read on behind what was dropped, and notice nothing."""
    status = recorded(possibleGaps=reported(left())["possibleGaps"])
    status["tunnel"]["streamRetentionSeconds"] = RETENTION
    raised = replace(left(status=status), source=LONGER)

    assert [(gap.start, gap.lasting) for gap in gaps_of(raised)] == [(OLD, True)]
    problem = planned(raised).problem
    assert problem is not None
    assert problem.stops_workers
    # where the longer one does not keep it either, it is not hidden, and a worker notices it
    slightly = replace(raised, source=Table(SCHEMA, stream_retention_seconds=RETENTION + 100))
    assert [gap.lasting for gap in gaps_of(slightly)] == [False]


def test_what_the_operator_found_stays_when_the_retention_is_raised_behind_it() -> None:
    """With the longer retention neither a look nor a worker notices any more that something was dropped."""
    status = recorded(possibleGaps=reported(left())["possibleGaps"])
    raised = replace(left(status=status), source=LONGER)

    (gap,) = gaps_of(raised)
    assert (gap.start, gap.by_worker, gap.lasting) == (OLD, False, True)
    assert NOW - RETENTION <= gap.end < NOW - RETENTION + 3600
    problem = planned(raised).problem
    assert problem is not None
    assert (problem.reason, problem.stops_workers) == (Reason.POSSIBLE_GAP, True)

    told = reported(raised)["possibleGaps"]
    assert [item["lasting"] for item in told] == [True]
    later = replace(left(NOW - 5, status=recorded(possibleGaps=told)), source=LONGER)
    assert gaps_of(later) == (gap,)
    accepts = {"source__tunnel__onPossibleGap": "Continue"}
    (accepted,) = gaps_of(replace(left(NOW - 5, status=recorded(possibleGaps=told), **accepts), source=LONGER))
    assert (accepted.accepted, accepted.lasting) == (True, True)


def test_a_retention_that_was_raised_while_nobody_looked_hides_no_gap() -> None:
    status = recorded()
    status["tunnel"]["streamRetentionSeconds"] = RETENTION
    raised = replace(left(status=status), source=LONGER)

    assert found(raised) == OUTSIDE
    after = reported(raised)
    assert after["tunnel"]["streamRetentionSeconds"] == 10 * RETENTION
    again = recorded(possibleGaps=after["possibleGaps"])
    again["tunnel"]["streamRetentionSeconds"] = 10 * RETENTION
    assert [gap.lasting for gap in gaps_of(replace(left(status=again), source=LONGER))] == [True]
    # raised in time
    assert found(replace(left(NOW - RETENTION + 1, status=status), source=LONGER)) == []


def test_what_the_operator_found_stays_while_the_retention_is_not_known() -> None:
    status = recorded(possibleGaps=reported(left())["possibleGaps"])

    assert found(replace(left(status=status), source=Unread())) == OUTSIDE


def test_what_the_operator_found_goes_when_a_worker_reads_on() -> None:
    status = recorded(possibleGaps=reported(left())["possibleGaps"])

    assert found(left(NOW - 5, status=status)) == []
    # while the tunnel cannot be read, it stays
    assert found(replace(left(status=status), tunnel=Unread())) == OUTSIDE


@pytest.mark.parametrize("busy", [False, True])
def test_a_worker_s_finding_stays_and_stops_every_worker(busy: bool) -> None:
    status = recorded(possibleGaps=reported(left(pods=(ended(),)))["possibleGaps"])
    later = replace(left(NOW - 5, status=status), children=deployment(1))
    if busy:
        later = replace(later, tunnel=Failure(planned(left()).problem))

    assert found(later) == INSIDE
    plan = planned(later)
    assert plan.actions == (ScaleDown(),)
    assert plan.problem is not None
    assert plan.problem.reason is Reason.POSSIBLE_GAP


def test_it_is_found_at_the_first_exit_and_in_the_report() -> None:
    living = pod("pod-1")
    assert living.report is not None
    tells = replace(living, report=replace(living.report, gaps=(FOUND,)))

    assert found(left(NOW - 5, pods=(ended(),))) == found(left(NOW - 5, pods=(tells,))) == INSIDE
    # seen from outside too, it is one gap
    assert found(left(pods=(ended(), tells))) == INSIDE


def test_continue_accepts_what_was_found_and_nothing_that_comes_later() -> None:
    accepted = reported(left(pods=(ended(),), **CONTINUE))
    assert accepted["possibleGaps"][0]["accepted"] is True
    assert planned(left(pods=(ended(),), **CONTINUE)).problem is None

    status = recorded(possibleGaps=accepted["possibleGaps"])
    assert planned(left(NOW - 5, pods=(ended(),), status=status)).problem is None
    another = replace(FOUND, start=NOW - 50, end=NOW - 40)
    later = left(NOW - 5, pods=(ended(another),), status=status)
    assert found(later) == [("c1", True, False), ("c1", True, True)]
    assert planned(later).problem is not None


def test_a_gap_that_grows_keeps_its_widest_end() -> None:
    status = recorded(possibleGaps=reported(left(pods=(ended(),)))["possibleGaps"])

    (gap,) = gaps_of(left(NOW - 5, pods=(ended(replace(FOUND, end=OLD + 10)),), status=status))

    assert gap.end == NOW - 5


@pytest.mark.parametrize("bound", ["from", "to"])
def test_an_entry_without_times_is_none_of_ours(bound: str) -> None:
    """The status may have been edited; what is still there is found again."""
    entry = reported(left(pods=(ended(),)))["possibleGaps"][0]

    assert found(left(NOW - 5, status=recorded(possibleGaps=[{**entry, bound: "then"}]))) == []
    assert found(left(NOW - 5, status=recorded(possibleGaps=[entry]))) == INSIDE


@pytest.mark.parametrize("state", ["state", "lastState"])
def test_the_termination_message_of_a_worker_names_its_gap(state: str) -> None:
    text = f"PossibleGap: tunnel 'flights-copy': {PossibleGap('c1', OLD, NOW - 5)}; to be sure of every row, start over"
    container = {"name": "worker", state: {"terminated": {"exitCode": 14, "reason": "Error", "message": text}}}
    metadata = {"name": "pod-1", "creationTimestamp": timestamp(NOW)}

    assert worker_pod({"metadata": metadata, "status": {"containerStatuses": [container]}}).gaps == (FOUND,)


def test_another_message_names_none() -> None:
    container = {"name": "worker", "state": {"terminated": {"exitCode": 4, "message": "SinkRejected: no"}}}

    assert worker_pod({"metadata": {"name": "p"}, "status": {"containerStatuses": [container]}}).gaps == ()


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(ChannelStatus.OPEN, [], id="a child of the channel that is read"),
        pytest.param(ChannelStatus.WAIT, ["c1", "c2"], id="a tunnel that nobody has ever read"),
    ],
)
def test_a_channel_that_waits_has_lost_nothing_that_its_parents_have_not(
    status: ChannelStatus, expected: list[str]
) -> None:
    consumed = NOW - 5 if status is ChannelStatus.OPEN else 0.0
    channels = (channel("c1", status, consumed=consumed), channel("c2", ChannelStatus.WAIT))
    described = description(*channels, kind=TunnelType.Stream, create_time_ns=int(OLD * 1e9))

    assert [gap.channel for gap in gaps_of(replace(left(), tunnel=Tunnel(described)))] == expected


def test_a_channel_that_was_never_consumed_is_told_of_while_nothing_is_read() -> None:
    """It may be a child of the other one, or one whose first record is refused: a worker asks, where one runs."""
    channels = (
        channel("c1", ChannelStatus.WAIT, client="", consumed=NOW - 3600),
        channel("c2", ChannelStatus.WAIT, client=""),
    )
    described = description(*channels, kind=TunnelType.Stream, create_time_ns=int(OLD * 1e9))

    assert [gap.channel for gap in gaps_of(replace(left(), tunnel=Tunnel(described)))] == ["c2"]


def test_a_checkpoint_behind_which_the_stream_has_dropped_records_is_a_possible_gap() -> None:
    peek = Peek(NOW - 1, waits=True, empty=NOW - RETENTION - 60, is_of_lease=True, is_trimmed=True)
    idle = Peek(NOW - 1, waits=False, empty=NOW - 1, is_of_lease=True)
    of = stream_world(stream_resource(stream_recorded(), suspend=True), pods=(), peeks={"s1": peek, "s2": idle})

    (gap,) = gaps_of(of)

    assert (gap.channel, gap.start, gap.by_worker) == ("s1", NOW - RETENTION - 60, False)
    assert NOW - RETENTION <= gap.end < NOW - RETENTION + 3600
    problem = planned(of).problem
    assert problem is not None
    assert (problem.reason, problem.stalled, problem.stops_workers) == (Reason.POSSIBLE_GAP, True, False)
    assert reported(of)["lag"]["retentionUsedPercent"] >= 100


def test_the_end_of_dropped_records_is_by_the_service_s_clock() -> None:
    now = NOW - (NOW - RETENTION) % 3600 + 3500  # the end is told in whole hours
    peek = Peek(now - 1, waits=True, empty=now - RETENTION, is_of_lease=True, is_trimmed=True)
    seen = Tunnel(stream_description(channel("s1"), channel("s2"), service_time=now + 800), {}, seen=now)

    (gap,) = gaps_of(stream_world(pods=(), peeks={"s1": peek}, tunnel=seen, now=now))

    assert gap.end >= now + 800 - RETENTION


def test_where_no_look_came_before_it_the_gap_begins_with_the_stream() -> None:
    peek = Peek(NOW - 1, waits=True, is_of_lease=True, is_trimmed=True)
    table = Table(SCHEMA, stream_retention_seconds=RETENTION, stream_start=NOW - 2 * RETENTION)

    (gap,) = gaps_of(stream_world(pods=(), peeks={"s1": peek}, source=table))

    assert gap.start == NOW - 2 * RETENTION


def test_a_clock_that_is_behind_the_services_moves_no_gap() -> None:
    peek = Peek(NOW - 1, waits=True, empty=NOW - RETENTION + 30, is_of_lease=True, is_trimmed=True)

    for now in (NOW, NOW + 20):
        (gap,) = gaps_of(stream_world(pods=(), peeks={"s1": peek}, now=now))
        assert gap.start == NOW - RETENTION + 30
        assert gap.start <= gap.end < gap.start + 3600


def until(end: float, **status: Any) -> Resource:
    """An object that reads a stream up to a time."""
    return stream_resource(stream_recorded(**status), source__stream={"leaseTable": LEASES, "endTime": timestamp(end)})


def test_what_is_dropped_behind_the_end_time_is_not_missing() -> None:
    """The stream goes on behind it: after the retention the record at the checkpoint is gone, and nobody wants it."""
    end = NOW - 3 * RETENTION
    peek = Peek(NOW - 1, waits=True, empty=end + 60, is_of_lease=True, is_trimmed=True)
    late = Peek(NOW - 1, waits=True, empty=end - 60, is_of_lease=True, is_trimmed=True)

    assert gaps_of(stream_world(until(end, **COMPLETED), pods=(), peeks={"s1": late})) == ()
    assert gaps_of(stream_world(until(end), pods=(), peeks={"s1": peek})) == ()
    (gap,) = gaps_of(stream_world(until(end), pods=(), peeks={"s1": late}))
    assert (gap.start, gap.end >= end) == (end - 60, True)
    assert gap.end < end + 3600


def test_of_a_shard_whose_worker_has_found_the_gap_the_operator_says_nothing() -> None:
    peek = Peek(NOW - 1, waits=True, empty=NOW - RETENTION - 60, is_of_lease=True, is_trimmed=True)
    ending = stream_pod(ready=False, gaps=(ReportedGap("s1", OLD, NOW - 5),))

    assert found(stream_world(pods=(ending,), peeks={"s1": peek})) == [("s1", True, False)]


TRIMMED = Peek(NOW - 1, waits=True, empty=NOW - RETENTION - 60, is_of_lease=True, is_trimmed=True)
#: The status of an object of which the operator has found a gap of shard s1.
TOLD = stream_recorded(possibleGaps=reported(stream_world(pods=(), peeks={"s1": TRIMMED}))["possibleGaps"])


def told(**changes: Any) -> World:
    """The same object, seen by an operator that has looked at no shard yet."""
    return stream_world(**({"of": stream_resource(TOLD), "pods": ()} | changes))


def test_what_another_operator_found_of_a_shard_stays_until_it_is_looked_at_again() -> None:
    assert found(told()) == [("s1", False, False)]
    assert found(told(peeks={"s2": Peek(NOW - 1, waits=False, empty=NOW - 1, is_of_lease=True)})) == found(told())


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"peeks": {"s1": Peek(NOW - 1, waits=True, empty=NOW - 60, is_of_lease=True)}}, id="a record"),
        pytest.param({"pods": (stream_pod(report_channel("s1")),)}, id="a worker reads it"),
        pytest.param({"tunnel": Tunnel(stream_description(channel("s1", ChannelStatus.TERMINATED)))}, id="its end"),
        pytest.param({"of": until(NOW - 5, **TOLD, **COMPLETED)}, id="everything up to the end time is read"),
    ],
)
def test_what_another_operator_found_of_a_shard_goes_once_it_is_refuted(changes: dict[str, Any]) -> None:
    assert found(told(**changes)) == []


def test_a_lease_that_is_gone_brings_nothing_back() -> None:
    """The vendor's library deletes the leases of shards that the stream has dropped, read or not."""
    (gap,) = gaps_of(told(tunnel=Tunnel(stream_description(channel("s2")))))

    assert (gap.channel, gap.end) == ("s1", gaps_of(told())[0].end)


def test_a_worker_that_has_handed_a_shard_back_refutes_nothing() -> None:
    assert found(told(pods=(stream_pod(report_channel("s1", state="CLOSE")),))) == [("s1", False, False)]


def accepted(of: World) -> dict[str, Any]:
    """The gaps of the status, accepted."""
    return {"possibleGaps": [{**gap, "accepted": True} for gap in reported(of)["possibleGaps"]]}


#: Of a worker that knows nothing of the past: the gap begins with the stream.
FIRST = ReportedGap("s1", NOW - 40 * RETENTION, NOW - 20 * RETENTION)
LATER = replace(FIRST, end=NOW - 5)


def continued(*pods: Pod, **changes: Any) -> World:
    source = {"source__stream": {"leaseTable": LEASES, "onPossibleGap": "Continue"}}
    return stream_world(stream_resource(stream_recorded(), **source), pods=pods, **changes)


def behind(first: World, *pods: Pod, **changes: Any) -> World:
    """The object with Stop again, and the gaps that were accepted."""
    gaps = reported(first)["possibleGaps"]
    return stream_world(stream_resource(stream_recorded(possibleGaps=gaps)), pods=pods, **changes)


def test_what_a_shard_loses_behind_an_accepted_gap_is_another_one() -> None:
    accepted = continued(stream_pod(ready=False, gaps=(FIRST,)))

    again = behind(accepted, stream_pod(ready=False, gaps=(LATER,)))
    assert [(gap.start, gap.end, gap.accepted) for gap in gaps_of(again)] == [
        (FIRST.end, LATER.end, False),
        (FIRST.start, FIRST.end, True),
    ]
    problem = planned(again).problem
    assert problem is not None
    assert problem.stops_workers
    # the pod that has ended with the accepted one is still there
    assert found(behind(accepted, stream_pod(ready=False, gaps=(FIRST,)))) == [("s1", True, True)]


def test_an_accepted_gap_of_the_operator_s_with_the_same_start_excuses_no_worker_that_stops() -> None:
    """Of a tunnel both begin where the channel was consumed."""
    (before,) = gaps_of(left(**CONTINUE))
    of = left(status=recorded(possibleGaps=gap_documents([before])), pods=(ended(),))

    assert (before.start, before.accepted) == (FOUND.start, True)
    assert gaps_of(of) == (Gap("c1", FOUND.start, FOUND.end, by_worker=True),)
    problem = planned(of).problem
    assert problem is not None
    assert problem.stops


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (10, 20, None),  # the accepted one
        (12, 18, (12, 18)),  # nobody knows why it was found, so it is told
        (5, 20, None),  # of a worker that knows nothing of the past
        (12, 30, (12, 30)),
        (5, 30, (20, 30)),
        (20, 30, (20, 30)),
        (2, 10, (2, 10)),  # another one before
    ],
)
def test_of_a_gap_what_was_accepted_is_left_out(start: float, end: float, expected: tuple[float, float] | None) -> None:
    accepted = Gap("c1", 10, 20, by_worker=True, accepted=True)

    rest = beyond(Gap("c1", start, end, by_worker=True), [accepted])

    assert (None if rest is accepted else (rest.start, rest.end)) == expected


def test_what_the_operator_had_found_excuses_no_worker_that_stops() -> None:
    """Accepted, and set back to Stop before a worker has passed it; a worker's gap begins with the stream."""
    accepted = continued(peeks={"s1": replace(TRIMMED, empty=NOW - 3 * RETENTION)})
    stopped = stream_pod(ready=False, gaps=(replace(FIRST, end=NOW - RETENTION),))

    of = behind(accepted, stopped)

    assert ("s1", True, False) in found(of)
    problem = planned(of).problem
    assert problem is not None
    assert problem.stops_workers


@pytest.mark.parametrize("until", [TRIMMED.empty, None], ids=["by this operator", "by another one"])
def test_an_accepted_gap_of_a_shard_hides_no_later_one_from_outside(until: float | None) -> None:
    accepted = continued(stream_pod(ready=False, gaps=(FIRST,)))
    table = Table(SCHEMA, stream_retention_seconds=RETENTION, stream_start=FIRST.start)

    later = behind(accepted, peeks={"s1": replace(TRIMMED, empty=until)}, source=table)

    (gap, _) = gaps_of(later)
    assert (gap.start, gap.by_worker, gap.accepted) == (until or FIRST.end, False, False)
    assert planned(later).problem is not None


def test_what_a_worker_has_passed_was_accepted_however_many_gaps_the_status_has() -> None:
    living = stream_pod(report_channel("s1"))
    assert living.report is not None
    passed = replace(living, report=replace(living.report, gaps=(replace(LATER, is_passed=True),)))
    of = stream_world(stream_resource(stream_recorded()), pods=(passed,))

    assert found(of) == [("s1", True, True)]
    assert planned(of).problem is None


def test_a_longer_retention_makes_no_gap_of_a_shard_smaller() -> None:
    days = {"s1": replace(TRIMMED, empty=NOW - 3 * RETENTION)}
    (before,) = gaps_of(stream_world(pods=(), peeks=days))
    status = stream_recorded(possibleGaps=reported(stream_world(pods=(), peeks=days))["possibleGaps"])
    assert gaps_of(told(of=stream_resource(status), peeks=days, source=LONGER)) == (before,)

    # raised while nobody looked
    unseen = stream_recorded()
    unseen["tunnel"]["streamRetentionSeconds"] = RETENTION
    assert gaps_of(told(of=stream_resource(unseen), peeks=days, source=LONGER)) == (before,)


def test_a_gap_that_was_accepted_stays_the_same_for_another_operator() -> None:
    """Where it begins was the memory of the one that has found it."""
    shards = stream_world(stream_resource(stream_recorded()), pods=(), peeks={"s1": TRIMMED})
    again = replace(shards, peeks={"s1": replace(TRIMMED, empty=None)})
    tunnel = replace(left(), consumed_until={"c1": OLD + 100})

    shards_later = replace(again, resource=stream_resource(stream_recorded(**accepted(shards))))
    tunnel_later = replace(left(status=recorded(**accepted(tunnel))), consumed_until={})

    assert [(gap.start, gap.accepted) for gap in gaps_of(shards_later)] == [(TRIMMED.empty, True)]
    assert [(gap.start, gap.accepted) for gap in gaps_of(tunnel_later)] == [(OLD + 100, True)]


def test_what_a_shard_has_lost_is_not_refuted_by_the_completion_of_the_others() -> None:
    """Another program has deleted its lease, and the stream lists it no more."""
    end = NOW - 60
    peek = replace(TRIMMED, empty=NOW - RETENTION - 7200)
    gaps = reported(stream_world(until(end), pods=(), peeks={"s1": peek}))["possibleGaps"]
    others = Tunnel(stream_description(channel("s2", ChannelStatus.TERMINATED), service_time=NOW), {})
    done = stream_world(until(end, possibleGaps=gaps), pods=(), tunnel=others)

    assert is_completed(done)
    assert [gap.channel for gap in gaps_of(done)] == ["s1"]
