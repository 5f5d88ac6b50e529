"""The schedules of docs/protocol.md 5.4."""

from __future__ import annotations

import pytest

from ots_tunnel.protocol.backoff import CALL_RETRY, READ_RETRY, Backoff

MIDDLE = 0.5


def nominal(schedule: Backoff, attempts: int) -> list[float]:
    return [round(schedule.delay(attempt, MIDDLE), 6) for attempt in range(attempts)]


def test_read_retry_doubles_from_16_ms_to_3_s_for_75_s() -> None:
    assert nominal(READ_RETRY, 9) == [0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 3.0]
    assert READ_RETRY.total == 75


def test_call_retry_doubles_from_100_ms_to_2_s_for_35_s() -> None:
    assert nominal(CALL_RETRY, 6) == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0]
    assert CALL_RETRY.total == 35


@pytest.mark.parametrize(("entropy", "share"), [(0.0, 0.67), (0.5, 1.0), (0.75, 1.165)])
def test_jitter_goes_both_ways(entropy: float, share: float) -> None:
    assert CALL_RETRY.delay(0, entropy) == pytest.approx(0.1 * share)


def test_delay_stays_finite_for_any_attempt() -> None:
    assert CALL_RETRY.delay(10**9, MIDDLE) == 2
    assert CALL_RETRY.delay(-1, MIDDLE) == pytest.approx(0.1)


def test_retry_ends_with_the_total() -> None:
    assert CALL_RETRY.may_retry(33, 2)
    assert not CALL_RETRY.may_retry(33, 2.1)
