"""One line of the log."""

from __future__ import annotations

import json
import logging

from ots_tunnel.logs import JsonLine


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
