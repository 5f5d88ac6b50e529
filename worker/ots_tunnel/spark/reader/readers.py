"""The readers of a query, as Spark calls them: partitions on the driver's machine, batches on executors.

An error leaves each method with the lines of this module alone (`with_traceback(None)`), as in `source`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ots_tunnel.errors import TunnelError
from ots_tunnel.spark.batches import Observed, raw_batches, typed_batches
from ots_tunnel.spark.interpreters import settling
from ots_tunnel.spark.reader.key_filters import push
from ots_tunnel.spark.reader.key_ranges import KeyBounds
from ots_tunnel.spark.reader.occurrence import Scan, SplitSeen, report
from ots_tunnel.spark.reader.options import SourceOptions
from ots_tunnel.spark.reader.planning import plan_splits, reading_of
from ots_tunnel.spark.reader.reading import Fetched, paced, read_ahead

if TYPE_CHECKING:
    import pyarrow as pa

    from ots_tunnel.client.sync_table import SyncTableClient
    from ots_tunnel.client.table import RangePage


class SplitPartition(InputPartition):  # type: ignore[misc]  # pyspark has no types we follow
    """One split with all that `read` needs, pickled to an executor."""

    def __init__(self, index: int, ranges: Sequence[KeyBounds], max_versions: int, scan: Scan) -> None:
        super().__init__(index)
        self.ranges = tuple(ranges)
        self.max_versions = max_versions
        self.scan = scan


class TablestoreReader(DataSourceReader):  # type: ignore[misc]  # pyspark has no types we follow
    """Reads splits. Spark pickles the reader before it plans the job, so the constructor makes no call."""

    def __init__(
        self, options: SourceOptions, columns: Sequence[tuple[str, str]], occurrences: Any | None = None
    ) -> None:
        self._options = options
        self._columns = tuple(columns)
        self._occurrences = occurrences
        self._pushed: list[KeyBounds] | None = None
        """Ranges of the filters that Spark leaves to this reader."""

    def partitions(self) -> list[InputPartition]:
        """One partition per split; runs on the driver's machine."""
        try:
            return self._splits()
        except TunnelError as error:
            raise error.with_traceback(None) from None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Arrow batches of one split, one per page; runs on an executor."""
        if not isinstance(partition, SplitPartition):
            return  # Spark's own, where there is no partition: no row fits the filters
        try:
            client = self._options.place.client()
            try:
                yield from settling(self._batches(client, partition))
            finally:
                client.close()
        except TunnelError as error:
            raise error.with_traceback(None) from None

    def _batches(self, client: SyncTableClient, partition: SplitPartition) -> Iterator[pa.RecordBatch]:
        # closed here: an error keeps the frames below, and the thread must not use a client that is closed
        reading = reading_of(self._options, self._columns, partition.ranges[0][0], partition.max_versions)
        with closing(read_ahead(reading.pages(client, partition.ranges))) as pages:
            yield from paced(self._decoded(pages, partition), self._options.rows_per_second)

    def _decoded(self, pages: Iterator[RangePage], partition: SplitPartition) -> Iterator[pa.RecordBatch]:
        fetched = Fetched(pages)
        if self._options.raw:
            observed = Observed(raw_batches(partition.value, fetched))
        else:
            observed = Observed(typed_batches(self._columns, fetched, self._options.on_conflict))
        yield from observed
        # the last row of a raw split is none of the table
        rows = observed.rows - self._options.raw
        seen = SplitSeen(rows, frozenset(observed.columns), fetched.pages, fetched.size, fetched.waited)
        report(self._occurrences, partition.scan, partition.value, seen)

    def _splits(self) -> list[InputPartition]:
        plan = plan_splits(self._options, self._columns, self._pushed)
        return [SplitPartition(index, ranges, plan.max_versions, plan.scan) for index, ranges in plan.splits]


class PushingReader(TablestoreReader):
    """Takes filters. A class of its own, because PySpark refuses one with this method where its setting is off."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Take the filters that ranges of keys express; return those that are left to Spark."""
        try:
            client = self._options.place.reachable_client()
            try:
                key = client.describe_table(self._options.place.table).primary_key
            finally:
                client.close()
        except TunnelError as error:
            raise error.with_traceback(None) from None
        left, self._pushed = push(filters, key, [name for name, _ in self._columns])
        return left
