"""The stream as Spark calls it: offsets and batches in a process beside the driver, rows in tasks.

Theory of operation. Spark makes this object in three kinds of processes, and it shares nothing between them:

    the planner     one process per query, beside the driver: offsets, partitions; it alone follows the tunnel
    the pickler     pickles the object for the tasks, before any offset is known; so the constructor makes no call
    tasks           `read`, which needs nothing but its partition: the records ride in it, and no task calls the service

Order of calls: `initialOffset`, then `latestOffset` and `partitions` by turns. After a restart with a batch that is
logged and not committed, `partitions` of this batch comes first: it is read again before anything else. A call of
`latestOffset` proves that Spark has committed the batch before; `commit` comes one batch later, and is not used
(`ledger`). What PySpark tells `latestOffset` depends on its minor: from 4.2 on `bounded_reader`, before
`remembering_reader`.

The planner ends by SIGTERM when the query is stopped, and `stop` is not called then; so it has a handler.

An error leaves each method with the lines of this module alone (`with_traceback(None)`), as in `source`.
"""

from __future__ import annotations

import json
import os
import signal
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from ots_tunnel.errors import TunnelError
from ots_tunnel.spark.interpreters import is_of_spark, settling
from ots_tunnel.spark.stream.follower import Follower
from ots_tunnel.spark.stream.offset_json import offset_from_json, offset_to_json
from ots_tunnel.spark.stream.offsets import Offset
from ots_tunnel.spark.stream.options import StreamOptions
from ots_tunnel.spark.stream.rows import StreamRows
from ots_tunnel.spark.stream.span_partition import SpanPartition

if TYPE_CHECKING:
    import pyarrow as pa

#: Seconds that a call waits for records. Without a trigger Spark calls again after 10 ms.
WAIT_SECONDS: Final = 0.3


class TunnelReader(DataSourceStreamReader):  # type: ignore[misc]  # pyspark has no types we follow
    """Follows a tunnel, in any minor of PySpark; see the module for its processes."""

    def __init__(self, options: StreamOptions, rows: StreamRows) -> None:
        self._options = options
        self._rows = rows
        self._follower: Follower | None = None
        self._initial: Offset | None = None

    def initialOffset(self) -> dict[str, Any]:
        """The offset of a query without a checkpoint: it has read no channel."""
        try:
            if self._initial is None:
                self._initial = self._following().first_offset(uuid.uuid4().hex)
            return offset_to_json(self._initial)
        except TunnelError as error:
            raise error.with_traceback(None) from None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One partition for each channel with records in the batch."""
        try:
            found = self._following().records_of(offset_from_json(end))
            for records in found.values():
                self._rows.check(records)
            return [SpanPartition.of(name, records) for name, records in found.items() if records]
        except TunnelError as error:
            raise error.with_traceback(None) from None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Arrow batches of one partition; runs on an executor."""
        if not isinstance(partition, SpanPartition):
            return
        try:
            yield from settling(self._rows.batches(partition.records(), partition.channel_id))
        except TunnelError as error:
            raise error.with_traceback(None) from None

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: see the module."""

    def stop(self) -> None:
        """Hand the channels back."""
        if self._follower is not None:
            self._follower.stop()

    def _following(self) -> Follower:
        if self._follower is None:
            self._follower = Follower(self._options)
            self._end_with_sigterm()
        return self._follower

    def _followed_from(self, begin: Offset) -> Follower:
        follower = self._following()
        if not follower.is_following:
            follower.follow(begin, is_new=begin == self._initial)
        return follower

    def _next_batch(self, begin: Offset) -> Offset:
        """The end of a batch, which is the begin itself where there is nothing within `WAIT_SECONDS`."""
        follower, limit = self._followed_from(begin), self._options.batch_bytes
        end = follower.next_batch(begin, limit)
        return follower.next_batch(begin, limit) if end == begin and follower.wait(WAIT_SECONDS) else end

    def _write_report(self) -> None:
        if self._options.report_file and self._follower is not None:
            path = Path(self._options.report_file)
            new = path.with_name(f"{path.name}.new")
            new.write_text(json.dumps(self._follower.report()))
            os.replace(new, path)

    def _end_with_sigterm(self) -> None:
        """Hand the channels back at SIGTERM, in the planner alone: elsewhere the signal belongs to the program."""
        if not is_of_spark():
            return

        def end(number: int, frame: object) -> None:
            self.stop()
            os._exit(0)  # Spark has closed the connection: its own way out would only print that

        signal.signal(signal.SIGTERM, end)
