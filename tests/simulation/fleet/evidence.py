"""Oracle of the operator's evidence: whatever it writes into a status is backed by what it was shown.

    completed   of the last description of the tunnel, taken after the last report of every owner, each channel is
                TERMINATED, reported done by the worker that owns it, or the child of such a channel; the end time has
                passed; every change up to it has taken effect; and no pod is missing, new or leaving
    suspended   no worker runs
    ready       of the last description, every channel that can be read has an owner
    caught up   a worker that holds the channel says so, of every channel of the last description
    lag         it is absent while the worker of a channel does not answer

The other oracle (`claims`) grants a status some time to become true. This one grants none: it judges a write in the
moment in which it is sent, by what service, workers and pods have told until then, which needs no bound. Only what the
operator learns from watches is granted BRIEF seconds, or more while the watches are disturbed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ots_tunnel.model import ChannelStatus, ChannelType, Stage
from ots_tunnel_operator.assess.lag import HELD
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


@dataclass(frozen=True, slots=True)
class Shown:
    """What a worker's address has answered last; `page` is None where nobody answered."""

    at: float
    page: Document | None


class Evidence:
    """Remembers what the operator was shown, and judges what it writes."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._described: Described | None = None
        self._shown: dict[str, Shown] = {}
        self._disturbed = 0.0
        self.judged = 0

    def described(self, entry: Described) -> None:
        """The service has described the tunnel."""
        if entry.who.startswith("operator"):
            self._described = entry

    def showed(self, address: str, page: Document | None) -> None:
        """The page at an address was read."""
        self._shown[address] = Shown(self._fleet.loop.now, page)

    def disturb(self, until: float) -> None:
        """Watches are broken, or what opens them is refused."""
        self._disturbed = max(self._disturbed, until + DISTURBED)

    def judge(self, request: Request, path: str) -> None:
        """Judge a write, if it is one of the object's status."""
        found = self._fleet.stored()
        if request.path != f"{path}/status" or found is None or request.body is None:
            return
        if found["metadata"]["resourceVersion"] != (request.body.get("metadata") or {}).get("resourceVersion"):
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
        if self._is_new(change) and not _is_unknown(after, "Ready"):
            lag = after.get("lag") or {}
            if lag.get("caughtUp") and (wrong := self._not_caught_up()):
                yield "caught up", f"caughtUp, and no worker that holds channel {wrong} has said so"
            if lag.get("seconds") is not None and (silent := self._silent()):
                yield "lag", f"a lag of {lag['seconds']} s, and {silent} did not answer"

    def _is_new(self, change: Document) -> bool:
        """Whether the figures come from a look of this pass; a pass that could not look keeps the former ones."""
        time = change.get("observedTime")
        return time is not None and _seconds(time) > self._fleet.loop.now - PASS_SECONDS

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
        pages = self._pages(PASS_SECONDS)
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

    def _unsettled(self, pages: list[tuple[float, Document]]) -> Iterator[str]:
        fleet = self._fleet
        if fleet.loop.now < max(self._disturbed, fleet.fates.busy_until + DISTURBED):
            return
        done = {page["clientTag"] for _, page in pages if page["completed"]}
        for pod in fleet.pods():
            metadata = pod["metadata"]
            since = _seconds(metadata.get("deletionTimestamp") or metadata["creationTimestamp"])
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
            if fleet.loop.now - _seconds(pod["metadata"]["creationTimestamp"]) > BRIEF
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

    def _not_caught_up(self) -> str:
        """A channel of which no page says that its worker holds it and is caught up."""
        assert self._described is not None
        pages = [page for _, page in self._pages(PASS_SECONDS)]
        for channel in self._described.streams:
            said = any(_holds(page, channel.id, "caughtUp") for page in pages)
            if channel.status is not ChannelStatus.TERMINATED and not said:
                return channel.id[:8]
        return ""

    def _silent(self) -> str:
        """A running worker that owns a channel and did not answer when it was asked last."""
        assert self._described is not None
        now, pages = self._fleet.loop.now, [page for _, page in self._pages(PASS_SECONDS)]
        told = {channel["id"] for page in pages for channel in page["channels"]}
        for address, program in self._fleet.addresses().items():
            shown = self._shown.get(address)
            if shown is None or shown.page is not None or now - shown.at > PASS_SECONDS:
                continue
            for channel in self._described.streams:
                if channel.status is ChannelStatus.TERMINATED or channel.id in told:
                    continue
                if program.process.machine in (channel.owner or ""):
                    return program.process.name
        return ""

    def _pages(self, seconds: float) -> list[tuple[float, Document]]:
        """The last pages of the addresses that have answered within some seconds, and when."""
        now = self._fleet.loop.now
        found = sorted(self._shown.items())
        return [(shown.at, shown.page) for _, shown in found if shown.page is not None and now - shown.at <= seconds]


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


def _seconds(text: str) -> float:
    """Seconds of the region at a time in a manifest."""
    return datetime.fromisoformat(text).timestamp() - EPOCH
