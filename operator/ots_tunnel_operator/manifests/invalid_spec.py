"""What the API server's rules could not tell of a spec: it is said before anything is created. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ots_tunnel.errors import ConfigError
from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.manifests.files_place import folder_of
from ots_tunnel_operator.manifests.worker_document import worker_document
from ots_tunnel_operator.manifests.worker_mounts import mount_of
from ots_tunnel_operator.manifests.worker_volumes import file_places
from ots_tunnel_operator.reasons import Problem, Reason

#: Most levels of a pod template. Those of Kubernetes have about ten; the API server takes thousands of anything.
MAX_LEVELS = 50


def find_invalid_spec(obj: TablestoreTunnel) -> Problem | None:
    """The problem of a spec that no worker could carry out; None where workers can, or none are used."""
    return next(_findings(obj), None) if obj.spec.uses_workers else None


def _findings(obj: TablestoreTunnel) -> Iterator[Problem]:
    template = obj.spec.worker_settings.pod_template
    if _is_deeper(template, MAX_LEVELS):
        # first: it could not be rendered
        yield Problem(
            Reason.INVALID_SPEC,
            f"spec.workers.podTemplate: found fields nested more than {MAX_LEVELS} levels deep, allowed are "
            f"{MAX_LEVELS}: correct the template",
        )
        return
    try:
        # the id of a tunnel is not part of the spec
        worker_document(obj, "any")
    except ConfigError as error:
        yield Problem(Reason.INVALID_SPEC, str(error))
    for path, place in file_places(obj.spec).items():
        if place.is_bucket:
            continue
        folder = folder_of(place)
        mount = mount_of(template, folder)
        if mount is not None and mount.ends_with_pod:
            yield Problem(
                Reason.INVALID_SPEC,
                f"{path}.url {place.url!r}: volume {mount.volume!r} of spec.workers.podTemplate, mounted at "
                f"{mount.path}, is gone with its pod, and the files with it, although their checkpoints remain: use a "
                f"persistentVolumeClaim (ReadWriteMany for several workers), or a bucket, s3://bucket/prefix",
                ("SinkReady",),
            )
        if mount is None:
            yield Problem(
                Reason.INVALID_SPEC,
                f"{path}.url {place.url!r}: no volume is mounted at {folder} or above it: give "
                f"spec.workers.podTemplate a volume, and its container {names.WORKER_CONTAINER!r} a volumeMount of it "
                f"that may be written",
                ("SinkReady",),
            )


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether there is a value behind so many levels of maps and lists."""
    below = [value]
    for _ in range(levels):
        below = [member for each in below for member in _members(each)]
        if not below:
            return False
    return True


def _members(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []
