"""What the API server's rules could not tell of an object that a query of Spark follows. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ots_tunnel.errors import ConfigError
from ots_tunnel_operator.api.files import FilesSink
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.manifests.files_place import folder_of
from ots_tunnel_operator.manifests.spark.query_application import driver_pod
from ots_tunnel_operator.manifests.spark.query_document import CHECKPOINT_DIRECTORY, query_config
from ots_tunnel_operator.manifests.spark.query_settings import conf_findings, overlap
from ots_tunnel_operator.manifests.spark.replaced_places import ELSEWHERE, replaced_places
from ots_tunnel_operator.manifests.spark.submission import DRIVER_CONTAINER, EXECUTOR_CONTAINER
from ots_tunnel_operator.manifests.template_depth import too_deep
from ots_tunnel_operator.manifests.worker_mounts import (
    Mount,
    ambiguous_mount,
    hidden_by,
    mount_of,
    unwritable_mount,
)
from ots_tunnel_operator.reasons import Problem, Reason


def query_findings(obj: TablestoreTunnel) -> Iterator[Problem]:
    """The problems of a spec that no query could carry out."""
    settings, files = obj.spec.spark_settings, obj.spec.sink.files
    templates = {
        "spec.spark.driver.podTemplate": (settings.driver.pod_template, DRIVER_CONTAINER),
        "spec.spark.executor.podTemplate": (settings.executor.pod_template, EXECUTOR_CONTAINER),
    }
    deep = [found for path, (template, _) in templates.items() if (found := too_deep(path, template)) is not None]
    if deep:
        # first: it could not be rendered
        yield from deep
        return
    try:
        # the id of a tunnel is not part of the spec
        query_config(obj, tunnel_id="any")
    except ConfigError as error:
        yield Problem(Reason.INVALID_SPEC, str(error))
    if files is None:
        return
    folders = {CHECKPOINT_DIRECTORY: "checkpoints of the query"}
    if not files.is_bucket:
        folders = {folder_of(files): "files of the query", **folders}
    for text in conf_findings(settings.conf, folders):
        yield Problem(Reason.INVALID_SPEC, text)
    for text in replaced_places(obj, templates):
        yield Problem(Reason.INVALID_SPEC, text)
    if not files.is_bucket:
        yield from _folder_problems(obj, files, templates)
    yield from _checkpoint_problems(obj)


def _folder_problems(
    obj: TablestoreTunnel, files: FilesSink, templates: Mapping[str, tuple[Manifest, str]]
) -> Iterator[Problem]:
    """What the templates make of the folder of files.

    Args:
        templates: of driver and executors, by their paths, with the container of each.
    """
    mounts = []
    for path, (template, container) in templates.items():
        if (ambiguous := ambiguous_mount(template, folder_of(files), container)) is not None:
            yield _problem(files, f"{path} {ambiguous}")
        mount = mount_of(template, folder_of(files), container)
        mounts.append(mount)
        if (hidden := hidden_by(template, folder_of(files), container)) is not None:
            yield _problem(
                files, f"{path} mounts a volume at {hidden}, which would have a part of the files: {ELSEWHERE}"
            )
        if (found := _mount_problem(path, container, mount, files)) is not None:
            yield found
    driver, executor = mounts
    if driver is not None and executor is not None and (places := _two_places(driver, executor, files)):
        yield _problem(files, f"{places}: mount the same folder of the same volume into both")
    if overlap(folder_of(files), CHECKPOINT_DIRECTORY):
        where = "below" if len(folder_of(files)) >= len(CHECKPOINT_DIRECTORY) else "around"
        yield _problem(
            files,
            f"found {where} {CHECKPOINT_DIRECTORY}, where the driver has its checkpoints: mount the volume elsewhere",
        )
    if driver is not None and (shared := _shared_claim(obj, driver, files)):
        yield _problem(files, shared)


def _checkpoint_problems(obj: TablestoreTunnel) -> Iterator[Problem]:
    """What the template makes of the driver's folder of checkpoints."""
    checkpoint = obj.spec.spark_settings.checkpoint
    if (ambiguous := ambiguous_mount(driver_pod(obj), CHECKPOINT_DIRECTORY, DRIVER_CONTAINER)) is not None:
        yield Problem(
            Reason.INVALID_SPEC,
            f"spec.spark.driver.podTemplate: with the driver's own mount the pod {ambiguous}, for the folder of "
            "checkpoints",
        )
    template = obj.spec.spark_settings.driver.pod_template
    if (hidden := hidden_by(template, CHECKPOINT_DIRECTORY, DRIVER_CONTAINER)) is not None:
        text = f"mounts a volume at {hidden}, which would have the checkpoints of {CHECKPOINT_DIRECTORY}: {ELSEWHERE}"
        yield Problem(Reason.INVALID_SPEC, f"spec.spark.driver.podTemplate: {text}")
    mount = mount_of(driver_pod(obj), CHECKPOINT_DIRECTORY, DRIVER_CONTAINER)
    is_there = mount is not None and mount.may_be_written
    found = repr(mount.place_of(CHECKPOINT_DIRECTORY)) if mount is not None and is_there else "no volume to write"
    wanted = f"persistentVolumeClaim/{checkpoint.claim_name}:/" if checkpoint is not None else ""
    if checkpoint is not None and found != repr(wanted):
        yield Problem(
            Reason.INVALID_SPEC,
            f"spec.spark.driver.podTemplate: the folder {CHECKPOINT_DIRECTORY} of checkpoints: found {found}, allowed "
            f"is {wanted!r}, which is mounted there by itself: take mounts of this path, and volumes of the name "
            "'checkpoint', out of the template",
        )


def _shared_claim(obj: TablestoreTunnel, driver: Mount, files: FilesSink) -> str:
    """What is wrong with files around the folders of checkpoints; empty where nothing is.

    Readers of the folder would take checkpoints for files, and the cleaning of a table of Delta or Iceberg removes what
    it does not know.
    """
    checkpoint, place = obj.spec.spark_settings.checkpoint, driver.place_of(folder_of(files))
    if checkpoint is None or place != f"persistentVolumeClaim/{checkpoint.claim_name}:/":
        return ""
    return (
        f"leads to {place!r}, the root of the claim in which spec.spark.checkpoint has a folder for each tunnel: mount "
        "another claim, or let the url name a folder below"
    )


def _mount_problem(path: str, container: str, mount: Mount | None, files: FilesSink) -> Problem | None:
    folder = folder_of(files)
    if mount is None:
        return _problem(
            files,
            f"no volume is mounted at {folder} or above it: give {path} a volume, and its container {container!r} a "
            "volumeMount of it that may be written",
        )
    if not mount.may_be_written:
        return _problem(files, f"{path}: {unwritable_mount(mount)}")
    if mount.ends_with_pod:
        return _problem(
            files,
            f"volume {mount.volume!r} of {path}, mounted at {mount.path}, is gone with its pod, and the files with it: "
            "use a persistentVolumeClaim, ReadWriteMany for driver and executors on several nodes",
        )
    return None


def _two_places(driver: Mount, executor: Mount, files: FilesSink) -> str:
    """Both places in words; empty where driver and executors mean the same one."""
    folder = folder_of(files)
    of_driver, of_executor = driver.place_of(folder), executor.place_of(folder)
    if of_driver == of_executor:
        return ""
    return (
        f"spec.spark.driver.podTemplate leads to {of_driver!r} and spec.spark.executor.podTemplate to {of_executor!r}"
    )


def _problem(files: FilesSink, found: str) -> Problem:
    return Problem(Reason.INVALID_SPEC, f"spec.sink.files.url {files.url!r}: {found}", ("SinkReady",))
