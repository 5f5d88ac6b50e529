"""JSON logs on standard error, set up once by a command.

A line has a stable sentence and fixed keys: `action`, `tunnel_id`, `client_id`, `channel_id`, `request_id`, `rows`,
`bytes`, `duration`, `error`, `left_out`. Row contents and tokens never appear, nor do keys but that of a record that
was refused for good: somebody has to find it.
"""

from __future__ import annotations

import enum
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

from pythonjsonlogger.json import JsonFormatter

from ots_tunnel.repeated_warnings import RepeatedWarnings


class LogAction(enum.StrEnum):
    """Every value of the key `action`."""

    CONNECTED = "connected"
    CONNECT_FAILED = "connect_failed"
    HEARTBEAT_FAILED = "heartbeat_failed"
    CLIENT_GONE = "client_gone"
    CHANNEL_STATE = "channel_state"
    CHANNEL_OPENED = "channel_opened"
    CHANNEL_FINISHED = "channel_finished"
    CHANNEL_FAILED = "channel_failed"
    CHANNEL_ABANDONED = "channel_abandoned"
    CHECKPOINT_FAILED = "checkpoint_failed"
    CHECKPOINT_ADOPTED = "checkpoint_adopted"
    CALL_REPEATED = "call_repeated"
    SINK_NOT_READY = "sink_not_ready"
    WRITE_RETRIED = "write_retried"
    DRAINING = "draining"
    CLOSING_AT_ONCE = "closing_at_once"
    SHUTDOWN_FAILED = "shutdown_failed"
    COMPLETED = "completed"
    TERMINAL_ERROR = "terminal_error"
    SNAPSHOT_PROGRESS = "snapshot_progress"
    PREFLIGHT_FAILED = "preflight_failed"
    FILE_PUBLISHED = "file_published"
    RECORDS_REFUSED = "records_refused"
    PROCESSOR_FAILED = "processor_failed"
    PROCESSOR_HANGS = "processor_hangs"
    BROKER_TROUBLE = "broker_trouble"
    LOGIN_UNREADABLE = "login_unreadable"
    STARTED = "started"
    STOPPED = "stopped"


class JsonLine(JsonFormatter):
    """One line of worker and operator alike: time in UTC, level, logger, message, then the record's own keys."""

    def __init__(self) -> None:
        super().__init__(
            ["asctime", "levelname", "name", "message"],
            rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
            # Foreign libraries put their objects into records: what kind it was is enough.
            json_default=lambda value: type(value).__name__,
        )

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """RFC 3339 with milliseconds."""
        moment = datetime.fromtimestamp(record.created, UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class StandardError(logging.StreamHandler[TextIO]):
    """Writes to what `sys.stderr` is at the moment: while a progress bar is shown, lines belong above it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        self.stream = sys.stderr
        super().emit(record)


def set_up_logs(level: str = "INFO") -> None:
    """Write JSON lines from `level` on to standard error."""
    handler = StandardError()
    handler.setFormatter(JsonLine())
    handler.addFilter(RepeatedWarnings())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
