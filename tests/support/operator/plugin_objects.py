"""Objects as the API server has them, in the states that the plugin tells apart, and reports of their workers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, get_args

from ots_tunnel_operator import names
from ots_tunnel_operator.api.status import ConditionType
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.report import Report, report_of
from tests.support.operator.objects import changed, tunnel_object

#: 2026-11-20 08:15:30 UTC, the time at which every test looks.
NOW = 1_795_162_530.0
UID = "1c6f4d32-0b53-4a0e-9c7b-6f0f5f1f6a11"
#: In the form of the service: a UUID and microseconds.
CHANNELS = tuple(
    f"{number:08x}-05d0-49b9-b440-0242772808b1_1554348641329421" for number in range(0x4873AE54, 0x4873AE59)
)

_HEALTHY = {
    "Ready": ("True", "Consuming", "every channel has a worker"),
    "CredentialsValid": ("True", "Authenticated", ""),
    "SinkReady": ("True", "SinkAvailable", ""),
    "TunnelReady": ("True", "TunnelAvailable", "stage ProcessStream"),
    "WorkersAvailable": ("True", "MinimumReplicasAvailable", "3 workers are ready"),
    "Rebalancing": ("False", "Settled", ""),
    "Suspended": ("False", "NotSuspended", ""),
    "Completed": ("False", "StreamOpen", ""),
}


def conditions(since: str = "2026-11-20T05:15:30Z", **values: tuple[str, str, str]) -> list[dict[str, Any]]:
    """Every condition: those of an object that works, but for `type=(status, reason, message)`."""
    found = _HEALTHY | values
    return [
        {
            "type": kind,
            "status": found.get(kind, ("False", "AsExpected", ""))[0],
            "reason": found.get(kind, ("False", "AsExpected", ""))[1],
            "message": found.get(kind, ("False", "AsExpected", ""))[2],
            "lastTransitionTime": "2026-11-20T08:10:30Z" if kind in values else since,
        }
        for kind in get_args(ConditionType)
    ]


def body(name: str = "orders-copy", **changes: Any) -> dict[str, Any]:
    """An object that works, as the API server has it; changes of the spec as of `tunnel_object`."""
    defaults: dict[str, Any] = {
        "source__endpoint": "https://shop.cn-hangzhou.ots.aliyuncs.com",
        "source__instance": "shop",
        "source__table": "orders",
        "source__tunnel__name": "orders-copy",
        "sink__tablestore__instance": "shop-dr",
        "sink__tablestore__table": "orders",
        "monitoring": {"lagDegradedSeconds": 900, "retentionWarningPercent": 50},
        "replicas": 3,
    }
    document = tunnel_object(name, **defaults)
    document["metadata"] |= {
        "namespace": "shop",
        "uid": UID,
        "generation": 7,
        "creationTimestamp": "2026-11-01T08:15:30Z",
        "annotations": {"ots-tunnel.dev/operator": "ots-tunnel-system/ots-tunnel-operator"},
    }
    document["status"] = status()
    return changed(document, **changes)


def status(**changes: Any) -> dict[str, Any]:
    """The status of an object that works."""
    workers = [
        {"name": f"orders-copy-7d4f-{end}", "clientId": end, "channels": 2 - number // 2, "lagSeconds": lag}
        | {"busyPercent": busy, "ready": True}
        for number, (end, lag, busy) in enumerate((("aaaaa", 12, 60), ("bbbbb", 0, 20), ("ccccc", 3, 30)))
    ]
    found: dict[str, Any] = {
        "observedGeneration": 7,
        "observedTime": "2026-11-20T08:15:22Z",
        "phase": "Streaming",
        "replicas": 3,
        "readyReplicas": 3,
        "tunnel": {
            "id": UID,
            "type": "BaseAndStream",
            "stage": "ProcessStream",
            "createdByOperator": True,
            "createdTime": "2026-11-01T08:16:00Z",
            "streamRetentionSeconds": 604_800,
        },
        "destination": {
            "instance": "shop-dr",
            "table": "orders",
            "createdByOperator": True,
            "ensuredTime": "2026-11-01T08:15:45Z",
        },
        "channels": {"total": 9, "base": 4, "stream": 5, "open": 5, "closing": 0, "terminated": 4, "unowned": 0}
        | {"minPerWorker": 1, "maxPerWorker": 2},
        "base": {"percent": 100, "rows": 1_893_345, "done": 4, "total": 4},
        "lag": {
            "seconds": 12,
            "consumedUpTo": "2026-11-20T08:15:18Z",
            "caughtUp": False,
            "retentionUsedPercent": 0,
            "slowest": [
                {"id": CHANNELS[0], "type": "Stream", "worker": "orders-copy-7d4f-aaaaa", "seconds": 12},
                {"id": CHANNELS[4], "type": "Stream", "worker": "orders-copy-7d4f-ccccc", "seconds": 3},
            ],
        },
        "throughput": {"rowsPerSecond": 5300, "rowsTotal": 1_900_000_000},
        "workers": workers,
        "conditions": conditions(),
    }
    return found | changes


def healthy() -> Ott:
    """It works."""
    return Ott(body())


def by_shards() -> Ott:
    """It reads a stream by leases, and its slowest shard is 12 s behind."""
    found = body(source__tunnel=None, source__stream={"leaseTable": "orders_leases"})
    tunnel = {"id": "orders_17", "type": "Stream", "leaseTable": "orders_leases", "createdByOperator": False}
    channels = {"total": 5, "base": 0, "stream": 5, "open": 5, "closing": 0, "terminated": 0, "unowned": 0}
    of_shards = conditions(
        Ready=("True", "Consuming", "every shard has a worker"),
        TunnelReady=("True", "TunnelAvailable", "no tunnel: the workers share the shards of the stream"),
    )
    found["status"] = status(tunnel=tunnel, base=None, channels=channels, conditions=of_shards)
    return Ott(found)


def late() -> Ott:
    """Its lag is high, a rollout is under way, and a channel has no worker."""
    found = body(monitoring={"lagDegradedSeconds": 60, "retentionWarningPercent": 50})
    message = "the slowest channel is more than spec.monitoring.lagDegradedSeconds 60 behind: add workers"
    found["status"] = status(
        lag=found["status"]["lag"] | {"seconds": 500, "retentionUsedPercent": 61},
        channels=found["status"]["channels"] | {"open": 4, "unowned": 1},
        readyReplicas=2,
        conditions=conditions(
            Ready=("False", "LagHigh", message),
            Degraded=("True", "LagHigh", message),
            Progressing=("True", "RollingWorkers", "rolling out 1 of 3"),
            Rebalancing=("True", "ChannelsMoving", "channels are moving to another worker"),
        ),
    )
    return Ott(found)


def expired() -> Ott:
    """Its tunnel has expired: it waits for a person."""
    found = body()
    value = ("spec.source.tunnel.name 'orders-copy': the tunnel has expired, changes it had not delivered are lost",)
    found["status"] = status(
        phase="Failed",
        replicas=0,
        readyReplicas=0,
        workers=[],
        lag={"retentionUsedPercent": 100},
        throughput={},
        channels=None,
        conditions=conditions(
            Ready=("False", "TunnelExpired", *value),
            Degraded=("True", "TunnelExpired", *value),
            Stalled=("True", "TunnelExpired", *value),
            TunnelReady=("False", "TunnelExpired", *value),
            WorkersAvailable=("True", "NoWorkersWanted", "no worker is wanted now"),
        ),
    )
    return Ott(found)


def refused() -> Ott:
    """Its sink has refused a record for good, and its workers are stopped."""
    found = body()
    value = (
        "SinkRejected",
        "pod orders-copy-7d4f-x2x9q: its worker ended with exit code 4 (SinkRejected: too large)",
    )
    found["status"] = status(
        phase="Failed",
        replicas=0,
        readyReplicas=0,
        workers=[],
        verdict={"reason": value[0], "message": value[1], "attempt": "c4531aa0266d1e3f"},
        conditions=conditions(Ready=("False", *value), Degraded=("True", *value), Stalled=("True", *value)),
    )
    return Ott(found)


def in_trouble(reason: str, message: str) -> Ott:
    """One of its pods is in trouble; the others run."""
    found = body()
    found["status"] = status(
        readyReplicas=2, conditions=conditions(Ready=("False", reason, message), Degraded=("True", reason, message))
    )
    return Ott(found)


def unreachable() -> Ott:
    """Nobody can look: the figures are old."""
    found = body()
    reason = "EndpointUnreachable"
    message = "spec.source.endpoint: no answer: correct the endpoint, or let operator and workers reach it"
    values = {kind: ("Unknown", reason, "the last pass could not observe it") for kind in get_args(ConditionType)}
    values["Ready"] = ("Unknown", reason, message)
    values["Degraded"] = ("True", reason, message)
    found["status"] = status(observedTime="2026-11-20T07:15:30Z", conditions=conditions(**values))
    return Ott(found)


def copying() -> Ott:
    """Existing rows are copied."""
    found = body()
    base = {"percent": 45, "rows": 850_000, "done": 9, "total": 20, "etaSeconds": 720}
    running = ("False", "BaseDataRunning", "existing rows are being copied")
    found["status"] = status(
        phase="BaseData",
        base=base,
        lag={"retentionUsedPercent": 3},
        channels={"total": 20, "base": 20, "stream": 0, "open": 11, "closing": 0, "terminated": 9, "unowned": 0},
        conditions=conditions(Ready=running, Completed=("False", "StreamOpen", "")),
    )
    return Ott(found)


def paused() -> Ott:
    """It was paused by a person."""
    found = body(suspend=True)
    asked = ("True", "SuspendRequested", "spec.suspend is true")
    found["status"] = status(
        phase="Suspended",
        replicas=0,
        readyReplicas=0,
        workers=[],
        throughput={},
        conditions=conditions(
            Ready=("False", "SuspendRequested", "spec.suspend is true: nothing is consumed"),
            Suspended=asked,
            WorkersAvailable=("True", "NoWorkersWanted", "no worker is wanted now"),
        ),
    )
    return Ott(found)


def unseen() -> Ott:
    """No operator has looked at it."""
    found = body()
    del found["status"]
    del found["metadata"]["annotations"]
    return Ott(found)


def deleting() -> Ott:
    """It is being deleted."""
    found = body(deletionPolicy="Delete")
    found["metadata"] |= {"deletionTimestamp": "2026-11-20T08:13:30Z", "finalizers": [names.FINALIZER]}
    waiting = ("False", "Deleting", "2 workers have not ended yet")
    going = conditions(Ready=waiting, Progressing=("True", *waiting[1:]))
    found["status"] = {"tunnel": found["status"]["tunnel"], "conditions": going}
    return Ott(found)


#: State -> an object in it.
STATES: dict[str, Callable[[], Ott]] = {
    "healthy": healthy,
    "late": late,
    "expired": expired,
    "unreachable": unreachable,
    "copying": copying,
    "paused": paused,
    "unseen": unseen,
    "deleting": deleting,
}


def report_document(*channels: tuple[int, int | None, bool], **changes: Any) -> dict[str, Any]:
    """A worker's answer: for each channel its number, lag and whether it is caught up."""
    listed = [
        {"id": CHANNELS[number], "type": "Stream", "state": "OPEN", "rowsTotal": 1000 * (number + 1)}
        | {"caughtUp": caught_up, "lagSeconds": lag, "error": None}
        for number, lag, caught_up in channels
    ]
    return {"rowsPerSecond": 2650.4, "busyPercent": 61, "error": None, "channels": listed} | copy.deepcopy(changes)


def reports() -> list[Report]:
    """Two workers that answer, and one that does not."""
    late_one = report_document((0, 500, False), (1, 12, False))
    late_one["channels"][0] |= {"state": "CLOSING", "error": "OTSServerBusy: try again"}
    return [
        report_of("orders-copy-7d4f-aaaaa", late_one),
        report_of("orders-copy-7d4f-bbbbb", report_document((2, 4000, True), (3, None, False), rowsPerSecond=None)),
        Report("orders-copy-7d4f-ccccc", failure='(Forbidden): pods "the pod" is forbidden'),
    ]
