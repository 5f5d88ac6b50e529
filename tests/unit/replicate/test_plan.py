"""Whether a replication job may start or resume, and the figures of its meter."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ots_tunnel.console.exit_codes import exit_code
from ots_tunnel.errors import ConfigError, TunnelError
from ots_tunnel.model import (
    ChannelId,
    ChannelInfo,
    ChannelStatus,
    ChannelType,
    ClientId,
    Stage,
    StreamConfig,
    TunnelDescription,
    TunnelId,
    TunnelInfo,
    TunnelType,
)
from ots_tunnel.replicate.meter import ReplicationMeter
from ots_tunnel.replicate.plan import Findings, check_start, end_warning
from ots_tunnel.verify.state_document import TablePlace

T0 = 1_700_000_000
#: Of a time whose nanoseconds are no exact double.
END_US = (T0 + 100) * 1_000_000 + 1_000
END = datetime.fromtimestamp(T0 + 100, UTC) + timedelta(milliseconds=1)
OTHER = TablePlace(endpoint="http://h", instance="i", table="t9")


def channel(name: str, kind: ChannelType, status: ChannelStatus, rows: int = 0) -> ChannelInfo:
    return ChannelInfo(ChannelId(name), kind, status, ClientId(""), 0, rows)


def tunnel(
    kind: TunnelType = TunnelType.BaseAndStream,
    *,
    expired: bool = False,
    rows: int = 0,
    stage: str = Stage.BASE,
    status: ChannelStatus = ChannelStatus.OPEN,
    consume_point_ns: int = 0,
    end_us: int = 0,
) -> TunnelDescription:
    config = StreamConfig(end_offset_ns=end_us * 1000)
    info = TunnelInfo(TunnelId("id"), "copy", kind, "t", "i", "", stage, expired, T0 * 10**9, config)
    base = channel("BaseData_1", ChannelType.BASE, status, rows)
    channels = (replace(base, consume_point_ns=consume_point_ns),)
    return TunnelDescription(info, channels, 0)


@pytest.mark.parametrize(
    "found",
    [
        Findings(None, destination_exists=False),
        Findings(None, destination_exists=True, destination_empty=True),
        Findings(tunnel(), destination_exists=False),
        Findings(tunnel(end_us=END_US), destination_exists=False),
        Findings(tunnel(), destination_exists=True, destination_empty=True),
        Findings(tunnel(), destination_exists=True, destination_empty=False, known=True),
        Findings(tunnel(rows=5), destination_exists=True, destination_empty=False),
        Findings(tunnel(rows=5), destination_exists=True, source_empty=True),
        Findings(tunnel(status=ChannelStatus.TERMINATED, consume_point_ns=T0), destination_exists=True),
    ],
)
def test_a_job_starts_and_resumes(found: Findings) -> None:
    check_start(found, "copy", "t2", END, merge=False)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Findings(None, destination_exists=True, destination_empty=False), "'t2' holds rows.*--merge"),
        # a tunnel that was made by hand
        (
            Findings(tunnel(), destination_exists=True, destination_empty=False),
            "'t2' holds rows.*delivered none.*--merge",
        ),
        (Findings(tunnel(rows=5), destination_exists=False), "'t2' does not exist.*--merge"),
        (Findings(tunnel(rows=5), destination_exists=True), "'t2' is empty.*--merge"),
        (
            Findings(tunnel(rows=5), destination_exists=True, destination_empty=False, other=OTHER),
            "delivers rows to i/t9 at http://h, and ots-writer names 't2'.*--merge",
        ),
        (
            Findings(tunnel(rows=5), destination_exists=True, destination_empty=False, source_empty=True, other=OTHER),
            "delivers rows to i/t9",
        ),
        # the run that copies there may be waiting for its first row
        (Findings(tunnel(stage=Stage.INIT), destination_exists=False, other=OTHER), "delivers rows to i/t9"),
        (Findings(tunnel(), destination_exists=True, destination_empty=False, other=OTHER), "delivers rows to i/t9"),
        (Findings(tunnel(rows=5), destination_exists=True, source_empty=True, other=OTHER), "delivers rows to i/t9"),
        (
            Findings(tunnel(rows=5), destination_exists=True, destination_empty=False, foreign=True),
            "'t2' holds none of those that were looked for.*--merge",
        ),
    ],
)
def test_rows_are_neither_overwritten_nor_missed_without_merge(found: Findings, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        check_start(found, "copy", "t2", END, merge=False)
    check_start(found, "copy", "t2", END, merge=True)


@pytest.mark.parametrize(
    ("found", "text", "code"),
    [
        (Findings(tunnel(TunnelType.Stream), destination_exists=True), "type Stream, needed is BaseAndStream", 2),
        (Findings(tunnel(expired=True), destination_exists=True), "has expired", 13),
        (Findings(tunnel(end_us=END_US - 1), destination_exists=True), "ends by itself at .*, before endTime", 2),
    ],
)
def test_an_unsuitable_tunnel_is_refused(found: Findings, text: str, code: int) -> None:
    with pytest.raises(TunnelError, match=text) as refused:
        check_start(found, "copy", "t2", END, merge=True)
    assert exit_code(refused.value) == code


def test_an_end_before_the_tunnels_creation_is_a_warning() -> None:
    assert end_warning(tunnel(), datetime.fromtimestamp(T0, UTC)) is None
    assert "no changes are followed" in (end_warning(tunnel(), datetime.fromtimestamp(T0 - 1, UTC)) or "")


class Clock:
    now = float(T0)

    def __call__(self) -> float:
        return self.now


def test_the_meter_of_existing_rows() -> None:
    meter = ReplicationMeter(T0 + 100, Clock())
    assert meter.line(1) == "waiting for the tunnel's channels, 0 rows, 0 rows/s"
    done = channel("BaseData_2", ChannelType.BASE, ChannelStatus.TERMINATED)
    meter.describe(replace(tunnel(), channels=(*tunnel().channels, done)))
    meter.rows, meter.rows_per_second = 12_345, 617.3
    assert meter.share == 0.5
    assert meter.line(20) == "existing rows: 1/2 channels, 12,345 rows, 617 rows/s, about 0:20 left"


def test_the_meter_of_changes() -> None:
    clock = Clock()
    meter = ReplicationMeter(T0 + 100, clock)
    for seconds, consumed in ((0, 0), (10, 40)):
        clock.now = T0 + 1000 + seconds
        meter.describe(replace(tunnel(stage=Stage.STREAM), consume_point_ns=(T0 + consumed) * 10**9))
    meter.lag = 950.2
    assert meter.share == pytest.approx(0.4)
    assert meter.line(10) == "changes, 0 rows, 0 rows/s, lag 15:50, about 0:15 left"


def test_an_end_in_the_future_is_not_reached_before_it() -> None:
    clock = Clock()
    meter = ReplicationMeter(T0 + 100, clock)
    for seconds in (0, 10):
        clock.now = T0 + seconds
        meter.describe(replace(tunnel(stage=Stage.STREAM), consume_point_ns=int(clock.now * 10**9)))
    assert meter.seconds_left(10) == pytest.approx(90)
