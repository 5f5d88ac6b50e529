"""Conditions in the shape of metav1, and the catalogue of reasons.

Every type is present from the first write on (Unknown where nobody can tell), so that `kubectl wait` never
hangs on a missing one. `lastTransitionTime` changes only when `status` does.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

#: All types, in the order they are shown (operator-anchors 5.3 and SinkReady).
TYPES = (
    "Ready",
    "Progressing",
    "Degraded",
    "Stalled",
    "CredentialsValid",
    "SinkReady",
    "TunnelReady",
    "WorkersAvailable",
    "Rebalancing",
    "Suspended",
    "Completed",
)

#: Longest message; service texts are cut.
MAX_MESSAGE = 1024


class Reason(enum.StrEnum):
    """Why a condition has its status. Problems carry what to do in their message."""

    # preflight
    INVALID_SPEC = "InvalidSpec"
    SECRET_NOT_FOUND = "SecretNotFound"
    KEY_MISSING = "KeyMissing"
    AUTH_FAILED = "AuthFailed"
    ACCESS_DENIED = "AccessDenied"
    ENDPOINT_UNREACHABLE = "EndpointUnreachable"
    SERVICE_UNAVAILABLE = "ServiceUnavailable"
    SERVICE_REFUSED = "ServiceRefused"
    TABLE_NOT_FOUND = "TableNotFound"
    DESTINATION_NOT_FOUND = "DestinationNotFound"
    DESTINATION_INCOMPATIBLE = "DestinationIncompatible"
    DESTINATION_NOT_EMPTY = "DestinationNotEmpty"
    DESTINATION_BEHIND_TUNNEL = "DestinationBehindTunnel"
    NAME_CONFLICT = "NameConflict"
    API_SERVER_REFUSED = "ApiServerRefused"
    INTERNAL_ERROR = "InternalError"
    # tunnel
    TUNNEL_IN_USE = "TunnelInUse"
    TUNNEL_NOT_FOUND = "TunnelNotFound"
    TUNNEL_REPLACED = "TunnelReplaced"
    TUNNEL_EXPIRED = "TunnelExpired"
    SPEC_MISMATCH = "SpecMismatch"
    CHECKPOINT_UNREADABLE = "CheckpointUnreadable"
    SNAPSHOT_UNKNOWN = "SnapshotUnknown"
    SNAPSHOT_IMPOSSIBLE = "SnapshotImpossible"
    SNAPSHOT_FAILED = "SnapshotFailed"
    SNAPSHOT_RETRYING = "SnapshotRetrying"
    SPARK_OPERATOR_MISSING = "SparkOperatorMissing"
    TUNNEL_INITIALISING = "TunnelInitialising"
    # works, but not as promised
    FOREIGN_CLIENT = "ForeignClient"
    RETENTION_AT_RISK = "RetentionAtRisk"
    LAG_HIGH = "LagHigh"
    WORKERS_UNAVAILABLE = "WorkersUnavailable"
    WORKERS_FAILING = "WorkersFailing"
    CHANNEL_ERRORS = "ChannelErrors"
    # waiting
    CREATING_DESTINATION = "CreatingDestination"
    CREATING_TUNNEL = "CreatingTunnel"
    SNAPSHOT_RUNNING = "SnapshotRunning"
    BASE_DATA_RUNNING = "BaseDataRunning"
    STARTING_WORKERS = "StartingWorkers"
    SCALING = "Scaling"
    ROLLING_WORKERS = "RollingWorkers"
    SUSPENDING = "Suspending"
    DELETING = "Deleting"
    PREDECESSOR_GOING = "PredecessorGoing"
    # fine
    CONSUMING = "Consuming"
    COMPLETED = "Completed"
    AUTHENTICATED = "Authenticated"
    TUNNEL_AVAILABLE = "TunnelAvailable"
    SINK_AVAILABLE = "SinkAvailable"
    MINIMUM_REPLICAS_AVAILABLE = "MinimumReplicasAvailable"
    NO_WORKERS_WANTED = "NoWorkersWanted"
    AS_EXPECTED = "AsExpected"
    SETTLED = "Settled"
    CHANNELS_MOVING = "ChannelsMoving"
    SUSPEND_REQUESTED = "SuspendRequested"
    NOT_SUSPENDED = "NotSuspended"
    ALL_CHANNELS_TERMINATED = "AllChannelsTerminated"
    SNAPSHOT_DONE = "SnapshotDone"
    STREAM_OPEN = "StreamOpen"
    NOT_COMPLETED = "NotCompleted"
    UNKNOWN = "NotObserved"


#: Reasons that do not heal without a human (kstatus: Stalled).
STALLED = frozenset(
    {
        Reason.INVALID_SPEC,
        Reason.ACCESS_DENIED,
        Reason.DESTINATION_INCOMPATIBLE,
        Reason.DESTINATION_NOT_EMPTY,
        Reason.DESTINATION_BEHIND_TUNNEL,
        Reason.NAME_CONFLICT,
        Reason.TUNNEL_IN_USE,
        Reason.TUNNEL_NOT_FOUND,
        Reason.TUNNEL_REPLACED,
        Reason.TUNNEL_EXPIRED,
        Reason.SPEC_MISMATCH,
        Reason.CHECKPOINT_UNREADABLE,
        Reason.SNAPSHOT_UNKNOWN,
        Reason.SNAPSHOT_IMPOSSIBLE,
        Reason.SNAPSHOT_FAILED,
    }
)

#: Reasons that are on the way to something and no news to warn of.
PASSING = frozenset(
    {
        Reason.CREATING_DESTINATION,
        Reason.CREATING_TUNNEL,
        Reason.TUNNEL_INITIALISING,
        Reason.WORKERS_UNAVAILABLE,
        Reason.UNKNOWN,
    }
)

#: Reasons after which workers could only fail or do harm: they are taken to 0.
STOPS_WORKERS = frozenset(
    {Reason.TUNNEL_IN_USE, Reason.TUNNEL_NOT_FOUND, Reason.TUNNEL_REPLACED, Reason.TUNNEL_EXPIRED}
)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something is wrong.

    `message` names the field, what was found and what to do. `conditions` are the types it makes False, beside
    Ready; `stalled` whether a human has to act.
    """

    reason: Reason
    message: str
    conditions: tuple[str, ...] = ()

    @property
    def stalled(self) -> bool:
        """Whether it cannot heal without a human."""
        return self.reason in STALLED

    @property
    def stops_workers(self) -> bool:
        """Whether workers have to go."""
        return self.reason in STOPS_WORKERS


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a pass has to say on one condition; None as status is Unknown."""

    status: bool | None
    reason: Reason
    message: str = ""


def build(
    verdicts: Mapping[str, Verdict], previous: Iterable[Mapping[str, Any]], *, generation: int, now: float
) -> list[dict[str, Any]]:
    """The condition list of a status: all types, times kept where the status did not flip."""
    before = {condition.get("type"): condition for condition in previous}
    return [
        _condition(kind, verdicts.get(kind, Verdict(None, Reason.UNKNOWN)), before.get(kind), generation, now)
        for kind in TYPES
    ]


def _condition(
    kind: str, verdict: Verdict, before: Mapping[str, Any] | None, generation: int, now: float
) -> dict[str, Any]:
    status = "Unknown" if verdict.status is None else str(verdict.status)
    kept = before is not None and before.get("status") == status and before.get("lastTransitionTime")
    return {
        "type": kind,
        "status": status,
        "reason": str(verdict.reason),
        "message": verdict.message[:MAX_MESSAGE],
        "observedGeneration": generation,
        "lastTransitionTime": kept or timestamp(now),
    }


def timestamp(seconds: float) -> str:
    """RFC 3339 in UTC with whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class Notice:
    """An Event to be posted."""

    kind: str
    """Normal or Warning."""
    reason: str
    message: str


def notices(previous: Iterable[Mapping[str, Any]], current: Iterable[Mapping[str, Any]]) -> tuple[Notice, ...]:
    """Events for what changed between two condition lists; none when nothing did.

    One per reason: a problem shows in several conditions but is one piece of news.
    """
    before = {condition.get("type"): (condition.get("status"), condition.get("reason")) for condition in previous}
    found: dict[str, Notice] = {}
    for condition in current:
        kind, status, reason = condition["type"], condition["status"], condition["reason"]
        if before.get(kind) == (status, reason):
            continue
        bad = (kind in ("Degraded", "Stalled") and status == "True") or (
            kind in ("CredentialsValid", "SinkReady", "TunnelReady") and status == "False"
        )
        if bad and (reason not in PASSING or kind == "Degraded"):
            found[reason] = Notice("Warning", reason, condition["message"])
        elif kind in ("Ready", "Completed", "Suspended") and status == "True":
            found.setdefault(reason, Notice("Normal", reason, condition["message"] or f"{kind} is now {status}"))
    return tuple(found.values())
