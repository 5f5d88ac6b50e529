"""What of a user's templates and settings would take the place of a query's document or keys. Pure.

Templates are merged by the names of volumes and the paths of mounts; settings of Spark mount into the same container.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ots_tunnel.query.bucket import PROFILE_FILE
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.manifests.spark.query_application import own_volumes
from ots_tunnel_operator.manifests.spark.query_document import QUERY_FILE
from ots_tunnel_operator.manifests.spark.query_settings import conf_mounts
from ots_tunnel_operator.manifests.spark.submission import DOCUMENT_DIRECTORY, Volume
from ots_tunnel_operator.manifests.worker_mounts import mount_paths, volume_names

#: What to do with a mount that takes the place of something.
ELSEWHERE: Final = "mount it elsewhere"
_DOCUMENTS: Final = tuple(f"{DOCUMENT_DIRECTORY}/{name}" for name in (QUERY_FILE, PROFILE_FILE))


def replaced_places(obj: TablestoreTunnel, templates: Mapping[str, tuple[Manifest, str]]) -> Iterator[str]:
    """What is to be said of each.

    Args:
        templates: of driver and executors, by their paths, with the container of each.
    """
    own = own_volumes(obj)
    for path, (template, container) in templates.items():
        yield from (f"{path}: {text}" for text in _of_template(template, container, own[path]))
    for name, role, folder in conf_mounts(obj.spec.spark_settings.conf):
        if _is_taken(folder, own[f"spec.spark.{role}.podTemplate"]):
            text = f"found {name} {folder[:256]!r}, where the {role} has its document or its keys: {ELSEWHERE}"
            yield f"spec.spark.conf: {text}"


def _of_template(template: Manifest, container: str, own: Iterable[Volume]) -> Iterator[str]:
    names = {one.name for one in own}
    for name in volume_names(template):
        if name in names:
            yield f"found a volume of the name {name!r}, which the pod has already: give it another name"
    for folder in mount_paths(template, container):
        if _is_taken(folder, own):
            yield f"found a volume at {folder}, where the pod has its document or its keys: {ELSEWHERE}"


def _is_taken(folder: str, own: Iterable[Volume]) -> bool:
    """Whether a pod has its document or its keys there; beside the document is room for other volumes."""
    return folder in _DOCUMENTS or any(
        folder == one.path or (one.path != DOCUMENT_DIRECTORY and folder.startswith(f"{one.path}/")) for one in own
    )
