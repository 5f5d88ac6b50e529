"""Dead letters of a write: the refused rows of each task in a file of JSON lines, with the error beside each.

A line has the form of a worker's dead letter (`ots_tunnel.sinks.middleware.dead_letters`). Rows that are no change of a
table, such as one with NULL in its key, have what the frame has.

The folder is that of one write; a name of its own tells it from others. Each attempt of a task fills a file of its own,
which appears whole before the attempt succeeds: whoever sees the write succeed sees every refused row. The end of the
write removes the files of attempts that Spark has given up. One that still runs then may leave its file, whose rows are
refused as well; it never takes the place of another.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, Final
from uuid import uuid4

from ots_tunnel.errors import ConfigError, SinkError, SinkRejected

if TYPE_CHECKING:
    from pathlib import Path

    from ots_tunnel.config import FileStoreConfig
    from ots_tunnel.protocol.record import Record
    from ots_tunnel.sinks.files.store import FileStore

#: Seconds for which a file is tried again before its task fails; own choice.
PATIENCE_SECONDS: Final = 600.0
#: Seconds within which one call of a bucket ends.
CALL_SECONDS: Final = 60.0


@dataclass(frozen=True)
class LetterFolder:
    """The folder of one write. Spark pickles it to the executors."""

    place: FileStoreConfig
    name: str
    """Relative to the place."""

    @classmethod
    def of_write(cls, place: FileStoreConfig, table: str) -> LetterFolder:
        """A new folder for a write of a table; names sort by time."""
        from ots_tunnel.model import ChannelId, TunnelId
        from ots_tunnel.sinks.files.names import folder_of

        written = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{uuid4().hex[:8]}"
        return cls(place, folder_of(TunnelId(table), ChannelId(written)))

    def __str__(self) -> str:
        return f"{self.place.url.rstrip('/')}/{self.name}"

    def store(self) -> FileStore:
        """The place as it is reached from this process.

        Raises:
            ConfigError: files of credentials, or the library of buckets, are missing; names the option.
        """
        from ots_tunnel.credentials import FileCredentials
        from ots_tunnel.sinks.files.places import open_store

        if self.place.credentials is not None:
            FileCredentials(self.place.credentials.directory).checked("option 'deadLetterCredentialsDirectory'")
        try:
            return open_store(self.place, path="dead letters", deadline=CALL_SECONDS)
        except ImportError as error:
            raise ConfigError(
                f"option 'deadLetterUrl': found {self.place.url!r}, allowed without the package's extra 'files' is "
                "file:///path"
            ) from error

    def check(self) -> None:
        """Check that files can be stored, before a task starts.

        Raises:
            ConfigError: they cannot; names the option.
        """
        try:
            asyncio.run(self.store().check())
        except SinkError as error:
            raise ConfigError(
                f"option 'deadLetterUrl': found {self.place.url!r}, where no file can be stored: {error}"
            ) from error

    def keep(self, names: Collection[str]) -> None:
        """Remove the files of attempts that Spark has given up.

        Args:
            names: of the files that stay.

        Raises:
            SinkError: the place fails. ConfigError: see `store`.
        """
        asyncio.run(self._keep(names))

    async def _keep(self, names: Collection[str]) -> None:
        store = self.store()
        await store.delete(self.name, [name for name in await store.names(self.name) if name not in names])
        await store.tidy(self.name)


class TaskLetters:
    """The file of one attempt of a task.

    Args:
        partition: of the frame; begins the file's name.
    """

    def __init__(self, folder: LetterFolder, partition: int) -> None:
        self._folder = folder
        self._name = f"{partition:05}-{uuid4().hex[:8]}.jsonl"
        self._channel = f"partition {partition}"
        self._runner = asyncio.Runner()
        self._store: FileStore | None = None
        self._path: Path | None = None
        self._file: IO[bytes] | None = None

    def __repr__(self) -> str:
        return f"TaskLetters({self._folder}/{self._name})"

    def add(self, record: Record, code: str, message: str) -> None:
        """Add a record that the destination refuses.

        Raises:
            SinkError: the disk failed. SinkRejected: a repetition does not repair it. ConfigError: `LetterFolder.store`
        """
        from ots_tunnel.model import ChannelId
        from ots_tunnel.sinks import DeadLetter
        from ots_tunnel.sinks.middleware.dead_letters import letter_lines

        self._write(b"".join(letter_lines([DeadLetter(record, code, message)], ChannelId(self._channel))))

    def add_row(self, row: Mapping[str, Any], code: str, message: str) -> None:
        """Add a row that is no change of a table, in the form of `rows.bad_row_form`; raises as `add`."""
        from ots_tunnel.sinks.json_record import json_text

        line = {
            "action": row["action"],
            "channel": self._channel,
            "sequence": None,
            "key": row["key"],
            "columns": row["columns"],
            "error": {"code": code, "message": message},
        }
        self._write(json_text(line).encode() + b"\n")

    def publish(self) -> str:
        """Make the file appear; return its name, empty where nothing was refused.

        Raises:
            SinkRejected: the place refuses files for good. SinkError: it fails for long.
        """
        if self._file is None:
            return ""
        from ots_tunnel.config import RetryConfig
        from ots_tunnel.sinks.files.store import FileSpoiled
        from ots_tunnel.sinks.retries import log_retry, write_backoff

        with _disk_errors():
            self._file.close()
        backoff, failures, began = write_backoff(RetryConfig()), 0, time.monotonic()
        while True:
            try:
                self._runner.run(self._publish())
                return self._name
            except (SinkRejected, FileSpoiled):
                raise
            except SinkError as error:
                if time.monotonic() - began >= PATIENCE_SECONDS:
                    raise
                log_retry("dead letters cannot be stored and are tried again", str(error), folder=str(self._folder))
            time.sleep(backoff.delay(failures, random.random()))
            failures += 1

    def close(self) -> None:
        """Remove what was not published."""
        with suppress(OSError):
            if self._file is not None:
                self._file.close()
            if self._path is not None:
                self._path.unlink(missing_ok=True)
        self._runner.close()

    def _write(self, line: bytes) -> None:
        if self._path is None:
            self._path = self._runner.run(self._reached().spool(self._folder.name))
        with _disk_errors():
            if self._file is None:
                self._file = self._path.open("wb")
            self._file.write(line)

    async def _publish(self) -> None:
        assert self._path is not None, "only a file that was begun is published"
        await self._reached().publish(self._path, self._folder.name, self._name, lambda: None)

    def _reached(self) -> FileStore:
        if self._store is None:
            self._store = self._folder.store()
        return self._store


@contextmanager
def _disk_errors() -> Iterator[None]:
    from ots_tunnel.sinks.files.store import disk_error

    try:
        yield
    except OSError as error:
        raise disk_error(error) from error
