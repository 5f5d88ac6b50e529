"""The catalogue of reasons, and problems, which have one of them."""

from __future__ import annotations

import enum
from dataclasses import dataclass


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
