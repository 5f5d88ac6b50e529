"""The SparkApplication that copies existing rows. Pure."""

from __future__ import annotations

from typing import Final

from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.manifests.spark.snapshot_document import SNAPSHOT_FILE
from ots_tunnel_operator.manifests.spark.submission import (
    DOCUMENT_DIRECTORY,
    REQUIRED_CONF,
    Program,
    Volume,
    driver_template,
    executor_template,
    merged,
    secret_volume,
    submission,
)
from ots_tunnel_operator.names import ROLE_SNAPSHOT, snapshot_config_name, snapshot_name

#: Driver program in our Spark image (worker/image/Containerfile).
DRIVER_PROGRAM: Final = "local:///opt/ots/snapshot.py"
#: Attempts after the first one; each new driver copies the splits that are not recorded as done.
RETRIES: Final = 10

#: Spark settings that an object may override with spec.spark.conf.
_DEFAULT_CONF: Final = {
    # The JVMs only start tasks in Python: the optimizing compiler costs more time than it saves.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.task.maxFailures": "8",
}
#: Spark settings that the copy depends on; they override spec.spark.conf.
_REQUIRED_CONF: Final = {
    **REQUIRED_CONF,
    # A terminated pod proves that its executor writes no more; Kubernetes deletes it together with the driver's pod.
    "spark.kubernetes.executor.deleteOnTermination": "false",
    # A speculative second attempt of a task could still write after the first was recorded as done.
    "spark.speculation": "false",
}


def snapshot_application(obj: TablestoreTunnel, *, image: str, pull_policy: str = "IfNotPresent") -> Manifest:
    """Build the SparkApplication `<name>-snapshot`.

    Its spec depends only on spec.spark, the names of the Secrets and the image: an edit of any other field does not
    restart a running snapshot.

    Args:
        obj: the object.
        image: image used where `spec.spark.image` is empty.
        pull_policy: pull policy of the driver's and the executors' pods.
    """
    settings, secrets = obj.spec.spark_settings, _secrets(obj)
    config = {"configMap": {"name": snapshot_config_name(obj.name)}}
    driver = driver_template(obj, ROLE_SNAPSHOT, Volume("config", DOCUMENT_DIRECTORY, config), *secrets)
    executor = executor_template(obj, ROLE_SNAPSHOT, *secrets)
    program = Program(
        name=snapshot_name(obj.name),
        role=ROLE_SNAPSHOT,
        file=DRIVER_PROGRAM,
        document=SNAPSHOT_FILE,
        retries=RETRIES,
        conf={**_DEFAULT_CONF, **settings.conf, **_REQUIRED_CONF},
    )
    return submission(
        obj,
        program,
        merged(obj, ROLE_SNAPSHOT, driver, settings.driver.pod_template),
        merged(obj, ROLE_SNAPSHOT, executor, settings.executor.pod_template),
        image=image,
        pull_policy=pull_policy,
    )


def _secrets(obj: TablestoreTunnel) -> tuple[Volume, ...]:
    """The Secrets as files: driver and executors read the source and write the destination."""
    volumes = (secret_volume("source", obj.spec.source.credentials),)
    if obj.spec.sink.tablestore is None:
        return volumes
    return (*volumes, secret_volume("sink", obj.spec.sink.tablestore.credentials))
