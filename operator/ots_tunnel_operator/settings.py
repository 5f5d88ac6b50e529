"""Settings of the operator process; settings of one tunnel are in its object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class WorkerNetwork:
    """Connections that a NetworkPolicy allows to the workers of each object, in the form of Kubernetes."""

    peers: tuple[Mapping[str, Any], ...]
    """Who may connect to their port of status and metrics (NetworkPolicyPeer); without any, only their node may."""
    egress: tuple[Mapping[str, Any], ...] | None = None
    """Rules of where they may connect to (NetworkPolicyEgressRule); None allows everything."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the process; flags and OTS_OPERATOR_* variables set some of them, the others are constants."""

    worker_image: str = ""
    """Image of worker pods where spec.workers.image is empty."""
    spark_image: str = ""
    """Image of Spark pods where spec.spark.image is empty."""
    spark_iceberg_image: str = ""
    """Image of Spark pods of objects with sink.files.format Iceberg, where spec.spark.image is empty."""
    image_pull_policy: str = "IfNotPresent"
    """Pull policy of every pod the operator renders."""
    worker_pull_secrets: tuple[str, ...] = ()
    """Secrets, in the namespace of each object, with which the images of worker and Spark pods are pulled."""
    worker_budgets: bool = True
    """Whether the workers of each object get a PodDisruptionBudget."""
    worker_network: WorkerNetwork | None = None
    """What the NetworkPolicy of each object's workers allows; None makes no policy."""
    pod_monitor_interval: str = "30s"
    """Time between two scrapes of a worker by the PodMonitor of its object, as Prometheus writes it."""
    pod_monitor_labels: tuple[tuple[str, str], ...] = ()
    """Labels of each object's PodMonitor, by which Prometheus selects it."""
    cluster_assigns_user: bool = False
    """Whether user and group of worker and Spark pods are left to the cluster, as OpenShift wants it."""
    rollout_budget: int = 3
    """Objects whose workers may be replaced at once because this release has another worker image or pod template."""
    lease: str = ""
    """Lease of the leader election as namespace/name, which claims name; empty without election."""
    poll_seconds: float = 15.0
    """Seconds between two DescribeTunnel calls for one object (docs/architecture.md 6.1)."""
    wait_seconds: float = 2.0
    """Seconds between two passes while the service or Spark has to finish a step."""
    gap_seconds: float = 1.0
    """Shortest pause in seconds between two passes over one object, because events arrive in bursts."""
    status_seconds: float = 15.0
    """Shortest time in seconds between two writes of figures. Phase, replicas and conditions are written at once
    (docs/architecture.md rule 9)."""
    scrape_seconds: float = 2.0
    """Seconds that a worker pod has to answer /channels; after them its figures are unknown."""
    call_seconds: float = 10.0
    """Seconds that one call to an instance may take before the pass reports the instance as unreachable."""
    refresh_seconds: float = 300.0
    """Seconds between two reads of both tables' schemas, as long as no problem is found."""
    look_seconds: float = 45.0
    """Seconds between two looks whether both tables are still there."""
    passes: int = 64
    """Passes over objects that run at once, apart from those that wait for an instance; further ones wait."""
    spread_seconds: float = 30.0
    """Longest time in seconds over which the first passes after a start are spread, 0.03 s an object."""
    unknown_seconds: float = 15.0
    """Seconds for which a pass may fail by a passing error of the API server before the object shows Unknown."""
    initialising_seconds: float = 300.0
    """Seconds that a tunnel may stay in its first stage before the object reports it (docs/architecture.md 3.2)."""
    spark_missing_seconds: float = 60.0
    """Seconds without a state after which a SparkApplication is reported as not handled by any Spark operator."""
    delete_seconds: float = 600.0
    """Seconds for which deletion tries to delete the tunnel before it leaves it behind (docs/architecture.md 3.6)."""
    backoff_seconds: float = 1.0
    """First pause in seconds after a failed pass; it doubles with every further failure."""
    backoff_max_seconds: float = 60.0
    """Longest pause in seconds after failed passes."""
