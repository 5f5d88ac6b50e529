"""When a call is tried again, and after what pause: one pure rule for every client.

A call that is not idempotent is only repeated when it was certainly not executed. Source: docs/protocol.md 5.4;
docs/data-plane.md 1.10.
"""

from __future__ import annotations

from ots_tunnel.errors import ConnectError, ServerUnavailable, ServiceError, TransportError, TunnelError
from ots_tunnel.protocol.backoff import Backoff

#: The service refuses these before it executes anything, so that any call may be repeated.
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


def retry_delay(
    schedule: Backoff, error: TunnelError, *, idempotent: bool, attempt: int, elapsed: float, entropy: float
) -> float | None:
    """Seconds to wait before the next try, or None when the error is to be raised.

    Args:
        attempt: failed tries so far, less one.
        elapsed: seconds since the first try began.
        entropy: a random number in [0, 1).
    """
    if not is_repeatable(error, idempotent=idempotent):
        return None
    delay = schedule.delay(attempt, entropy)
    return delay if schedule.may_retry(elapsed, delay) else None


def is_repeatable(error: TunnelError, *, idempotent: bool) -> bool:
    """Whether sending the same call again can neither hurt nor be in vain."""
    match error:
        case ConnectError():
            return True
        case ServerUnavailable():
            return idempotent or error.code in REFUSED_CODES
        case TransportError() | ServiceError():
            return idempotent and error.retryable
        case _:
            return False
