"""The place of the sink's files is not the one that the workers have written to. Pure."""

from __future__ import annotations

from ots_tunnel.protocol.movement import has_moved
from ots_tunnel_operator import names
from ots_tunnel_operator.manifests.files_place import files_place
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World


def find_changed_place(world: World) -> Problem | None:
    """The problem of another volume behind `files.url`, or of another store; None where nothing was written yet.

    Workers that run keep theirs.
    """
    before, wanted = former_place(world), files_place(world.resource.object)
    files = world.resource.spec.sink.files
    if not before or files is None or _is_unwritten(world):
        return None
    by_query = world.resource.spec.uses_query
    template = "spec.spark.driver.podTemplate" if by_query else "spec.workers.podTemplate"
    changed = "spec.sink.files.endpoint" if files.is_bucket else template
    who = "the query may have" if by_query else "the workers have"
    return Problem(
        Reason.INVALID_SPEC,
        f"{changed}: found {wanted!r} as the place of spec.sink.files.url {files.url!r}, allowed is {before!r}, to "
        f"which {who} written; another one would get only what comes later: set it back, or, where it is "
        f"the same place or has all files of the former one, copied while spec.suspend is true, set the annotation "
        f"{names.ANNOTATION_ACCEPT_PLACE} to the one that was found",
        ("SinkReady",),
    )


def former_place(world: World) -> str:
    """The place that the workers were applied with, where the spec has another one that nobody has accepted.

    Empty where the spec has the same one, where it has none, and where none was recorded.
    """
    resource = world.resource
    if resource.spec.sink.files is None:
        return ""
    before, wanted = recorded_place(world), files_place(resource.object)
    accepted = resource.object.metadata.annotations.get(names.ANNOTATION_ACCEPT_PLACE)
    return "" if not wanted or wanted in (before, accepted) else before


def recorded_place(world: World) -> str:
    """The place that the workers were applied with last; empty where none was recorded.

    Their Deployment has it; where that was deleted their ConfigMap, and where both were the status, which has that of a
    query of Spark.
    """
    found = world.deployment or world.child("ConfigMap", names.config_name(world.resource.name))
    if found is None:
        return str(world.resource.status.get("filesPlace") or "")
    return str((found["metadata"].get("annotations") or {}).get(names.ANNOTATION_FILES_PLACE) or "")


def awaits_movement(world: World) -> bool:
    """Whether another place is taken or refused by whether the tunnel has moved, which takes a fresh look at it."""
    return bool(former_place(world)) and not any(pod.ready for pod in world.pods)


def _is_unwritten(world: World) -> bool:
    """Whether nothing can be missing in another place: the tunnel has certainly not moved, and no worker is at it."""
    if world.resource.spec.uses_query:
        # Spark commits files before the tunnel moves, and what it has committed it does not write again
        return False
    if not isinstance(world.tunnel, Tunnel) or any(pod.ready for pod in world.pods):
        return False
    return has_moved(world.tunnel.description, world.tunnel.checkpoints) is False
