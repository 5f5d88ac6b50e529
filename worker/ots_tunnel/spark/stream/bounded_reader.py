"""The stream from PySpark 4.2 on: Spark tells where a batch begins, has a limit for it, and asks for figures."""

from __future__ import annotations

import time
from typing import Any, Final

from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from ots_tunnel.errors import TunnelError
from ots_tunnel.spark.stream.offset_json import offset_from_json, offset_to_json
from ots_tunnel.spark.stream.offsets import Offset
from ots_tunnel.spark.stream.options import StreamOptions
from ots_tunnel.spark.stream.reader import TunnelReader
from ots_tunnel.spark.stream.rows import StreamRows

#: `availableNow`: seconds between two looks at the tunnel, and for which there may be neither a batch nor an end.
LOOK_SECONDS: Final = 1.0
PATIENCE_SECONDS: Final = 600.0


class BoundedReader(TunnelReader, SupportsTriggerAvailableNow):  # type: ignore[misc]  # pyspark has no types we follow
    """See the module."""

    def __init__(self, options: StreamOptions, rows: StreamRows) -> None:
        super().__init__(options, rows)
        self._until: float | None = None

    def getDefaultReadLimit(self) -> ReadLimit:
        """The option; Spark enforces nothing."""
        return ReadMaxBytes(self._options.batch_bytes)

    def prepareForTriggerAvailableNow(self) -> None:
        """What was written before now is available; by the service's clock."""
        try:
            self._until = self._following().open().service_time or time.time()
        except TunnelError as error:
            raise error.with_traceback(None) from None

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next batch, or `start` itself where there is none."""
        try:
            begin = offset_from_json(start)
            end = self._next_batch(begin) if self._until is None else self._next_available(begin, self._until)
            self._write_report()
            return start if end == begin else offset_to_json(end)
        except TunnelError as error:
            raise error.with_traceback(None) from None

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Channels, lag and bytes that are held, for the progress of the query."""
        return None if self._follower is None else self._follower.report()

    def _next_available(self, begin: Offset, until: float) -> Offset:
        follower, limit = self._followed_from(begin), self._options.batch_bytes
        end = follower.next_batch(begin, limit)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while end == begin and not follower.is_caught_up(until):
            if time.monotonic() > deadline:
                raise TunnelError(f"tunnel {self._options.tunnel!r}: no channel moved for {PATIENCE_SECONDS:.0f} s")
            follower.wait(LOOK_SECONDS)
            end = follower.next_batch(begin, limit)
        # the page that says so may have come after the last batch was planned, and an idle channel's time is logged
        return follower.next_batch(begin, limit) if end == begin else end
