"""spec.autoscaling and status.autoscaling: the number of workers by lag and busy share (docs/object.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from ots_tunnel_operator.api.schema import ApiModel, Count, LargeCount, Time, rule, rules
from ots_tunnel_operator.autoscale.policy import Policy, Sleep

Mode = Literal["Disabled", "Advise", "Auto"]
LimitedBy = Literal[
    "None",
    "Min",
    "Max",
    "Channels",
    "Stabilization",
    "Step",
    "Cooldown",
    "Rebalancing",
    "Ineffective",
    "NotProgressing",
    "MetricsUnavailable",
    "PeekFailed",
    "ForeignWriter",
    "Stopped",
]
Window = Annotated[int, Field(ge=0, le=3600)]


class ScaleUp(ApiModel):
    """How workers are added."""

    stabilization_seconds: Window = 45
    """Seconds for which more workers must be needed before any is added."""
    max_step_percent: Annotated[int, Field(ge=10, le=1000)] = 100
    """Largest growth at once in percent of the workers; two more are always possible."""


class ScaleDown(ApiModel):
    """How workers are removed."""

    stabilization_seconds: Window = 600
    """Seconds for which fewer workers must be enough before any is removed. 1800 suits a load that comes in bursts."""
    max_step_percent: Annotated[int, Field(ge=10, le=100)] = 50
    """Largest reduction at once in percent of the workers; one fewer is always possible."""


class ScaleToZero(ApiModel):
    """When no worker runs because nothing is to be read."""

    enabled: bool = False
    """Whether the last worker may go, with mode Auto; needs minReplicas 0. The operator then looks itself whether
    something is to be read, and one worker runs after a quarter of the stream's retention at the latest."""
    idle_seconds: Annotated[int, Field(ge=60, le=86_400)] = 1800
    """Seconds without a row after which the last worker may go."""
    peek_interval_seconds: Annotated[int, Field(ge=30, le=3600)] = 300
    """Seconds between two looks at a channel while no worker runs. A change may wait for so long, and for the start of
    a worker."""

    def policy(self) -> Sleep | None:
        """The policy of the decision (`autoscale.asleep`); None where at least one worker always runs."""
        return Sleep(float(self.idle_seconds), float(self.peek_interval_seconds)) if self.enabled else None


class Autoscaling(ApiModel):
    """Number of workers by lag and by the time that they spend in the sink."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.minReplicas <= self.maxReplicas",
                "autoscaling.minReplicas must not be above autoscaling.maxReplicas",
                field=".minReplicas",
            ),
            rule(
                "self.minReplicas > 0 || (has(self.scaleToZero) && self.scaleToZero.enabled)",
                "autoscaling.minReplicas 0 needs autoscaling.scaleToZero.enabled true, because the operator then has "
                "to look for changes itself: to stop every worker set replicas to 0 or suspend to true",
                field=".minReplicas",
            ),
            rule(
                "self.minReplicas == 0 || !has(self.scaleToZero) || !self.scaleToZero.enabled",
                "autoscaling.scaleToZero.enabled true needs autoscaling.minReplicas 0",
                field=".scaleToZero.enabled",
            ),
        )
    )

    mode: Mode = "Disabled"
    """Disabled: spec.replicas is the number of workers. Advise: so it is, and status.autoscaling says what Auto would
    do. Auto: the operator decides, and spec.replicas has no effect unless it is 0, which stops every worker. After Auto
    the number stays until spec.replicas is edited."""
    min_replicas: Annotated[int, Field(ge=0, le=1000)] = 1
    """Fewest workers; 0 only with scaleToZero.enabled. Channels are the limit where there are fewer of them."""
    max_replicas: Annotated[int, Field(ge=1, le=1000)] = 16
    """Most workers; never more than channels that can be read."""
    target_lag_seconds: Annotated[int, Field(ge=1, le=86_400)] = 60
    """Lag in seconds up to which workers are not behind; with the sink files its maxFileSeconds is added."""
    catch_up_seconds: Annotated[int, Field(ge=30, le=86_400)] = 300
    """Seconds in which a lag above the target is to be worked off."""
    target_utilization_percent: Annotated[int, Field(ge=10, le=95)] = 70
    """Percentage of its time in the sink, or of its rate limit, that a worker is to use; the rest is its reserve."""
    scale_up: ScaleUp = ScaleUp()
    """How workers are added."""
    scale_down: ScaleDown = ScaleDown()
    """How workers are removed."""
    scale_to_zero: ScaleToZero = ScaleToZero()
    """When no worker runs because nothing is to be read; only with mode Auto."""

    def policy(self, heartbeat_seconds: int, held_seconds: int, part: str) -> Policy:
        """The policy of the decision (`autoscale.decision`).

        Args:
            heartbeat_seconds: interval of the workers' heartbeats.
            held_seconds: for which the sink holds records: so late it is by design, with any number of workers.
            part: what messages call a channel.
        """
        return Policy(
            min_workers=self.min_replicas,
            max_workers=self.max_replicas,
            target_lag=float(self.target_lag_seconds + held_seconds),
            catch_up=float(self.catch_up_seconds),
            utilization=self.target_utilization_percent / 100,
            up_window=float(self.scale_up.stabilization_seconds),
            up_step=self.scale_up.max_step_percent / 100,
            down_window=float(self.scale_down.stabilization_seconds),
            down_step=self.scale_down.max_step_percent / 100,
            heartbeat=float(heartbeat_seconds),
            sleep=self.scale_to_zero.policy(),
            part=part,
        )


class LastDecision(ApiModel):
    """The last change of the number of workers."""

    time: Time
    """Time of the decision."""
    before: Annotated[Count, Field(alias="from")]
    """Number before it."""
    after: Annotated[Count, Field(alias="to")]
    """Number after it."""
    reason: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z][A-Za-z0-9]*$")]
    """Backlog, Busy, Idle, BaseData, FewerChannels, Bounds, Ineffective, Asleep or Woken."""
    message: Annotated[str, Field(max_length=1024)] = ""
    """The figures that it came from."""
    generation: LargeCount | None = None
    """Generation of the object for which it was taken; Ineffective holds scale-ups back for this one alone."""


class SleepStatus(ApiModel):
    """That no worker runs because nothing is to be read."""

    since: Time
    """Since when."""
    generation: LargeCount
    """Generation of the object for which that was decided; with another one a worker runs again."""


class AutoscalingStatus(ApiModel):
    """Number of workers, and why it is that."""

    desired_replicas: Count | None = None
    """Workers that spec.replicas or the autoscaler asks for; a suspended or completed object has none of them."""
    spec_replicas: Count | None = None
    """spec.replicas while mode was Auto: after Auto the number stays until another one is written there."""
    recommended_replicas: Count | None = None
    """Workers that the load asks for, within the bounds and the channels; Auto arrives at it if the load stays. Absent
    while unknown, and with mode Disabled."""
    useful_max_replicas: Count | None = None
    """Channels that can be read at the same time: more workers would have nothing to do."""
    limited_by: LimitedBy | None = None
    """What keeps the number from the one that the load asks for."""
    last_scale_time: Time | None = None
    """Time of the last change by Auto."""
    last_decision: LastDecision | None = None
    """The last change by Auto."""
    sleep: SleepStatus | None = None
    """Present while no worker runs because nothing is to be read."""
