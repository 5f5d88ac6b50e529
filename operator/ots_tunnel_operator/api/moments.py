"""Points of a table's stream, as fields of an object."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, cast

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator

from ots_tunnel_operator.api.schema import Time

#: The last second that the service can count, in nanoseconds since 1970 of 64 bits: no change is ever later.
LATEST = datetime(2262, 4, 11, 23, 47, 16, tzinfo=UTC)
_REST = r"-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#: A date, a time of day and a zone. A start of 1970 would be 0 on the wire, which means unset. The format date-time of
#: the API server alone admits what the model cannot read.
START = f"(197[1-9]|19[89][0-9]|2[01][0-9]{{2}}){_REST}"
START_WORDS = "a time such as 2026-01-31T12:00:00Z in the years 1971 to 2199"
#: What the API server takes as an end. The field is immutable, so the model reads what once was taken, too: any year,
#: also 9999 for "never", and letters of lower case.
END = f"(197[1-9]|19[89][0-9]|[2-9][0-9]{{3}}){_REST}"
#: The first moment that the service can tell from no end.
EARLIEST = datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)


def _start(value: object, read: ValidatorFunctionWrapHandler) -> datetime:
    """The start; decimals beyond microseconds are cut off: a little earlier, so that no change is left out."""
    if isinstance(value, str) and not re.fullmatch(START, value, re.IGNORECASE):
        raise ValueError(f"allowed is {START_WORDS}")
    return cast(datetime, read(value))


def _end(value: object, read: ValidatorFunctionWrapHandler) -> datetime:
    """The end; decimals beyond microseconds are rounded up: a little later, so that no change is left out."""
    moment = max(EARLIEST, min(cast(datetime, read(value)), LATEST))
    has_more = isinstance(value, str) and re.search(r"[.][0-9]{6}0*[1-9]", value)
    return moment + timedelta(microseconds=1) if has_more and moment < LATEST else moment


#: Points of a stream.
#: Points of a stream.
StartTime = Annotated[Time, WrapValidator(_start), Field(json_schema_extra={"pattern": f"^{START}$"})]
EndTime = Annotated[Time, WrapValidator(_end), Field(json_schema_extra={"pattern": f"^{END}$"})]
