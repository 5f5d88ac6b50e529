"""The schedules of docs/protocol.md 5.4."""

from __future__ import annotations

import math

import pytest

from ots_tunnel.protocol.backoff import (
    CALL_RETRY,
    FULL_PAGE_BYTES,
    IDLE_READ,
    READ_RETRY,
    RECONNECT,
    TRICKLE,
    Backoff,
    aligned,
    idle_pause,
    reads_on,
)

MIDDLE = 0.5


def nominal(schedule: Backoff, attempts: int) -> list[float]:
    return [round(schedule.delay(attempt, MIDDLE), 6) for attempt in range(attempts)]


def test_read_retry_doubles_from_16_ms_to_3_s_for_75_s() -> None:
    assert nominal(READ_RETRY, 9) == [0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 3.0]
    assert READ_RETRY.total == 75


def test_call_retry_doubles_from_100_ms_to_2_s_for_35_s() -> None:
    assert nominal(CALL_RETRY, 6) == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0]
    assert CALL_RETRY.total == 35


def test_idle_read_grows_to_5_s_and_never_stops() -> None:
    assert nominal(IDLE_READ, 6) == [0.02, 0.1, 0.5, 2.5, 5.0, 5.0]
    assert IDLE_READ.may_retry(1e9, 5)


def test_reconnect_lies_between_1_ms_and_10_s() -> None:
    assert RECONNECT.delay(0, 0.0) == pytest.approx(0.001)
    assert RECONNECT.delay(7, math.nextafter(1, 0)) == pytest.approx(10)


@pytest.mark.parametrize(("entropy", "share"), [(0.0, 0.67), (0.5, 1.0), (0.75, 1.165)])
def test_jitter_goes_both_ways(entropy: float, share: float) -> None:
    assert CALL_RETRY.delay(0, entropy) == pytest.approx(0.1 * share)


def test_delay_stays_finite_for_any_attempt() -> None:
    assert IDLE_READ.delay(10**9, MIDDLE) == 5
    assert IDLE_READ.delay(-1, MIDDLE) == pytest.approx(0.02)


def test_retry_ends_with_the_total() -> None:
    assert CALL_RETRY.may_retry(33, 2)
    assert not CALL_RETRY.may_retry(33, 2.1)


@pytest.mark.parametrize(
    ("may_more", "rows", "size_bytes", "expected"),
    [
        (True, 0, 0, True),
        (False, 5000, 10**7, False),
        (None, 500, FULL_PAGE_BYTES, False),
        (None, 501, 0, True),
        (None, 0, FULL_PAGE_BYTES + 1, True),
    ],
)
def test_page_size_decides_only_where_the_service_is_silent(
    may_more: bool | None, rows: int, size_bytes: int, expected: bool
) -> None:
    assert reads_on(may_more=may_more, rows=rows, size_bytes=size_bytes) is expected


@pytest.mark.parametrize("now", [0.0, 0.2, 0.4999, 123.456, 1e6 + 0.1])
def test_long_pauses_end_at_ticks_and_are_hardly_longer(now: float) -> None:
    for pause in (1.0, 1.3, 2.5, 4.99, 5.0):
        lengthened = aligned(pause, now)

        assert 0 <= lengthened - pause < 0.5
        assert math.isclose((now + lengthened) * 2, round((now + lengthened) * 2), abs_tol=1e-6)


def test_short_pauses_stay_as_they_are() -> None:
    assert aligned(0.02, 0.3) == 0.02
    assert aligned(0.999, 0.3) == 0.999


@pytest.mark.parametrize(
    ("attempt", "pause"), [(TRICKLE, 0.01), (-1, 0.01), (0, 0.02), (1, 0.1), (2, 0.5), (3, 2.5), (4, 5.0)]
)
def test_a_channel_in_which_records_trickle_is_read_sooner(attempt: int, pause: float) -> None:
    assert idle_pause(attempt, 0.0, MIDDLE) == pytest.approx(pause)
