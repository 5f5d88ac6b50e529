"""The values of the key `action` in the operator's log lines: an interface, which alerts and log searches may rely on.

Every line carries an action. A line about a TablestoreTunnel has its `namespace` and its name as `object`; a line about
one of its children has the child's `kind` and its name as `child`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
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

    SERVING = "serving", "INFO", "The process serves its probes and metrics.", "port"
    SERVING_CONSOLE = "serving_console", "INFO", "The process serves the console.", "port"
    CONSOLE_FAILED = (
        "console_failed",
        "ERROR",
        "A sample of the console's history failed: a defect; nothing else is affected.",
    )
    LEADING = "leading", "INFO", "This process holds the leader election's Lease.", "lease", "identity"
    STANDING_BY = (
        "standing_by",
        "INFO WARNING",
        "Another process holds the Lease; a warning where it serves other namespaces, so that these ones are unserved.",
        "lease",
        "holder",
        "serves",
    )
    LEASE_FAILED = "lease_failed", "WARNING", "The Lease cannot be written or released; tried again.", "lease", "error"
    KOPF_ENDED = (
        "kopf_ended",
        "ERROR",
        "kopf has ended with an error that its next start may not have; the process ends.",
    )
    KOPF_WATCH_FAILED = (
        "kopf_watch_failed",
        "WARNING",
        "kopf could not list or watch the objects; it tries again, and until then new objects are not begun.",
        "watch",
        "error",
    )
    LEASE_LOST = "lease_lost", "ERROR", "The Lease was not renewed in time; the process ends.", "lease"
    LOOP_STALLED = "loop_stalled", "ERROR", "The event loop stands still; the Lease is not renewed.", "lease", "seconds"
    NO_ELECTION = (
        "no_election",
        "WARNING ERROR",
        "There is no leader election: only one replica may run.",
        "lease",
        "error",
    )
    SERVED_ELSEWHERE = (
        "served_elsewhere",
        "INFO",
        "Another operator serves the object, by the annotation `ots-tunnel.dev/operator`; this one leaves it alone.",
        "namespace",
        "object",
        "lease",
    )
    CREATED_DESTINATION = (
        "created_destination",
        "INFO",
        "The destination table was created.",
        "namespace",
        "object",
        "table",
    )
    INTENT_STANDS = (
        "intent_stands",
        "INFO",
        "The service refused to create something, but the intent to create it could not be taken out of the status.",
        "namespace",
        "object",
        "error",
    )
    CREATED_TUNNEL = "created_tunnel", "INFO", "The tunnel was created.", "namespace", "object", "tunnel_id"
    DELETED_TUNNEL = (
        "deleted_tunnel",
        "INFO",
        "The tunnel was deleted with its checkpoints, as a reset asks.",
        "namespace",
        "object",
        "tunnel_id",
    )
    RESET_STARTED = (
        "reset_started",
        "INFO",
        "A reset begins; the text says what it does, writes and loses.",
        "namespace",
        "object",
        "token",
        "text",
    )
    RESET_DONE = "reset_done", "INFO", "A reset is over.", "namespace", "object", "token", "text"
    RESET_REFUSED = (
        "reset_refused",
        "INFO",
        "A reset was asked for and is not carried out; the text says why.",
        "namespace",
        "object",
        "token",
        "text",
    )
    APPLIED_OBJECT = "applied_object", "INFO", "A child was created or changed.", "namespace", "object", "kind", "child"
    DELETED_OBJECT = "deleted_object", "INFO", "A child was deleted.", "namespace", "object", "kind", "child"
    SCALED_DOWN = (
        "scaled_down",
        "INFO",
        "The Deployment of the workers was set to 0.",
        "namespace",
        "object",
        "kind",
        "child",
    )
    SCALED = "scaled", "INFO", "The number of workers was changed alone.", "namespace", "object", "kind", "child"
    MARKED_POD = (
        "marked_pod",
        "INFO",
        "A worker's pod was named as the next one to go, or is no longer.",
        "namespace",
        "object",
        "kind",
        "child",
    )
    PASS_FAILED = (
        "pass_failed",
        "WARNING ERROR",
        "A pass over an object ended with an error; tried again after a growing pause.",
        "namespace",
        "object",
        "error",
    )
    WATCH_REFUSED = (
        "watch_refused",
        "WARNING",
        "The API server refuses to list or watch a kind; objects that rely on it show Unknown.",
        "watch",
    )
    WATCH_ENDED = (
        "watch_ended",
        "ERROR",
        "A watch ended with an unexpected error; the next read starts it again.",
        "watch",
    )
    ACTION_FAILED = (
        "action_failed",
        "ERROR",
        "A planned action raised an unexpected error; the object shows InternalError.",
        "namespace",
        "object",
        "error",
    )
    OBJECT_UNREADABLE = (
        "object_unreadable",
        "ERROR",
        "An object does not fit the CRD of this release; it shows Unknown.",
        "namespace",
        "object",
        "error",
    )
    STATUS_DROPPED = (
        "status_dropped",
        "WARNING",
        "The API server drops fields of a status: the CRD is older than the operator.",
        "namespace",
        "object",
        "fields",
    )
    DELETION_DELAYED = (
        "deletion_delayed",
        "WARNING ERROR",
        "Something is in the way of a deletion; tried again, at most for 600 s.",
        "namespace",
        "object",
        "error",
    )
    TUNNEL_LEFT_BEHIND = (
        "tunnel_left_behind",
        "WARNING",
        "A tunnel stays under Delete: it was not deleted in time, or an elder object consumes it. command deletes it.",
        "namespace",
        "object",
        "error",
        "command",
    )
    CLOSE_INCOMPLETE = "close_incomplete", "WARNING", "A pass goes on while the process ends; what it uses stays open."
    EVENT_LOST = (
        "event_lost",
        "WARNING",
        "The API server did not accept an event of an object.",
        "namespace",
        "object",
        "reason",
        "error",
    )
    WORKER_SILENT = (
        "worker_silent",
        "DEBUG",
        "A worker pod did not answer /channels.",
        "namespace",
        "object",
        "kind",
        "child",
        "error",
    )


#: Value -> description, in the order of a process's life.
DESCRIPTIONS: Mapping[str, str] = {action.value: action.description for action in LogAction}
