"""Volumes of a worker's pod: document, Secrets, and space for files on their way to a bucket. Pure."""

from __future__ import annotations

from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.api.files import FileStore
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.api.secrets import SecretUse, secret_uses
from ots_tunnel_operator.api.spec import TunnelSpec
from ots_tunnel_operator.kube.kinds import Manifest

#: Name of the volume for files on their way to a bucket; a podTemplate may give it another source, such as a claim.
SPOOL = "spool"


def volumes_and_mounts(obj: TablestoreTunnel) -> tuple[list[Manifest], list[Manifest]]:
    """Return the pod's volumes and the mounts of its container; Secrets without subPath, so that changes arrive."""
    volumes: list[Manifest] = [{"name": "config", "configMap": {"name": names.config_name(obj.name)}}]
    mounts: list[Manifest] = [{"name": "config", "mountPath": names.CONFIG_DIRECTORY, "readOnly": True}]
    for use in secret_uses(obj.spec):
        volumes.append({"name": f"secret-{use.folder}", "secret": _secret(use)})
        mounts.append({"name": f"secret-{use.folder}", "mountPath": secret_folder(use.folder), "readOnly": True})
    if any(place.is_bucket for place in file_places(obj.spec).values()):
        volumes.append({"name": SPOOL, "emptyDir": {}})
        mounts.append({"name": SPOOL, "mountPath": names.SPOOL_DIRECTORY})
    return volumes, mounts


def secret_folder(folder: str) -> str:
    """Path of the folder with the files of a Secret; `folder` is that of its `SecretUse`."""
    return f"{names.SECRETS_DIRECTORY}/{folder}"


def file_places(spec: TunnelSpec) -> dict[str, FileStore]:
    """The places for files that a spec names, by their path in the object."""
    found: dict[str, FileStore] = {}
    if spec.sink.files is not None:
        found["spec.sink.files"] = spec.sink.files
    if spec.delivery.dead_letter is not None:
        found["spec.delivery.deadLetter.files"] = spec.delivery.dead_letter.files
    return found


def _secret(use: SecretUse) -> dict[str, Any]:
    items = {"items": [{"key": key, "path": key} for key in use.keys]} if use.is_one_key else {}
    return {"secretName": use.name, "defaultMode": 0o440, **items}
