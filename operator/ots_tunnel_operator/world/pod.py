"""Pods of workers and of Spark applications, and how their containers fare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Any, Self

from ots_tunnel_operator.names import ANNOTATION_CONFIG_HASH, WORKER_CONTAINER
from ots_tunnel_operator.world.report import KeptReport, ReportedGap, WorkerReport

#: Phases of a pod whose processes have all ended; every other phase, Unknown included, counts as alive.
ENDED_PHASES = frozenset({"Succeeded", "Failed"})
#: Phase of a pod that has started.
RUNNING = "Running"
#: Phase of a pod none of whose containers has started.
PENDING = "Pending"


@dataclass(frozen=True, slots=True)
class ContainerEnd:
    """How a worker's container ended last."""

    code: int
    reason: str = "Error"
    """The kubelet's word: Error, OOMKilled, StartError and others."""
    message: str = ""
    """Its termination message, without what differs from one end to the next; empty where it wrote none."""


@dataclass(frozen=True, slots=True)
class Container:
    """The worker's container as the status of its pod has it."""

    image: str = ""
    """Image of the container that waits; of the worker's where none does."""
    memory_limit: str = ""
    """Memory limit of the worker's container, such as 640Mi; empty without one."""
    waiting: str = ""
    """The kubelet's word for what a container of the pod waits for, such as ImagePullBackOff; empty while none does."""
    cause: str = ""
    """The kubelet's text about that, without what differs from one try to the next."""
    started: float | None = None
    """Since when the worker runs, Unix seconds; None while it does not, or where that is unknown."""
    end: ContainerEnd | None = None
    """Its last end; None while it has not ended yet."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a worker's pod is made from, as far as its own document tells."""

    image: str = ""
    config: str = ""
    """Hash of the worker's document."""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """The origin of a pod or of a pod template, by its document."""
        containers = (document.get("spec") or {}).get("containers") or ()
        worker: Mapping[str, Any] = next((one for one in containers if one.get("name") == WORKER_CONTAINER), {})
        annotations = (document.get("metadata") or {}).get("annotations") or {}
        return cls(str(worker.get("image") or ""), str(annotations.get(ANNOTATION_CONFIG_HASH) or ""))


@dataclass(frozen=True, slots=True)
class Mounting:
    """A pod whose node has it, and has begun none of its containers: its volumes or its network are not there."""

    since: float
    """When the node got it, Unix seconds."""
    needs: tuple[str, ...]
    """What its volumes need, such as ConfigMap 'authorities', in the order of the volumes."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A worker pod; `report` is None where the worker did not answer."""

    name: str
    phase: str
    ready: bool
    deleting: bool
    ip: str
    restarts: int
    message: str
    """Why it does not run: waiting reason or termination message; empty while it runs."""
    report: WorkerReport | None = None
    created: float = 0.0
    """Time of its creation, seconds since 1970; 0 where the API server gives none."""
    gaps: tuple[ReportedGap, ...] = ()
    """What its worker ended with, where that was a possible gap."""
    kept: KeptReport | None = None
    """The last report of a ready worker that did not answer for a moment; it is shown and proves nothing."""
    deletion_cost: str = ""
    """Its annotation pod-deletion-cost; empty without one."""
    container: Container = Container()
    template: str = ""
    """What names the template that the pod was made from; empty where nothing tells."""
    origin: Origin = Origin()
    unscheduled: str = ""
    """The scheduler's words about why no node takes it; empty where one has."""
    removed: str = ""
    """Why its node has ended or refused it, in the node's words; empty otherwise."""
    removed_time: float | None = None
    """When that was, Unix seconds; None where that is unknown."""
    mounting: Mounting | None = None
    """What it needs before its containers can be made; None once that is there, or while no node has it."""

    @property
    def is_alive(self) -> bool:
        """Whether a process of it may exist."""
        return self.phase not in ENDED_PHASES


@dataclass(frozen=True, slots=True)
class SparkPod:
    """A pod of a Spark application; `terminated`: every container has a terminated status."""

    name: str
    phase: str
    terminated: bool
    ended: float | None = None
    """End of its last container, seconds since 1970; None while one runs, or where the end of one is not known."""
    is_executor: bool = False
    """Whether it only carries out what a driver starts."""
    message: str = ""
    """Why it does not run, as `Pod.message`."""
    started: float | None = None
    """When its node took it, by the node's clock, Unix seconds; None before, or where that is not known."""
    created: float = 0.0
    """Time of its creation, as `Pod.created`."""

    @property
    def is_alive(self) -> bool:
        """Whether it may still write."""
        return self.phase not in ENDED_PHASES

    @property
    def runs(self) -> bool:
        """Whether it has started, and its containers have not all ended."""
        return self.phase == RUNNING and not self.terminated


class SparkRole(StrEnum):
    """What a pod of an object's Spark applications is there for."""

    COPY_DRIVER = auto()
    COPY_EXECUTOR = auto()
    QUERY_DRIVER = auto()
    QUERY_EXECUTOR = auto()

    @property
    def is_of_copy(self) -> bool:
        """Whether it is a role of a copy, and not of a query."""
        return self in (SparkRole.COPY_DRIVER, SparkRole.COPY_EXECUTOR)

    @classmethod
    def of_copy(cls, pod: SparkPod) -> Self:
        """The role of a pod of a copy."""
        return cls(cls.COPY_EXECUTOR if pod.is_executor else cls.COPY_DRIVER)

    @classmethod
    def of_query(cls, pod: SparkPod) -> Self:
        """The role of a pod of a query."""
        return cls(cls.QUERY_EXECUTOR if pod.is_executor else cls.QUERY_DRIVER)
