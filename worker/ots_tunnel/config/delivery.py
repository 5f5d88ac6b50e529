"""How records are grouped, and what happens to refused ones."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from ots_tunnel.config.base import ConfigModel
from ots_tunnel.config.files import FileStoreConfig
from ots_tunnel.config.selection import ColumnsConfig, FilterConfig


class RetryConfig(ConfigModel):
    """Pauses between tries of a failed write."""

    backoff_seconds: float = Field(default=1, gt=0)
    """First pause; doubles."""
    backoff_max_seconds: float = Field(default=60, gt=0)
    """Longest pause."""


class RateLimitConfig(ConfigModel):
    """A limit that is kept by waiting."""

    rows_per_second: int = Field(default=0, ge=0)
    """0 means no limit."""


class DeadLetterConfig(ConfigModel):
    """A place for refused records."""

    files: FileStoreConfig
    """Files of JSON lines: the record and the error."""


class DeliveryConfig(ConfigModel):
    """How records are grouped and what happens to refused ones."""

    batch_max_rows: int = Field(default=200, ge=1, le=200)
    """Rows per write; the service's maximum is 200."""
    batch_max_bytes: int = Field(default=4_000_000, ge=1024, le=4_194_304)
    """Bytes per write; the service's maximum is 4194304."""
    retry: RetryConfig = RetryConfig()
    columns: ColumnsConfig | None = None
    filter: FilterConfig | None = None
    rate_limit: RateLimitConfig | None = None
    """Rows that this worker writes per second."""
    on_permanent_error: Literal["Fail", "Skip", "DeadLetter"] = "Fail"
    """What happens to a record that the sink refuses for good. Fail ends the worker before it; Skip counts and logs it;
    DeadLetter stores it with the error. Skip and DeadLetter can leave partial rows at the sink."""
    dead_letter: DeadLetterConfig | None = None
    """Where DeadLetter stores records; while it cannot, their channel waits."""

    @model_validator(mode="after")
    def _dead_letters_have_a_place(self) -> Self:
        if (self.on_permanent_error == "DeadLetter") != (self.dead_letter is not None):
            raise ValueError(
                f"onPermanentError {self.on_permanent_error} and deadLetter "
                f"{'given' if self.dead_letter else 'missing'}: DeadLetter needs a place, and nothing else takes one"
            )
        return self
