"""One line of the log; the same warning is written once a minute, with a count."""

from __future__ import annotations

import json
import logging
from typing import Any

from ots_tunnel.logs import REMEMBERED, WINDOW, JsonLine, RepeatedWarnings


def test_a_line_begins_with_time_level_and_logger_and_keeps_the_records_own_keys() -> None:
    record = logging.LogRecord("ots_tunnel.worker.worker", logging.INFO, "", 0, "connected", None, None)
    record.created = 1700000000.123
    record.action = "connected"

    line = json.loads(JsonLine().format(record))

    assert list(line)[:4] == ["time", "level", "logger", "message"]
    assert line["time"] == "2023-11-14T22:13:20.123Z"
    assert line["action"] == "connected"


def test_a_foreign_object_shows_as_its_type() -> None:
    record = logging.LogRecord("kopf", logging.INFO, "", 0, "seen", None, None)
    record.thing = object()

    assert json.loads(JsonLine().format(record))["thing"] == "object"


class Log:
    """A filter with a stopped clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self._filter = RepeatedWarnings(clock=lambda: self.now)

    def write(self, level: int = logging.WARNING, message: str = "heartbeat failed", **extra: Any) -> int | None:
        """Number of equal warnings left out before this one; None if this one is left out."""
        record = logging.makeLogRecord({"name": "worker", "levelno": level, "msg": message, **extra})
        return getattr(record, "left_out", 0) if self._filter.filter(record) else None


def test_an_equal_warning_is_written_once_a_minute_with_a_count() -> None:
    log = Log()
    assert [log.write(error="no answer") for _ in range(3)] == [0, None, None]

    log.now = WINDOW
    assert [log.write(error="no answer") for _ in range(2)] == [2, None]
    log.now = 2 * WINDOW
    assert log.write(error="no answer") == 1
    log.now = 3 * WINDOW
    assert log.write(error="no answer") == 0


def test_warnings_that_differ_in_more_than_a_request_id_are_written() -> None:
    log = Log()
    ids = ("5f0c3c5e-9b1e-4f8e-8d3b-0a1b2c3d4e5f", "6f0c3c5e-9b1e-4f8e-8d3b-0a1b2c3d4e5f")
    assert [log.write(error=f"busy (request {each})") for each in ids] == [0, None]
    assert log.write(error=f"denied (request {ids[0]})") == 0
    assert log.write(message="connect failed", error="busy") == 0
    assert [log.write(channel_id=each) for each in ("a", "b", "a")] == [0, 0, None]


def test_other_levels_are_always_written() -> None:
    log = Log()
    for level in (logging.DEBUG, logging.INFO, logging.ERROR, logging.CRITICAL):
        assert [log.write(level) for _ in range(2)] == [0, 0]


def test_memory_is_bounded() -> None:
    log = Log()
    for number in range(REMEMBERED + 1):
        assert log.write(channel_id=number) == 0
    assert log.write(channel_id=REMEMBERED) is None
    assert log.write(channel_id=0) == 0, "the oldest is forgotten"
