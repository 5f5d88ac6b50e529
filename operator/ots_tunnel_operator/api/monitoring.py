"""When an object is Degraded, and who makes the PodMonitor of its workers (docs/object.md)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ots_tunnel_operator.api.schema import ApiModel


class Monitoring(ApiModel):
    """Thresholds of the Degraded condition, and the PodMonitor of the workers."""

    pod_monitor: bool | None = None
    """Let the operator make a PodMonitor for the workers of this object, so that Prometheus scrapes them; absent means
    false. Leave it out where one for all objects does (`metrics.podMonitor` of the chart): one Prometheus that follows
    both scrapes twice, and warns of samples that it has already."""
    lag_degraded_seconds: Annotated[int, Field(ge=1, le=604_800)] = 900
    """Lag in seconds above which the object is Degraded."""
    retention_warning_percent: Annotated[int, Field(ge=1, le=100)] = 50
    """Percentage of the stream's retention time from which on the object is Degraded. It is compared with the age of
    the oldest change not consumed yet; while existing rows are copied, with the age forecast for the end of the copy.
    Beyond 100 changes are lost."""
