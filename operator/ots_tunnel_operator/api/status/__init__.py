"""The status of a TablestoreTunnel (docs/object.md).

An unknown figure is absent, never 0: it is None in the model and is left out when the status is written.
"""

from ots_tunnel_operator.api.status.condition import (
    MAX_CONDITION_MESSAGE,
    Condition,
    ConditionStatus,
    ConditionType,
)
from ots_tunnel_operator.api.status.figures import (
    MAX_SLOWEST,
    MAX_WORKERS,
    BaseStatus,
    ChannelsStatus,
    LagStatus,
    SlowChannel,
    ThroughputStatus,
    WorkerStatus,
)
from ots_tunnel_operator.api.status.object_status import (
    MAX_FILES_PLACE,
    Phase,
    TunnelObjectStatus,
)
from ots_tunnel_operator.api.status.records import (
    MAX_GAPS,
    DestinationStatus,
    LostStatus,
    PossibleGapStatus,
    QueryStatus,
    ReadUntilStatus,
    RefusedStatus,
    ResetStatus,
    SnapshotStatus,
    TunnelStatus,
    VerdictStatus,
)

__all__ = [
    "MAX_CONDITION_MESSAGE",
    "MAX_FILES_PLACE",
    "MAX_GAPS",
    "MAX_SLOWEST",
    "MAX_WORKERS",
    "BaseStatus",
    "ChannelsStatus",
    "Condition",
    "ConditionStatus",
    "ConditionType",
    "DestinationStatus",
    "LagStatus",
    "LostStatus",
    "Phase",
    "PossibleGapStatus",
    "QueryStatus",
    "ReadUntilStatus",
    "RefusedStatus",
    "ResetStatus",
    "SlowChannel",
    "SnapshotStatus",
    "ThroughputStatus",
    "TunnelObjectStatus",
    "TunnelStatus",
    "VerdictStatus",
    "WorkerStatus",
]
