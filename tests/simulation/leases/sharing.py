"""Judge of workers that share leases: nothing is lost or overtaken, and one worker writes. It judges every call.

A holding is one worker's lease of one shard from its take on, until another worker owns it, or it was given away. A
reading is one way through a shard from a stored checkpoint on, within one holding. What a worker writes is matched with
what it has read:

    order       a reading writes the changes of a key in their order; only the last one may come again at once
    gap         a change is written only if the one before it has been written, by whichever reading
    foreign     a write was read before by its writer; a checkpoint is stored by the owner of the lease
    owner       no write of a worker takes effect once its holding is over (one second is the wire's)
    checkpoint  a checkpoint is stored only when every record before it has taken effect at the destination
    start       a reading begins at the stored checkpoint
    parents     a shard is read once its parents are read

`owner` is not asked of code that does not ask the fence: a user's own, and the library's. Nor is it asked for a while
after a worker of the library has written a lease anew over one that was there, which loses owner and checkpoint.

The library does not end a read under way whose lease is lost. It may be answered when the worker holds the lease again,
beside a reading of the new holding: a page that continues the former reading is one of that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ots_tunnel.stream.lease.lease import NO_WORKER, SHARD_END, Lease, Position, WorkerId
from ots_tunnel.stream.lease.row import CHECKPOINT, COUNTER, OWNER, PARENTS, STEALER
from ots_tunnel.stream.shards import ShardId
from tests.simulation.leases.ledger import LeaseWritten, ShardRead, place_of
from tests.simulation.oracles.delivery import WIRE_SECONDS, Violate
from tests.simulation.oracles.history import History
from tests.simulation.oracles.reading import ReadChanges, ReadPages
from tests.support.ledger import Change, Entry, Written
from tests.support.row_changes import action_of, is_removal

STREAM = "stream"


@dataclass(slots=True)
class _Holding:
    """One worker's lease of one shard."""

    who: str
    begun: float
    ended: float = float("inf")
    #: Whether it ended by a row that was put over it.
    is_reset: bool = False


@dataclass(slots=True)
class _Reading:
    """What one worker has read of one shard, from a checkpoint on."""

    who: str
    shard: str
    begun: float
    holding: _Holding | None
    following: int | None
    #: Where it began, or the last checkpoint since.
    stored: int | None
    #: Where the last page began, and the keys of its changes.
    last_page: tuple[int, Counter[str]] | None = None
    #: Those with records; the place behind the last one of a shard is None.
    pages: ReadPages[int | None] = field(default_factory=ReadPages)
    changes: ReadChanges = field(default_factory=ReadChanges)

    def __str__(self) -> str:
        return f"the reading of {self.shard[:8]} by {self.who} since {self.begun:.3f} s"

    def forget_last_page(self, position: int) -> bool:
        """Drop the last page if it began at a position and nothing of it is written: its answer was lost."""
        if self.last_page is None or self.last_page[0] != position:
            return False
        keys = self.last_page[1]
        if any(self.changes.is_written(key, count) for key, count in keys.items()):
            return False
        for key, count in keys.items():
            self.changes.forget(key, count)
        if self.pages and (keys or self.following is None):
            self.pages.pop()
        self.last_page = None
        return True


class Sharing:
    """Judges what the service executes.

    Args:
        is_fenced: whether a process asks the fence before each write.
        resets_count: seconds after a reset in which `owner`, `start` and `parents` are not judged.
        reads_on: whether a read of a process may outlive its holding.
    """

    def __init__(
        self,
        history: History,
        violate: Violate,
        is_fenced: Callable[[str], bool],
        resets_count: float,
        reads_on: Callable[[str], bool],
    ) -> None:
        self._history = history
        self._violate = violate
        self._is_fenced = is_fenced
        self._resets_count = resets_count
        self._reads_on = reads_on
        #: The rows of the leases.
        self.rows: dict[str, Lease] = {}
        #: Number of the last change of a key that has taken effect.
        self.applied: dict[str, int] = {}
        #: When each lease has changed its owner to another worker.
        self.moves: list[float] = []
        self.counts: Counter[str] = Counter()
        self._holdings: dict[str, _Holding] = {}
        self._reset_at: dict[str, float] = {}
        self._readings: dict[tuple[str, str], _Reading] = {}
        #: Those before the present ones.
        self._former: dict[tuple[str, str], _Reading] = {}
        self._by_key: dict[tuple[str, str], list[_Reading]] = defaultdict(list)

    def take(self, entry: Entry) -> None:
        """Judge a call."""
        match entry:
            case LeaseWritten():
                self._leases(entry)
            case ShardRead():
                self._reads(entry)
            case Written():
                for change in entry.rows:
                    self._writes(entry, change)

    def missing(self) -> list[str]:
        """Keys of which a change has not taken effect."""
        return [
            f"{key}: {self._present(key)} of {number}"
            for key, number in sorted(self._history.due.items())
            if self._present(key) < number
        ]

    def _present(self, key: str) -> int:
        """Number of the last change of a key that the destination has; those before the stream were there."""
        return self.applied.get(key, self._history.first_in_stream.get(key, 1) - 1)

    # Leases

    def _leases(self, written: LeaseWritten) -> None:
        shard, before = written.shard, self.rows.get(written.shard)
        if written.values is None:
            self.rows.pop(shard, None)
            self._end(shard, written.t, is_reset=True)
            return
        if before is not None and written.is_whole:
            self.counts["leases that were reset"] += 1
            self._reset_at[shard] = written.t
            self._end(shard, written.t, is_reset=True)
        values = written.values
        if CHECKPOINT in values and not written.is_whole:
            self._stores(written, before)
        after = self.rows[shard] = _row(shard, before, values)
        self.counts[f"leases: {'/'.join(name.removeprefix('Lease').lower() for name in values)}"] += 1
        if OWNER in values and not written.is_whole:
            self._owned(written, NO_WORKER if before is None else before.owner, after)

    def _owned(self, written: LeaseWritten, before: WorkerId, after: Lease) -> None:
        """The owner was written: a take, or a lease that was given away."""
        self._end(written.shard, written.t)
        if after.owner == written.who and after.stealer == NO_WORKER:
            self._holdings[written.shard] = _Holding(written.who, written.t)
        if after.owner not in (before, NO_WORKER):
            self.moves.append(written.t)

    def _end(self, shard: str, now: float, *, is_reset: bool = False) -> None:
        holding = self._holdings.pop(shard, None)
        if holding is not None:
            holding.ended, holding.is_reset = now, is_reset

    def _stores(self, written: LeaseWritten, before: Lease | None) -> None:
        self.counts["checkpoints"] += 1
        token, shard = str((written.values or {})[CHECKPOINT]), written.shard
        if before is None or self._is_excused(shard, written.t):
            return
        if before.owner != written.who:
            self._violate("foreign", f"{written.who} stores a checkpoint of {shard[:8]}, which {before.owner} owns")
        if token == before.checkpoint:
            return
        reading = self._readings.get((written.who, shard))
        if reading is None:
            self._violate("checkpoint", f"{written.who} stores a checkpoint of {shard[:8]}, which it has not read")
            return
        stored = None if token == SHARD_END else place_of(token)[1]
        if stored != reading.stored:  # otherwise the position of TRIM_HORIZON
            self._is_read(reading, stored)

    def _is_read(self, reading: _Reading, stored: int | None) -> None:
        """Judge a checkpoint: what lies before it was read, and has taken effect."""
        match reading.pages.store(stored, self._present):
            case (key, number):
                text = f"{reading} stores a checkpoint behind number {number} of {key}"
                self._violate("checkpoint", f"{text}; written is number {self._present(key)}")
            case True:
                reading.stored = stored
            case False if stored != reading.following:
                self._violate("checkpoint", f"{reading} stores position {stored}, which it has not read")

    def _is_excused(self, shard: str, now: float) -> bool:
        """Whether a lease was reset a while ago, so that two workers may own it."""
        return now < self._reset_at.get(shard, float("-inf")) + self._resets_count

    # Records

    def _reads(self, page: ShardRead) -> None:
        self.counts["pages"] += 1
        reading = self._readings.get((page.who, page.shard))
        holding = self._holdings.get(page.shard)
        is_owner = holding is not None and holding.who == page.who
        late = self._late_reading(page, holding) if is_owner else None
        is_another = reading is None or (is_owner and reading.holding is not holding)
        if late is not None:
            reading = late
        elif is_another or (reading.following != page.position and not reading.forget_last_page(page.position)):
            reading = self._begin(page, holding if is_owner else None)
        reading.following = page.following
        taken, keys = [], Counter[str]()
        for index in range(page.count):
            place = self._history.place(page.shard, page.position + index)
            shown = 0 if is_removal(place.number) else place.number
            reading.changes.add(place.key, action_of(place.number).name, shown, place.number)
            taken.append((place.key, place.number))
            keys[place.key] += 1
            known = self._by_key[page.who, place.key]
            if not known or known[-1] is not reading:
                known.append(reading)
        if taken or page.following is None:
            reading.pages.add(page.following, taken)
        reading.last_page = page.position, keys

    def _late_reading(self, page: ShardRead, holding: _Holding | None) -> _Reading | None:
        """The reading of a former holding that a page continues, where the new one does not begin there."""
        row, key = self.rows.get(page.shard), (page.who, page.shard)
        if not self._reads_on(page.who) or row is None or _position(row.checkpoint) == page.position:
            return None
        known = (self._readings.get(key), self._former.get(key))
        found = (each for each in known if each is not None and each.holding is not holding)
        return next((each for each in found if each.following == page.position), None)

    def _begin(self, page: ShardRead, holding: _Holding | None) -> _Reading:
        self.counts["readings"] += 1
        if (before := self._readings.get((page.who, page.shard))) is not None:
            self._former[page.who, page.shard] = before
        made = _Reading(page.who, page.shard, page.t, holding, page.following, page.position)
        self._readings[page.who, page.shard] = made
        row = self.rows.get(page.shard)
        if holding is None or row is None or self._is_excused(page.shard, page.t):
            return made  # its writes are judged all the same
        start = _position(row.checkpoint)
        if start != page.position:
            self._violate("start", f"{made} begins at {page.position}; the stored checkpoint is {row.checkpoint}")
        for parent in row.parents:
            found = self.rows.get(parent)
            if found is not None and not found.is_finished and not self._is_excused(parent, page.t):
                self._violate("parents", f"{made} begins before its parent {parent[:8]} is read")
        return made

    def _writes(self, write: Written, change: Change) -> None:
        key = change[0]
        known = [reading for reading in self._by_key[write.who, key] if reading.begun <= write.sent]
        if not known:
            self._violate("foreign", f"{write.who} writes {change} without having read it")
            return
        mine = known[::-1] if self._reads_on(write.who) else known[-1:]
        reading, found = next(
            ((each, found) for each in mine if (found := each.changes.match(change)) is not None), (known[-1], None)
        )
        if found is None:
            near = reading.changes.near(key)
            self._violate("order", f"{reading} writes {change}, sent at {write.sent:.3f}, next to {near}")
            return
        true, is_repeated = found
        if is_repeated:
            self.counts["rows written again at once"] += 1
        self.counts["rows"] += 1
        self._check_owner(reading, write, change)
        if self._present(key) < true - 1:
            self._violate("gap", f"{reading} writes {change} (number {true}) after number {self._present(key)}")
        self.applied[key] = max(self._present(key), true)

    def _check_owner(self, reading: _Reading, write: Written, change: Change) -> None:
        if not self._is_fenced(write.who) or self._is_excused(reading.shard, write.t):
            return
        holding = reading.holding
        if holding is None:
            self._violate("owner", f"{reading} writes {change}, sent at {write.sent:.3f}, without the lease")
        elif write.t > holding.ended + WIRE_SECONDS and not holding.is_reset:
            text = f"{reading} writes {change}, sent at {write.sent:.3f}"
            self._violate("owner", f"{text}; its lease was another worker's from {holding.ended:.3f} s on")


def _row(shard: str, before: Lease | None, values: object) -> Lease:
    assert isinstance(values, dict)
    row = before or Lease(STREAM, ShardId(shard))
    parents = row.parents
    if PARENTS in values:
        parents = frozenset(map(ShardId, filter(None, values[PARENTS].split("\n"))))
    return replace(
        row,
        counter=values.get(COUNTER, row.counter),
        owner=WorkerId(values.get(OWNER, row.owner)),
        stealer=WorkerId(values.get(STEALER, row.stealer)),
        checkpoint=Position(values.get(CHECKPOINT, row.checkpoint)),
        parents=parents,
    )


def _position(checkpoint: Position) -> int | None:
    """Where a checkpoint stands in the log; None at its end."""
    if checkpoint == SHARD_END:
        return None
    return place_of(checkpoint)[1] if ":" in checkpoint else 0
