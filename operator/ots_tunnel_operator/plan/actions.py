"""What a pass decides: actions in order, what is waited for, what is wrong.

Killing the operator between any two actions must be harmless: see `plan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ots_tunnel.model import StreamConfig, TunnelType
from ots_tunnel_operator.assess.snapshot import Snapshot, Step
from ots_tunnel_operator.reasons import Problem, Reason


@dataclass(frozen=True, slots=True)
class RecordStatus:
    """Merge this into the status before anything that follows."""

    change: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EnsureDestination:
    """Create the destination table after the source's schema, or find it made."""


@dataclass(frozen=True, slots=True)
class CreateTunnel:
    """Create the tunnel."""

    type: TunnelType
    stream: StreamConfig | None


@dataclass(frozen=True, slots=True)
class ApplyObject:
    """Server-side apply; skipped where it would change nothing."""

    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ScaleDown:
    """Take the workers to 0 without touching anything else of their Deployment."""


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """Delete one of our children."""

    kind: str
    name: str


Action = RecordStatus | EnsureDestination | CreateTunnel | ApplyObject | ScaleDown | DeleteObject

#: Where existing rows are not Spark's business.
NO_SNAPSHOT = Snapshot(Step.NOT_NEEDED)


@dataclass(frozen=True, slots=True)
class Wait:
    """What has to happen before the object is where it should be."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions in order; what is waited for; what is wrong.

    `again` asks for the next pass at once, because these actions change what it will see.
    """

    actions: tuple[Action, ...] = ()
    wait: Wait | None = None
    problem: Problem | None = None
    again: bool = False
    completed: bool = False
    replicas: int = 0
    """Workers that should exist now."""
    snapshot: Snapshot = NO_SNAPSHOT
