"""Delivery settings of an object: size of the writes, and the treatment of failed ones (docs/object.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from ots_tunnel_operator.api.schema import ApiModel, rule, rules


class Retry(ApiModel):
    """Pauses between two attempts at a failed write; a retryable failure is retried without limit."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.backoffMaxSeconds >= self.backoffSeconds",
                "retry.backoffMaxSeconds must not be less than retry.backoffSeconds",
                field=".backoffMaxSeconds",
            )
        )
    )

    backoff_seconds: Annotated[int, Field(ge=1, le=3600)] = 1
    """First pause in seconds; it doubles with every further attempt."""
    backoff_max_seconds: Annotated[int, Field(ge=1, le=3600)] = 60
    """Longest pause in seconds; at least backoffSeconds."""


class Delivery(ApiModel):
    """Size of the writes to the sink, and the treatment of failed ones."""

    batch_max_rows: Annotated[int, Field(ge=1, le=200)] = 200
    """Most rows in one write; the service accepts 200."""
    batch_max_bytes: Annotated[int, Field(ge=1024, le=4_194_304)] = 4_000_000
    """Most bytes in one write; the service accepts 4194304."""
    retry: Retry = Retry()
    """Pauses between two attempts at a failed write."""
    on_permanent_error: Literal["Fail"] = "Fail"
    """Treatment of a record that the sink refuses permanently. Fail: the worker ends before it and is
    restarted; no record is dropped."""
