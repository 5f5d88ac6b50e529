"""The values of the key `action` in log lines: an interface, which alerts and log searches may rely on.

Every line of the package carries an action. A sentence may be reworded; an action keeps its value and its keys.
"""

from __future__ import annotations

import enum
from typing import Self


class LogAction(enum.StrEnum):
    """What a log line reports: value, levels that it can have, description, and the keys that can come with it."""

    levels: tuple[str, ...]
    description: str
    keys: tuple[str, ...]

    def __new__(cls, value: str, levels: str, description: str, *keys: str) -> Self:
        """Make a member whose value is its first word."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.levels = tuple(levels.split())
        member.description = description
        member.keys = keys
        return member

    STARTED = "started", "INFO", "A worker or a snapshot has started.", "tunnel_id", "url"
    STOPPED = "stopped", "INFO", "A worker has stopped; how much it consumed.", "tunnel_id", "rows", "bytes"
    DRAINING = "draining", "INFO", "A worker drains: it reads no new page and stores a last checkpoint.", "tunnel_id"
    CLOSING_AT_ONCE = (
        "closing_at_once",
        "WARNING",
        "A second signal: a worker stops without waiting for its sink.",
        "tunnel_id",
    )
    DRAIN_OVERDUE = (
        "drain_overdue",
        "CRITICAL",
        "A call of the worker or of its sink hangs longer than the drain may take; the process ends.",
        "seconds",
    )
    COMPLETED = (
        "completed",
        "INFO WARNING",
        "Every channel, or every split of a snapshot, is done.",
        "tunnel_id",
        "client_id",
    )
    TERMINAL_ERROR = "terminal_error", "ERROR", "The process ends because of an error.", "error"
    PREFLIGHT_FAILED = (
        "preflight_failed",
        "INFO",
        "The tunnel cannot be described before the start; the worker starts anyway.",
        "tunnel_id",
        "error",
    )
    SINK_NOT_COMPARED = (
        "sink_not_compared",
        "WARNING",
        "The source table may not be described, so that the sink's table was not compared with it; the worker starts "
        "anyway.",
        "error",
    )
    CLOCK_NOT_BELIEVED = (
        "clock_not_believed",
        "WARNING",
        "An answer's time is more than fifteen minutes from this machine's clock, so that something on the way has "
        "written it; cells expire, and lags are told, by the clock as it was known before.",
    )
    NOT_COMPILED = (
        "not_compiled",
        "WARNING",
        "The codec in Python, which is many times slower, is used because the compiled one is missing.",
        "reason",
    )
    CONNECTED = (
        "connected",
        "INFO",
        "The service registered this worker as a client; codec is native or python.",
        "tunnel_id",
        "client_id",
        "codec",
    )
    CONNECT_FAILED = (
        "connect_failed",
        "WARNING",
        "The service did not register the client; tried again.",
        "tunnel_id",
        "error",
    )
    HEARTBEAT_FAILED = (
        "heartbeat_failed",
        "WARNING",
        "A heartbeat was not answered; tried again.",
        "tunnel_id",
        "client_id",
        "error",
    )
    LEASE_CALL_FAILED = (
        "lease_call_failed",
        "WARNING",
        "A call about shards or leases failed, or a row of the table of leases is none; tried again.",
        "tunnel_id",
        "client_id",
        "error",
    )
    CLIENT_GONE = (
        "client_gone",
        "WARNING",
        "The service no longer knows the client; the worker connects again.",
        "tunnel_id",
        "client_id",
    )
    SHUTDOWN_FAILED = (
        "shutdown_failed",
        "INFO",
        "The client could not be deregistered; the service frees its channels at the heartbeat timeout.",
        "tunnel_id",
        "error",
    )
    CHANNEL_STATE = (
        "channel_state",
        "INFO",
        "The state machine of a channel made a transition.",
        "tunnel_id",
        "client_id",
        "channel_id",
    )
    CHANNEL_OPENED = (
        "channel_opened",
        "INFO",
        "A channel is read from its checkpoint on.",
        "tunnel_id",
        "client_id",
        "channel_id",
    )
    POSSIBLE_GAP = (
        "possible_gap",
        "WARNING",
        "Changes may be missing before the next records of a channel, and the settings say to go on.",
        "tunnel_id",
        "channel_id",
        "error",
    )
    FIRST_LEASES = (
        "first_leases",
        "INFO WARNING",
        "The stream had no lease: where reading begins. A warning where `Latest` leaves changes out.",
        "tunnel_id",
    )
    LEASE_WRITTEN_ANEW = (
        "lease_written_anew",
        "WARNING",
        "A lease in use, or of a shard that was read to its end, was written anew, as a worker of the Java library "
        "does late; it is restored.",
        "channel_id",
    )
    RETENTION_UNKNOWN = (
        "retention_unknown",
        "WARNING",
        "Tunnel or table cannot be described, so that a possible gap may not be noticed.",
        "tunnel_id",
        "error",
    )
    CHANNEL_FINISHED = (
        "channel_finished",
        "INFO",
        "A channel was read to its end.",
        "tunnel_id",
        "client_id",
        "channel_id",
    )
    CHANNEL_FAILED = (
        "channel_failed",
        "WARNING ERROR",
        "A channel stopped on an error; the sentence says whether it is opened again. "
        "refused_keys names rows that the sink refused for good.",
        "tunnel_id",
        "client_id",
        "channel_id",
        "error",
        "refused_keys",
    )
    CHANNEL_ABANDONED = (
        "channel_abandoned",
        "WARNING",
        "A write was given up unconfirmed when its channel had to be returned; its records are delivered again.",
        "tunnel_id",
        "client_id",
        "channel_id",
    )
    LOOK_REFUSED = (
        "look_refused",
        "WARNING",
        "A channel that waits for its parents cannot be read, so it is not known whether the tunnel is complete.",
        "tunnel_id",
        "client_id",
        "channel_id",
        "error",
    )
    CHECKPOINT_FAILED = (
        "checkpoint_failed",
        "WARNING",
        "A checkpoint was not stored; tried again while the channel is open.",
        "tunnel_id",
        "client_id",
        "channel_id",
        "error",
    )
    CHECKPOINT_ADOPTED = (
        "checkpoint_adopted",
        "INFO",
        "The service held a checkpoint of ours with another sequence number, which is used from here on.",
        "tunnel_id",
        "client_id",
        "channel_id",
    )
    CALL_REPEATED = (
        "call_repeated",
        "DEBUG WARNING",
        "A call failed and is sent again; a warning while a worker starts, which may wait for minutes. duration is "
        "the pause in seconds, of a line of DEBUG.",
        "operation",
        "error",
        "duration",
    )
    SINK_NOT_READY = (
        "sink_not_ready",
        "WARNING",
        "The sink cannot be opened, or not be compared with the source; tried again.",
        "tunnel_id",
        "error",
    )
    WRITE_RETRIED = (
        "write_retried",
        "WARNING",
        "The sink refused a write for now; tried again after a pause.",
        "error",
        "table",
        "topic",
        "url",
        "folder",
    )
    RECORDS_REFUSED = (
        "records_refused",
        "WARNING",
        "The sink refused records permanently; they are skipped or become dead letters. key is that of the first.",
        "channel_id",
        "records",
        "error",
        "key",
    )
    FILE_PUBLISHED = "file_published", "DEBUG", "A file of the sink is complete and visible.", "file"
    PROCESSOR_FAILED = (
        "processor_failed",
        "WARNING ERROR",
        "The shutdown callback of a user's processor raised.",
        "channel_id",
    )
    PROCESSOR_HANGS = (
        "processor_hangs",
        "CRITICAL",
        "A user's callback did not return before the drain deadline; the process ends.",
        "channel_id",
    )
    CHILD_ENDED = (
        "child_ended",
        "ERROR",
        "A process that the user's code has forked went on as the worker, and was ended.",
    )
    BROKER_TROUBLE = "broker_trouble", "WARNING", "A Kafka broker cannot be used; tried again.", "error", "topic"
    LOGIN_UNREADABLE = (
        "login_unreadable",
        "WARNING",
        "The credential files cannot be read; the previous credentials stay in use.",
        "error",
        "topic",
    )
    SNAPSHOT_PROGRESS = (
        "snapshot_progress",
        "INFO WARNING",
        "Splits of a snapshot are done, or their record could not be written.",
    )
    QUERY_PROGRESS = (
        "query_progress",
        "INFO WARNING",
        "A query of Spark has written a batch, or its progress could not be recorded.",
        "rows",
        "error",
    )
    ROWS_LEFT_OUT = "rows_left_out", "WARNING", "Rows of a write by Spark were refused and left out.", "table", "rows"
    SCAN_READ = (
        "scan_read",
        "INFO",
        "A query of Spark has read every split of a table; through Spark Connect, or in a task, one of them.",
        "table",
        "rows",
        "pages",
        "bytes",
        "seconds",
    )
    COLUMN_NEVER_SEEN = (
        "column_never_seen",
        "WARNING",
        "Columns of a Spark query are in no row that was read.",
        "table",
        "rows",
        "columns",
    )
