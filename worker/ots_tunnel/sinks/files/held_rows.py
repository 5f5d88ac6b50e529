"""Rows of a row group until it is written."""

from __future__ import annotations

import pyarrow as pa

#: Batches that are held apart. A batch of one row takes 16 KB, sixty times what its buffers count, and a channel that
#: has caught up gets thousands of such pages for one file.
MOST_BATCHES = 8


class HeldRows:
    """Batches of rows of one schema, joined where they become many."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        #: Bytes of the buffers.
        self.size = 0

    def __len__(self) -> int:
        """Batches that are held apart."""
        return len(self._batches)

    def add(self, batch: pa.RecordBatch) -> None:
        """Hold the rows of a batch."""
        self._batches.append(batch)
        self.size += batch.nbytes
        if len(self._batches) > MOST_BATCHES:
            joined = pa.concat_batches(self._batches)
            self._batches, self.size = [joined], joined.nbytes

    def take(self) -> pa.Table:
        """The rows in their order, at least one batch; none are held afterwards."""
        table = pa.Table.from_batches(self._batches)
        self._batches, self.size = [], 0
        return table
