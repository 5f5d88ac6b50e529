"""One run of a comparison: checks, the state file, then the job over the slices that are left."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from ots_tunnel.client.table_calls import TableDescription
from ots_tunnel.console.explanations import Place, explaining
from ots_tunnel.console.progress_bar import show_progress
from ots_tunnel.console.retry_notes import RetryNotes
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import PrimaryKey
from ots_tunnel.verify.checks import refuse_other_keys, refuse_same_table, warnings_of
from ots_tunnel.verify.comparison import Comparison
from ots_tunnel.verify.job import VerifyJob
from ots_tunnel.verify.places import Places
from ots_tunnel.verify.report import Outcome
from ots_tunnel.verify.slices import Side, cut_tables
from ots_tunnel.verify.state import VerifyState, default_name, refuse_other_task
from ots_tunnel.verify.state_document import VerifyTask
from ots_tunnel.verify.state_file import StateFile, read_state_file

#: Random seeds are below this number, so that they are short enough to type.
SEEDS = 1_000_000


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """How two tables are compared.

    Args:
        sample_percent: percent of the slices; None means all.
        seed: seed of the sample; None means that of the state file, or a random one.
        parallel: slices compared in parallel.
        recheck_seconds: pause before differing rows are read again; 0 means no recheck.
        show: number of differences that are kept with keys and values.
        state: state file; None means a file in the current folder, named after both tables.
        restart: ignore an existing state file.
    """

    sample_percent: float | None = None
    seed: int | None = None
    parallel: int = 4
    recheck_seconds: float = 0
    show: int = 10
    state: Path | None = None
    restart: bool = False


class Verification:
    """One run.

    Args:
        places: source and destination.
        options: how the tables are compared.
        stream: receives the progress.
        say: prints a line above the progress.
    """

    def __init__(self, places: Places, options: VerifyOptions, stream: TextIO, say: Callable[[str], None]) -> None:
        self._source, self._destination = places
        self._options = options
        self._stream = stream
        self._say = say
        self._file: StateFile | None = None
        self._state: VerifyState | None = None

    async def run(self) -> Outcome:
        """Compare the tables; a run that ends early has stored its progress.

        Raises:
            ConfigError: the tables cannot be compared, or the state file belongs to another comparison.
            Explained, ServiceError, TransportError: a call failed permanently.
        """
        refuse_same_table(self._source.place, self._destination.place)
        began = time.monotonic()
        async with self._sides() as (source, destination):
            one = await _described(source, self._source.wording)
            other = await _described(destination, self._destination.wording)
            refuse_other_keys(one, other)
            notes = list(warnings_of(one, other))
            self._state = await self._open_state(
                (one, other), lambda sampled: cut_tables(source, destination, sampled=sampled)
            )
            notes += self._open_file(self._state)
            if self._options.sample_percent is not None:
                share = f"{len(self._state.chosen):,} of {self._state.total_slices:,} slices"
                self._say(f"sample: {share}, seed {self._state.task.seed}")
            for note in notes:
                self._say(f"note: {note}")
            result = await self._compare(source, destination, self._state, one.time_to_live)
        if self._file is not None:
            self._file.remove()
        return Outcome(self._state, result, time.monotonic() - began, notes)

    @property
    def resume_hint(self) -> str | None:
        """How to resume a run that ended early; None if no progress is stored."""
        if self._file is None or self._state is None:
            return None
        done, all_slices = len(self._state.done), len(self._state.chosen)
        return f"{done:,} of {all_slices:,} slices are compared: the same command resumes from {self._file.path}"

    @contextlib.asynccontextmanager
    async def _sides(self) -> AsyncIterator[tuple[Side, Side]]:
        notes = RetryNotes(self._say)
        clients = self._source.client(notes), self._destination.client(notes)
        try:
            yield Side(clients[0], self._source.place.table), Side(clients[1], self._destination.place.table)
        finally:
            for client in clients:
                await client.close()

    async def _open_state(
        self,
        tables: tuple[TableDescription, TableDescription],
        cut: Callable[[bool], Awaitable[tuple[PrimaryKey, ...]]],
    ) -> VerifyState:
        text = None if self._options.restart else read_state_file(self._path)
        sampled = self._options.sample_percent is not None
        if text is None:
            drawn = random.randrange(SEEDS) if sampled else 0
            task = self._task(tables, drawn if self._options.seed is None else self._options.seed)
            return VerifyState(task, datetime.now(UTC).replace(microsecond=0), await cut(sampled))
        state = VerifyState.read(text, str(self._path))
        seed = state.task.seed if self._options.seed is None else self._options.seed
        refuse_other_task(state.task, self._task(tables, seed), str(self._path))
        self._say(
            f"resuming from {self._path}: {len(state.done):,} of {len(state.chosen):,} slices are compared, "
            f"started {state.started:%Y-%m-%d %H:%M:%S %Z}"
        )
        return state

    @property
    def _path(self) -> Path:
        return self._options.state or Path(default_name(self._source.place, self._destination.place))

    def _task(self, tables: tuple[TableDescription, TableDescription], seed: int) -> VerifyTask:
        return VerifyTask(
            source=self._source.place,
            destination=self._destination.place,
            sample_percent=self._options.sample_percent,
            seed=seed,
            recheck_seconds=self._options.recheck_seconds,
            show=self._options.show,
            max_versions=tables[0].max_versions,
            source_created=_created(tables[0]),
            destination_created=_created(tables[1]),
        )

    def _open_file(self, state: VerifyState) -> list[str]:
        """Write the state once, to detect a folder that is not writable; fail only if the user named the file."""
        file = StateFile(self._path, state.document)
        try:
            file.write()
        except ConfigError as error:
            if self._options.state is not None:
                raise
            return [f"{error}; a stopped run cannot be resumed"]
        self._file = file
        return []

    async def _compare(self, source: Side, destination: Side, state: VerifyState, time_to_live: int) -> Comparison:
        file = self._file
        job = VerifyJob(
            source,
            destination,
            state,
            time_to_live=time_to_live,
            parallel=self._options.parallel,
            changed=file.changed if file else _nothing,
        )
        try:
            async with show_progress(job.meter, self._stream, file.write_if_due if file else _nothing):
                return await job.run()
        except BaseException:
            if file is not None:
                file.write()
            raise


async def _described(side: Side, place: Place) -> TableDescription:
    with explaining(place):
        return await side.describe()


def _created(table: TableDescription) -> datetime | None:
    return None if table.created_us is None else datetime.fromtimestamp(table.created_us / 1e6, UTC)


def _nothing() -> None:
    """Takes the place of the state file's methods if there is none."""
