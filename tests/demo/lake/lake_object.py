"""A TablestoreTunnel that Spark follows into files, as a user writes it."""

from __future__ import annotations

from typing import Any

from tests.demo.lake.volumes import CHECKPOINT, FILES, MOUNT
from tests.demo.scenario import Scenario

NAME = "flights-lake"
APPLICATION = f"{NAME}-stream"
DRIVER = f"{APPLICATION}-driver"
TUNNEL = NAME
#: Folder below the volume.
FOLDER = "flights"


def lake_object(scenario: Scenario, files: dict[str, Any], *, memory: str = "1g") -> dict[str, Any]:
    """Return the object; its pods are small, because the machine may have only two cores.

    Args:
        scenario: names and endpoint.
        files: fields of `sink.files`; without a url they are in the volume of files.
        memory: Java heap of driver and executor.
    """
    in_volume = "url" not in files
    return {
        "apiVersion": "ots-tunnel.dev/v1alpha1",
        "kind": "TablestoreTunnel",
        "metadata": {"name": NAME, "namespace": scenario.namespace},
        "spec": {
            "source": {
                "endpoint": scenario.endpoint,
                "instance": scenario.instance,
                "table": scenario.table,
                "credentials": {"secretRef": {"name": "ots-credentials"}},
                "tunnel": {"name": TUNNEL, "type": "Stream"},
            },
            "engine": {"stream": "Spark"},
            "sink": {"files": {"url": f"file://{MOUNT}/{FOLDER}"} | files},
            "spark": {
                "checkpoint": {"claimName": CHECKPOINT},
                "triggerIntervalSeconds": 5,
                "driver": {"cores": 1, "memory": memory} | _with_files("spark-kubernetes-driver", in_volume),
                "executor": {"instances": 1, "cores": 1, "memory": memory}
                | _with_files("spark-kubernetes-executor", in_volume),
                "conf": {
                    "spark.kubernetes.driver.request.cores": "200m",
                    "spark.kubernetes.executor.request.cores": "200m",
                },
            },
        },
    }


def _with_files(container: str, in_volume: bool) -> dict[str, Any]:
    if not in_volume:
        return {}
    mounts = [{"name": "files", "mountPath": MOUNT}]
    volume = {"name": "files", "persistentVolumeClaim": {"claimName": FILES}}
    return {"podTemplate": {"spec": {"containers": [{"name": container, "volumeMounts": mounts}], "volumes": [volume]}}}
