"""Oracle of the operator's evidence: whatever it writes into a status is backed by what it was shown.

    completed   of the last description of the tunnel, taken after the last report of every owner, each channel is
                TERMINATED, reported done by the worker that owns it, or the child of such a channel; the end time has
                passed; every change up to it has taken effect; and no pod is missing, new or leaving
    suspended   no worker runs
    ready       of the last description, every channel that can be read has an owner
    caught up   a worker that holds the channel says so, of every channel of the last description
    lag         it is absent while the worker of a channel does not answer
                (both after the time that marks the figures: what a silent worker has told is kept for a while)
    version     it names the version of the object that was decided on: a write without one would be accepted over a
                newer object, too

The other oracle (`claims`) grants a status some time to become true. This one grants none: it judges a write in the
moment in which it is sent, by what service, workers and pods have told until then, which needs no bound. Only what the
operator learns from watches is granted BRIEF seconds, or more while the watches are disturbed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ots_tunnel.model import ChannelStatus, ChannelType, Stage
from ots_tunnel_operator.assess.reported import HELD
from tests.simulation.apiserver.api import Request
from tests.simulation.machine.process import EPOCH
from tests.support.ledger import Described

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

Document = Mapping[str, Any]
#: Seconds until the operator knows what a watch reports; and after a disturbance of the watches.
BRIEF, DISTURBED = 12.0, 60.0
#: Seconds for which a page belongs to the pass that is under way, beside calls to the service that take long.
PASS_SECONDS = 20.0
#: The same where the API server answers late, up to `fates.SLOW` seconds in each direction of a call: a pass scales
#: down before it writes the status.
SLOW_PASS_SECONDS = 60.0


class Evidence:
    """Remembers what an operator was shown, and judges what it writes.

    Args:
        operator: name of the operator's processes, without their numbers.
    """

    def __init__(self, fleet: Fleet, operator: str) -> None:
        self._fleet = fleet
        self._operator = operator
        self._described: Described | None = None
        #: The last page of each address, and when it was read.
        self._pages: dict[str, tuple[float, Document]] = {}
        #: All of them: figures that are kept while a pass fails are those of an earlier page.
        self._shown: list[tuple[float, Document]] = []
        #: Addresses that did not answer when they were asked last.
        self._silent: set[str] = set()
        self._disturbed = 0.0
        self.judged = 0

    def described(self, entry: Described) -> None:
        """The service has described the tunnel."""
        if entry.who.partition(".")[0] == self._operator:
            self._described = entry

    def showed(self, address: str, page: Document | None) -> None:
        """The page at an address was read; None where nobody answered."""
        if page is None:
            self._silent.add(address)
        else:
            self._silent.discard(address)
            self._pages[address] = self._fleet.loop.now, page
            self._shown.append(self._pages[address])

    def disturb(self, until: float) -> None:
        """Watches are broken, or what opens them is refused."""
        self._disturbed = max(self._disturbed, until + DISTURBED)

    def judge(self, request: Request) -> None:
        """Judge a write, if it is one of the object's status."""
        found = self._fleet.stored()
        if request.path != f"{self._fleet.path}/status" or found is None or request.body is None:
            return
        version = (request.body.get("metadata") or {}).get("resourceVersion")
        if version is None:
            self._fleet.violate("version", f"{self._operator} writes a status, whatever the object is by then")
        if found["metadata"]["resourceVersion"] != version:
            return  # it will be refused
        if self._fleet.strangers.has_rival or self._described is None:
            return  # whose look it was is not known
        self.judged += 1
        before = found.get("status") or {}
        after = _merged(before, request.body["status"])
        for rule, wrong in self._wrong(before, after, request.body["status"]):
            self._fleet.violate(rule, wrong)

    def _wrong(self, before: Document, after: Document, change: Document) -> Iterator[tuple[str, str]]:
        if _is_true(after, "Completed"):
            if not _is_true(before, "Completed"):
                yield from (("completed", f"Completed=True, and {wrong}") for wrong in self._unproven())
            return
        if _is_true(after, "Suspended") and not _is_true(before, "Suspended") and (names := self._running()):
            yield "suspended", f"Suspended=True, and {', '.join(names)} runs"
        if _is_true(after, "Ready") and (unowned := self._unowned()):
            yield "ready", f"Ready=True, and the service has shown {unowned} without an owner"
        time = change.get("observedTime")
        if time is not None and not _is_unknown(after, "Ready"):
            yield from self._wrong_lag(after.get("lag") or {}, seconds_of(time))

    def _wrong_lag(self, lag: Document, since: float) -> Iterator[tuple[str, str]]:
        """What is wrong with a lag; a worker that is silent may have answered after the time that marks the figures."""
        if lag.get("caughtUp") and (wrong := self._not_caught_up(since)):
            yield "caught up", f"caughtUp, and no worker that holds channel {wrong} has said so"
        if lag.get("seconds") is not None and (silent := self._unheard(since)):
            yield "lag", f"a lag of {lag['seconds']} s, and {silent} did not answer"

    # Completed

    def _unproven(self) -> Iterator[str]:
        fleet, described = self._fleet, self._described
        assert described is not None
        if described.t <= fleet.scenario.end_after:
            yield "the end time has not passed"
        if described.stage != Stage.STREAM or not described.streams:
            yield f"the stage is {described.stage}"
        if missing := fleet.missing_until_end():
            yield f"not copied: {', '.join(missing[:5])}"
        pages = [
            shown
            for address, shown in sorted(self._pages.items())
            if address not in self._silent and fleet.loop.now - shown[0] <= self._longest_pass()
        ]
        if all(channel.status is ChannelStatus.TERMINATED for channel in described.channels):
            return
        for channel in described.channels:
            owners = [page for at, page in pages if page["clientId"] == channel.owner and at <= described.t]
            if channel.status is ChannelStatus.TERMINATED:
                continue
            if channel.status is ChannelStatus.WAIT and not channel.owner:
                if fleet.is_readable(channel.id):
                    yield f"channel {channel.id[:8]} waits for a worker"
            elif not any(_holds(page, channel.id, "endReached") for page in owners):
                yield f"channel {channel.id[:8]} is not reported done by its owner, {channel.owner}"
        yield from self._unsettled(pages)

    def _longest_pass(self) -> float:
        is_slow = self._fleet.loop.now < self._fleet.fates.slow_until + SLOW_PASS_SECONDS
        return SLOW_PASS_SECONDS if is_slow else PASS_SECONDS

    def _unsettled(self, pages: list[tuple[float, Document]]) -> Iterator[str]:
        fleet = self._fleet
        if fleet.loop.now < max(self._disturbed, fleet.fates.busy_until + DISTURBED):
            return
        done = {page["clientTag"] for _, page in pages if page["completed"]}
        for pod in fleet.pods():
            metadata = pod["metadata"]
            since = seconds_of(metadata.get("deletionTimestamp") or metadata["creationTimestamp"])
            if fleet.loop.now - since < BRIEF:
                continue
            if metadata.get("deletionTimestamp"):
                yield f"{metadata['name']} is leaving"
            elif not any(tag.endswith(metadata["name"]) for tag in done):
                yield f"{metadata['name']} has not reported completed"

    # Other claims

    def _running(self) -> list[str]:
        """Workers that run, and whose pods the operator has to know."""
        fleet = self._fleet
        if fleet.loop.now < max(self._disturbed, fleet.fates.busy_until + DISTURBED):
            return []
        known = {
            pod["metadata"]["name"]
            for pod in fleet.pods()
            if fleet.loop.now - seconds_of(pod["metadata"]["creationTimestamp"]) > BRIEF
        }
        return sorted(known & {program.process.machine for program in fleet.programs()})

    def _unowned(self) -> str:
        assert self._described is not None
        wanted = ChannelType.BASE if self._described.stage == Stage.BASE else ChannelType.STREAM
        free = [
            channel.id[:8]
            for channel in self._described.channels
            if channel.type is wanted and channel.status is ChannelStatus.CLOSE
        ]
        return ", ".join(free)

    def _not_caught_up(self, since: float) -> str:
        """A channel of which no page after a time says that its worker holds it and is caught up."""
        assert self._described is not None
        pages = self._pages_after(since)
        for channel in self._described.streams:
            said = any(_holds(page, channel.id, "caughtUp") for page in pages)
            if channel.status is not ChannelStatus.TERMINATED and not said:
                return channel.id[:8]
        return ""

    def _unheard(self, since: float) -> str:
        """A running worker that owns a channel and has not answered after a time."""
        assert self._described is not None
        told = {channel["id"] for page in self._pages_after(since) for channel in page["channels"]}
        owners = [
            channel.owner
            for channel in self._described.streams
            if channel.status is not ChannelStatus.TERMINATED and channel.id not in told
        ]
        for address, program in sorted(self._fleet.addresses().items()):
            if address in self._silent and any(program.process.machine in owner for owner in owners):
                return program.process.name
        return ""

    def _pages_after(self, since: float) -> list[Document]:
        return [page for at, page in self._shown if at >= since]


def _holds(page: Document, channel: str, flag: str) -> bool:
    """Whether a page says of a channel that the worker holds it, and that the flag is set."""
    return any(one["id"] == channel and one["state"] in HELD and one[flag] for one in page["channels"])


def _is_true(status: Document, kind: str) -> bool:
    return _condition(status, kind) == "True"


def _is_unknown(status: Document, kind: str) -> bool:
    return _condition(status, kind) == "Unknown"


def _condition(status: Document, kind: str) -> str:
    return next((str(one["status"]) for one in status.get("conditions") or () if one["type"] == kind), "")


def _merged(before: Document, change: Document) -> dict[str, Any]:
    """The document after a merge patch."""
    after = dict(before)
    for key, value in change.items():
        if value is None:
            after.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(after.get(key), Mapping):
            after[key] = _merged(after[key], value)
        else:
            after[key] = value
    return after


def seconds_of(text: str) -> float:
    """Seconds of the region at a time in a manifest."""
    return datetime.fromisoformat(text).timestamp() - EPOCH
