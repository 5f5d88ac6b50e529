"""What a pass decides: actions in order, the wait and the problem.

Killing the operator between any two actions is harmless (`planner` says why).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ots_tunnel.model import StreamConfig, TunnelType
from ots_tunnel_operator.kube.kinds import Kind
from ots_tunnel_operator.reasons import Problem, Reason


@dataclass(frozen=True, slots=True)
class RecordStatus:
    """Merge `change` into the stored status; the actions after it rely on that."""

    change: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EnsureDestination:
    """Create the destination table with the source's schema unless it exists.

    `withdrawal` is the change of the status where the call proves to have created nothing; empty without an intent.
    """

    withdrawal: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateTunnel:
    """Create the tunnel; `withdrawal` as of `EnsureDestination`."""

    type: TunnelType
    stream: StreamConfig | None
    withdrawal: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeleteTunnel:
    """Delete the object's tunnel if it still has this id, as a reset asks."""

    tunnel_id: str


@dataclass(frozen=True, slots=True)
class ApplyObject:
    """Apply a manifest (server-side apply); skipped where it would change nothing."""

    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TryTemplate:
    """Ask the API server whether it takes a Deployment with this pod template; nothing is stored.

    It is asked once for a template; the actions after it rely on its consent.
    """

    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TryObject:
    """Ask the API server whether it takes a manifest that is not applied yet; nothing is stored.

    It is not asked where applying the manifest would change nothing.
    """

    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ApplyToExisting:
    """Apply a manifest where its object exists, also where no watch shows it; where there is none, none is made."""

    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CheckName:
    """End the plan where an object of another client has the name of this manifest; nothing is stored."""

    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ScaleDown:
    """Set the Deployment's replicas to 0 and change nothing else of it."""


@dataclass(frozen=True, slots=True)
class SetReplicas:
    """Set the Deployment's replicas and change nothing else of it: its new template waits for its turn."""

    replicas: int


@dataclass(frozen=True, slots=True)
class MarkPod:
    """Set the deletion cost of a worker's pod, by which a ReplicaSet chooses whom it removes; None takes it away."""

    name: str
    cost: str | None


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """Delete one child of the object; one that belongs to something else is refused."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class Aside:
    """Carry out what the flow of records does not need: a refusal ends nothing, and the next look shows it."""

    action: ApplyObject | DeleteObject


Action = (
    RecordStatus
    | EnsureDestination
    | CreateTunnel
    | DeleteTunnel
    | ApplyObject
    | TryTemplate
    | TryObject
    | ApplyToExisting
    | CheckName
    | ScaleDown
    | SetReplicas
    | MarkPod
    | DeleteObject
    | Aside
)


@dataclass(frozen=True, slots=True)
class Wait:
    """What has to happen before the object is as wanted."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Warn:
    """A Warning event about actions that were carried out although something spoke against them."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The decision of one step of a pass.

    `again` requests the next step at once, because the actions change what it will observe.
    """

    actions: tuple[Action, ...] = ()
    wait: Wait | None = None
    problem: Problem | None = None
    again: bool = False
    completed: bool = False
    replicas: int = 0
    """Workers that should exist now."""
    warning: Warn | None = None
    """Posted once the actions are carried out."""
    held: Wait | None = None
    """What waits although the object is as wanted otherwise: it has no part in Ready."""
