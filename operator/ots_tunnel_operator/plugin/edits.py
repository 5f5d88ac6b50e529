"""The edits that a person makes by hand: pause, resume, restart. Pure: object in, patch and words out.

A patch names the uid that was read, so that the API server refuses it (409) for an object that was deleted and applied
again meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.text.spans import of, words
from ots_tunnel_operator.times import timestamp


class Refused(Exception):
    """An edit that would do nothing, or not what its name says; the text says why and what to do instead."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A merge patch and what it does.

    Args:
        patch: None where there is nothing to change.
        words: what happens now, in sentences.
    """

    patch: Mapping[str, Any] | None
    words: tuple[str, ...]


def pause(ott: Ott) -> Edit:
    """Set spec.suspend.

    Raises:
        Refused: the object is being deleted.
    """
    _refuse_deleted(ott)
    if ott.is_suspended:
        return Edit(None, (f"{ott.namespace}/{ott.name} is paused already.",))
    workers = ott.number("replicas")
    drain = f"its {of(workers, 'worker')} finish what they hold and end" if workers else "it starts no worker"
    if ott.by_query:
        drain = "its query of Spark is stopped"
    said = [f"{ott.namespace}/{ott.name} pauses: {drain}; checkpoints are kept."]
    if (kept := ott.number("tunnel", "streamRetentionSeconds")) is not None:
        said.append(_time_left(ott, kept))
    return Edit(_spec_patch(ott, {"suspend": True}), (*said, *_declared(ott, "suspend")))


def _time_left(ott: Ott, kept: int) -> str:
    """How long a pause may last, where it is known how much of the stream's retention, in seconds, is used already."""
    wait = f"Changes wait in the stream, which keeps them for {words(kept)}"
    # of one that sleeps it is only known that a quarter is not passed
    used = 25 if ott.is_asleep else ott.number("lag", "retentionUsedPercent")
    if used is None or ott.condition("Ready").status == "Unknown":
        return f"{wait}. How much of that is used already is not known: resume it soon, or changes are lost."
    return f"{wait}: resume it within {words(kept * max(0, 100 - used) / 100)}, or changes are lost."


def resume(ott: Ott) -> Edit:
    """Take spec.suspend back.

    Raises:
        Refused: the object is being deleted.
    """
    _refuse_deleted(ott)
    if not ott.is_suspended:
        return Edit(None, (f"{ott.namespace}/{ott.name} is not paused.",))
    wanted = ott.wanted_workers
    said = [f"{ott.namespace}/{ott.name} resumes at its checkpoints with {of(wanted, 'worker')}."]
    if ott.by_query:
        said = [f"{ott.namespace}/{ott.name} resumes: its query of Spark resumes behind its last batch."]
    elif not wanted and ott.spec.get("replicas", 1):
        # it slept when it was paused, and an edit of the spec ends that
        said = [f"{ott.namespace}/{ott.name} resumes at its checkpoints; it had no worker when it was paused."]
    elif not wanted:
        said.append("spec.replicas is 0, so nothing is consumed before it is scaled.")
    stalled = ott.condition("Stalled")
    if stalled.is_true:
        said.append(f"{stalled.reason} keeps it from starting: kubectl ott why {ott.name} -n {ott.namespace}")
    return Edit(_spec_patch(ott, {"suspend": False}), (*said, *_declared(ott, "suspend")))


def restart(ott: Ott, deployment: Mapping[str, Any] | None, now: float) -> Edit:
    """Patch of the workers' Deployment that replaces its pods one by one, or starts those that a finding has stopped.

    Args:
        deployment: the one of the object's name; None where there is none.

    Raises:
        Refused: there is no worker to restart, or the Deployment is not the object's own.
    """
    _refuse_deleted(ott)
    place = f"{ott.namespace}/{ott.name}"
    if ott.is_suspended:
        raise Refused(f"{place} is paused, so no worker runs: kubectl ott resume {ott.name} -n {ott.namespace}")
    if ott.by_query:
        again = f"kubectl delete sparkapplication {names.query_name(ott.name)} -n {ott.namespace}"
        raise Refused(f"{place} has a query of Spark and no workers: to start that one again: {again}")
    if deployment is None:
        raise Refused(f"{place} has no workers (phase {ott.text('phase') or 'unknown'}): there is nothing to restart")
    owners = deployment["metadata"].get("ownerReferences") or ()
    if ott.uid not in [owner.get("uid") for owner in owners]:
        raise Refused(f"Deployment {names.deployment_name(ott.name)} does not belong to {place}: it is left alone")
    pods = int((deployment.get("spec") or {}).get("replicas") or 0)
    is_stopped = bool(ott.text("verdict", "attempt"))
    if not pods and not is_stopped:
        raise Refused(f"{place} wants no worker now (phase {ott.text('phase') or 'unknown'}): nothing to restart")
    annotations = {names.ANNOTATION_RESTARTED_AT: timestamp(now)}
    patch = {
        "metadata": {"uid": deployment["metadata"]["uid"]},
        "spec": {"template": {"metadata": {"annotations": annotations}}},
    }
    if is_stopped:
        stopped = ott.text("verdict", "reason")
        again = f"{place} starts its {of(ott.wanted_workers, 'worker')} again, which {stopped} has stopped."
        return Edit(patch, (again, "If its cause is still there, the first worker that meets it stops them again."))
    return Edit(
        patch,
        (f"{place} replaces its {of(pods, 'worker')} one by one; each drains first, and nothing is read twice.",),
    )


def _refuse_deleted(ott: Ott) -> None:
    if ott.deleted is not None:
        raise Refused(f"{ott.namespace}/{ott.name} is being deleted: nothing about it can be changed")


def _spec_patch(ott: Ott, change: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"metadata": {"uid": ott.uid}, "spec": dict(change)}


def _declared(ott: Ott, field: str) -> tuple[str, ...]:
    """A warning where another client applies this field, as GitOps does: it may set it back."""
    managers = [
        str(entry.get("manager"))
        for entry in ott.body["metadata"].get("managedFields") or ()
        if entry.get("operation") == "Apply" and f"f:{field}" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    ]
    if not managers:
        return ()
    return (f"spec.{field} is applied by {', '.join(managers)}, which may set it back: change it there as well.",)
