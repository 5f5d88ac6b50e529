"""Engines of an object, worker pods and Spark, with their settings and sizes (docs/object.md)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from ots_tunnel_operator.api.schema import ApiModel, ObjectName, immutable, rule, rules

EngineKind = Literal["Workers", "Spark"]
#: ASCII without spaces; the class of all spaces differs between the API server and the model.
Image = Annotated[str, Field(max_length=512, pattern=r"^[!-~]*$")]
Memory = Annotated[str, Field(max_length=8, pattern=r"^[1-9][0-9]*[mg]$")]
PodTemplate = Annotated[dict[str, Any], Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})]
SparkConf = Annotated[dict[str, Annotated[str, Field(max_length=4096)]], Field(max_length=100)]
MemoryBudget = Annotated[int, Field(ge=16_777_216, le=68_719_476_736, json_schema_extra={"format": "int64"})]


class Engine(ApiModel):
    """Engines that do the copying. baseData has no effect with tunnel.type Stream, stream none with BaseData."""

    base_data: EngineKind = "Workers"
    """Engine that copies existing rows. Workers: worker pods read them through the tunnel. Spark: a SparkApplication
    reads a snapshot of the table, and workers start to follow changes after it; with stream Spark the query that
    follows changes has existing rows before them."""
    stream: EngineKind = "Workers"
    """Engine that follows changes. Workers: worker pods. Spark: a SparkApplication follows the tunnel into files on a
    volume; with tunnel.type BaseAndStream it brings the existing rows as well, and baseData is Spark."""


class Workers(ApiModel):
    """Settings of the worker pods; allowed only where an engine in use is Workers."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.heartbeatTimeoutSeconds >= 3 * self.heartbeatIntervalSeconds",
                "workers.heartbeatTimeoutSeconds must be at least 3 times workers.heartbeatIntervalSeconds",
                field=".heartbeatTimeoutSeconds",
            )
        )
    )

    image: Image = ""
    """Image of the worker pods; empty means the image the operator is configured with."""
    heartbeat_interval_seconds: Annotated[int, Field(ge=5, le=300)] = 10
    """Seconds between two heartbeats of a worker; the service's minimum is 5. With source.stream, between two renewals
    of its leases, and between two looks for leases to take."""
    heartbeat_timeout_seconds: Annotated[int, Field(ge=15, le=3600)] = 60
    """Seconds without a heartbeat after which the service gives a worker's channels to other workers. With
    source.stream, the duration of a lease, which has to be the same in all workers that share the table. At least 3
    times heartbeatIntervalSeconds."""
    checkpoint_interval_seconds: Annotated[int, Field(ge=1, le=3600)] = 5
    """Shortest time in seconds between two checkpoints of a channel; after a crash, records since the last checkpoint
    are delivered again."""
    max_parallel_channels: Annotated[int, Field(ge=0, le=10_000)] = 0
    """Channels that one worker reads at the same time; 0 means every channel assigned to it."""
    lanes_per_channel: Annotated[int, Field(ge=1, le=256)] = 8
    """Parallel writers per channel; all records of one primary key go through the same writer, in order."""
    memory_budget_bytes: MemoryBudget = 268_435_456
    """Bytes of records, raw and parsed, that one worker holds in memory; at the limit it pauses reading. The pod's
    memory request and limit follow from it."""
    termination_grace_period_seconds: Annotated[int, Field(ge=10, le=3600)] = 60
    """Seconds that Kubernetes gives a pod to stop; the worker drains for at most three quarters of them."""
    pod_template: PodTemplate = Field(default_factory=dict)
    """Pod template that is merged over the generated one; containers merge by name, and the worker's container is
    named `worker`. Empty changes nothing."""


class DriverResources(ApiModel):
    """Size of the Spark driver's pod."""

    cores: Annotated[int, Field(ge=1, le=64)] = 1
    """CPU cores of the driver."""
    memory: Memory = "2g"
    """Java heap of the driver in Spark's notation, such as 512m or 2g."""
    pod_template: PodTemplate = Field(default_factory=dict)
    """Pod template that is merged over the driver's generated one; containers merge by name, and the driver's container
    is named `spark-kubernetes-driver`. Empty changes nothing."""


class ExecutorResources(ApiModel):
    """Number and size of the Spark executors."""

    instances: Annotated[int, Field(ge=1, le=1000)] = 2
    """Number of executor pods."""
    cores: Annotated[int, Field(ge=1, le=64)] = 2
    """CPU cores of each executor; of a copy, each takes one split at a time."""
    memory: Memory = "4g"
    """Java heap of each executor in Spark's notation, such as 512m or 4g."""
    pod_template: PodTemplate = Field(default_factory=dict)
    """Pod template that is merged over the executors' generated one; containers merge by name, and the executor's
    container is named `spark-kubernetes-executor`. Empty changes nothing."""


class Checkpoint(ApiModel):
    """Place in which Spark keeps how far a query is."""

    claim_name: Annotated[ObjectName, Field(json_schema_extra=immutable("spark.checkpoint.claimName"))]
    """PersistentVolumeClaim in the object's namespace, which exists and which only the driver uses; the operator never
    deletes it. Immutable: with another one the query would begin at the tunnel's checkpoints, beside files that hold
    more."""


class Spark(ApiModel):
    """Settings of the SparkApplication; allowed only where an engine in use is Spark."""

    operator: Literal["kubeflow"] = "kubeflow"
    """Spark operator that runs the application."""
    image: Image = ""
    """Image of driver and executors; empty means the Spark image the operator is configured with, which is another one
    for files.format Iceberg."""
    driver: DriverResources = DriverResources()
    """Size of the driver."""
    executor: ExecutorResources = ExecutorResources()
    """Number and size of the executors."""
    conf: SparkConf = Field(default_factory=dict)
    """Additional Spark settings; settings that the copy or the query depends on override them. Those that are a
    field of their own, such as spark.driver.memory, change nothing, and are refused for a query."""
    checkpoint: Checkpoint | None = None
    """Place of the query's checkpoints; needed with engine.stream Spark, refused otherwise."""
    trigger_interval_seconds: Annotated[int, Field(ge=1, le=3600)] | None = None
    """Seconds between the starts of two batches, for engine.stream Spark; absent means 5."""
