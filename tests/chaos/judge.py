"""Judges a ledger: everything is delivered, in order, and repeated only where repeats are allowed. Pure.

A delivery session is one client's reading of one channel from a stored checkpoint on, page after page. What a worker
writes is matched with what it read, entry by entry:

- a session writes the entries of a key in their order and leaves none out; only the last one may come again at once,
  when its answer was lost;
- it begins at the durable checkpoint, and a checkpoint is stored only after every entry before it has
  been written (docs/architecture.md rule 1);
- an entry is written by two sessions only if the worker of the earlier one was struck: killed or paused;
- a session writes nothing after the channel was reported closed, or another one has begun (docs/architecture.md
  rules 3 and 4).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.support.ledger import Change, Entry, Opened, Read, Reported, Stored, Written
from tests.support.row_changes import is_removal

#: Violations of each kind that are kept in full; the others are only counted.
KEPT = 5

#: Identity of what is delivered: channel and position in its log, or channel and key for base data.
Place = tuple[str, int | str]


@dataclass(frozen=True, slots=True)
class Strike:
    """A worker was killed or stopped at a time of the ledger's clock."""

    who: str
    t: float


@dataclass(slots=True)
class _Delivery:
    """One entry that a session has read; `page` is the number of its page."""

    place: Place
    action: str
    number: int
    page: int

    def is_change(self, action: str, number: int) -> bool:
        return (self.action, self.number) == (action, number)


@dataclass(slots=True)
class _Session:
    """The entries that one client has read of one channel, and how many of them are written."""

    ordinal: int
    who: str
    client: str
    channel: str
    begun: float
    start: str
    pages: list[Read] = field(default_factory=list)
    #: Entries of each page that are not written yet.
    open_entries: list[int] = field(default_factory=list)
    entries: dict[str, list[_Delivery]] = field(default_factory=dict)
    #: Per key, how many of its entries are written.
    done: Counter[str] = field(default_factory=Counter)
    closed: bool = False

    def __str__(self) -> str:
        return f"session {self.ordinal} of {self.who} on {self.channel}"

    @property
    def following(self) -> str:
        return self.pages[-1].following if self.pages else self.start

    def add(self, page: Read) -> None:
        number = len(self.pages)
        self.pages.append(page)
        self.open_entries.append(len(page.rows))
        for index, (key, action, change) in enumerate(page.rows):
            place = (page.channel, key if page.position is None else page.position + index)
            self.entries.setdefault(key, []).append(_Delivery(place, action, change, number))

    def drop_last_page(self) -> list[_Delivery]:
        """Remove a page whose answer was lost; it is read again. Its entries are returned."""
        self.pages.pop()
        self.open_entries.pop()
        dropped = []
        for entries in self.entries.values():
            while entries and entries[-1].page == len(self.pages):
                dropped.append(entries.pop())
        return dropped

    def unwritten(self) -> list[_Delivery]:
        """The entries that were read and not written."""
        return [entry for key, entries in self.entries.items() for entry in entries[self.done[key] :]]

    def last_page_untouched(self) -> bool:
        return bool(self.pages) and self.open_entries[-1] == len(self.pages[-1].rows)

    def unwritten_before(self, token: str) -> int | None:
        """Entries before a token that are not written; None if the session never reached that token."""
        unwritten, total = (0 if token == self.start else None), 0
        for page, left in zip(self.pages, self.open_entries, strict=True):
            total += left
            if page.following == token:
                unwritten = total
        return unwritten


@dataclass
class Verdict:
    """The violations and counts of a ledger."""

    violations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """Name -> number of occurrences; violations by their kind."""

    def violate(self, kind: str, text: str) -> None:
        self.counts[f"violation: {kind}"] += 1
        if self.counts[f"violation: {kind}"] <= KEPT:
            self.violations.append(f"{kind}: {text}")

    def __str__(self) -> str:
        return "\n".join([*self.violations, *(f"{number:8} {what}" for what, number in sorted(self.counts.items()))])


class Judge:
    """Takes the entries of a ledger in their order."""

    def __init__(self, strikes: Iterable[Strike]) -> None:
        self.verdict = Verdict()
        self._strikes: dict[str, list[float]] = defaultdict(list)
        self._to_come = sorted(strikes, key=lambda strike: strike.t, reverse=True)
        for strike in self._to_come:
            self._strikes[strike.who].append(strike.t)
        self._durable: dict[str, str] = {}
        self._sessions: list[_Session] = []
        self._latest: dict[str, _Session] = {}
        self._reopened: set[tuple[str, str]] = set()
        self._by_key: dict[tuple[str, str], _Session] = {}
        self._last_writer: dict[str, _Session] = {}
        self._read: dict[Place, tuple[str, str, int]] = {}
        self._written: dict[Place, _Session] = {}

    def judge(self, entries: Iterable[Entry], acknowledged: Mapping[str, int]) -> Verdict:
        """The verdict over a whole ledger.

        Args:
            acknowledged: key -> number of its last acknowledged change; 1 was there before.
        """
        for entry in entries:
            while self._to_come and self._to_come[-1].t < entry.t:
                self._strikes_at(self._to_come.pop())
            match entry:
                case Read():
                    self._reads(entry)
                case Opened():
                    self._reopened.add((entry.client, entry.channel))
                    self._durable.setdefault(entry.channel, entry.token)
                case Stored():
                    self._stores(entry)
                case Reported():
                    self._reports(entry)
                case Written():
                    for change in entry.rows:
                        self._writes(entry, change)
        self._check_complete(acknowledged)
        self.verdict.counts["delivery sessions"] = len(self._sessions)
        self.verdict.counts["channels"] = len(self._latest)
        return self.verdict

    def _strikes_at(self, strike: Strike) -> None:
        """Count strikes at workers that hold a channel; a strike at another one tests nothing."""
        under_way = sum(sum(held.open_entries) for held in self._latest.values() if held.who == strike.who)
        self.verdict.counts["strikes with entries read and not written"] += under_way > 0
        self.verdict.counts["entries read and not written at strikes"] += under_way

    def _reads(self, page: Read) -> None:
        session = self._session_of(page)
        if session is None:
            # The reader has not been notified yet that it lost the channel: harmless unless it writes the page.
            self.verdict.counts["pages read by one who does not own the channel"] += 1
            return
        session.add(page)
        for index, (key, action, number) in enumerate(page.rows):
            self._by_key[page.who, key] = session
            place = (page.channel, key if page.position is None else page.position + index)
            self._read[place] = (key, action, number)

    def _session_of(self, page: Read) -> _Session | None:
        """The session of a page, which may begin with it; None for a reader that does not own the channel."""
        session, place = self._latest.get(page.channel), (page.client, page.channel)
        reopened = place in self._reopened
        self._reopened.discard(place)
        if session is not None and session.client == page.client and not session.closed:
            if page.token == session.following:
                return session
            begins = reopened and page.token == self._durable.get(page.channel)
            if page.token == session.pages[-1].token and session.last_page_untouched() and not begins:
                self.verdict.counts["pages read again after a lost answer"] += 1
                self._forget_rows_that_may_be_gone(session.drop_last_page())
                return session
        return self._begin(page) if page.owner == page.client else None

    def _begin(self, page: Read) -> _Session:
        session = _Session(len(self._sessions), page.who, page.client, page.channel, page.t, page.token)
        if page.token != self._durable.get(page.channel):
            self.verdict.violate("start", f"{session} does not begin at the durable checkpoint")
        before = self._latest.get(page.channel)
        if before is not None:
            self.verdict.counts["hand-overs to another process"] += before.who != page.who
            self._forget_rows_that_may_be_gone(before.unwritten())
        self._sessions.append(session)
        self._latest[page.channel] = session
        return session

    def _forget_rows_that_may_be_gone(self, unwritten: Iterable[_Delivery]) -> None:
        """Rows of base data that were not written are read again, unless they have been removed meanwhile."""
        for entry in unwritten:
            channel, key = entry.place
            if isinstance(key, str):
                self._read.pop((channel, key), None)

    def _stores(self, stored: Stored) -> None:
        session = self._latest.get(stored.channel)
        self._durable[stored.channel] = stored.token
        self.verdict.counts["checkpoints"] += 1
        if session is None or session.client != stored.client:
            self.verdict.violate("old checkpoint", f"{stored.who} stores one of {stored.channel} after {session}")
            return
        unwritten = session.unwritten_before(stored.token)
        if unwritten is None:
            self.verdict.violate("checkpoint", f"{session} stores a token that it has not reached")
        elif unwritten:
            self.verdict.violate("checkpoint", f"{session} stores one with {unwritten} entries before it unwritten")

    def _reports(self, report: Reported) -> None:
        for channel, status in report.reports:
            session = self._latest.get(channel)
            if session is None or session.client != report.client:
                continue
            if status in ("CLOSE", "TERMINATED"):
                session.closed = True
            if status == "TERMINATED" and self._durable.get(channel) != "finished":
                self.verdict.violate("terminated", f"{session} reports it before its last checkpoint is durable")

    def _writes(self, write: Written, change: Change) -> None:
        key, action, number = change
        session = self._by_key.get((write.who, key))
        if session is None:
            self.verdict.violate("foreign", f"{write.who} writes {change} without having read the key")
            return
        self.verdict.counts["rows written"] += 1
        self._check_fenced(session, change)
        entries, done = session.entries[key], session.done[key]
        if done < len(entries) and entries[done].is_change(action, number):
            session.done[key] += 1
            session.open_entries[entries[done].page] -= 1
            self._note(session, entries[done])
        elif done and entries[done - 1].is_change(action, number):
            self.verdict.counts["rows written again at once"] += 1
        else:
            self.verdict.violate("order", f"{session} writes {change}, {_around(entries, done)}")

    def _check_fenced(self, session: _Session, change: Change) -> None:
        if session.closed:
            self.verdict.violate("after close", f"{session} writes {change}")
        newer = self._latest[session.channel]
        if newer is not session:
            self.verdict.violate("old over new", f"{session} writes {change} after {newer} has begun")
        last = self._last_writer.get(change[0])
        if last is not None and last.ordinal > session.ordinal:
            self.verdict.violate("old over new", f"{session} writes {change} after {last} wrote this key")
        self._last_writer[change[0]] = session

    def _note(self, session: _Session, entry: _Delivery) -> None:
        before = self._written.get(entry.place)
        if before is not None:
            self.verdict.counts["rows repeated after a strike"] += 1
            if not any(before.begun <= t <= session.begun for t in self._strikes[before.who]):
                self.verdict.violate(
                    "repeat", f"{session} writes {entry.place} again after {before}: no worker was struck"
                )
        self._written[entry.place] = session

    def _check_complete(self, acknowledged: Mapping[str, int]) -> None:
        lost = self._read.keys() - self._written.keys()
        for place in sorted(lost, key=str):
            self.verdict.violate("lost", f"{place} {self._read[place]} was read and never written")
        numbers: dict[str, set[int]] = defaultdict(set)
        removals: Counter[str] = Counter()
        for key, action, number in self._read.values():
            numbers[key].add(number)
            removals[key] += action == "DELETE"
        for key, last in acknowledged.items():
            wanted = {number for number in range(2, last + 1) if not is_removal(number)}
            if missing := sorted(wanted - numbers[key]):
                self.verdict.violate("lost", f"{key}: numbers {missing[:5]} were never read")
            if removals[key] < sum(map(is_removal, range(2, last + 1))):
                self.verdict.violate("lost", f"{key}: of its removals only {removals[key]} were read")


def _around(entries: list[_Delivery], done: int) -> str:
    near = [f"{entry.action} {entry.number}" for entry in entries[max(0, done - 1) : done + 2]]
    return f"next to {', '.join(near)} ({done} of {len(entries)} entries of the key are written)"
