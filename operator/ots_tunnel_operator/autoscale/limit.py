"""What keeps the number of workers from the one that the load asks for (status.autoscaling.limitedBy)."""

from __future__ import annotations

import enum


class Limit(enum.StrEnum):
    """The first thing that limits; the values are an API."""

    NONE = "None"
    MIN = "Min"
    MAX = "Max"
    CHANNELS = "Channels"
    STABILIZATION = "Stabilization"
    STEP = "Step"
    COOLDOWN = "Cooldown"
    REBALANCING = "Rebalancing"
    INEFFECTIVE = "Ineffective"
    NOT_PROGRESSING = "NotProgressing"
    METRICS_UNAVAILABLE = "MetricsUnavailable"
    PEEK_FAILED = "PeekFailed"
    FOREIGN_WRITER = "ForeignWriter"
    STOPPED = "Stopped"
