from __future__ import annotations

import pytest

from ots_tunnel.fence import boottime
from ots_tunnel.model import ChannelId, ChannelStatus, ChannelType, SequenceInfo
from ots_tunnel.worker.pages.read_page import ReadPage
from ots_tunnel.worker.progress.channel_progress import ChannelProgress
from ots_tunnel.worker.status.channel_view import ChannelView, channel_document
from tests.support import records
from tests.support.channel_scene import read_page


def page(rows: int, may_more: bool | None, service_time: float | None, last: float | None = None) -> ReadPage:
    """A page whose last record was committed at `last`, Unix seconds."""
    position = None if last is None else SequenceInfo(0, int(last * 1e6), 0)
    return read_page(records.page(rows, "t", may_more, service_time), position)


def asked(page: ReadPage, at: float) -> ReadPage:
    """The page, as the answer to a read that began at a time."""
    page.asked_at = at
    return page


def stream() -> ChannelProgress:
    return ChannelProgress(ChannelId("c"), ChannelType.STREAM)


def test_nothing_is_known_before_the_first_page() -> None:
    progress = stream()

    assert (progress.consumed_up_to, progress.caught_up, progress.lag(5.0)) == (None, False, None)


def test_the_last_record_of_a_full_page_is_the_consume_point() -> None:
    progress, full = stream(), page(3, True, 2000.0, last=1500.0)
    progress.page_read(full)

    progress.page_confirmed(full)

    assert progress.consumed_up_to == 1500.0
    assert progress.caught_up_time is None
    assert progress.lag(1600.0) == 100.0


@pytest.mark.parametrize("last_us", [2**63 - 1, 253_402_300_800_000_000, -(2**63)])
def test_a_commit_time_that_no_date_has_moves_no_consume_point(last_us: int) -> None:
    """The report of the worker shows it as a date: it would not be made at all, and the worker pass for unreachable."""
    progress, first, odd = stream(), page(3, True, 2000.0, 1500.0), page(1, True, 2000.0)
    odd.position = SequenceInfo(0, last_us, 0)
    for read in (first, odd):
        progress.page_read(read)
        progress.page_confirmed(read)

    document = channel_document(ChannelView(progress, ChannelStatus.OPEN), 1600.0)

    assert (document["consumedUpTo"], document["lagSeconds"]) == ("1970-01-01T00:25:00.000Z", 100)


def test_an_empty_page_behind_unconfirmed_records_does_not_count_as_caught_up() -> None:
    progress, full, empty, later = (
        stream(),
        page(3, True, 2000.0, 1500.0),
        page(0, False, 2001.0),
        page(1, True, 2002.0),
    )
    for read in (full, empty, later):
        progress.page_read(read)

    progress.page_confirmed(full)
    assert not progress.caught_up
    progress.page_confirmed(empty)
    assert not progress.caught_up  # a later page waits for the sink
    assert progress.caught_up_time == 2001.0


def test_the_consume_point_never_moves_back() -> None:
    progress, empty, late = stream(), page(0, False, 2000.0), page(1, True, 2001.0, last=1999.0)
    for read in (empty, late):
        progress.page_read(read)
        progress.page_confirmed(read)

    assert progress.consumed_up_to == 2000.0


def test_caught_up_lapses_when_reads_stop() -> None:
    now = 100.0
    progress = ChannelProgress(ChannelId("c"), ChannelType.STREAM, clock=lambda: now)
    last, empty = asked(page(1, False, 2000.0, last=1999.0), 100.0), asked(page(0, False, 2000.0), 116.0)
    progress.page_read(last)
    now = 110.0  # the sink takes its time
    progress.page_confirmed(last)

    assert progress.caught_up
    now = 116.0
    assert not progress.caught_up
    progress.page_read(empty)
    progress.page_confirmed(empty)
    assert progress.caught_up


def test_an_answer_that_comes_late_says_nothing_about_the_log_now() -> None:
    progress = ChannelProgress(ChannelId("c"), ChannelType.STREAM, clock=lambda: 116.0)
    empty = asked(page(0, False, 2000.0), 100.0)

    progress.page_read(empty)
    progress.page_confirmed(empty)

    assert not progress.caught_up


def test_a_machine_that_was_suspended_has_not_looked_meanwhile() -> None:
    assert stream().clock is boottime


def test_an_answer_without_a_time_leaves_the_time_unknown() -> None:
    progress, empty = stream(), page(0, False, None)
    progress.page_read(empty)
    progress.page_confirmed(empty)

    assert progress.caught_up
    assert progress.caught_up_time is None


def test_base_channels_have_no_lag() -> None:
    progress = ChannelProgress(ChannelId("BaseData_0"), ChannelType.BASE)
    full = page(3, False, 2000.0)
    progress.page_read(full)
    progress.page_confirmed(full)

    assert (progress.lag(3000.0), progress.caught_up, progress.rows) == (None, False, 3)


def test_an_error_stays_until_a_page_is_confirmed() -> None:
    progress = ChannelProgress(ChannelId("c"), ChannelType.STREAM, error="ConnectionLost: reset")
    full = page(1, True, None)
    progress.page_read(full)
    assert progress.error

    progress.page_confirmed(full)

    assert progress.error is None


def test_a_channel_that_stopped_is_consumed_up_to_the_end_time() -> None:
    progress, boundary = stream(), page(3, True, 2000.0, last=1500.0)
    progress.page_read(boundary)
    progress.page_confirmed(boundary)

    progress.stopped_at(1600.0)

    assert (progress.end_reached, progress.consumed_up_to, progress.lag(1700.0)) == (True, 1600.0, 0.0)
