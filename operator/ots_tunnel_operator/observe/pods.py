"""From pods of the API server to the values that decisions need. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ots_tunnel.errors import PossibleGap
from ots_tunnel_operator.diagnosis import shortened
from ots_tunnel_operator.names import ANNOTATION_DELETION_COST, WORKER_CONTAINER
from ots_tunnel_operator.observe.containers import removed, unscheduled, why_not_running, worker_container
from ots_tunnel_operator.observe.mounting import mounting
from ots_tunnel_operator.times import latest_time, parse_time
from ots_tunnel_operator.world.pod import Origin, Pod, SparkPod
from ots_tunnel_operator.world.report import ReportedGap

#: Label by which Spark tells driver and executors apart.
SPARK_ROLE = "spark-role"
#: Label by which the controller of a Deployment tells the pods of one template from those of another.
TEMPLATE_HASH = "pod-template-hash"


def worker_pod(item: Mapping[str, Any]) -> Pod:
    """A worker pod, without its report."""
    metadata, status = item["metadata"], item.get("status") or {}
    container = _container(status.get("containerStatuses") or (), WORKER_CONTAINER)
    conditions = status.get("conditions") or ()
    ready = any(entry.get("type") == "Ready" and entry.get("status") == "True" for entry in conditions)
    deleting = bool(metadata.get("deletionTimestamp"))
    found, (words, removed_time) = worker_container(item), removed(status)
    return Pod(
        name=metadata["name"],
        phase=status.get("phase") or "Pending",
        ready=ready and not deleting,
        deleting=deleting,
        ip=status.get("podIP") or "",
        restarts=int(container.get("restartCount") or 0),
        message=why_not_running(found) or words or _why_not_running({}, conditions),
        created=parse_time(metadata.get("creationTimestamp")) or 0.0,
        gaps=_gaps(container),
        deletion_cost=str((metadata.get("annotations") or {}).get(ANNOTATION_DELETION_COST) or ""),
        container=found,
        template=str((metadata.get("labels") or {}).get(TEMPLATE_HASH) or ""),
        origin=Origin.of(item),
        unscheduled=unscheduled(conditions),
        removed=words,
        removed_time=removed_time,
        mounting=mounting(item),
    )


def _gaps(container: Mapping[str, Any]) -> tuple[ReportedGap, ...]:
    """The possible gap that a worker ended with, now or before its last restart: its first exit tells already."""
    found = []
    for state in (container.get("state") or {}, container.get("lastState") or {}):
        error = PossibleGap.read((state.get("terminated") or {}).get("message") or "")
        if error is not None:
            found.append(ReportedGap(error.channel_id, error.start, error.end))
    return tuple(found)


def _container(statuses: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return next((entry for entry in statuses if entry.get("name") == name), {})


def _why_not_running(container: Mapping[str, Any], conditions: Sequence[Mapping[str, Any]]) -> str:
    """Termination message, waiting reason or scheduling problem of a pod; empty while it runs."""
    state = container.get("state") or {}
    last = (container.get("lastState") or {}).get("terminated") or state.get("terminated") or {}
    waiting = state.get("waiting") or {}
    if last.get("message"):
        return shortened(f"{last.get('reason', 'ended')} with exit code {last.get('exitCode')}: {last['message']}")
    if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
        return shortened(f"{waiting['reason']}: {waiting.get('message', '')}")
    for entry in conditions:
        if entry.get("type") == "PodScheduled" and entry.get("status") == "False":
            return shortened(f"{entry.get('reason', '')}: {entry.get('message', '')}")
    return ""


def spark_pod(item: Mapping[str, Any]) -> SparkPod:
    """A driver or executor pod."""
    status = item.get("status") or {}
    containers = status.get("containerStatuses") or ()
    states = [(entry.get("state") or {}).get("terminated") for entry in containers]
    terminated = bool(states) and all(state is not None for state in states)
    # a container whose node was lost may be shown as terminated without a time
    ends = [latest_time((state or {}).get("finishedAt")) for state in states]
    known = [end for end in ends if end is not None]
    ended = max(known) if terminated and len(known) == len(ends) else None
    metadata = item["metadata"]
    is_executor = (metadata.get("labels") or {}).get(SPARK_ROLE) == "executor"
    message = next(filter(None, (_why_not_running(entry, ()) for entry in containers)), "")
    message = message or _why_not_running({}, status.get("conditions") or ())
    phase, started = status.get("phase") or "Unknown", parse_time(status.get("startTime"))
    created = parse_time(metadata.get("creationTimestamp")) or 0.0
    return SparkPod(metadata["name"], phase, terminated, ended, is_executor, message, started, created)
