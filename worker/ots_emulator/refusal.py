"""Error answers of the emulator, in the service's words (docs/data-plane.md 1.11, docs/protocol.md 1.10)."""

from __future__ import annotations

import re
import uuid

#: Code -> HTTP status; other codes have 400.
STATUS = {
    "OTSAuthFailed": 403,
    "OTSPermissionDenied": 403,
    "OTSNoPermissionAccess": 403,
    "OTSConditionCheckFail": 403,
    "OTSQuotaExhausted": 403,
    "OTSCapacityUnitExhausted": 403,
    "OTSNotEnoughCapacityUnit": 403,
    "OTSTooFrequentReservedThroughputAdjustment": 403,
    "OTSObjectNotExist": 404,
    "OTSTableNotReady": 404,
    "OTSMethodNotAllowed": 405,
    "OTSRequestTimeout": 408,
    "OTSObjectAlreadyExist": 409,
    "OTSRowOperationConflict": 409,
    "OTSTunnelExist": 409,
    "OTSResourceGone": 410,
    "OTSRequestBodyTooLarge": 413,
    "OTSFlowControl": 429,
    "OTSInternalServerError": 500,
    "OTSServerBusy": 503,
    "OTSPartitionUnavailable": 503,
    "OTSTimeout": 503,
    "OTSServerUnavailable": 503,
    "OTSTunnelServerUnavailable": 503,
}

_TABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
#: Characters of a message. Messages quote a part of the request, which may have megabytes.
_MESSAGE_LIMIT = 2000


class Refusal(Exception):
    """A refused call or row; becomes an error body, or the error of one row.

    Args:
        code: the service's error code.
        message: the service's text.
        status: HTTP status; by default the one that belongs to the code.
    """

    def __init__(self, code: str, message: str, status: int | None = None) -> None:
        if len(message) > _MESSAGE_LIMIT:
            message = message[: _MESSAGE_LIMIT - 3] + "..."
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.status = STATUS.get(code, 400) if status is None else status


class RequestRefusal(Refusal):
    """A refusal that concerns the whole request even when one row is the cause (docs/data-plane.md 2.3)."""


def parameter_invalid(message: str) -> Refusal:
    """Build the refusal of an argument."""
    return Refusal("OTSParameterInvalid", message)


def request_invalid(message: str) -> RequestRefusal:
    """Build the refusal of an argument that is wrong whatever the table is."""
    return RequestRefusal("OTSParameterInvalid", message)


def unavailable(what: str) -> str:
    """Say that the emulator lacks something that the service has."""
    return f"{what} is not available in this emulator: see 'What is missing?' in docs/emulator.md."


def check_table_name(name: str) -> None:
    """Refuse an invalid table name (docs/data-plane.md 2.2).

    Raises:
        RequestRefusal: it refuses the whole request, also for one row of a batch.
    """
    if not _TABLE_NAME.fullmatch(name):
        raise request_invalid(f"Invalid table name: '{name}'.")


def table_missing(name: str) -> Refusal:
    """Build the refusal of a call on a table that does not exist.

    Raises:
        RequestRefusal: no table could have this name.
    """
    check_table_name(name)
    return Refusal("OTSObjectNotExist", "Requested table does not exist.")


def client_gone() -> Refusal:
    """Build the refusal of a heartbeat from a client that is unknown or timed out."""
    return Refusal("OTSResourceGone", "[tunnelservice] client not exist")


def tunnel_missing() -> Refusal:
    """Build the refusal of a call on a tunnel that does not exist."""
    return Refusal("OTSParameterInvalid", "[tunnelservice] tunnel not exist")


def tunnel_expired() -> Refusal:
    """Build the refusal of a tunnel whose log is gone."""
    return Refusal("OTSTunnelExpired", "[tunnelservice] tunnel expired: the incremental log is beyond its retention")


def records_trimmed() -> Refusal:
    """Build the refusal of a read whose records are gone, in the words of docs/protocol.md 1.10.

    It is the error of the table's stream: code, text and the id of the call on the stream. The public Elixir client has
    seen that it is 117 bytes long, which is this with a UUID.
    """
    text = f"OTSTrimmedDataAccess Requested stream data is already trimmed or does not exist. {uuid.uuid4()}"
    return Refusal("OTSTunnelServerUnavailable", text, 400)
