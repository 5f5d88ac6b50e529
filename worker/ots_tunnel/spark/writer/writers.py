"""The writer of a frame, as Spark calls it: tasks on executors, and the end of the write on the driver's machine.

Rows go out by the one table writer, one request at a time, in order per key within a task. A permanent refusal is a
result of its task and not an error: Spark would start the task again, in vain. The end of the write raises it once. The
other tasks have written their rows by then; a table has no transactions.

An error leaves each method with the lines of this module alone (`with_traceback(None)`), as in `source`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from ots_tunnel.errors import MAX_REFUSED_KEYS, Explained, SinkError, SinkRejected, TunnelError
from ots_tunnel.log_actions import LogAction
from ots_tunnel.spark.failures import one_line, refusal_text
from ots_tunnel.spark.writer.dead_letters import LetterFolder, TaskLetters
from ots_tunnel.spark.writer.layout import Layout
from ots_tunnel.spark.writer.options import WriteOptions
from ots_tunnel.spark.writer.rows import bad_row_form, records_of

if TYPE_CHECKING:
    import pyarrow as pa

    from ots_tunnel.protocol.record import Record
    from ots_tunnel.sinks.table.row_change import Change

#: Seconds without a stored row after which a task fails, so that Spark tells of it; own choice.
PATIENCE_SECONDS: Final = 600.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Written(WriterCommitMessage):  # type: ignore[misc]  # pyspark has no types we follow
    """What one task has done."""

    changes: int
    """Row changes that are stored."""
    refused: int
    """Rows that were left out."""
    examples: tuple[str, ...]
    """Why, for the first of them."""
    error: str
    """The permanent error in one line; empty without one."""
    letters: str = ""
    """Name of the file of dead letters; empty without one."""


class Refused:
    """Rows of one task that are left out, because the table or its service refuses them.

    Args:
        layout: of the frame.
        letters: stores them; None where they are only counted.
    """

    def __init__(self, layout: Layout, letters: TaskLetters | None = None) -> None:
        self.rows = 0
        self.examples: list[str] = []
        self._layout = layout
        self._letters = letters
        #: Identities of the records that are counted: each change of a row that needs several may be refused.
        self._counted: set[int] = set()

    def begin(self, record: Record) -> None:
        """A new record is made: an earlier one may have had its identity."""
        self._counted.discard(id(record))

    def take(self, record: Record, code: str, message: str) -> None:
        """Take a row that the service refuses, or a part of it."""
        from ots_tunnel.sinks.key_text import key_text

        if id(record) in self._counted:
            return
        self._counted.add(id(record))
        if self._letters is not None:
            self._letters.add(record, code, message)
        self._count(code, f"{key_text(record.key)}: {message}")

    def take_bad_row(self, code: str, message: str, values: Mapping[str, Any]) -> None:
        """Take a row that is no change of a table."""
        if self._letters is not None:
            self._letters.add_row(bad_row_form(values, self._layout), code, message)
        self._count(code, message)

    def _count(self, code: str, message: str) -> None:
        self.rows += 1
        if len(self.examples) < MAX_REFUSED_KEYS:
            self.examples.append(one_line(f"{code}: {message}"))


class Patience:
    """The guard of a task's requests: forbids them once the destination has taken nothing for long.

    Args:
        settled: rows that are stored, or left out, so far.
        clock: monotonic seconds.
    """

    def __init__(self, settled: Callable[[], int], clock: Callable[[], float] = time.monotonic) -> None:
        self._settled = settled
        self._clock = clock
        self._rows = -1
        self._since = 0.0

    def check(self) -> None:
        """Check that a request may leave.

        Raises:
            SinkError: nothing was stored for `PATIENCE_SECONDS`.
        """
        rows, now = self._settled(), self._clock()
        if rows != self._rows:
            self._rows, self._since = rows, now
        elif now >= self._since + PATIENCE_SECONDS:
            raise SinkError(f"no row was stored within {PATIENCE_SECONDS:g} s")


class TablestoreWriter(DataSourceArrowWriter):  # type: ignore[misc]  # pyspark has no types we follow
    """Writes the rows of a frame. Spark pickles it to the executors."""

    def __init__(self, options: WriteOptions, layout: Layout) -> None:
        self._options = options
        self._layout = layout
        self._folder = LetterFolder.of_write(options.letters, options.place.table) if options.letters else None

    def check(self) -> None:
        """Check the place for dead letters, before a task starts.

        Raises:
            ConfigError: no file can be stored there.
        """
        if self._folder is not None:
            self._folder.check()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the rows of one task; runs on an executor.

        Raises:
            SinkError, ServiceError, TransportError: nothing was stored for long, or the keys cannot be read.
        """
        try:
            return self._write(iterator)
        except TunnelError as error:
            raise error.with_traceback(None) from None

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """End the write; runs on the driver's machine.

        Raises:
            Explained: rows, the table or rights are refused for good; one line.
        """
        written = [message for message in messages if isinstance(message, Written)]
        table, errors = self._options.place.table, [message.error for message in written if message.error]
        if self._folder is not None:
            self._tidy(self._folder, [message.letters for message in written])
        if errors:
            more = f" ({len(errors)} tasks failed)" if len(errors) > 1 else ""
            raise Explained(f"table {table!r}: {errors[0]}{more}")
        refused = sum(message.refused for message in written)
        if refused:
            first = next(example for message in written for example in message.examples)
            logger.warning(
                "table %r: %d rows are refused and %s, such as %s",
                table,
                refused,
                "left out" if self._folder is None else f"dead letters in {self._folder}",
                first,
                extra={"action": LogAction.ROWS_LEFT_OUT, "table": table, "rows": refused},
            )

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """End a write that has failed: rows of the tasks that have succeeded are stored, or are dead letters."""
        if self._folder is not None:
            self._tidy(self._folder, [message.letters for message in messages if isinstance(message, Written)])

    def _tidy(self, folder: LetterFolder, names: list[str]) -> None:
        """Remove what attempts have left that Spark has given up; letters too many are no reason to fail a write."""
        try:
            folder.keep(names)
        except TunnelError as error:
            logger.warning(
                "dead letters in %s: those of attempts that were given up cannot be removed: %s",
                folder,
                one_line(error),
                extra={"action": LogAction.ROWS_LEFT_OUT, "table": self._options.place.table},
            )

    def _write(self, batches: Iterable[pa.RecordBatch]) -> Written:
        if self._folder is None:
            return self._written(batches, None)
        with closing(TaskLetters(self._folder, _partition())) as letters:
            found = self._written(batches, letters)
            try:
                return replace(found, letters=letters.publish())
            except SinkRejected as failure:
                return replace(found, error=found.error or one_line(f"dead letters in {self._folder}: {failure}"))

    def _written(self, batches: Iterable[pa.RecordBatch], letters: TaskLetters | None) -> Written:
        from ots_tunnel.config import RetryConfig
        from ots_tunnel.sinks.grouping import Limits
        from ots_tunnel.sinks.table.blocking_writer import SyncTableWriter

        refused, limits, error = Refused(self._layout, letters), Limits(), ""
        place = self._options.place
        with closing(place.client()) as client:
            guard = Patience(lambda: writer.counts.rows + refused.rows)
            writer = SyncTableWriter(client, place.table, limits, RetryConfig(), guard)
            try:
                writer.write(self._changes(batches, refused), refused.take if self._options.skips_refused else None)
            except TunnelError as failure:
                found = refusal_text(failure)
                if found is None:
                    raise
                error = one_line(found)
        return Written(writer.counts.rows, refused.rows, tuple(refused.examples), error)

    def _changes(self, batches: Iterable[pa.RecordBatch], refused: Refused) -> Iterator[Change]:
        from ots_tunnel.sinks.grouping import Limits
        from ots_tunnel.sinks.table.row_change import Omissions, changes_of

        limits, omissions = Limits(), Omissions()
        on_bad_row = refused.take_bad_row if self._options.skips_refused else _fail
        for batch in batches:
            for record in records_of(batch, self._layout, on_bad_row):
                refused.begin(record)
                # Spark may start a task again while its earlier attempt still writes
                yield from changes_of(record, limits, omissions, None, may_overlap=True)


def _fail(code: str, message: str, values: Mapping[str, Any]) -> None:
    raise SinkRejected(code, message)


def _partition() -> int:
    """Partition of the task of this process; 0 outside of one."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())
