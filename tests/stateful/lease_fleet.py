"""Workers that share leases, on virtual time: their clocks differ, their calls take time, some are never answered.

The table is a dictionary whose writes keep their conditions. A worker is three kinds of processes that use the
product's decisions: the taker and the renewer, which repeat, and a process for each lease that is being handed over. A
process is a generator: it yields how long it sleeps by its worker's clock, or a call. A worker may be suspended: its
clock runs on and its processes do not. A worker of the Java library decides by that library's rules.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from ots_tunnel.stream.decide.handing_over import give_away, is_asked_for, to_pass_on
from ots_tunnel.stream.decide.share import share_of
from ots_tunnel.stream.decide.sightings import Sightings, observe
from ots_tunnel.stream.decide.taking import is_given, to_steal, to_take
from ots_tunnel.stream.lease import change
from ots_tunnel.stream.lease.change import Change
from ots_tunnel.stream.lease.lease import NO_WORKER, Lease, WorkerId
from ots_tunnel.stream.lease.settling import Settled, settle
from ots_tunnel.stream.shards import ShardId

DURATION, INTERVAL = 20.0, 6.0
#: Seconds by which an owner ends before its lease does: D of docs/architecture.md rule 4.
MARGIN = (DURATION - INTERVAL) / 3
#: Most seconds on the way to the table, and back.
LATENCY = 0.4
UNANSWERED = object()
Call = Callable[[], Any]
Process = Generator[float | Call, Any, None]


@dataclass
class Held:
    """A lease that a worker holds; `since` is its clock before the last renewal was sent."""

    taken: Lease
    lease: Lease
    since: float
    writes: bool = True
    busy: bool = False
    leaving: bool = False


@dataclass(eq=False)
class Worker:
    """One worker; its clock shows `offset` + `rate` x time."""

    fleet: Fleet
    id: WorkerId
    offset: float = 0.0
    rate: float = 1.0
    java: bool = False
    held: dict[ShardId, Held] = field(default_factory=dict)
    #: Leases that it has left before their time by the margin, without giving them to another worker.
    ended: dict[ShardId, Held] = field(default_factory=dict)
    sightings: Sightings = field(default_factory=dict)
    is_running: bool = True
    stopping: bool = False
    suspended_until: float = 0.0

    @property
    def now(self) -> float:
        return self.offset + self.rate * self.fleet.time

    def is_alive(self, held: Held) -> bool:
        """Whether the worker may write, as far as it knows."""
        margin = 0 if self.java else MARGIN
        return self.is_running and held.writes and self.now < held.since + DURATION - margin

    def owns(self, shard: ShardId) -> bool:
        held = self.held.get(shard)
        return held is not None and self.is_alive(held)

    def has_time_left(self, shard: ShardId) -> bool:
        """Whether its lease lives for its whole duration, without a margin: it may not write any more near the end."""
        held = self.held.get(shard)
        left = held if held is not None and held.writes else self.ended.get(shard)
        return self.is_running and left is not None and self.now < left.since + DURATION

    def start(self) -> None:
        self.fleet.run(self, self.taker())
        self.fleet.run(self, self.renewer())

    def taker(self) -> Process:
        while not self.stopping:
            listed = yield self.fleet.list
            if listed is not UNANSWERED:
                self.sightings = observe(self.sightings, listed, self.now)
                self.drop_expired()
                for passed in () if self.java else to_pass_on(self.id, listed, self.held.keys()):
                    self.ended.pop(passed.before.shard_id, None)
                    yield from self.apply(passed)
                taken = 0
                for lease in self.leases_to_take():
                    sent = self.now
                    take = replace(change.take(lease, self.id), takes_released=not self.java)
                    after = yield from self.apply(take)
                    if after is not None:
                        taken += 1
                        self.ended.pop(lease.shard_id, None)
                        self.held[lease.shard_id] = Held(after, after, self.now if self.java else sent)
                stolen = self.lease_to_steal(taken)
                if stolen is not None:
                    yield from self.apply(change.steal(stolen, self.id))
            yield INTERVAL

    def leases_to_take(self) -> Sequence[Lease]:
        if not self.java:
            return to_take(self.id, self.sightings, self.held.keys(), self.now, DURATION, self.fleet.shuffle)
        need = share_of(self.id, self.sightings, self.now, DURATION).need
        leases = [each.lease for each in self.sightings.values()]
        given = [lease for lease in leases if is_given(self.id, lease)][: max(need, 1)]
        expired = [lease for lease in leases if self.sightings[lease.shard_id].is_expired(self.now, DURATION)]
        rest = [lease for lease in expired if lease not in given]
        return [*given, *self.fleet.shuffle(rest)[: max(need - len(given), 0)]]

    def lease_to_steal(self, taken: int) -> Lease | None:
        if not self.java:
            return to_steal(self.id, self.sightings, taken, self.now, DURATION, self.fleet.shuffle)
        share = share_of(self.id, self.sightings, self.now, DURATION)
        others = {owner: leases for owner, leases in share.counts.items() if owner != self.id}
        if share.need <= taken or not others:
            return None
        busiest = max(others, key=lambda owner: others[owner])
        if others[busiest] < share.target or (others[busiest] == share.target and share.need <= 1):
            return None
        leases = [each.lease for each in self.sightings.values() if each.lease.owner == busiest]
        return self.fleet.shuffle(leases)[0]

    def renewer(self) -> Process:
        while self.held or not self.stopping:
            listed = yield self.fleet.list
            self.drop_expired()
            for lease in listed if listed is not UNANSWERED else ():
                held = self.held.get(lease.shard_id)
                if held is not None and not held.leaving and self.is_asked(held, lease):
                    held.leaving = True
                    self.fleet.run(self, self.hand_over(held, change.transfer(lease)))
            for held in self.held.values():
                if not held.busy:
                    self.fleet.run(self, self.renew(held))
            if self.stopping:
                self.leave()
            yield INTERVAL

    def is_asked(self, held: Held, listed: Lease) -> bool:
        return is_asked_for(held.taken, listed) and (not self.java or held.lease.counter == listed.counter)

    def renew(self, held: Held) -> Process:
        held.busy, sent = True, self.now
        after = yield from self.apply(change.renew(held.lease))
        held.busy = False
        if after is None:
            self.drop(held)
        else:
            held.lease, held.since = after, self.now if self.java else sent

    def leave(self) -> None:
        """Hand every lease over that is not being handed over."""
        mine = [held.lease for held in self.held.values() if not held.leaving]
        for made in give_away(self.id, mine, self.sightings, self.now, DURATION):
            held = self.held[made.before.shard_id]
            held.leaving = True
            self.fleet.run(self, self.hand_over(held, made))

    def hand_over(self, held: Held, made: Change) -> Process:
        yield self.fleet.random.uniform(0, self.fleet.longest_batch)
        while held.busy:
            yield 0.01
        held.busy, held.writes = True, False
        self.ended.pop(held.lease.shard_id, None)
        lease = held.lease if made.kind is not change.Kind.TRANSFER else made.before
        yield from self.apply(Change(made.kind, _counted(lease, held.lease), made.worker))
        self.drop(held)

    def apply(self, made: Change) -> Generator[float | Call, Any, Lease | None]:
        """Make a change as `LeaseTable.apply` does."""
        while True:
            answer = yield lambda: self.fleet.apply(made)
            if answer is not UNANSWERED:
                return answer
            row = UNANSWERED
            while row is UNANSWERED:
                row = yield lambda: self.fleet.rows.get(made.before.shard_id)
            match settle(made, row):
                case Settled.MADE:
                    return row
                case Settled.LOST:
                    return None
            yield 0.1

    def drop_expired(self) -> None:
        for held in list(self.held.values()):
            if held.writes and not self.is_alive(held):
                self.drop(held)
                self.ended[held.lease.shard_id] = held

    def drop(self, held: Held) -> None:
        held.writes = False
        if self.held.get(held.lease.shard_id) is held:
            del self.held[held.lease.shard_id]


def _counted(lease: Lease, known: Lease) -> Lease:
    """The lease with the counter that its owner knows."""
    return Lease(
        lease.stream_id, lease.shard_id, known.counter, known.owner, lease.stealer, known.checkpoint, known.parents
    )


class Fleet:
    """The table, the workers and the time, in seconds."""

    def __init__(self, leases: int, seed: int, *, lost: float = 0.0, longest_batch: float = 5.0) -> None:
        self.time = 0.0
        self.random = random.Random(seed)
        shards = [ShardId(f"shard-{number}") for number in range(leases)]
        self.rows = {shard: Lease("s", shard, created_if_missing=True) for shard in shards}
        self.workers: list[Worker] = []
        self.lost = lost
        self.longest_batch = longest_batch
        #: When each lease changed its owner to another worker.
        self.moves: list[float] = []
        self.owned_at = dict.fromkeys(self.rows, 0.0)
        #: Moments in which two workers of ours might write, and in which both had time left on the lease.
        self.overlaps: list[str] = []
        self.double_leases: list[str] = []
        self._order = count()
        self._queue: list[tuple[float, int, Callable[[], None]]] = []

    def add(self, worker: Worker) -> Worker:
        self.workers.append(worker)
        worker.start()
        return worker

    def at(self, time: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (time, next(self._order), action))

    def run(self, worker: Worker, process: Process) -> None:
        """Start a process of a worker."""
        self._resume(worker, process, None)

    def advance(self, until: float) -> None:
        """Let everything happen up to a time."""
        while self._queue and self._queue[0][0] <= until:
            self.time, _, action = heapq.heappop(self._queue)
            action()
            self._look()
        self.time = until
        self._look()

    def list(self) -> list[Lease]:
        return list(self.rows.values())

    def apply(self, made: Change) -> Lease | None:
        row = self.rows.get(made.before.shard_id)
        if row is None or not made.may_be_made_to(row):
            return None
        after = self.rows[row.shard_id] = made.made_to(row)
        if after.owner not in (row.owner, NO_WORKER):
            self.moves.append(self.time)
        return made.after

    def shuffle(self, leases: Sequence[Lease]) -> Sequence[Lease]:
        return self.random.sample(leases, len(leases))

    def counts(self) -> Counter[WorkerId]:
        """Leases by the worker that owns them, with those that own none."""
        owned = Counter({worker.id: 0 for worker in self.workers if worker.is_running})
        owned.update(worker.id for worker in self.workers for shard in self.rows if worker.owns(shard))
        return owned

    def _look(self) -> None:
        for shard in self.rows:
            owners = [worker for worker in self.workers if worker.owns(shard)]
            if owners:
                self.owned_at[shard] = self.time
            if sum(not worker.java for worker in owners) > 1:
                self.overlaps.append(f"{self.time:.3f}: {shard} is owned by {[worker.id for worker in owners]}")
            leased = [worker.id for worker in self.workers if not worker.java and worker.has_time_left(shard)]
            if len(leased) > 1:
                self.double_leases.append(f"{self.time:.3f}: the lease of {shard} lives for {leased}")

    def _resume(self, worker: Worker, process: Process, value: Any) -> None:
        if not worker.is_running:
            return
        if worker.suspended_until > self.time:
            self.at(worker.suspended_until, lambda: self._resume(worker, process, value))
            return
        try:
            asked = process.send(value)
        except StopIteration:
            return
        if isinstance(asked, float | int):
            self.at(self.time + asked / worker.rate, lambda: self._resume(worker, process, None))
            return
        arrives = self.time + self.random.uniform(0, LATENCY)
        self.at(arrives, lambda: self._carry_out(worker, process, asked))

    def _carry_out(self, worker: Worker, process: Process, call: Call) -> None:
        way = self.random.random()
        # A lost call is carried out or not; its worker learns nothing for three seconds.
        answer = call() if way >= self.lost / 2 else UNANSWERED
        if way < self.lost:
            self.at(self.time + 3, lambda: self._resume(worker, process, UNANSWERED))
            return
        self.at(self.time + self.random.uniform(0, LATENCY), lambda: self._resume(worker, process, answer))
