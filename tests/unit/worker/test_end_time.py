from __future__ import annotations

from dataclasses import replace

import pytest

from ots_tunnel.protocol.page import reached_log_end
from ots_tunnel.worker.pages.end_time import cut_page
from tests.support.records import page_of_times

END_US = 1_000_000_000


@pytest.mark.parametrize(
    ("times", "kept", "done", "whole"),
    [
        ((END_US - 2, END_US), 2, False, True),
        ((END_US - 1, END_US, END_US + 1, END_US + 2), 2, True, False),
        ((END_US + 1,), 0, True, False),
        # the last record is of a new epoch, which may have more from before the end
        ((END_US - 1, END_US + 1, END_US), 3, False, True),
    ],
)
def test_records_after_the_end_time_are_cut_off(times: tuple[int, ...], kept: int, done: bool, whole: bool) -> None:
    cut = cut_page(page_of_times(*times, service_time=5000.0), END_US, None)

    assert (len(cut.page.records), cut.done, cut.whole) == (kept, done, whole)


def test_a_record_of_a_new_epoch_is_kept_though_one_of_the_former_epoch_is_later() -> None:
    read = page_of_times(END_US - 1, END_US + 1, END_US, END_US + 2)
    cut = cut_page(read, END_US, None)

    assert cut.page.records == [read.records[0], read.records[2]]
    assert (cut.done, cut.whole) == (True, False)


@pytest.mark.parametrize("may_more", [False, None], ids=["the log's end", "not told"])
def test_a_page_that_was_cut_does_not_reach_the_end_of_the_log(may_more: bool | None) -> None:
    # otherwise the channel would be caught up, and consumed up to its answer, over records that nobody has written
    read = replace(page_of_times(END_US + 1, service_time=5000.0), may_more=may_more)
    cut = cut_page(read, END_US, None)

    assert not reached_log_end(cut.page.may_more, len(cut.page.records))


@pytest.mark.parametrize(("known_time", "done"), [(999.0, False), (1000.0, False), (1001.0, True), (None, False)])
def test_an_empty_read_counts_if_it_was_sent_after_the_end(known_time: float | None, done: bool) -> None:
    # its own answer is late in any case: the log may have been read before the end
    cut = cut_page(page_of_times(service_time=5000.0, may_more=False), END_US, known_time)

    assert (cut.done, cut.whole) == (done, True)


@pytest.mark.parametrize(("may_more", "done"), [(True, False), (False, True), (None, True)])
def test_an_empty_page_that_announces_more_is_not_the_end(may_more: bool | None, done: bool) -> None:
    cut = cut_page(page_of_times(service_time=5000.0, may_more=may_more), END_US, 1001.0)

    assert (cut.done, cut.whole) == (done, True)
