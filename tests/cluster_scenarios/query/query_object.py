"""A TablestoreTunnel that Spark follows into files, as a user writes it."""

from __future__ import annotations

from typing import Any

from tests.cluster_scenarios.query.lake import MOUNT
from tests.demo.scenario import Scenario

NAME = "flights-lake"
APPLICATION = f"{NAME}-stream"
DRIVER = f"{APPLICATION}-driver"
TUNNEL = "flights-lake"


def query_object(scenario: Scenario) -> dict[str, Any]:
    """Return the object; its pods are small, because the machine may have only two cores."""
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
            "sink": {"files": {"url": f"file://{MOUNT}/changes", "compression": "gzip"}},
            "spark": {
                "checkpoint": {"claimName": "lake-checkpoint"},
                "triggerIntervalSeconds": 5,
                "driver": {"cores": 1, "memory": "1g", "podTemplate": _with_files("spark-kubernetes-driver")},
                "executor": {
                    "instances": 1,
                    "cores": 1,
                    "memory": "1g",
                    "podTemplate": _with_files("spark-kubernetes-executor"),
                },
                "conf": {
                    "spark.kubernetes.driver.request.cores": "200m",
                    "spark.kubernetes.executor.request.cores": "200m",
                },
            },
        },
    }


def _with_files(container: str) -> dict[str, Any]:
    mounts = [{"name": "files", "mountPath": MOUNT}]
    volume = {"name": "files", "persistentVolumeClaim": {"claimName": "lake-files"}}
    return {"spec": {"containers": [{"name": container, "volumeMounts": mounts}], "volumes": [volume]}}
