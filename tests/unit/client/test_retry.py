from __future__ import annotations

import pytest

from ots_tunnel.client.retry import is_repeatable, retry_delay
from ots_tunnel.errors import ConnectError, ConnectionLost, OwnershipLost, TunnelError
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.service_codes import service_error

BUSY = service_error("OTSServerBusy", "busy", http_status=503)
UNAVAILABLE = service_error("OTSTunnelServerUnavailable", "later", http_status=503)
TRIMMED = service_error("OTSTunnelServerUnavailable", "OTSTrimmedDataAccess: gone", http_status=400)
WRONG = service_error("OTSParameterInvalid", "wrong", http_status=400)


@pytest.mark.parametrize(
    ("error", "idempotent", "repeatable"),
    [
        (ConnectError("refused"), False, True),  # certainly not executed
        (ConnectionLost("reset"), False, False),
        (ConnectionLost("reset"), True, True),
        (BUSY, False, True),  # refused before execution
        (UNAVAILABLE, False, False),
        (UNAVAILABLE, True, True),
        (TRIMMED, True, False),  # G19: cannot heal
        (WRONG, True, False),
        (OwnershipLost("late"), True, False),
    ],
)
def test_only_harmless_retries_that_can_succeed_are_made(
    error: TunnelError, idempotent: bool, repeatable: bool
) -> None:
    assert is_repeatable(error, idempotent=idempotent) is repeatable


def test_pauses_follow_the_schedule_until_its_total() -> None:
    schedule = Backoff(initial=1, factor=2, cap=10, jitter=0, total=5)

    def delay(attempt: int, elapsed: float) -> float | None:
        return retry_delay(schedule, BUSY, idempotent=True, attempt=attempt, elapsed=elapsed, entropy=0.5)

    assert delay(0, 0.0) == 1
    assert delay(1, 1.5) == 2
    assert delay(2, 1.5) is None  # 1.5 + 4 is beyond 5
