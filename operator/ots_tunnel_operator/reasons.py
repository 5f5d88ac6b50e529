"""The reasons of conditions, and problems, which have one of them.

The values are an API: `kubectl wait`, alerts and docs/operations.md use them.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self


class Reason(enum.StrEnum):
    """Why a condition has its status: value and description."""

    description: str

    def __new__(cls, value: str, description: str) -> Self:
        """Make a member whose value is its first word."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.description = description
        return member

    # preflight
    INVALID_SPEC = "InvalidSpec", "The spec cannot be carried out; the message names the field."
    SECRET_NOT_FOUND = "SecretNotFound", "A Secret that the spec names does not exist."
    KEY_MISSING = "KeyMissing", "A Secret lacks a key that is read from it."
    AUTH_FAILED = "AuthFailed", "The service does not accept the AccessKey."
    ACCESS_DENIED = "AccessDenied", "The AccessKey has no permission for the instance."
    ENDPOINT_UNREACHABLE = "EndpointUnreachable", "No Tablestore answers at the endpoint."
    SERVICE_UNAVAILABLE = "ServiceUnavailable", "The service is temporarily unavailable; tried again."
    INSTANCE_BUSY = (
        "InstanceBusy",
        "Too many objects, or an instance that answers slowly, for a look in time; tried again.",
    )
    SERVICE_REFUSED = "ServiceRefused", "The service refused a call; the message has its answer."
    TABLE_NOT_FOUND = "TableNotFound", "The source table does not exist."
    DESTINATION_NOT_FOUND = "DestinationNotFound", "The destination does not exist and createTable is Never."
    DESTINATION_INCOMPATIBLE = (
        "DestinationIncompatible",
        "The destination's keys, versions, TTL or deviation rule out an equal copy.",
    )
    DESTINATION_NOT_EMPTY = "DestinationNotEmpty", "The destination has rows and onExisting is Refuse."
    DESTINATION_CHANGED = "DestinationChanged", "The sink is no longer the table that this object has copied to."
    COPY_CIRCLE = "CopyCircle", "Elder objects copy the destination's changes back to the source."
    DESTINATION_BEHIND_TUNNEL = (
        "DestinationBehindTunnel",
        "Changes or existing rows were copied before, but the destination is missing or empty.",
    )
    NAME_CONFLICT = "NameConflict", "A child's name is taken by an object that this object does not own."
    POD_TEMPLATE_REFUSED = "PodTemplateRefused", "The API server refuses the template of the workers' pods."
    API_SERVER_REFUSED = "ApiServerRefused", "The API server refused a call of the operator; tried again."
    SPEC_UNREADABLE = "SpecUnreadable", "This release cannot read the object: the CRD is of another release."
    CRD_OUTDATED = "CrdOutdated", "The CRD is older than the operator: the API server drops what has to be recorded."
    INTERNAL_ERROR = "InternalError", "An unexpected error of the operator; its log has the traceback."
    # tunnel
    TUNNEL_IN_USE = "TunnelInUse", "An elder object consumes the same tunnel."
    TUNNEL_NOT_FOUND = "TunnelNotFound", "The tunnel does not exist, or no longer exists."
    TUNNEL_REPLACED = "TunnelReplaced", "Another tunnel has the name of the one that this object used."
    TUNNEL_EXPIRED = "TunnelExpired", "The tunnel has expired; undelivered changes are lost."
    NO_STREAM = "NoStream", "The stream of the source table is switched off, or gone with it: nothing can be read."
    STREAM_REPLACED = "StreamReplaced", "The stream was switched off and on again; changes of in between are lost."
    LEASE_TABLE_IN_USE = "LeaseTableInUse", "An elder object shares the shards of the table by the same leases."
    LEASE_TABLE_UNUSABLE = (
        "LeaseTableUnusable",
        "Something else uses the table that is named for leases, or a setting of it does not fit.",
    )
    POSSIBLE_GAP = "PossibleGap", "Changes may be missing, because they were not read within the stream's retention."
    SINK_REJECTED = (
        "SinkRejected",
        "The sink refuses records for good, so that a restart of the workers cannot help.",
    )
    SPEC_MISMATCH = "SpecMismatch", "A tunnel of this name exists with another type, start or end."
    CHECKPOINT_UNREADABLE = (
        "CheckpointUnreadable",
        "The service does not show checkpoints to a reader, so progress is unknown.",
    )
    SNAPSHOT_UNKNOWN = "SnapshotUnknown", "The tunnel was consumed before, but no completed snapshot of it is recorded."
    SNAPSHOT_IMPOSSIBLE = "SnapshotImpossible", "An existing tunnel that was consumed before cannot get a snapshot."
    SNAPSHOT_FAILED = "SnapshotFailed", "The SparkApplication ended with splits missing."
    SNAPSHOT_RETRYING = "SnapshotRetrying", "An attempt of the SparkApplication failed; the next one follows."
    QUERY_FAILED = "QueryFailed", "The query of Spark that follows the tunnel has ended, and no attempt repairs that."
    QUERY_RETRYING = "QueryRetrying", "An attempt of the query of Spark failed; the next one follows."
    SPARK_OPERATOR_MISSING = "SparkOperatorMissing", "No Spark operator picks up the SparkApplication."
    TUNNEL_INITIALISING = "TunnelInitialising", "The service is preparing the channels; a problem after 300 s."
    # degraded
    FOREIGN_CLIENT = "ForeignClient", "A client that is no worker of this object consumes the tunnel."
    RETENTION_AT_RISK = "RetentionAtRisk", "Unconsumed changes use much of the stream's retention."
    LAG_HIGH = "LagHigh", "The slowest channel is further behind than lagDegradedSeconds."
    WORKERS_UNAVAILABLE = "WorkersUnavailable", "Fewer workers are ready than wanted."
    WORKERS_FAILING = "WorkersFailing", "A worker's container ends, and the next start may help."
    WORKER_MISCONFIGURED = "WorkerMisconfigured", "A worker cannot use its document, an option or a file."
    SINK_DENIED = "SinkDenied", "The sink refuses a worker: its credentials, its rights, or a place that is missing."
    IMAGE_PULL_FAILED = "ImagePullFailed", "The image of a worker's pod cannot be fetched."
    CONTAINER_CONFIG_ERROR = "ContainerConfigError", "The container of a worker's pod cannot be made or started."
    PODS_REFUSED = "PodsRefused", "The API server refuses the workers' pods, such as by a quota or a policy."
    UNSCHEDULABLE = "Unschedulable", "No node takes a worker's pod."
    OOM_KILLED = "OOMKilled", "A worker needed more memory than its container may have, and was killed."
    EVICTED = "Evicted", "A node has ended or refused a worker's pod; another one replaces it."
    WORKERS_UNREACHABLE = "WorkersUnreachable", "A ready worker does not answer the operator, so its lag is unknown."
    NOT_PROGRESSING = "NotProgressing", "Nothing moves on a channel that is not caught up, or in a copy by Spark."
    CHANNEL_ERRORS = "ChannelErrors", "A worker reports an error of a channel."
    SINK_ERRORS = "SinkErrors", "Writes to the sink have failed for a minute, and are tried again."
    RECORDS_REFUSED = (
        "RecordsRefused",
        "The sink refused records for good, and delivery.onPermanentError left them out.",
    )
    POD_MONITOR_FAILED = (
        "PodMonitorFailed",
        "The PodMonitor that monitoring.podMonitor asks for cannot be made, or not be removed; records flow on.",
    )
    # waiting
    CREATING_DESTINATION = "CreatingDestination", "The destination is being created."
    CREATING_TUNNEL = "CreatingTunnel", "The tunnel is being created, adopted or read for the first time."
    SNAPSHOT_RUNNING = "SnapshotRunning", "Spark copies existing rows."
    BASE_DATA_RUNNING = "BaseDataRunning", "Workers copy existing rows."
    STARTING_WORKERS = "StartingWorkers", "Workers are starting."
    STARTING_QUERY = "StartingQuery", "The query of Spark that follows the tunnel is starting."
    SCALING = "Scaling", "The number of workers changes."
    ROLLING_WORKERS = "RollingWorkers", "Workers are being replaced by ones with the current configuration."
    ROLLOUT_WAITING = "RolloutWaiting", "The workers run as before until it is their turn to be those of this release."
    ROLLOUT_STUCK = "RolloutStuck", "A new worker does not become ready, so the former ones keep running."
    SUSPENDING = "Suspending", "spec.suspend is true and consumers are still draining."
    RESETTING = "Resetting", "A reset is being carried out: the object gets another tunnel, or a new copy by Spark."
    DELETING = "Deleting", "The object is being deleted."
    PREDECESSOR_GOING = "PredecessorGoing", "A child of a deleted object of the same name still exists."
    # autoscaling
    AT_MAX = "AtMax", "The load asks for more workers than maxReplicas."
    CHANNEL_BOUND = "ChannelBound", "The load asks for more workers than there are channels."
    INEFFECTIVE = "Ineffective", "A scale-up did not help and was taken back; the next one waits."
    REPLICAS_MANAGED = (
        "ReplicasManagedByAutoscaler",
        "Another client writes the number of workers that the operator decides, or takes from the object.",
    )
    PEEK_FAILED = "PeekFailed", "The operator cannot look for changes itself, so that one worker stays."
    METRICS_UNAVAILABLE = "MetricsUnavailable", "The lag is not known, so that the number of workers stays."
    SCALING_STOPPED = (
        "ScalingStopped",
        "The workers are stopped or not started yet, so that their number is not computed.",
    )
    SCALING_DISABLED = "ScalingDisabled", "spec.autoscaling.mode is Disabled."
    VALID_METRIC_FOUND = "ValidMetricFound", "The number of workers is computed from figures that are known."
    # as wanted
    CONSUMING = "Consuming", "Every channel has a worker."
    ASLEEP = "Asleep", "No worker runs, because every change was read; the operator looks for new ones."
    COMPLETED = "Completed", "Everything that the tunnel had to deliver is delivered."
    COMPLETED_WITH_LOSS = "CompletedWithLoss", "Everything was read to its end, but something is or may be missing."
    AUTHENTICATED = "Authenticated", "The service accepts the credentials."
    TUNNEL_AVAILABLE = "TunnelAvailable", "The tunnel is ready, or none is needed."
    SINK_AVAILABLE = "SinkAvailable", "The sink is ready."
    MINIMUM_REPLICAS_AVAILABLE = "MinimumReplicasAvailable", "As many workers are ready as wanted."
    NO_WORKERS_WANTED = "NoWorkersWanted", "No worker is wanted at present."
    AS_EXPECTED = "AsExpected", "There is nothing to report."
    SETTLED = "Settled", "No channel is moving between workers."
    CHANNELS_MOVING = "ChannelsMoving", "Channels are moving between workers."
    CHANNELS_UNOWNED = "ChannelsUnowned", "Channels wait for a worker, and none is ready."
    SUSPEND_REQUESTED = "SuspendRequested", "spec.suspend is true and nothing is consumed."
    NOT_SUSPENDED = "NotSuspended", "spec.suspend is false."
    ALL_CHANNELS_TERMINATED = "AllChannelsTerminated", "Every channel has been read to its end."
    END_TIME_REACHED = "EndTimeReached", "Every change up to the end time is delivered; channels may stay open."
    SNAPSHOT_DONE = "SnapshotDone", "Every split is copied."
    STREAM_OPEN = "StreamOpen", "The stream has no end yet."
    NOT_COMPLETED = "NotCompleted", "Existing rows are still being copied."
    UNKNOWN = "NotObserved", "The operator could not observe it."


#: Value -> description, in the order of the enum.
DESCRIPTIONS: Mapping[str, str] = {reason.value: reason.description for reason in Reason}

#: The page with a paragraph for each reason, as a path in the repository.
PAGE = "docs/operations.md"


def anchor(reason: Reason) -> str:
    """Place of the paragraph about a reason: what it means, where to look, what to do."""
    return f"{PAGE}#{reason.lower()}"


#: Reasons that need a human: retrying does not help (kstatus: Stalled).
STALLED = frozenset(
    {
        Reason.INVALID_SPEC,
        Reason.SPEC_UNREADABLE,
        Reason.CRD_OUTDATED,
        Reason.ACCESS_DENIED,
        Reason.DESTINATION_INCOMPATIBLE,
        Reason.DESTINATION_NOT_EMPTY,
        Reason.COPY_CIRCLE,
        Reason.DESTINATION_BEHIND_TUNNEL,
        Reason.DESTINATION_CHANGED,
        Reason.NAME_CONFLICT,
        Reason.TUNNEL_IN_USE,
        Reason.TUNNEL_NOT_FOUND,
        Reason.TUNNEL_REPLACED,
        Reason.TUNNEL_EXPIRED,
        Reason.NO_STREAM,
        Reason.STREAM_REPLACED,
        Reason.LEASE_TABLE_IN_USE,
        Reason.LEASE_TABLE_UNUSABLE,
        Reason.POSSIBLE_GAP,
        Reason.SINK_REJECTED,
        Reason.POD_TEMPLATE_REFUSED,
        Reason.SPEC_MISMATCH,
        Reason.CHECKPOINT_UNREADABLE,
        Reason.SNAPSHOT_UNKNOWN,
        Reason.SNAPSHOT_IMPOSSIBLE,
        Reason.SNAPSHOT_FAILED,
        Reason.QUERY_FAILED,
    }
)

#: Reasons with which nothing was observed: once something was, what they hide is Unknown.
UNOBSERVED = frozenset({Reason.ENDPOINT_UNREACHABLE, Reason.SERVICE_UNAVAILABLE, Reason.INSTANCE_BUSY})

#: Reasons of a passing state, which deserve no Warning event.
PASSING = frozenset(
    {
        Reason.CREATING_DESTINATION,
        Reason.CREATING_TUNNEL,
        Reason.TUNNEL_INITIALISING,
        Reason.WORKERS_UNAVAILABLE,
        Reason.UNKNOWN,
    }
)

#: Reasons of Degraded that leave an object Ready: records flow as they should.
BESIDE_THE_FLOW = frozenset({Reason.RECORDS_REFUSED, Reason.POD_MONITOR_FAILED})

#: Reasons of ScalingLimited that deserve a Warning event.
SCALING_WARNINGS = frozenset({Reason.INEFFECTIVE, Reason.REPLICAS_MANAGED})

#: Reasons with which workers could only fail or do harm: they are scaled to 0.
STOPS_WORKERS = frozenset(
    {
        Reason.TUNNEL_IN_USE,
        Reason.TUNNEL_NOT_FOUND,
        Reason.TUNNEL_REPLACED,
        Reason.TUNNEL_EXPIRED,
        Reason.NO_STREAM,
        Reason.STREAM_REPLACED,
        Reason.LEASE_TABLE_IN_USE,
        Reason.COPY_CIRCLE,
        Reason.DESTINATION_BEHIND_TUNNEL,
        Reason.DESTINATION_CHANGED,
        Reason.DESTINATION_NOT_EMPTY,
        Reason.SINK_REJECTED,
    }
)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that prevents or degrades the work.

    `message` names the field, the finding and what to do. `conditions` are the condition types that it makes False,
    in addition to Ready. `stops` says that workers have to stop, although not every problem of this reason needs that.
    `attempt` is that of a worker's finding (`assess.worker_pods.attempt`): it stands until the next one may differ.
    """

    reason: Reason
    message: str
    conditions: tuple[str, ...] = ()
    stops: bool = False
    attempt: str = ""

    @property
    def stalled(self) -> bool:
        """Whether a human has to act."""
        return self.reason in STALLED

    @property
    def stops_workers(self) -> bool:
        """Whether workers have to be scaled to 0."""
        return self.stops or self.reason in STOPS_WORKERS

    @property
    def leaves_workers(self) -> bool:
        """Whether workers that run keep their settings and number, because the spec would give them wrong ones."""
        return self.reason is Reason.INVALID_SPEC
