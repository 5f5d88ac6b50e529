"""What the API server's rules could not tell of a spec: it is said before anything is created. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from ots_tunnel.errors import ConfigError
from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.manifests.worker_document import worker_config
from ots_tunnel_operator.manifests.worker_volumes import file_places
from ots_tunnel_operator.reasons import Problem, Reason

#: Sources of volumes that are made for a pod and deleted with it.
_WITH_POD = frozenset({"emptyDir", "ephemeral"})


def find_invalid_spec(obj: TablestoreTunnel) -> Problem | None:
    """The problem of a spec that no worker could carry out; None where workers can, or none are used."""
    return next(_findings(obj), None) if obj.spec.uses_workers else None


def _findings(obj: TablestoreTunnel) -> Iterator[Problem]:
    try:
        # the id of a tunnel is not part of the spec
        worker_config(obj, "any")
    except ConfigError as error:
        yield Problem(Reason.INVALID_SPEC, str(error))
    template = obj.spec.worker_settings.pod_template
    for path, place in file_places(obj.spec).items():
        if place.is_bucket:
            continue
        folder = posixpath.normpath(unquote(urlsplit(place.url).path))
        below = [mount for mount in _mounts(template) if _is_below(folder, mount.path)]
        # the volume that is mounted deepest has the folder
        mount = max(below, key=lambda mount: len(mount.path), default=None)
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


@dataclass(frozen=True, slots=True)
class _Mount:
    """A volume that may be written, at a path in the worker's container."""

    path: str
    volume: str
    ends_with_pod: bool


def _mounts(template: Mapping[str, Any]) -> Iterator[_Mount]:
    """The volumes that a pod template adds to the worker's container, and that may be written."""
    spec = template.get("spec")
    volumes = {item.get("name"): item for item in _items(spec, "volumes")}
    for container in _items(spec, "containers"):
        if container.get("name") != names.WORKER_CONTAINER:
            continue
        for mount in _items(container, "volumeMounts"):
            if mount.get("name") in volumes and not mount.get("readOnly"):
                volume = volumes[mount.get("name")]
                path = posixpath.normpath(str(mount.get("mountPath")))
                yield _Mount(path, str(volume.get("name")), _ends_with_pod(volume))


def _ends_with_pod(volume: Mapping[str, Any]) -> bool:
    """Whether a volume lives as long as its pod: by name, or because the API server makes it an emptyDir."""
    sources = {field for field, value in volume.items() if field != "name" and value is not None}
    return not sources or bool(sources & _WITH_POD)


def _items(of: Any, field: str) -> Sequence[Mapping[str, Any]]:
    """The maps in a list of a template that the API server does not validate."""
    found = of.get(field) if isinstance(of, Mapping) else None
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


def _is_below(folder: str, mount: str) -> bool:
    return mount != "/" and (folder == mount or folder.startswith(f"{mount}/"))
