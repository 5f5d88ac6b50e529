"""What an object waits for, in sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.serving import Serving
from ots_tunnel_operator.plugin.text.spans import words
from ots_tunnel_operator.reasons import Reason


def waits_sentences(ott: Ott, now: float, serving: Serving | None) -> list[str]:
    """What it waits for; a single sentence where that is nothing."""
    found = list(_waits(ott, now, serving))
    return found or ["Nothing."]


def _waits(ott: Ott, now: float, serving: Serving | None) -> Iterator[str]:
    yield from _operator(ott, now, serving)
    yield from _work(ott, now)
    yield from _person(ott)


def _operator(ott: Ott, now: float, serving: Serving | None) -> Iterator[str]:
    """Whether an operator has to look at it first."""
    if serving is not None and serving.is_gone(now):
        yield _gone(serving, now)
    if not ott.conditions and ott.lease is None:
        yield "An operator: none has claimed it."
    if ott.conditions and not ott.is_current and ott.deleted is None:
        yield (
            f"The operator: the spec is of generation {ott.body['metadata'].get('generation')}, "
            f"and the status describes {ott.status.get('observedGeneration', 'none')}."
        )


def _work(ott: Ott, now: float) -> Iterator[str]:
    """What is on its way by itself."""
    progressing, moving, ready = (ott.condition(kind) for kind in ("Progressing", "Rebalancing", "Ready"))
    if progressing.is_true:
        since = "" if progressing.since is None else f" (for {words(now - progressing.since)})"
        yield f"{progressing.reason}{since}: {progressing.message or 'the operator is at work'}"
    if moving.is_true:
        yield f"{ott.part.capitalize()}s: {moving.message or 'they are on their way to a worker'}"
    if ready.status == "False" and ready.reason == Reason.BASE_DATA_RUNNING:
        kind = ((ott.spec.get("source") or {}).get("tunnel") or {}).get("type")
        follows = "" if kind == "BaseData" else "; then its changes follow"
        yield f"The rest of the existing rows{follows}."


def _person(ott: Ott) -> Iterator[str]:
    """Whether a person has to act, or a cause outside has to go away."""
    stalled, degraded = ott.condition("Stalled"), ott.condition("Degraded")
    if stalled.is_true:
        yield "You: the operator cannot correct this by itself (see Next)."
    elif degraded.is_true and degraded.reason in _RETRIED:
        yield f"The cause of {degraded.reason} to go away: the operator tries again by itself."
    elif degraded.is_true and degraded.reason in _OF_PODS:
        yield f"The cause of {degraded.reason} to go away: Kubernetes tries again by itself."
    elif ott.is_suspended and ott.condition("Suspended").is_true:
        yield "You: spec.suspend is true."
    elif ott.is_asleep:
        yield "Something to read: a worker starts as soon as a look of the operator finds it."
    elif not ott.wanted_workers and ott.conditions and ott.deleted is None:
        yield "You: spec.replicas is 0."


def _gone(serving: Serving, now: float) -> str:
    if serving.renewed is None or not serving.holder:
        return f"An operator: no process holds Lease {serving.lease}, so the status may be old."
    return (
        f"An operator: {serving.holder} last renewed Lease {serving.lease} {words(now - serving.renewed)} ago, "
        "so the status is as old as that."
    )


#: Problems that the operator tries again, although nothing of the object runs.
_RETRIED = frozenset(
    {
        Reason.SECRET_NOT_FOUND,
        Reason.KEY_MISSING,
        Reason.AUTH_FAILED,
        Reason.ENDPOINT_UNREACHABLE,
        Reason.SERVICE_UNAVAILABLE,
        Reason.INSTANCE_BUSY,
        Reason.SERVICE_REFUSED,
        Reason.TABLE_NOT_FOUND,
        Reason.DESTINATION_NOT_FOUND,
        Reason.API_SERVER_REFUSED,
        Reason.INTERNAL_ERROR,
        Reason.SNAPSHOT_RETRYING,
        Reason.QUERY_RETRYING,
        Reason.SPARK_OPERATOR_MISSING,
        Reason.TUNNEL_INITIALISING,
    }
)

#: Problems of pods: the kubelet, the scheduler or the controller of the Deployment tries again.
_OF_PODS = frozenset(
    {
        Reason.WORKERS_FAILING,
        Reason.WORKER_MISCONFIGURED,
        Reason.SINK_DENIED,
        Reason.IMAGE_PULL_FAILED,
        Reason.CONTAINER_CONFIG_ERROR,
        Reason.PODS_REFUSED,
        Reason.UNSCHEDULABLE,
        Reason.OOM_KILLED,
        Reason.EVICTED,
    }
)
