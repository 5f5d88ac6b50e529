"""Who does the work: worker pods or Spark, and how they are sized (docs/object.md)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from ots_tunnel_operator.api.schema import ApiModel, rule, rules

EngineKind = Literal["Workers", "Spark"]
Image = Annotated[str, Field(max_length=512, pattern=r"^\S*$")]
Memory = Annotated[str, Field(max_length=8, pattern=r"^[1-9][0-9]*[mg]$")]
PodTemplate = Annotated[dict[str, Any], Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})]
SparkConf = Annotated[dict[str, Annotated[str, Field(max_length=4096)]], Field(max_length=100)]
MemoryBudget = Annotated[int, Field(ge=16_777_216, le=68_719_476_736, json_schema_extra={"format": "int64"})]


class Engine(ApiModel):
    """Who carries which part; baseData is ignored for type Stream, stream for type BaseData."""

    base_data: EngineKind = "Workers"
    """Who copies the rows that exist. Spark: a snapshot by a SparkApplication, before changes are followed."""
    stream: Literal["Workers"] = "Workers"
    """Who follows changes."""


class Workers(ApiModel):
    """Worker pods; only where an engine is Workers."""

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
    """Image; empty means the one this operator release pins."""
    heartbeat_interval_seconds: Annotated[int, Field(ge=5, le=300)] = 10
    """Seconds between heartbeats; the service's minimum is 5."""
    heartbeat_timeout_seconds: Annotated[int, Field(ge=15, le=3600)] = 60
    """Without a heartbeat for so long the service gives the channels to others; at least 3 times the interval."""
    checkpoint_interval_seconds: Annotated[int, Field(ge=1, le=3600)] = 5
    """Confirmed progress is stored at most so often per channel."""
    max_parallel_channels: Annotated[int, Field(ge=0, le=10_000)] = 0
    """Channels one worker reads at the same time; 0 means all it has."""
    lanes_per_channel: Annotated[int, Field(ge=1, le=256)] = 8
    """Parallel writers inside one channel, by key."""
    memory_budget_bytes: MemoryBudget = 268_435_456
    """Bytes of records one worker holds, raw and parsed; reading waits beyond it."""
    termination_grace_period_seconds: Annotated[int, Field(ge=10, le=3600)] = 60
    """Time a pod has to drain; three quarters of it are the worker's own deadline."""
    pod_template: PodTemplate = Field(default_factory=dict)
    """Pod template merged over the generated one; containers merge by name, the worker's is `worker`."""


class DriverResources(ApiModel):
    """Size of the Spark driver."""

    cores: Annotated[int, Field(ge=1, le=64)] = 1
    """CPU cores."""
    memory: Memory = "2g"
    """Java heap, as Spark writes it: 512m, 2g."""


class ExecutorResources(ApiModel):
    """Number and size of Spark executors."""

    instances: Annotated[int, Field(ge=1, le=1000)] = 2
    """Executors."""
    cores: Annotated[int, Field(ge=1, le=64)] = 2
    """CPU cores of each; so many splits are read at once."""
    memory: Memory = "4g"
    """Java heap of each, as Spark writes it: 512m, 2g."""


class Spark(ApiModel):
    """Spark applications; only where an engine is Spark."""

    operator: Literal["kubeflow"] = "kubeflow"
    """Spark operator that runs them."""
    image: Image = ""
    """Image; empty means the one this operator release pins."""
    driver: DriverResources = DriverResources()
    """Driver."""
    executor: ExecutorResources = ExecutorResources()
    """Executors."""
    conf: SparkConf = Field(default_factory=dict)
    """More Spark settings; those the operator needs itself win."""
