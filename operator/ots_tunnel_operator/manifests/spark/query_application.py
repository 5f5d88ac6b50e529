"""The SparkApplication that follows a tunnel into files, or into a table of Delta or Iceberg. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ots_tunnel.query.bucket import PROFILE_FILE
from ots_tunnel.query.document import QueryConfig
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.manifests.overlay import overlay
from ots_tunnel_operator.manifests.spark.query_document import CHECKPOINT_DIRECTORY, QUERY_FILE, query_hash
from ots_tunnel_operator.manifests.spark.query_session import session_conf, session_version
from ots_tunnel_operator.manifests.spark.submission import (
    DOCUMENT_DIRECTORY,
    Program,
    Volume,
    driver_template,
    executor_template,
    merged,
    secret_volume,
    submission,
)
from ots_tunnel_operator.names import (
    ANNOTATION_CONFIG_HASH,
    ROLE_STREAM,
    query_config_name,
    query_name,
)

#: Driver program in our Spark image (worker/image/Containerfile).
QUERY_PROGRAM: Final = "local:///opt/ots/stream.py"
#: A stream has no last attempt; what no attempt repairs ends with exit code 0.
MOST_RETRIES: Final = 2_147_483_647
#: Group of the image's user, for volumes that belong to root when they are new.
_GROUP: Final = {"fsGroup": 185}


def query_application(
    obj: TablestoreTunnel,
    config: QueryConfig,
    *,
    image: str,
    pull_policy: str = "IfNotPresent",
    cluster_assigns_user: bool = False,
) -> Manifest:
    """Build the SparkApplication `<name>-stream`.

    The hash of the document is an annotation of the driver's pod: a driver reads its document once, when it starts.

    Args:
        obj: the object.
        config: the driver's document.
        image: image used where `spec.spark.image` is empty.
        pull_policy: pull policy of the driver's and the executors' pods.
        cluster_assigns_user: leave user and group of the pods to the cluster.
    """
    settings = obj.spec.spark_settings
    group = {} if cluster_assigns_user else _GROUP
    executor = executor_template(obj, ROLE_STREAM, *_executor_volumes(obj), **group)
    program = Program(
        name=query_name(obj.name),
        role=ROLE_STREAM,
        file=QUERY_PROGRAM,
        document=QUERY_FILE,
        retries=MOST_RETRIES,
        conf=session_conf(obj),
        version=session_version(obj),
    )
    hashed = {"metadata": {"annotations": {ANNOTATION_CONFIG_HASH: query_hash(config)}}}
    return submission(
        obj,
        program,
        overlay(driver_pod(obj, cluster_assigns_user=cluster_assigns_user), hashed),
        merged(obj, ROLE_STREAM, executor, settings.executor.pod_template),
        image=image,
        pull_policy=pull_policy,
    )


def driver_pod(obj: TablestoreTunnel, *, cluster_assigns_user: bool = False) -> Manifest:
    """Build the template of the driver's pod, with the user's part, without the hash of the document."""
    group = {} if cluster_assigns_user else _GROUP
    template = driver_template(obj, ROLE_STREAM, *_driver_volumes(obj), **group)
    return merged(obj, ROLE_STREAM, template, obj.spec.spark_settings.driver.pod_template)


def own_volumes(obj: TablestoreTunnel) -> Mapping[str, tuple[Volume, ...]]:
    """The volumes with document and keys, by the path of the template whose pods have them."""
    found = {"driver": _driver_volumes(obj), "executor": _executor_volumes(obj)}
    return {
        f"spec.spark.{role}.podTemplate": tuple(one for one in volumes if one.read_only)
        for role, volumes in found.items()
    }


def document_hash(application: Manifest) -> str:
    """Hash of the document that an application's driver reads; empty without one."""
    template = ((application.get("spec") or {}).get("driver") or {}).get("template") or {}
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(ANNOTATION_CONFIG_HASH) or "")


def _driver_volumes(obj: TablestoreTunnel) -> tuple[Volume, ...]:
    """Document, keys and checkpoints: executors do not know how far the query is."""
    checkpoint = obj.spec.spark_settings.checkpoint
    claim = "" if checkpoint is None else checkpoint.claim_name
    return (
        Volume("config", DOCUMENT_DIRECTORY, {"configMap": {"name": query_config_name(obj.name)}}),
        secret_volume("source", obj.spec.source.credentials),
        Volume("checkpoint", CHECKPOINT_DIRECTORY, {"persistentVolumeClaim": {"claimName": claim}}, read_only=False),
        *_bucket_volumes(obj),
    )


def _executor_volumes(obj: TablestoreTunnel) -> tuple[Volume, ...]:
    """Keys where executors call the service, for the rows with which a mirror begins, and those of their bucket."""
    buckets = _bucket_volumes(obj)
    source = (secret_volume("source", obj.spec.source.credentials),) if obj.spec.is_mirror else ()
    return (*source, *((_profile_volume(obj), *buckets) if buckets else ()))


def _bucket_volumes(obj: TablestoreTunnel) -> tuple[Volume, ...]:
    """Keys of the bucket with the files; none for a folder."""
    files = obj.spec.sink.files
    if files is None or not files.is_bucket or files.credentials is None:
        return ()
    return (secret_volume("sink", files.credentials),)


def _profile_volume(obj: TablestoreTunnel) -> Volume:
    """The profile by which Hadoop finds the keys, where the driver has it; the document is the driver's alone."""
    items = [{"key": PROFILE_FILE, "path": PROFILE_FILE}]
    return Volume("config", DOCUMENT_DIRECTORY, {"configMap": {"name": query_config_name(obj.name), "items": items}})
