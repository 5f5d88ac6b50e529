"""What the user asks of the autoscaler: spec.autoscaling and the heartbeat in the units of the decision."""

from __future__ import annotations

from dataclasses import dataclass

#: Heartbeats within which channels have moved after a change, until it was measured: the service takes a channel from
#: its worker at one heartbeat, gets it back at the next and gives it to the other at a third.
SETTLING_HEARTBEATS = 3


@dataclass(frozen=True, slots=True)
class Sleep:
    """When no worker runs at all (`autoscale.asleep`); times in seconds."""

    idle: float = 1800.0
    """Time without a row after which the last worker may go."""
    interval: float = 300.0
    """Time between two looks at a channel while none runs."""

    @property
    def bound(self) -> float:
        """Age up to which a look says something: one may fail, and the next one is due."""
        return 2 * self.interval


@dataclass(frozen=True, slots=True)
class Policy:
    """Bounds and targets; times in seconds, shares from 0 to 1."""

    min_workers: int = 1
    max_workers: int = 16
    target_lag: float = 60.0
    catch_up: float = 300.0
    """Time in which a lag above the target is to be worked off."""
    utilization: float = 0.7
    """Share of time in which a worker is to write to its sink."""
    up_window: float = 45.0
    up_step: float = 1.0
    """Largest growth at once, as a share of the workers."""
    down_window: float = 600.0
    down_step: float = 0.5
    """Largest reduction at once, as a share of the workers."""
    heartbeat: float = 10.0
    sleep: Sleep | None = None
    """None where at least one worker always runs."""
    part: str = "channel"
    """The word for a channel."""

    @property
    def least_settling(self) -> float:
        """Seconds that every change needs before the figures mean something again."""
        return SETTLING_HEARTBEATS * self.heartbeat
