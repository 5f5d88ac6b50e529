"""What the API server tells of a worker pod that does not run: its container, its node, the scheduler. Pure.

Texts of the kubelet are cut down to what stays the same from one try to the next: a pause that grows and the id of a
request would make the status change without end, although nothing has happened.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.diagnosis import shortened
from ots_tunnel_operator.times import parse_time
from ots_tunnel_operator.world.pod import Container, ContainerEnd

#: What containers wait for in any start: no finding.
_USUAL = frozenset({"", "ContainerCreating", "PodInitializing"})
#: The pause before the next start: its text has the seconds, and why the container ended is told by its last end.
CRASH_LOOP = "CrashLoopBackOff"
#: Words for one thing: the kubelet tries, fails, pauses and tries again.
_PULLS = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError"})
PULL = "ImagePullBackOff"
#: The pause before the next pull; kubelets from 1.31 on name the cause behind it.
_PULL_PAUSE = re.compile(r'^Back-off pulling image "[^"]*"(: )?(ErrImagePull: )?')
#: The id of a call to the service, which its errors end with.
_REQUEST = re.compile(r",? request [\w-]+")


def worker_container(item: Mapping[str, Any]) -> Container:
    """The container of a worker's pod, by the pod's document."""
    spec, status = item.get("spec") or {}, item.get("status") or {}
    made = _named(spec.get("containers") or (), names.WORKER_CONTAINER)
    found = _named(status.get("containerStatuses") or (), names.WORKER_CONTAINER)
    state = found.get("state") or {}
    image, word, cause = str(made.get("image") or ""), "", ""
    for waiting in _waiting(status):
        image = _image(spec, waiting["name"]) or image
        word, cause = _word(waiting), _cause(waiting)
        break
    return Container(
        image=image,
        memory_limit=str(((made.get("resources") or {}).get("limits") or {}).get("memory") or ""),
        waiting=word,
        cause=cause,
        started=parse_time((state.get("running") or {}).get("startedAt")),
        end=_end(state, found.get("lastState") or {}),
    )


def unscheduled(conditions: Iterable[Mapping[str, Any]]) -> str:
    """The scheduler's words about a pod that no node takes; empty where one has, or it has not looked yet."""
    for entry in conditions:
        if (entry.get("type"), entry.get("status"), entry.get("reason")) == ("PodScheduled", "False", "Unschedulable"):
            return shortened(str(entry.get("message") or "no reason is given"))
    return ""


def removed(status: Mapping[str, Any]) -> tuple[str, float | None]:
    """Why a pod's node has ended or refused it, and when, Unix seconds; an empty text where it did not."""
    reason = str(status.get("reason") or "")
    if status.get("phase") != "Failed" or not reason:
        return "", None
    changes = (parse_time(entry.get("lastTransitionTime")) for entry in status.get("conditions") or ())
    time = max((change for change in changes if change is not None), default=parse_time(status.get("startTime")))
    return shortened(": ".join(filter(None, (reason, str(status.get("message") or ""))))), time


def why_not_running(container: Container) -> str:
    """Why a container does not run, or how it ended last; empty where nothing is known."""
    end = container.end
    if container.waiting and (end is None or not end.message):
        return shortened(": ".join(filter(None, (container.waiting, container.cause))))
    if end is None or not (end.message or end.code):
        return ""
    return shortened(": ".join(filter(None, (f"{end.reason} with exit code {end.code}", end.message))))


def _waiting(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The containers that wait for something unusual, in the order in which they start."""
    for entry in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        if ((entry.get("state") or {}).get("waiting") or {}).get("reason") not in (None, *_USUAL, CRASH_LOOP):
            yield entry


def _word(entry: Mapping[str, Any]) -> str:
    reason = str(entry["state"]["waiting"]["reason"])
    return PULL if reason in _PULLS else reason


def _cause(entry: Mapping[str, Any]) -> str:
    return shortened(_PULL_PAUSE.sub("", str(entry["state"]["waiting"].get("message") or "")))


def _image(spec: Mapping[str, Any], name: str) -> str:
    made = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    return str(_named(made, name).get("image") or "")


def _end(*states: Mapping[str, Any]) -> ContainerEnd | None:
    """The last end of a container, by its state now and the one before."""
    for state in states:
        ended = state.get("terminated")
        if ended:
            message = _REQUEST.sub("", str(ended.get("message") or "").strip())
            return ContainerEnd(int(ended.get("exitCode") or 0), str(ended.get("reason") or "ended"), message)
    return None


def _named(items: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return next((item for item in items if item.get("name") == name), {})
