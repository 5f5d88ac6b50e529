"""The CustomResourceDefinition and the chart of the last release, and objects that it accepts."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.support.operator.objects import tunnel_object

_GOLDEN = Path(__file__).parents[2] / "golden"
#: As the release had it; a new release adds a file, and the tests go on with the last one.
DEFINITION = _GOLDEN / "operator" / "released" / "0.1.0.yaml"
#: The chart as the release had it, without its definition.
_CHART = _GOLDEN / "chart" / "released" / "0.1.0"

#: Objects that use every field of the release, by name.
OBJECTS: dict[str, dict[str, Any]] = {
    "small": {},
    "everything": {
        "replicas": 0,
        "suspend": True,
        "deletionPolicy": "Delete",
        "source__tunnel__type": "Stream",
        "source__tunnel__managementPolicy": "CreateIfMissing",
        "source__tunnel__onPossibleGap": "Continue",
        "source__tunnel__stream": {
            "startFrom": "Timestamp",
            "startTime": "2026-01-01T00:00:00Z",
            "endTime": "2199-12-31T23:59:59Z",
        },
        "sink__tablestore__createTable": "Never",
        "sink__tablestore__onExisting": "Merge",
        "delivery": {
            "batchMaxRows": 1,
            "batchMaxBytes": 1024,
            "retry": {"backoffSeconds": 3600, "backoffMaxSeconds": 3600},
            "onPermanentError": "Fail",
        },
        "workers": {
            "image": "registry.example/own:2",
            "heartbeatIntervalSeconds": 5,
            "heartbeatTimeoutSeconds": 15,
            "checkpointIntervalSeconds": 1,
            "maxParallelChannels": 10_000,
            "lanesPerChannel": 256,
            "memoryBudgetBytes": 16_777_216,
            "terminationGracePeriodSeconds": 10,
            "podTemplate": {"metadata": {"labels": {"team": "shop"}}, "spec": {"nodeSelector": {"disk": "ssd"}}},
        },
        "monitoring": {"lagDegradedSeconds": 1, "retentionWarningPercent": 100},
    },
    "stdout": {"sink": {"stdout": {}}, "source__tunnel__stream": {"endTime": "2026-12-01T00:00:00Z"}},
    "spark": {
        "engine__baseData": "Spark",
        "engine__stream": "Workers",
        "source__tunnel__managementPolicy": "UseExisting",
        "spark": {
            "operator": "kubeflow",
            "image": "registry.example/spark:1",
            "driver": {"cores": 1, "memory": "1g"},
            "executor": {"instances": 1, "cores": 1, "memory": "512m"},
            "conf": {"spark.task.maxFailures": "3"},
        },
    },
    "base-data": {"source__tunnel__type": "BaseData"},
}


def released_object(name: str, namespace: str = "default") -> dict[str, Any]:
    """One of `OBJECTS`."""
    found = tunnel_object(name, **OBJECTS[name])
    found["metadata"]["namespace"] = namespace
    return found


def released_chart(folder: Path) -> Path:
    """Make the chart of the release below a folder, with its definition; return its path."""
    chart = folder / "ots-tunnel-operator"
    shutil.copytree(_CHART, chart)
    (chart / "files").mkdir()
    shutil.copy(DEFINITION, chart / "files" / "crd.yaml")
    return chart
