"""Judge of the moves of leases: each one has a cause, so their number is bounded, and none is in vain.

A lease moves to another owner because it expired, because that worker asked for it, because its owner stops, or because
it had no owner. The rules of the workers bound each cause, whatever goes wrong:

    early    a lease is taken from its owner only when its counter has stood still for the duration
    hasty    a worker asks for one lease in a round, and the next round comes an interval of the takers later
    vain     a worker of ours asks only an owner that has two leases more, with what is on its way to the worker
    unasked  a lease is handed to the worker that has asked for it; a worker that gives one away unasked stops, and
             neither asks nor takes any more
    war      so in a minute each lease expires once in each duration at most, and each process has asked for one lease
             in each interval of the takers; each lease may have been asked for before that minute

`vain` is why moves end when nothing goes wrong any more: each one that was asked for makes the shares more equal. That
they do end is judged by the region (`restless`).
"""

from __future__ import annotations

import enum
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ots_tunnel.stream.lease.row import COUNTER, OWNER, STEALER
from tests.simulation.leases.ledger import LeaseWritten
from tests.simulation.oracles.delivery import Violate

MINUTE = 60.0
#: How much larger the share of an owner is, at least, when a worker asks it for a lease.
DIFFERENCE = 2
#: Seconds after a first gift in which the last round may still send a call, which is tried again for as long.
LAST_CALL = 12.0


class Cause(enum.Enum):
    """Why a lease has another owner."""

    FREE = "that had no owner"
    EXPIRED = "that had expired"
    ASKED = "that were asked for"
    GIVEN = "given by workers that stop"


@dataclass(frozen=True, slots=True)
class _Seen:
    """A lease in the table."""

    owner: str = ""
    stealer: str = ""
    stands_since: float = 0.0


@dataclass(frozen=True, slots=True)
class Move:
    """A lease has another owner."""

    t: float
    cause: Cause


class Moving:
    """Judges the writes to the leases.

    Args:
        duration, take: of a lease, and between two rounds of a taker, in seconds.
    """

    def __init__(self, violate: Violate, duration: float, take: float) -> None:
        self._violate = violate
        self._duration = duration
        self._take = take
        #: The table, from a time on.
        self._states: deque[tuple[float, Mapping[str, _Seen]]] = deque([(0.0, {})])
        self._asked: dict[str, LeaseWritten] = {}
        self._gave_at: dict[str, float] = {}
        #: Shards whose leases were written anew while they had an owner.
        self._reset: set[str] = set()
        #: When each process has changed a lease last.
        self._active: dict[str, float] = {}
        self.moves: list[Move] = []

    def counts(self) -> Counter[str]:
        """Moves by their cause, and the most in a minute."""
        found = Counter(f"moves of leases {move.cause.value}" for move in self.moves)
        ends = [sum(end - MINUTE < move.t <= end for move in self.moves) for end in (move.t for move in self.moves)]
        return found + Counter({"moves in the worst minute": max(ends, default=0)})

    def take(self, written: LeaseWritten) -> None:
        """Judge a write."""
        self._active[written.who] = written.t
        rows = dict(self._states[-1][1])
        before = rows.pop(written.shard, _Seen(stands_since=written.t))
        if written.values is not None:
            rows[written.shard] = after = self._after(written, before)
            if written.is_whole and before.owner:
                self._reset.add(written.shard)
            if not written.is_whole:
                self._judge(written, before, after)
        self._states.append((written.t, rows))
        while len(self._states) > 1 and self._states[1][0] < written.t - 3 * self._duration:
            self._states.popleft()

    def _after(self, written: LeaseWritten, before: _Seen) -> _Seen:
        values = written.values or {}
        owner, stealer = (
            str(values.get(name, old)) for name, old in ((OWNER, before.owner), (STEALER, before.stealer))
        )
        return replace(
            before, owner=owner, stealer=stealer, stands_since=written.t if COUNTER in values else before.stands_since
        )

    def _judge(self, written: LeaseWritten, before: _Seen, after: _Seen) -> None:
        if COUNTER not in (written.values or {}):
            self._judge_ask(written, before)
        elif after.owner == before.owner:
            return
        elif after.owner == written.who:
            self._judge_take(written, before)
        elif after.owner and written.shard in self._reset and STEALER in (written.values or {}):
            self._moved(written, Cause.ASKED)  # the thief's mark was lost
        elif not after.owner or STEALER in (written.values or {}):
            self._gave_at.setdefault(written.who, written.t)
            if after.owner:
                self._moved(written, Cause.GIVEN)
        else:
            if before.stealer != after.owner:
                self._violate(
                    "unasked",
                    f"{written.who} hands {written.shard[:8]} to {after.owner}; its thief is {before.stealer!r}",
                )
            self._moved(written, Cause.ASKED)

    def _judge_ask(self, written: LeaseWritten, before: _Seen) -> None:
        who, last = written.who, self._asked.get(written.who)
        self._judge_stopping(written)
        # a first try may be executed behind a second one, when the lease is back at its owner
        if last is not None and last.shard != written.shard and written.sent < last.sent + 0.999 * self._take:
            self._violate(
                "hasty", f"{who} asks for {written.shard[:8]} {written.sent - last.sent:.3f} s after another one"
            )
        self._asked[who] = written
        if _is_ours(who) and (most := self._difference(who, before.owner, written.sent)) < DIFFERENCE:
            self._violate("vain", f"{who} asks {before.owner} for {written.shard[:8]}, which had {most} more at most")

    def _difference(self, who: str, owner: str, sent: float) -> int:
        """How many more leases an owner had than a worker: the most in the tables that the worker can have seen."""
        ends = [*[since for since, _ in self._states][1:], sent]
        return max(
            _count(rows, owner) - self._share(rows, who, min(end, sent))
            for (since, rows), end in zip(self._states, ends, strict=True)
            if since <= sent and end >= sent - self._duration
        )

    def _share(self, rows: Mapping[str, _Seen], who: str, now: float) -> int:
        """The leases of a worker, and those on their way to it from owners that live."""
        coming = (row for row in rows.values() if row.stealer == who)
        return _count(rows, who) + sum(row.owner == who or now - row.stands_since <= self._duration for row in coming)

    def _judge_take(self, written: LeaseWritten, before: _Seen) -> None:
        self._judge_stopping(written)
        still = written.t - before.stands_since
        if before.owner and still < self._duration:
            self._violate(
                "early", f"{written.who} takes {written.shard[:8]} of {before.owner}, renewed {still:.3f} s ago"
            )
        self._moved(written, Cause.EXPIRED if before.owner else Cause.FREE)

    def _judge_stopping(self, written: LeaseWritten) -> None:
        if written.sent > self._gave_at.get(written.who, float("inf")) + LAST_CALL:
            self._violate("unasked", f"{written.who} wants {written.shard[:8]}, after it has given leases away")

    def _moved(self, written: LeaseWritten, cause: Cause) -> None:
        self.moves.append(Move(written.t, cause))
        begin = written.t - MINUTE
        caused = Counter(move.cause for move in self.moves if move.t > begin)
        moved, most = caused[Cause.EXPIRED] + caused[Cause.ASKED], self.most_in_a_minute(begin)
        if moved > most:
            self._violate("war", f"{moved} leases have moved in a minute, at most {most} may")

    def most_in_a_minute(self, begin: float) -> int:
        """How many leases that expire or are asked for may move in the minute from a time on."""
        leases = max(len(rows) for _, rows in self._states)
        processes = sum(at >= begin for at in self._active.values())
        return leases * (2 + int(MINUTE / self._duration)) + processes * (1 + int(MINUTE / self._take))


def _count(rows: Mapping[str, _Seen], who: str) -> int:
    """The leases of a worker that no other one has asked for."""
    return sum(row.owner == who and not row.stealer for row in rows.values())


def _is_ours(who: str) -> bool:
    return who.startswith("w")
