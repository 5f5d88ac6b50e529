"""Oracle of the data path: nothing is lost, overtaken, or confirmed too early. It judges every call as it happens.

A delivery session is one client's reading of one channel from a stored checkpoint on. What a worker writes is
matched with what it has read:

    order       a session writes the changes of a key in their order; only the last one may come again at once
    gap         a change is written only if the one before it has been written, by whichever session
    fence       once a newer session reads a channel, no write of an older one takes effect (one second is the wire's)
    overtaken   no session writes a key after a newer one has written it
    foreign     a write was read before by its writer; a checkpoint that somebody else has stored is not overwritten
    checkpoint  a checkpoint is stored only when every record before it has taken effect at the destination
    start       a session begins at the durable checkpoint, or where the service has moved it, for what is before is
                gone: then nothing is written behind the gap
    late        nothing is written that was committed after the end time
    ended       TERMINATED is reported after the last checkpoint, and nothing is written after CLOSE or TERMINATED
    filtered    nothing is written that the filter of its writer leaves out

A change is due unless the filter of the process that was the last to read it leaves it out: that process has either
stored a checkpoint behind it, or another one reads it again. A change that is left out counts as taken effect.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from ots_tunnel.model import FINISHED
from tests.simulation.oracles.history import History
from tests.simulation.oracles.reading import ReadChanges, ReadPages
from tests.support.ledger import Change, Connected, Entry, Opened, Read, Reported, Stored, Written
from tests.support.row_changes import action_of

#: Called with the rule that is broken and what happened.
Violate = Callable[[str, str], None]
#: Called with a process, a key and an action: whether the filter that the process was started with lets this pass.
Passes = Callable[[str, str, str], bool]

#: Seconds that a write may be on the wire beyond its fence.
WIRE_SECONDS = 1.0


@dataclass(slots=True)
class _Session:
    """What one client has read of one channel; `order` is that of their beginnings."""

    order: int
    who: str
    client: str
    channel: str
    begun: float
    start: str
    pages: ReadPages[str] = field(default_factory=ReadPages)
    changes: ReadChanges = field(default_factory=ReadChanges)
    is_closed: bool = False
    #: Somebody else has stored a checkpoint since it began: it may store none any more.
    is_overruled: bool = False

    def __str__(self) -> str:
        return f"session {self.order} ({self.who} on {self.channel[:8]})"

    @property
    def following(self) -> str:
        return self.pages.ending(1) if self.pages else self.start

    def forget_page_at(self, token: str) -> bool:
        """Drop the last page if it began at a token: its answer was lost, and the client reads it again."""
        before = self.pages.ending(2) if len(self.pages) > 1 else self.start
        if not self.pages or token != before:
            return False
        for key, _ in self.pages.pop():
            self.changes.forget(key)
        return True


class Delivery:
    """Judges what the service executes.

    Args:
        is_fenced: whether the sink asks the fence before every write; a user's own code does not.
        passes: without it no change is left out.
    """

    def __init__(
        self,
        history: History,
        violate: Violate,
        *,
        is_fenced: bool = True,
        passes: Passes = lambda who, key, action: True,
    ) -> None:
        self._history = history
        self._violate = violate
        self._passes = passes
        self._is_fenced = is_fenced
        self._sessions = 0
        self._latest: dict[str, _Session] = {}
        self._durable: dict[str, str] = {}
        #: Channel to the stored tokens, in order; those after a stranger's are forgotten.
        self._stored: dict[str, list[str]] = defaultdict(list)
        #: Channel to a checkpoint that the service has answered, and that nobody has stored.
        self._moved: dict[str, str] = {}
        #: Clients that have read the checkpoint of a channel: their next read begins a session.
        self._opened: set[tuple[str, str]] = set()
        #: The checkpoint that such a client was given, where somebody else has stored another one since.
        self._given: dict[tuple[str, str], str] = {}
        self._by_key: dict[tuple[str, str], list[tuple[float, _Session]]] = defaultdict(list)
        self._last_writer: dict[str, _Session] = {}
        #: Number of the last change of a key that has taken effect.
        self.applied: dict[str, int] = {}
        #: The same for keys whose later changes have been taken away and have to come again.
        self._left: dict[str, int] = {}
        #: Changes (key, number) that their last reader leaves out; an existing row has no number.
        self._left_out: set[tuple[str, int | None]] = set()
        #: Channels whose checkpoint somebody has stored who is no client.
        #: Channel to how often somebody who is no client has stored a checkpoint of it.
        self.overruled: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()

    def take(self, entry: Entry) -> None:
        """Judge a call."""
        match entry:
            case Read():
                self._reads(entry)
            case Written():
                for change in entry.rows:
                    self._writes(entry, change)
            case Opened():
                self._opened.add((entry.client, entry.channel))
                self._given.pop((entry.client, entry.channel), None)
                if self._durable.setdefault(entry.channel, entry.token) != entry.token:
                    self._moved[entry.channel] = entry.token
            case Stored():
                self._stores(entry)
            case Reported():
                self._reports(entry)
            case Connected():
                self.counts["clients"] += 1

    def stored(self, channel: str) -> str:
        """The stored checkpoint of a channel; empty before anybody has read it."""
        return self._durable.get(channel, "")

    def rewound(self, channel: str) -> str | None:
        """An earlier checkpoint of the channel; None where there is none, or where it is read to its end."""
        earlier = [token for token in self._stored[channel] if token != self._durable.get(channel)]
        return None if not earlier or self._durable.get(channel) == FINISHED else earlier[-min(3, len(earlier))]

    def overrule(self, channel: str, token: str) -> None:
        """Somebody who is no client has stored a checkpoint."""
        self.overruled[channel] += 1
        for client, opened in self._opened:
            if opened == channel and channel in self._durable:
                self._given.setdefault((client, channel), self._durable[channel])
        self._durable[channel] = token
        self._stored[channel].append(token)
        if (session := self._latest.get(channel)) is not None:
            session.is_overruled = True

    def withdraw(self, key: str, number: int) -> None:
        """Changes of a key after this one were taken away again, as a file is that a replay replaces."""
        self._left[key] = number

    def give_up(self, key: str, number: int) -> None:
        """A change never comes: the status of its object says so."""
        self._left_out.add((key, number))

    def is_left_out(self, key: str, number: int | None) -> bool:
        """Whether its last reader leaves out a change in the stream, or an existing row, which has no number."""
        return (key, number) in self._left_out

    def counts_as_applied(self, who: str, key: str, number: int) -> bool:
        """Whether a process may say that it has consumed a change: it took effect, or a filter leaves it out."""
        if self.applied.get(key, 0) >= number or self.is_left_out(key, number):
            return True
        return not self._passes(who, key, action_of(number).name)

    def missing(self) -> list[str]:
        """Keys of which a change has not taken effect."""
        return [
            f"{key}: {self._present(key)} of {number}"
            for key, number in sorted(self._history.due.items())
            if self._is_any_due(key, number)
        ]

    def _is_any_due(self, key: str, last: int) -> bool:
        """Whether a change in the stream up to this one is not left out, and has not taken effect."""
        first = max(self._present(key), self._history.first_in_stream.get(key, 0) - 1) + 1
        return any(not self.is_left_out(key, number) for number in range(first, last + 1))

    def _present(self, key: str) -> int:
        """Number of the last change of a key that is in effect now."""
        applied = self.applied.get(key, 0)
        return min(applied, self._left.get(key, applied))

    def _apply(self, key: str, number: int) -> None:
        self._left[key] = max(self._present(key), number)
        self.applied[key] = max(self.applied.get(key, 0), number)

    def _reads(self, page: Read) -> None:
        session = self._session_of(page)
        if session is None:
            self.counts["pages read by a client that does not own the channel"] += 1
            return
        self.counts["pages"] += 1
        taken: list[tuple[str, int]] = []
        for index, (key, action, number) in enumerate(page.rows):
            true = number
            if page.position is not None:
                true = self._history.place(page.channel, page.position + index).number
            if not self._note_filter(page, key, action, true):
                continue
            session.changes.add(key, action, number, true)
            taken.append((key, true))
            known = self._by_key[page.who, key]
            if not known or known[-1][1] is not session:
                known.append((page.t, session))
        session.pages.add(page.following, taken)

    def _note_filter(self, page: Read, key: str, action: str, number: int) -> bool:
        """Whether the reader of a change lets it pass."""
        change = (key, None if page.position is None else number)
        if self._passes(page.who, key, action):
            self._left_out.discard(change)
            return True
        self._left_out.add(change)
        self.counts["records left out"] += 1
        return False

    def _session_of(self, page: Read) -> _Session | None:
        """The session of a page, which may begin with it; None where the page adds nothing to one.

        A client that has lost the channel between its checkpoint and its first page reads on until its next
        heartbeat says so. That is a session like any other as long as the present owner has not begun one.
        """
        session = self._latest.get(page.channel)
        is_opened = (page.client, page.channel) in self._opened
        if session is not None and session.client == page.client:
            # A client also reads the checkpoint to find out who has stored it, and then continues, or asks again for
            # the page whose answer was lost.
            if page.token == session.following and not (is_opened and page.token == self._durable.get(page.channel)):
                return session
            may_begin = is_opened and self._is_a_start(page)
            if not may_begin and session.forget_page_at(page.token):
                return session
            if not is_opened:
                return None
        if page.owner != page.client and not (is_opened and (session is None or page.owner != session.client)):
            return None
        self._opened.discard((page.client, page.channel))
        return self._begin(page)

    def _is_a_start(self, page: Read) -> bool:
        """Whether a page begins where a client begins that has read the checkpoint of the channel."""
        given = self._given.get((page.client, page.channel))
        return page.token in (given, self._durable.get(page.channel), self._moved.get(page.channel))

    def _begin(self, page: Read) -> _Session:
        session = _Session(self._sessions, page.who, page.client, page.channel, page.t, page.token)
        self._sessions += 1
        self.counts["sessions"] += 1
        given = self._given.pop((page.client, page.channel), None)
        if page.token not in (self._durable.get(page.channel), self._moved.get(page.channel)):
            # it was given its checkpoint before, and may read on from there, but store none any more
            session.is_overruled = page.token == given
            if not session.is_overruled:
                self._violate("start", f"{session} does not begin at the durable checkpoint")
        self._latest[page.channel] = session
        return session

    def _writes(self, write: Written, change: Change) -> None:
        key, action, _ = change
        if not self._passes(write.who, key, action):
            self._violate("filtered", f"{write.who} writes {change}, which its filter leaves out")
            return
        known = [session for begun, session in self._by_key[write.who, key] if begun <= write.sent]
        if not known:
            self._violate("foreign", f"{write.who} writes {change} without having read it")
            return
        session = known[-1]
        if (found := session.changes.match(change)) is None:
            near = session.changes.near(key)
            self._violate("order", f"{session} writes {change}, sent at {write.sent:.3f}, next to {near}")
            return
        true, is_repeated = found
        if is_repeated:
            self.counts["rows written again at once"] += 1
        self.counts["rows"] += 1
        self._check_fenced(session, write, change)
        before = self._present(key)
        if action == "PUT" and session.channel.startswith("BaseData_"):
            self._apply(key, true)
            return
        if self._history.end is not None and true > self._history.due.get(key, 0):
            self._violate("late", f"{session} writes {change} (number {true}), committed after the end time")
        if self._is_any_due(key, true - 1):
            self._violate("gap", f"{session} writes {change} (number {true}) after number {before}")
        self._apply(key, true)

    def _check_fenced(self, session: _Session, write: Written, change: Change) -> None:
        last = self._last_writer.get(change[0])
        if last is None or last.order <= session.order:
            self._last_writer[change[0]] = session
        elif self._is_fenced:
            self._violate("overtaken", f"{session} writes {change}, sent at {write.sent:.3f}, after {last} wrote it")
        if not self._is_fenced:
            return
        newer = self._latest[session.channel]
        if newer is not session and write.t > newer.begun + WIRE_SECONDS:
            self._violate("fence", f"{session} writes {change}, sent at {write.sent:.3f}, after {newer} has begun")
        if session.is_closed:
            self._violate("ended", f"{session} writes {change}, sent at {write.sent:.3f}, after the channel's end")

    def _stores(self, stored: Stored) -> None:
        self.counts["checkpoints"] += 1
        self._durable[stored.channel] = stored.token
        self._stored[stored.channel].append(stored.token)
        session = self._latest.get(stored.channel)
        if session is None or session.client != stored.client:
            if session is not None and stored.t > session.begun + WIRE_SECONDS:
                self._violate("fence", f"{stored.who} stores a checkpoint of {stored.channel[:8]} after {session}")
            return
        if session.is_overruled:
            self._violate("foreign", f"{session} stores a checkpoint over one that is not its own")
        if stored.token == session.start:
            return
        match session.pages.store(stored.token, self._present):
            case (key, number):
                text = f"{session} stores a checkpoint behind number {number} of {key}"
                self._violate("checkpoint", f"{text}; written is number {self._present(key)}")
            case True:
                session.start = stored.token
            case False:
                self._violate("checkpoint", f"{session} stores a token that it has not read")

    def _reports(self, report: Reported) -> None:
        for channel, status in report.reports:
            session = self._latest.get(channel)
            if session is None or session.client != report.client or report.sent < session.begun:
                continue
            if status not in ("CLOSE", "TERMINATED"):
                continue
            session.is_closed = True
            if status == "TERMINATED" and self._durable.get(channel) != "finished":
                self._violate("ended", f"{session} reports TERMINATED before its last checkpoint is durable")
