"""Warnings of retried writes: one a minute for failures of one kind."""

from __future__ import annotations

import logging

import pytest

from ots_tunnel.logs import RepeatedWarnings
from ots_tunnel.sinks.kafka.failures import Failure
from ots_tunnel.sinks.retries import log_retry


def written(records: list[logging.LogRecord], *, seconds_apart: float) -> list[dict[str, object]]:
    """Keys of the lines that pass the filter of a command's log."""
    now = 0.0
    passed = RepeatedWarnings(clock=lambda: now)
    lines = []
    for record in records:
        if passed.filter(record):
            lines.append({key: value for key, value in vars(record).items() if key in ("error", "table", "left_out")})
        now += seconds_apart
    return lines


def test_failures_of_one_kind_are_one_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(13):
        log_retry("writes fail", "OTSServerBusy", table="copy")

    assert written(caplog.records, seconds_apart=10) == [
        {"error": "OTSServerBusy", "table": "copy"},
        {"error": "OTSServerBusy", "table": "copy", "left_out": 5},
        {"error": "OTSServerBusy", "table": "copy", "left_out": 5},
    ]


def test_failures_of_another_kind_are_written_at_once(caplog: pytest.LogCaptureFixture) -> None:
    log_retry("writes fail", "OTSServerBusy", table="copy")
    log_retry("writes fail", "OTSTimeout", table="copy")
    log_retry("writes fail", "OTSServerBusy", table="other")

    assert len(written(caplog.records, seconds_apart=1)) == 3


@pytest.mark.parametrize(
    "text",
    [
        "b1:9092/1: Connect to ipv4#10.0.0.1:9092 failed: Connection refused (after 0ms in state CONNECT)",
        "b1:9092/1: Connect to ipv4#10.0.0.1:9092 failed: Connection refused "
        "(after 12ms in state CONNECT, 5 identical error(s) suppressed)",
    ],
)
def test_a_broker_that_stays_away_is_one_kind_of_failure(text: str) -> None:
    expected = "_TRANSPORT: b1:9092/1: Connect to ipv4#10.0.0.1:9092 failed: Connection refused"

    assert str(Failure("_TRANSPORT", text)) == expected
