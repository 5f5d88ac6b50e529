"""The status of a worker's pod, as a kubelet writes it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ots_tunnel_operator import names

Document = dict[str, Any]

_AT_ONCE = ("PodScheduled", "Initialized")
_ONCE_READY = ("ContainersReady", "Ready")


def started(address: str, pod: Mapping[str, Any]) -> Document:
    """The container has been started, and is not ready yet; `pod` is as it was."""
    former = _container(pod)
    restarts = former["restartCount"] + 1 if former else 0
    container = _named(restarts) | {"ready": False, "started": True, "state": {"running": {"startedAt": _now()}}}
    container["lastState"] = former.get("lastState") or {}
    place = {"podIP": address, "podIPs": [{"ip": address}], "startTime": _now()}
    return _status(container) | place


def ready(pod: Mapping[str, Any]) -> Document:
    """The container that was started is ready."""
    return _status(_container(pod) | {"ready": True})


def ended(code: int, words: str, pod: Mapping[str, Any]) -> Document:
    """The container has ended with a termination message, and waits until it is started again."""
    end = {"exitCode": code, "reason": "Error" if code else "Completed", "message": words, "finishedAt": _now()}
    pause = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
    change = {"ready": False, "started": False, "state": pause, "lastState": {"terminated": end}}
    return _status(_container(pod) | change)


def _status(container: Document) -> Document:
    now = _now()
    states = dict.fromkeys(_AT_ONCE, "True") | dict.fromkeys(_ONCE_READY, str(container["ready"]))
    conditions = [{"type": kind, "status": status, "lastTransitionTime": now} for kind, status in states.items()]
    return {"phase": "Running", "conditions": conditions, "containerStatuses": [container]}


def _container(pod: Mapping[str, Any]) -> Document:
    """The status of the only container; empty before its first start."""
    found: Document = ((pod.get("status") or {}).get("containerStatuses") or [{}])[0]
    return found


def _named(restarts: int) -> Document:
    return {"name": names.WORKER_CONTAINER, "image": "worker:test", "imageID": "", "restartCount": restarts}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
