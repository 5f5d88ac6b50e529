"""Where the files of an object's sink are, by what the URL alone does not tell: the volume, or the store. Pure.

The URL is immutable, but another volume at its path, or a bucket of its name in another store, is another place, which
would get only what comes later. So the place is recorded on the workers' Deployment, or in the status for a query of
Spark, and another one is refused.
"""

from __future__ import annotations

import hashlib
import posixpath
from urllib.parse import unquote, urlsplit

from ots_tunnel.endpoint import host_of
from ots_tunnel_operator.api.files import FileStore
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.api.status import MAX_FILES_PLACE
from ots_tunnel_operator.manifests.spark.submission import DRIVER_CONTAINER
from ots_tunnel_operator.manifests.worker_mounts import mount_of

#: Stores in which the name of a bucket is unique in all of their regions: another host leads to the same bucket.
_ONE_STORE = (".amazonaws.com", ".aliyuncs.com")
#: Part of the hosts of Amazon's regions for the government, which are a store of their own at the same domain.
_GOVERNMENT = "us-gov-"
#: Characters of a place that is too long to be recorded as it is: the rest is told by a hash.
_SHOWN = 256


def folder_of(place: FileStore) -> str:
    """Path in the container of a place that is no bucket."""
    return posixpath.normpath(unquote(urlsplit(place.url).path))


def files_place(obj: TablestoreTunnel) -> str:
    """What distinguishes the place of the sink's files from all others; empty where the sink has no files."""
    files = obj.spec.sink.files
    if files is None:
        return ""
    if files.is_bucket:
        return f"{files.url} in {_store_of(files.endpoint)}"
    if obj.spec.uses_query:
        mount = mount_of(obj.spec.spark_settings.driver.pod_template, folder_of(files), DRIVER_CONTAINER)
    else:
        mount = mount_of(obj.spec.worker_settings.pod_template, folder_of(files))
    return _bounded(mount.place_of(folder_of(files))) if mount is not None else ""


def _bounded(place: str) -> str:
    """The place in a length that the status takes: a template may describe a volume at any length."""
    if len(place) <= MAX_FILES_PLACE:
        return place
    return f"{place[:_SHOWN]}... (SHA-256 {hashlib.sha256(place.encode()).hexdigest()})"


def _store_of(endpoint: str | None) -> str:
    """The store that has a bucket, by its endpoint; absent is Amazon S3."""
    host = host_of(endpoint) if endpoint else "s3.amazonaws.com"
    if _GOVERNMENT in host and host.endswith(".amazonaws.com"):
        return "us-gov.amazonaws.com"
    return next((name[1:] for name in _ONE_STORE if host.endswith(name)), host)
