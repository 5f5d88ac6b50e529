"""Stand-in for the Spark operator and a snapshot's driver: writes the same objects to the API, without Spark."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from ots_tunnel.client.sync_table import SyncTableClient
from ots_tunnel.credentials import static_credentials
from ots_tunnel.snapshot.copied import Report
from ots_tunnel.snapshot.document import SnapshotConfig
from ots_tunnel.snapshot.splits import freeze, split_list
from ots_tunnel.spark.cluster import ClusterAccess, ConfigMaps
from ots_tunnel.spark.snapshot.progress import ProgressRecord
from tests.operator.scenes.operator_scene import KEYS, OperatorScene

#: Age of the driver's end in seconds; longer than its write deadline, so that none of its writes is still under way.
ENDED_SECONDS_AGO = 60.0
APP_LABEL = "sparkoperator.k8s.io/app-name"


def finish_snapshot(scene: OperatorScene, kubeconfig: Path, folder: Path, name: str = "copy") -> None:
    """Freeze the splits, mark all of them as done, and write the success of the application and its driver pod."""
    found = scene.kube.get("ConfigMap", scene.namespace, f"{name}-snapshot-config")
    assert found is not None
    (document,) = found["data"].values()
    config = SnapshotConfig.model_validate(yaml.safe_load(document))
    ended = time.time() - ENDED_SECONDS_AGO
    record = ProgressRecord(
        ConfigMaps(driver_access(kubeconfig, folder), scene.namespace),
        config.progress,
        now=lambda: ended,
        sleep=lambda seconds: None,
        writer="driver",  # two runs are compared
        write_deadline=config.write_deadline_seconds,
    )
    record.load()
    client = SyncTableClient(scene.service.endpoint, config.source.instance, static_credentials(KEYS))
    try:
        ranges = client.compute_splits(config.source.table, unit_bytes=config.splits.bytes_per_split)
    finally:
        client.close()
    record.freeze(*freeze(split_list(ranges)))
    assert record.splits is not None
    record.mark([Report(split.index, split.start, None, 0, 0) for split in record.pending()])
    _finish_application(scene, f"{name}-snapshot", ended)


def _finish_application(scene: OperatorScene, name: str, ended: float) -> None:
    driver = f"{name}-driver"
    pod = {"name": driver, "namespace": scene.namespace, "labels": {APP_LABEL: name}}
    container = {"name": "spark-kubernetes-driver", "image": "spark:test"}
    scene.kube.create({"kind": "Pod", "metadata": pod, "spec": {"containers": [container]}})
    time_text = datetime.fromtimestamp(ended, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    terminated = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": time_text}}
    status = {"name": container["name"], "image": "spark:test", "imageID": "", "restartCount": 0, "ready": False}
    pod_status = {"phase": "Succeeded", "containerStatuses": [status | {"state": terminated}]}
    scene.kube.patch("Pod", scene.namespace, driver, {"status": pod_status}, "status")
    application = {
        "applicationState": {"state": "COMPLETED"},
        "driverInfo": {"podName": driver},
        "executionAttempts": 1,
        "lastSubmissionAttemptTime": time_text,
        "terminationTime": time_text,
    }
    scene.kube.patch("SparkApplication", scene.namespace, name, {"status": application}, "status")


def driver_access(kubeconfig: Path, folder: Path) -> ClusterAccess:
    """Return the access of a driver; its token goes to a file in the folder."""
    document = yaml.safe_load(kubeconfig.read_text())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    token = folder / "token"
    token.write_text(user["token"])
    return ClusterAccess(f"https://{urlsplit(cluster['server']).netloc}", token, Path(cluster["certificate-authority"]))
