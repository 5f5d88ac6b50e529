"""The stream before PySpark 4.2: Spark does not tell where a batch begins, nor asks for figures.

Theory of operation. A batch begins where the one before has ended, so the reader remembers the end of each batch:

    a new query             nothing was planned: the first batch begins at `initialOffset`
    a batch under way       `latestOffset` has returned its end
    a restart               Spark plans an empty batch from its last logged offset to the same offset, for sources that
                            read ahead; after it comes the batch that was logged and not committed, if there is one.
                            Both end where the next one begins

Spark asks for the next batch when it has committed the one before, as newer minors do.

It shows no figures of a source in a query's progress, for which there is the option `reportFile`.

With the trigger `availableNow` Spark asks once, whatever the batch holds: there is no way for a source to tell that
more is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql.datasource import InputPartition

from ots_tunnel.errors import TunnelError
from ots_tunnel.spark.stream.offset_json import offset_from_json, offset_to_json
from ots_tunnel.spark.stream.options import StreamOptions
from ots_tunnel.spark.stream.reader import TunnelReader
from ots_tunnel.spark.stream.rows import StreamRows


class RememberingReader(TunnelReader):
    """See the module."""

    def __init__(self, options: StreamOptions, rows: StreamRows) -> None:
        super().__init__(options, rows)
        self._end: dict[str, Any] | None = None

    def latestOffset(self) -> dict[str, Any]:
        """The end of the next batch, or that of the last one where there is none."""
        start = self.initialOffset() if self._end is None else self._end
        try:
            begin = offset_from_json(start)
            end = self._next_batch(begin)
            self._end = start if end == begin else offset_to_json(end)
            self._write_report()
        except TunnelError as error:
            raise error.with_traceback(None) from None
        return self._end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """See `TunnelReader.partitions`; the next batch begins at the end of this one."""
        self._end = end
        return [] if start == end else super().partitions(start, end)
