"""A condition of an object, and the types that an object has."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ots_tunnel_operator.api.schema import ApiModel, LargeCount, Time, list_map

#: All types, in the order of the status (docs/architecture.md 6.3).
ConditionType = Literal[
    "Ready",
    "Progressing",
    "Degraded",
    "Stalled",
    "CredentialsValid",
    "SinkReady",
    "TunnelReady",
    "WorkersAvailable",
    "Rebalancing",
    "ScalingActive",
    "ScalingLimited",
    "Suspended",
    "Completed",
]
ConditionStatus = Literal["True", "False", "Unknown"]

#: Longest message of a condition in characters; with a longer one the API server refuses the whole status.
MAX_CONDITION_MESSAGE = 4096


class Condition(ApiModel):
    """One aspect of the object, in the standard form that `kubectl wait` evaluates."""

    type: ConditionType
    """Name of the aspect."""
    status: ConditionStatus
    """Whether the condition holds; Unknown while the operator cannot tell."""
    reason: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z][A-Za-z0-9]*$")]
    """Cause as one word, for programs."""
    message: Annotated[str, Field(max_length=MAX_CONDITION_MESSAGE)] = ""
    """Cause in plain words: the field, its value and what to do."""
    observed_generation: LargeCount | None = None
    """Generation of the object that the condition describes."""
    last_transition_time: Time
    """Time of the last change of `status`."""


ConditionList = Annotated[tuple[Condition, ...], Field(max_length=32, json_schema_extra=list_map("type"))]
