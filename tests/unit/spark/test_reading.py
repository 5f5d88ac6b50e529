"""Pages one ahead, in order and within memory; a limit of rows per second."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from ots_tunnel.client.table_calls import RangePage
from ots_tunnel.errors import ConnectionLost
from ots_tunnel.spark.reader.reading import Fetched, Reading, paced, read_ahead

#: Seconds; a wait that is not over by then fails its test.
DEADLINE = 30.0


class Pages:
    """Pages that say when they are fetched, and how many are."""

    def __init__(self, *sizes: int, error: Exception | None = None) -> None:
        self._sizes = sizes
        self._error = error
        self.fetched = 0
        self._changed = threading.Condition()

    def __iter__(self) -> Iterator[RangePage]:
        for size in self._sizes:
            with self._changed:
                self.fetched += 1
                self._changed.notify_all()
            yield RangePage(b"x" * size, None)
        if self._error is not None:
            raise self._error

    def wait(self, count: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.fetched >= count, DEADLINE)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("read ahead")]


def test_the_next_page_is_fetched_while_one_is_used_and_no_more() -> None:
    pages = Pages(1, 2, 3, 4)
    found = read_ahead(iter(pages))

    for number in (1, 2, 3):
        assert len(next(found).rows) == number
        assert pages.wait(number + 1)
        assert pages.fetched == number + 1
    assert [len(page.rows) for page in found] == [4]
    assert threads() == []


def test_pages_bytes_and_the_wait_for_them_are_counted() -> None:
    # the clock is looked at before and behind each page, and at the end: one second each, none while a page is used
    fetched = Fetched(iter(Pages(3, 4)), iter(range(100)).__next__)

    assert [len(page.rows) for page in fetched] == [3, 4]

    assert (fetched.pages, fetched.size, fetched.waited) == (2, 7, 3.0)


def test_behind_a_large_page_none_is_fetched_ahead() -> None:
    pages = Pages(1, 9, 9, 1)
    found = read_ahead(iter(pages), most_bytes=8)

    assert len(next(found).rows) == 1
    assert pages.wait(2)
    assert len(next(found).rows) == 9
    assert threads() == ["read ahead_0"]
    assert pages.fetched == 2
    assert [len(page.rows) for page in found] == [9, 1]


def test_a_reader_that_stops_leaves_no_thread() -> None:
    found = read_ahead(iter(Pages(1, 2, 3)))
    next(found)

    found.close()

    assert threads() == []


def test_an_error_comes_after_the_pages_before_it() -> None:
    found = read_ahead(iter(Pages(1, error=ConnectionLost("gone"))))

    assert len(next(found).rows) == 1
    with pytest.raises(ConnectionLost):
        next(found)
    assert threads() == []


class Service:
    """Ranges of integers in pages of one row, with an empty page in front."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def get_range(self, table: str, start: Any, end: Any, **options: Any) -> RangePage:
        self.asked.append(options)
        following = start + 1 if start + 1 < end else None
        return RangePage(b"" if start % 10 == 0 else b"%d" % start, following)


@pytest.mark.parametrize(("page_rows", "limit"), [(0, None), (7, 7), (100_000, 5_000)])
def test_every_page_of_every_range_is_read(page_rows: int, limit: int | None) -> None:
    service: Any = Service()
    ranges: Any = [(0, 3), (5, 6), (10, 12)]

    pages = [page.rows for page in Reading("t", ("c",), 3, (5, 9), page_rows).pages(service, ranges)]

    assert pages == [b"", b"1", b"2", b"5", b"", b"11"]
    wanted = {"max_versions": 3, "limit": limit, "columns": ("c",), "versions": (5, 9)}
    assert service.asked == [wanted] * 6


def batches(*counts: int) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pydict({"a": [0] * count}) for count in counts]


def paced_by(clock: list[float], counts: tuple[int, ...], rate: int, use: Callable[[], None]) -> float:
    """Seconds until all batches were read; `use` is called for each."""

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    for _ in paced(batches(*counts), rate, clock=lambda: clock[0], sleep=sleep):
        use()
    return clock[0]


def test_rows_are_within_the_limit() -> None:
    assert paced_by([0.0], (100, 50, 100), 100, lambda: None) == 2.5
    assert paced_by([0.0], (100, 50, 100), 0, lambda: None) == 0


def test_time_without_reading_is_no_credit() -> None:
    clock = [0.0]
    use = iter([100.0, 0.0, 0.0, 0.0])

    def pause() -> None:
        clock[0] += next(use)

    # the first batch takes 100 s by itself; of them one second counts for later ones
    assert paced_by(clock, (100,) * 4, 100, pause) == 103
