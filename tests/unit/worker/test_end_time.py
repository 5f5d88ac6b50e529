from __future__ import annotations

import pytest

from ots_tunnel.worker.end_time import cut_page
from tests.support.records import page_of_times

END_US = 1_000_000_000


@pytest.mark.parametrize(
    ("times", "kept", "done", "whole"),
    [
        ((END_US - 2, END_US), 2, False, True),
        ((END_US - 1, END_US, END_US + 1, END_US + 2), 2, True, False),
        ((END_US + 1,), 0, True, False),
    ],
)
def test_records_after_the_end_time_are_cut_off(times: tuple[int, ...], kept: int, done: bool, whole: bool) -> None:
    cut = cut_page(page_of_times(*times, service_time=5000.0), END_US)

    assert (len(cut.page.records), cut.done, cut.whole) == (kept, done, whole)


@pytest.mark.parametrize(("service_time", "done"), [(999.0, False), (1000.0, False), (1001.0, True), (None, False)])
def test_an_empty_read_counts_by_the_services_clock(service_time: float | None, done: bool) -> None:
    cut = cut_page(page_of_times(service_time=service_time), END_US)

    assert (cut.done, cut.whole) == (done, True)
