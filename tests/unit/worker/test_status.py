from __future__ import annotations

import itertools

from prometheus_client.parser import text_string_to_metric_families

from ots_tunnel.errors import ConnectionLost
from ots_tunnel.exposition import text_of
from ots_tunnel.fence import boottime
from ots_tunnel.model import Action, ChannelId, ChannelStatus, ChannelType
from ots_tunnel.protocol.possible_gap import Gap
from ots_tunnel.sinks.contact import Contact, FailingWrite
from ots_tunnel.sinks.tally import Tally, TallyCollector
from ots_tunnel.worker.progress.channel_progress import ChannelProgress
from ots_tunnel.worker.status.channel_view import ChannelView
from ots_tunnel.worker.status.gauges import StatusCollector
from ots_tunnel.worker.status.metrics import WorkerMetrics
from ots_tunnel.worker.status.rates import BusyClock, Rate
from ots_tunnel.worker.status.worker_status import WorkerStatus


def status(age: float = 0.0) -> WorkerStatus:
    """The status of a worker that started `age` seconds ago."""
    times = itertools.chain((0.0, 0.0), itertools.repeat(age))
    metrics = WorkerMetrics("orders", "count")
    made = WorkerStatus("tid", "uid-pod", metrics, wall=lambda: 1_700_000_100.0, clock=lambda: next(times))
    stream = ChannelProgress(
        ChannelId("s"),
        ChannelType.STREAM,
        rows=5,
        last_look=boottime(),
        caught_up_time=1_700_000_090.5,
        consumed_up_to=1_700_000_090.5,
    )
    base = ChannelProgress(ChannelId("BaseData_0"), ChannelType.BASE, rows=7, finished=True)
    made.channels = {
        stream.channel_id: ChannelView(stream, ChannelStatus.OPEN),
        base.channel_id: ChannelView(base, ChannelStatus.TERMINATED),
    }
    made.tally = lambda: Tally(records_skipped=3, records_dead_lettered=2, keys_refused=2)
    made.contact = lambda: Contact(looked=1_700_000_000.0, failing=FailingWrite(1_700_000_040.0, "no answer"))
    made.possible_gaps = {stream.channel_id: Gap(1_700_000_000.0, 1_700_000_100.0)}
    return made


def test_a_sink_that_cannot_be_opened_is_told_with_the_time_of_the_first_try() -> None:
    found = status()
    found.sink_not_opened("SinkError: refused")
    found.wall = lambda: 1_700_000_200.0
    found.sink_not_opened("SinkError: no route")
    failing = found.document()["sink"]["failing"]
    found.sink_opened()

    assert failing == {"since": "2023-11-14T22:15:00.000Z", "error": "SinkError: no route"}
    assert found.document()["sink"]["failing"]["error"] == "no answer"


def test_the_start_of_the_process_stays_as_it_was() -> None:
    found = status()
    found.wall = lambda: 1_700_000_200.0

    assert found.document()["startedTime"] == "2023-11-14T22:15:00.000Z"


def test_the_document_is_what_the_operator_reads() -> None:
    document = status().document()

    assert document == {
        "tunnelId": "tid",
        "state": "ready",
        "clientId": None,
        "clientTag": "uid-pod",
        "time": "2023-11-14T22:15:00.000Z",
        "startedTime": "2023-11-14T22:15:00.000Z",
        "rowsTotal": 0,
        "bytesTotal": 0,
        "rowsPerSecond": None,
        "busyPercent": None,
        "handOvers": 0,
        "lastHeartbeatTime": None,
        "draining": False,
        "error": None,
        "completed": False,
        "refused": {"records": 5, "keys": 2},
        "sink": {
            "lookedTime": "2023-11-14T22:13:20.000Z",
            "confirmedTime": None,
            "failing": {"since": "2023-11-14T22:14:00.000Z", "error": "no answer"},
        },
        "possibleGaps": [
            {"channel": "s", "from": "2023-11-14T22:13:20.000Z", "to": "2023-11-14T22:15:00.000Z", "passed": False}
        ],
        "channels": [
            {
                "id": "BaseData_0",
                "type": "BaseData",
                "state": "TERMINATED",
                "rowsTotal": 7,
                "caughtUp": False,
                "caughtUpTime": None,
                "consumedUpTo": None,
                "lagSeconds": None,
                "finished": True,
                "endReached": False,
                "error": None,
            },
            {
                "id": "s",
                "type": "Stream",
                "state": "OPEN",
                "rowsTotal": 5,
                "caughtUp": True,
                "caughtUpTime": "2023-11-14T22:14:50.500Z",
                "consumedUpTo": "2023-11-14T22:14:50.500Z",
                "lagSeconds": 9,
                "finished": False,
                "endReached": False,
                "error": None,
            },
        ],
    }


def test_rates_are_of_the_last_seconds_also_without_readers() -> None:
    now = 0.0
    made = WorkerStatus("tid", "uid-pod", WorkerMetrics("orders", "count"), clock=lambda: now)
    for second in range(100):
        now = float(second)
        made.metrics.rows_total = 10 * min(second, 50)
        made.sample()

    assert made.document()["rowsPerSecond"] == 0.0


def test_metric_names_and_labels_are_an_interface() -> None:
    made = status(age=10.0)
    metrics = made.metrics
    metrics.registry.register(StatusCollector(made))
    metrics.confirmed(ChannelType.STREAM, {Action.PUT: 1}, 10)
    metrics.checkpoint_stored(ChannelType.STREAM, 0.1)
    metrics.handed_over("taken")
    metrics.call_repeated("ReadRecords", ConnectionLost("reset"))
    metrics.decoded(ChannelType.STREAM, 0.001)
    metrics.registry.register(TallyCollector("orders", Tally))
    with metrics.reading(ChannelType.STREAM), metrics.writing(ChannelType.STREAM):
        pass

    found = {
        family.name: {tuple(sorted(set(sample.labels) - {"le"})) for sample in family.samples}
        for family in text_string_to_metric_families(text_of(metrics.registry).decode())
        if not family.name.endswith("_created")
    }

    by_type = ("channel_type", "tunnel")
    by_channel = ("channel", "channel_type", "tunnel")
    assert found == {
        "ots_tunnel_records": {("action", *by_type)},
        "ots_tunnel_bytes": {by_type},
        "ots_tunnel_read_seconds": {by_type},
        "ots_tunnel_build_info": {("tunnel", "version")},
        "ots_tunnel_decode_seconds": {by_type},
        "ots_tunnel_omitted_records": {("reason", "tunnel")},
        "ots_tunnel_omitted_cells": {("reason", "tunnel")},
        "ots_tunnel_refused_records": {("policy", "tunnel")},
        "ots_tunnel_sink_retries": {("tunnel",)},
        "ots_tunnel_sink_seconds": {("channel_type", "sink", "tunnel")},
        "ots_tunnel_checkpoint_seconds": {by_type},
        "ots_tunnel_rebalances": {("direction", "tunnel")},
        "ots_tunnel_retries": {("code", "operation", "tunnel")},
        "ots_tunnel_possible_gaps": {("tunnel",)},
        "ots_tunnel_busy_ratio": {("tunnel",)},
        "ots_tunnel_inflight_bytes": {("tunnel",)},
        "ots_tunnel_channels": {("state", "tunnel")},
        "ots_tunnel_channel_lag_seconds": {by_channel},
        "ots_tunnel_caught_up": {by_channel},
        "ots_tunnel_checkpoint_age_seconds": {by_channel},
    }


def test_a_rate_is_the_mean_over_its_window() -> None:
    now, rows = [0.0], [0.0]
    rate = Rate(lambda: rows[0], lambda: now[0])
    assert rate.sample() is None

    for _ in range(100):
        now[0] += 1
        rows[0] += 50
        rate.sample()
    assert rate.sample() == 50.0
    for _ in range(30):
        now[0] += 1
        rate.sample()

    assert rate.sample() == 0.0


def test_overlapping_work_is_busy_once() -> None:
    now = [0.0]
    clock = BusyClock(lambda: now[0])

    with clock.busy():
        now[0] += 1
        with clock.busy():
            now[0] += 2
        now[0] += 3
    now[0] += 10

    assert clock.seconds() == 6.0
