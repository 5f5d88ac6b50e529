"""From the service's error codes to the package's errors.

Source: docs/protocol.md 1.10 and 5.3; docs/data-plane.md 1.10 and 1.11.
"""

from __future__ import annotations

import re

from ots_tunnel.errors import (
    TRIMMED,
    AuthFailed,
    ConnectError,
    ObjectAlreadyExist,
    ObjectNotExist,
    ParameterInvalid,
    PermissionDenied,
    ResourceGone,
    RowRejected,
    SequenceNumberMismatch,
    ServerUnavailable,
    ServiceError,
    TableNotFound,
    TunnelExpired,
    TunnelNotFound,
)
from ots_tunnel.protocol.http.statuses import NOT_BEGUN, REQUEST_TIMEOUT, may_pass

#: Service code -> class. Other codes become a plain `ServiceError`, or `ServerUnavailable` if the HTTP status may pass.
ERROR_CLASSES: dict[str, type[ServiceError]] = {
    "OTSTunnelServerUnavailable": ServerUnavailable,
    "OTSServerUnavailable": ServerUnavailable,
    "OTSInternalServerError": ServerUnavailable,
    "OTSServerBusy": ServerUnavailable,
    "OTSTimeout": ServerUnavailable,
    "OTSRequestTimeout": ServerUnavailable,
    "OTSPartitionUnavailable": ServerUnavailable,
    "OTSTableNotReady": ServerUnavailable,
    "OTSRowOperationConflict": ServerUnavailable,
    "OTSOperationConflict": ServerUnavailable,
    "OTSOperationThrottled": ServerUnavailable,
    "OTSNotEnoughCapacityUnit": ServerUnavailable,
    "OTSTooFrequentReservedThroughputAdjustment": ServerUnavailable,
    "OTSFlowControl": ServerUnavailable,
    "OTSResourceGone": ResourceGone,
    "OTSSequenceNumberNotMatch": SequenceNumberMismatch,
    "OTSTunnelExpired": TunnelExpired,
    TRIMMED: TunnelExpired,
    "OTSParameterInvalid": ParameterInvalid,
    "OTSUnsupportOperation": ParameterInvalid,
    "OTSMissingHeader": ParameterInvalid,
    "OTSPermissionDenied": PermissionDenied,
    "OTSNoPermissionAccess": PermissionDenied,
    "OTSAuthFailed": AuthFailed,
    "OTSObjectNotExist": ObjectNotExist,
    "OTSObjectAlreadyExist": ObjectAlreadyExist,
    "OTSTunnelExist": ObjectAlreadyExist,
    "OTSInvalidPK": RowRejected,
    "OTSOutOfRowSizeLimit": RowRejected,
    "OTSOutOfColumnCountLimit": RowRejected,
    "OTSConditionCheckFail": RowRejected,
    "OTSRequestBodyTooLarge": RowRejected,
    "OTSDataOutOfRange": RowRejected,
}


#: Codes that the service returns before it executes anything, so that any call may be repeated.
REFUSED_CODES = frozenset(
    {
        "OTSRowOperationConflict",
        "OTSNotEnoughCapacityUnit",
        "OTSTableNotReady",
        "OTSPartitionUnavailable",
        "OTSServerBusy",
        "OTSOperationThrottled",
        "OTSFlowControl",
        "OTSQuotaExhausted",
    }
)

_MISSING = re.compile(r"\b(tunnel|table) (?:does )?not exist|^Invalid (table) name\b")


def is_refusal(error: BaseException) -> bool:
    """Whether an error proves that the service has not carried out the call, and will not."""
    match error:
        case ConnectError():
            return True
        case ServerUnavailable():
            return error.code in REFUSED_CODES
        case ServiceError():
            # another server's answer (docs/protocol.md 1.10) says nothing about what the service has received
            is_another = error.code == "OTSClientError" or error.http_status == REQUEST_TIMEOUT
            return 400 <= error.http_status < 500 and not is_another
        case _:
            return False


def was_not_begun(error: ServiceError) -> bool:
    """Whether an error that may pass says by its code, or by the status of a proxy, that nothing was carried out."""
    return error.code in REFUSED_CODES or error.http_status in NOT_BEGUN


def service_error(code: str, message: str, request_id: str = "", http_status: int = 0) -> ServiceError:
    """Build the error, in the class by which callers decide what to do.

    Three codes need their text too. Trimmed stream data arrives as ``OTSTunnelServerUnavailable`` with a text that
    starts with ``OTSTrimmedDataAccess``; a retry never succeeds (docs/protocol.md 1.10, G19). The Tunnel Service has no
    codes for a missing tunnel or table (docs/protocol.md 1.10), and no table has an invalid name. A quota error is
    temporary only if its text is about frequency (docs/data-plane.md 1.10).
    """
    if message.startswith(TRIMMED):
        return TunnelExpired(code, message, request_id, http_status)
    if code == "OTSQuotaExhausted" and "Too frequent" in message:
        return ServerUnavailable(code, message, request_id, http_status)
    default = ServerUnavailable if may_pass(http_status) else ServiceError
    kind = ERROR_CLASSES.get(code, default)
    if kind is ParameterInvalid and (missing := _MISSING.search(message)):
        kind = TunnelNotFound if missing[1] == "tunnel" else TableNotFound
    return kind(code, message, request_id, http_status)
