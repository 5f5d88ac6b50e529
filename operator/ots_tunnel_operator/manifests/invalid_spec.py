"""What the API server's rules could not tell of a spec: it is said before anything is created. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ots_tunnel.errors import ConfigError
from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.manifests.files_place import folder_of
from ots_tunnel_operator.manifests.spark.invalid_query import query_findings
from ots_tunnel_operator.manifests.spark.pod_settings import hidden_pods
from ots_tunnel_operator.manifests.spark.snapshot_document import snapshot_config
from ots_tunnel_operator.manifests.template_depth import too_deep
from ots_tunnel_operator.manifests.worker_document import worker_document
from ots_tunnel_operator.manifests.worker_mounts import ambiguous_mount, mount_of, unwritable_mount
from ots_tunnel_operator.manifests.worker_volumes import file_places
from ots_tunnel_operator.reasons import Problem, Reason

_SINK = ("SinkReady",)


def find_invalid_spec(obj: TablestoreTunnel) -> Problem | None:
    """The problem of a spec that no worker or query could carry out; None where they can, or none are used."""
    if obj.spec.uses_query:
        return next(query_findings(obj), None)
    found = next(_of_copy(obj), None) if obj.spec.uses_spark else None
    return next(_findings(obj), None) if found is None and obj.spec.uses_workers else found


def _of_copy(obj: TablestoreTunnel) -> Iterator[Problem]:
    """What a copy by Spark could not be rendered from, and settings that would hide its pods."""
    settings = obj.spec.spark_settings
    try:
        # the copy's label is not part of the spec
        snapshot_config(obj, label="any")
    except ConfigError as error:
        yield Problem(Reason.INVALID_SPEC, str(error))
    for text in hidden_pods(settings.conf):
        yield Problem(Reason.INVALID_SPEC, text)
    for role, template in (("driver", settings.driver.pod_template), ("executor", settings.executor.pod_template)):
        if (deep := too_deep(f"spec.spark.{role}.podTemplate", template)) is not None:
            yield deep


def _findings(obj: TablestoreTunnel) -> Iterator[Problem]:
    template = obj.spec.worker_settings.pod_template
    if (deep := too_deep("spec.workers.podTemplate", template)) is not None:
        # first: it could not be rendered
        yield deep
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
        if (found := ambiguous_mount(template, folder)) is not None:
            yield Problem(Reason.INVALID_SPEC, f"{path}.url {place.url!r}: spec.workers.podTemplate {found}", _SINK)
        mount = mount_of(template, folder)
        if mount is not None and not mount.may_be_written:
            found = f"{path}.url {place.url!r}: spec.workers.podTemplate: {unwritable_mount(mount)}"
            yield Problem(Reason.INVALID_SPEC, found, _SINK)
        elif mount is not None and mount.ends_with_pod:
            yield Problem(
                Reason.INVALID_SPEC,
                f"{path}.url {place.url!r}: volume {mount.volume!r} of spec.workers.podTemplate, mounted at "
                f"{mount.path}, is gone with its pod, and the files with it, although their checkpoints remain: use a "
                f"persistentVolumeClaim (ReadWriteMany for several workers), or a bucket, s3://bucket/prefix",
                _SINK,
            )
        if mount is None:
            yield Problem(
                Reason.INVALID_SPEC,
                f"{path}.url {place.url!r}: no volume is mounted at {folder} or above it: give "
                f"spec.workers.podTemplate a volume, and its container {names.WORKER_CONTAINER!r} a volumeMount of it "
                f"that may be written",
                _SINK,
            )
