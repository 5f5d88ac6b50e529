"""The status of a pod as the kubelet writes it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

CONTAINER = "worker"


@dataclass(frozen=True, slots=True)
class Ended:
    """The last end of a container; `reason` is Completed, Error or OOMKilled."""

    code: int
    reason: str
    message: str
    time: float

    @property
    def state(self) -> dict[str, Any]:
        """The container's state `terminated`."""
        found: dict[str, Any] = {"exitCode": self.code, "reason": self.reason, "finishedAt": _text(self.time)}
        return found | ({"message": self.message} if self.message else {})


@dataclass(frozen=True, slots=True)
class PodView:
    """What the kubelet knows of a pod; times are Unix seconds."""

    phase: str = "Pending"
    ip: str = ""
    ready: bool = False
    ready_changed: float = 0.0
    restarts: int = 0
    waiting: str = "ContainerCreating"
    """Why the container waits; empty while it runs."""
    words: str = ""
    """What the kubelet says about that."""
    started: float = 0.0
    """Since when it runs, or ran."""
    last: Ended | None = None


def status_of(view: PodView) -> dict[str, Any]:
    """The status of a pod with one container."""
    container: dict[str, Any] = {"name": CONTAINER, "restartCount": view.restarts, "ready": view.ready}
    words = {"message": view.words} if view.words else {}
    running = {"running": {"startedAt": _text(view.started)}}
    container["state"] = {"waiting": {"reason": view.waiting} | words} if view.waiting else running
    if view.last is not None:
        container["lastState"] = {"terminated": view.last.state}
    ready: Mapping[str, Any] = {
        "type": "Ready",
        "status": str(view.ready),
        "lastTransitionTime": _text(view.ready_changed),
    }
    status: dict[str, Any] = {"phase": view.phase, "conditions": [ready], "containerStatuses": [container]}
    return status | ({"podIP": view.ip} if view.ip else {})


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
