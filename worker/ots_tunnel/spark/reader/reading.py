"""Pages of a query: what each call asks for, one page ahead of the decoder, within a limit. Runs on executors."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ots_tunnel.model import PrimaryKey
from ots_tunnel.spark.reader.key_ranges import KeyBounds

if TYPE_CHECKING:
    import pyarrow as pa

    from ots_tunnel.client.sync_table import SyncTableClient
    from ots_tunnel.client.table import RangePage

#: Bytes of a page behind which none is fetched ahead: it has a row that is larger than a page of the service, 4 MiB
#: (docs/data-plane.md 2.2), and its neighbours may be as large. Own choice.
READ_AHEAD_BYTES = 8 << 20
#: Most rows of a page (docs/data-plane.md 2.2).
PAGE_ROWS = 5_000


@dataclass(frozen=True, slots=True)
class Reading:
    """What every call of a task asks for."""

    table: str
    columns: tuple[str, ...] = ()
    """Names, see `client.table_calls.get_range_request`."""
    max_versions: int = 1
    versions: tuple[int, int] | None = None
    """Versions of cells in milliseconds, the second exclusive; None for all."""
    page_rows: int = 0
    """Most rows of a page; 0 leaves it to the service."""

    def pages(self, client: SyncTableClient, ranges: Iterable[KeyBounds]) -> Iterator[RangePage]:
        """Every page of every range, one after the other. An empty page need not be the last one of its range."""
        limit = min(self.page_rows, PAGE_ROWS) or None
        for start, end in ranges:
            following: PrimaryKey | None = start
            while following is not None:
                page = client.get_range(
                    self.table,
                    following,
                    end,
                    max_versions=self.max_versions,
                    limit=limit,
                    columns=self.columns,
                    versions=self.versions,
                )
                yield page
                following = page.next_start


def read_ahead(pages: Iterator[RangePage], most_bytes: int = READ_AHEAD_BYTES) -> Generator[RangePage]:
    """The same pages; while one is used, a thread fetches the next one, unless the page has more than `most_bytes`.

    The thread is gone when this ends, also early: until then it waits for a call that is under way.
    """

    def fetch() -> RangePage | None:
        return next(pages, None)

    with ThreadPoolExecutor(1, thread_name_prefix="read ahead") as threads:
        following: Future[RangePage | None] | None = threads.submit(fetch)
        while (page := (following or threads.submit(fetch)).result()) is not None:
            following = threads.submit(fetch) if len(page.rows) <= most_bytes else None
            yield page


class Fetched:
    """Pages on their way; counts them, the bytes of their rows, and the seconds for which their user waited."""

    def __init__(self, pages: Iterable[RangePage], clock: Callable[[], float] = time.monotonic) -> None:
        self._pages = pages
        self._clock = clock
        self.pages = 0
        self.size = 0
        self.waited = 0.0

    def __iter__(self) -> Iterator[RangePage]:
        """Every page, unchanged."""
        asked = self._clock()
        for page in self._pages:
            self.waited += self._clock() - asked
            self.pages += 1
            self.size += len(page.rows)
            yield page
            asked = self._clock()
        self.waited += self._clock() - asked


def paced(
    batches: Iterable[pa.RecordBatch],
    rows_per_second: int,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[pa.RecordBatch]:
    """The same batches, the next one not before the rows of all that came are within the limit; 0 is no limit."""
    free_at = clock()
    for batch in batches:
        yield batch
        if rows_per_second:
            now = clock()
            # time in which nobody asked is no credit for later
            free_at = max(free_at, now - 1) + batch.num_rows / rows_per_second
            if free_at > now:
                sleep(free_at - now)
