"""How soon a stream channel is read again (docs/protocol.md 5.4)."""

from __future__ import annotations

import math

import pytest

from ots_tunnel.protocol.idle_read import (
    FULL_PAGE_BYTES,
    IDLE_READ,
    TRICKLE_EMPTY_PAGES,
    IdleReads,
    Pace,
    aligned,
    reads_on,
)

MIDDLE = 0.5
UNKNOWN = IdleReads()


def backing_off(step: int) -> IdleReads:
    return IdleReads(Pace.BACKING_OFF, step)


def trickling(empty_pages: int = 0) -> IdleReads:
    return IdleReads(Pace.TRICKLING, empty_pages)


def test_idle_read_grows_to_5_s_and_never_stops() -> None:
    assert [round(IDLE_READ.delay(attempt, MIDDLE), 6) for attempt in range(6)] == [0.02, 0.1, 0.5, 2.5, 5.0, 5.0]
    assert IDLE_READ.may_retry(1e9, 5)


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
    ("idle", "pause"),
    [
        (trickling(), 0.01),
        (trickling(TRICKLE_EMPTY_PAGES - 1), 0.01),
        (backing_off(0), 0.02),
        (backing_off(1), 0.1),
        (backing_off(2), 0.5),
        (backing_off(3), 2.5),
        (backing_off(4), 5.0),
    ],
)
def test_a_channel_in_which_records_trickle_is_read_sooner(idle: IdleReads, pause: float) -> None:
    assert idle.pause(0.0, MIDDLE) == pytest.approx(pause)


@pytest.mark.parametrize(
    ("idle", "rows", "may_more", "following"),
    [
        (UNKNOWN, 0, False, backing_off(0)),
        (backing_off(3), 0, False, backing_off(4)),
        (backing_off(3), 5, False, backing_off(1)),  # a trickle after silence
        (backing_off(1), 5, False, backing_off(0)),
        (backing_off(0), 1, False, backing_off(0)),
        (backing_off(0), 5, False, trickling()),  # several within the shortest pause
        (trickling(), 0, False, trickling(1)),
        (trickling(), 1, False, trickling()),
        (trickling(2), 1, False, trickling(2)),
        (trickling(2), 2, False, trickling()),
        (trickling(TRICKLE_EMPTY_PAGES - 1), 0, False, backing_off(0)),
        (UNKNOWN, 1, False, backing_off(0)),
        (backing_off(3), 5, True, None),
        (backing_off(3), 0, True, None),
        (UNKNOWN, 5, None, backing_off(0)),
        (UNKNOWN, 501, None, None),
    ],
)
def test_pauses_follow_what_pages_bring(
    idle: IdleReads, rows: int, may_more: bool | None, following: IdleReads | None
) -> None:
    assert idle.after(rows=rows, size_bytes=rows * 100, may_more=may_more) == following
