"""Delivery settings of an object: size of the writes, what reaches the sink, and failed writes (docs/object.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from ots_tunnel_operator.api.files import FileStore
from ots_tunnel_operator.api.schema import ApiModel, rule, rules
from ots_tunnel_operator.api.selection import Columns, Filter
from ots_tunnel_operator.api.source import RateLimit


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


class DeadLetter(ApiModel):
    """Place for refused records."""

    files: FileStore
    """Files of JSON lines in a bucket or on a volume, each line a record with the sink's error."""


class Delivery(ApiModel):
    """Size of the writes to the sink, what reaches it, and the treatment of failed writes."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "(self.onPermanentError == 'DeadLetter') == has(self.deadLetter)",
                "delivery.deadLetter is needed with delivery.onPermanentError DeadLetter and only with it",
                field=".deadLetter",
                found="'found onPermanentError ' + self.onPermanentError",
            )
        )
    )

    batch_max_rows: Annotated[int, Field(ge=1, le=200)] = 200
    """Most rows in one write; the service accepts 200."""
    batch_max_bytes: Annotated[int, Field(ge=1024, le=4_194_304)] = 4_000_000
    """Most bytes in one write; the service accepts 4194304."""
    retry: Retry = Retry()
    """Pauses between two attempts at a failed write."""
    columns: Columns | None = None
    """Attribute columns that reach the sink, and their names there; absent means all, unchanged."""
    filter: Filter | None = None
    """Records that reach the sink; absent means all. What a changed filter lets pass is not delivered afterwards."""
    rate_limit: RateLimit | None = None
    """Limit of each worker's writes; absent means none. With more workers, the object writes more."""
    on_permanent_error: Literal["Fail", "Skip", "DeadLetter"] = "Fail"
    """Treatment of a record that the sink refuses permanently. Fail: all workers are stopped before it, until the
    spec changes or you restart them (kubectl ott restart); no record is dropped. Skip: it is counted, logged and left
    out. DeadLetter: it is stored with the error in deadLetter. Skip and DeadLetter are for the sinks tablestore, kafka
    and http, and for files with columns; they can leave rows in part."""
    dead_letter: DeadLetter | None = None
    """Place for refused records; needed with onPermanentError DeadLetter. While the place does not accept them, no
    checkpoint of their channel passes them."""
