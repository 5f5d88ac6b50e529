"""The rule for repeating a failed call: whether, and after which pause; pure, for every client.

Theory of operation
-------------------
A call may be repeated when the repetition cannot do harm and can succeed. The cases, first match first:

    error                                    repeated
    no connection (`ConnectError`)           always: the request was not executed
    the service is busy or broken            if the call is idempotent, or if the code is one that the service returns
    (`ServerUnavailable`)                    before it executes anything (`REFUSED_CODES`)
    no complete answer (`TransportError`),   if the call is idempotent and the error is retryable: the request may have
    any other error code (`ServiceError`)    been executed
    anything else                            never

`protocol.http.operations` lists which calls are idempotent. The pauses come from a `Backoff`: 75 s in total for a read,
35 s for any other call (docs/protocol.md 5.4). A heartbeat, a checkpoint and a write pass no schedule, so one try is
made: their callers decide with more knowledge than this rule has.

Example: CreateTunnel is not idempotent. OTSServerBusy repeats it after 100 ms, 200 ms and so on, +-33 %. A timeout does
not: the tunnel may exist, and the repetition would fail with OTSTunnelExist.

Source: docs/protocol.md 5.4; docs/data-plane.md 1.10.
"""

from __future__ import annotations

from ots_tunnel.errors import ConnectError, ServerUnavailable, ServiceError, TransportError, TunnelError
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.service_codes import REFUSED_CODES


def retry_delay(
    schedule: Backoff, error: TunnelError, *, idempotent: bool, attempt: int, elapsed: float, entropy: float
) -> float | None:
    """Seconds until the next try; None if the error is to be raised.

    Args:
        attempt: failed tries so far, minus one.
        elapsed: seconds since the first try began.
        entropy: a random number in [0, 1).
    """
    if not is_repeatable(error, idempotent=idempotent):
        return None
    delay = schedule.delay(attempt, entropy)
    return delay if schedule.may_retry(elapsed, delay) else None


def is_repeatable(error: TunnelError, *, idempotent: bool) -> bool:
    """Whether sending the same call again can do no harm and can succeed."""
    match error:
        case ConnectError():
            return True
        case ServerUnavailable():
            return idempotent or error.code in REFUSED_CODES
        case TransportError() | ServiceError():
            return idempotent and error.retryable
        case _:
            return False
