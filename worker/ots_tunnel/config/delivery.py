"""Grouping of records into writes, and handling of refused records."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from ots_tunnel.config.base import ConfigModel
from ots_tunnel.config.files import FileStoreConfig
from ots_tunnel.config.modelling import Field, model_validator
from ots_tunnel.config.problems import Contradiction
from ots_tunnel.config.selection import ColumnsConfig, FilterConfig
from ots_tunnel.config.words import Words


class RetryConfig(ConfigModel):
    """Pauses between tries of a failed write."""

    backoff_seconds: float = Field(default=1, gt=0)
    """First pause; each further one is twice as long."""
    backoff_max_seconds: float = Field(default=60, gt=0)
    """Longest pause."""

    @model_validator(mode="after")
    def _longest_is_not_shorter(self) -> Self:
        if self.backoff_max_seconds < self.backoff_seconds:
            raise Contradiction(
                "backoffMaxSeconds",
                f"found {self.backoff_max_seconds:g}, allowed is {self.backoff_seconds:g} and more, "
                "as backoffSeconds says",
            )
        return self


class RateLimitConfig(ConfigModel):
    """A limit of the rate, kept by waiting."""

    rows_per_second: int = Field(default=0, ge=0)
    """0 means no limit."""


class DeadLetterConfig(ConfigModel):
    """Place for refused records."""

    files: FileStoreConfig
    """Files of JSON lines, each with a record and its error."""


class DeliveryConfig(ConfigModel):
    """Grouping of records into writes, and handling of refused records."""

    batch_max_rows: Annotated[
        int, Field(ge=1, le=200), Words(because="the service takes at most 200 rows in one BatchWriteRow")
    ] = 200
    """Rows per write; the service's maximum is 200."""
    batch_max_bytes: Annotated[
        int, Field(ge=1024, le=4_194_304), Words(because="the service takes at most 4194304 bytes in one BatchWriteRow")
    ] = 4_000_000
    """Bytes per write; the service's maximum is 4194304."""
    retry: RetryConfig = RetryConfig()
    columns: ColumnsConfig | None = None
    filter: FilterConfig | None = None
    rate_limit: RateLimitConfig | None = None
    """Rows that this worker writes per second."""
    on_permanent_error: Literal["Fail", "Skip", "DeadLetter"] = "Fail"
    """Handling of a record that the sink refuses permanently. Fail stops the worker before it; Skip counts and logs it;
    DeadLetter stores it with the error. Skip and DeadLetter can leave partial rows at the sink."""
    dead_letter: DeadLetterConfig | None = None
    """Place where DeadLetter stores records; the channel waits while the place does not accept them."""

    @model_validator(mode="after")
    def _dead_letters_have_a_place(self) -> Self:
        if self.on_permanent_error == "DeadLetter" and self.dead_letter is None:
            raise Contradiction("deadLetter", "missing, onPermanentError DeadLetter needs {files: {url: ...}}")
        if self.on_permanent_error != "DeadLetter" and self.dead_letter is not None:
            raise Contradiction(
                "deadLetter", f"found with onPermanentError {self.on_permanent_error}, allowed is DeadLetter with it"
            )
        return self
