"""Oracle of the workers' word: what their status says is true against the source and the service.

consumed    everything committed until `consumedUpTo` and `caughtUpTime` has taken effect
            (a change that a filter leaves out counts as taken effect)
caught up   with `caughtUp`, everything older than the time for which a look lasts has taken effect
completed   with `completed`, everything committed until the end time has taken effect in the channels that are the
            worker's own, or nobody's; what it has just been given it may not know for as long as in `channels`
channels    a channel that the service has given to another client is not shown as OPEN for longer than the
            heartbeat timeout and two intervals
forgotten   a client that the service has forgotten shows no channel as OPEN for longer than two intervals: its own
            timeout begins earlier than the service's; where it did so before the timeout, the same and the timeout
stays       a client that the service does not know asks again only if the answer was lost: a lost one costs it an
            interval, so that it asks less often than once per interval of its timeout, and SPARE times
storm       a worker repeats refused checkpoints with pauses: fewer than STORM of them are refused in a second
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Mapping

from ots_tunnel.model import ChannelStatus, ChannelType
from ots_tunnel.worker.progress.channel_progress import LOOK_LASTS
from ots_tunnel.worker.worker import TunnelWorker
from tests.simulation.machine.process import EPOCH, Process
from tests.simulation.oracles.delivery import Delivery, Violate
from tests.simulation.oracles.history import History
from tests.support.ledger import Dismissed, NotStored

#: Heartbeats of an unknown client beside those whose answer never comes: of connections that break at once.
SPARE = 10
#: Refused checkpoints of a worker in a second; one channel waits half a second between two tries.
STORM = 40
#: Times on the wire have milliseconds.
ROUNDING = 0.001


class Figures:
    """Judges the status of workers.

    Args:
        timeout: of a client, seconds.
        interval: of its heartbeats, seconds.
    """

    def __init__(
        self, history: History, delivery: Delivery, violate: Violate, *, timeout: float, interval: float
    ) -> None:
        self._history = history
        self._delivery = delivery
        self._violate = violate
        #: Seconds that a worker may show a lost channel as its own.
        self._patience = timeout + 2 * interval
        #: Seconds that it may show any channel as its own when the service has forgotten its client.
        self._short_patience = 2 * interval
        #: Entries of a channel that are known to have taken effect.
        self._applied: dict[str, int] = defaultdict(int)
        self._strangers: dict[tuple[str, str], float] = {}
        #: Clients that the service has forgotten before their timeout.
        self._struck_off: set[str] = set()
        #: Heartbeats that an unknown client may send, and those of each that were refused.
        self._dismissals = timeout / interval + SPARE
        self._dismissed: Counter[str] = Counter()
        #: Times of the last refused checkpoints of a process.
        self._not_stored: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=STORM))
        self.looks = 0

    def look(
        self, process: Process, worker: TunnelWorker, owners: Mapping[str, str | None], clients: Collection[str]
    ) -> None:
        """Judge one worker; runs in its process, whose clocks its figures depend on.

        Args:
            owners: channel to its client, as the service has it now.
            clients: that the service knows now.
        """
        self.looks += 1
        now, status = process.boottime(), worker.status
        for channel, view in status.channels.items():
            progress, where = view.progress, f"{process.name} says of {channel[:8]}"
            if progress.channel_type is ChannelType.STREAM:
                self._check(process.name, channel, progress.consumed_up_to, f"{where}: consumed up to")
                self._check(process.name, channel, progress.caught_up_time, f"{where}: caught up at")
                if progress.caught_up:
                    self._check(process.name, channel, EPOCH + now - LOOK_LASTS, f"{where}: caught up, since")
            self._check_owner((process.name, channel), view.status, owners.get(channel), status.client_id, now)
        self._check_known(process.name, worker, clients, now)
        for channel in list(self._history.entries):
            is_late = owners.get(channel) in (None, status.client_id) and self._history.end is not None
            place = (process.name, f"{channel} completed")
            if not (is_late and status.completed and self._is_behind(process.name, channel, self._history.end)):
                self._strangers.pop(place, None)
            elif now - self._strangers.setdefault(place, now) > self._patience:
                self._check(process.name, channel, self._history.end, f"{process.name} says completed, until")

    def struck_off(self, client: str) -> None:
        """The service forgets a client before its timeout, which may hear of it as late as of its timeout."""
        self._struck_off.add(client)

    def dismissed(self, entry: Dismissed) -> None:
        """Judge a heartbeat of a client that the service does not know."""
        self._dismissed[entry.client] += 1
        if (times := self._dismissed[entry.client]) > self._dismissals:
            self._violate("stays", f"{entry.who} was told {times} times that its client {entry.client} is unknown")

    def not_stored(self, entry: NotStored) -> None:
        """Judge a checkpoint that was refused."""
        last = self._not_stored[entry.who]
        last.append(entry.t)
        if len(last) == STORM and last[-1] - last[0] < 1:
            self._violate("storm", f"{STORM} checkpoints of {entry.who} were refused within a second")

    def _is_behind(self, who: str, channel: str, until: float | None) -> bool:
        return until is not None and any(
            entry.committed <= until and not self._delivery.counts_as_applied(who, entry.key, entry.number)
            for entry in self._history.entries[channel]
        )

    def _check(self, who: str, channel: str, until: float | None, what: str) -> None:
        """Everything of a channel that was committed until a time has taken effect, as a process says."""
        if until is None:
            return
        entries, applied = self._history.entries[channel], self._delivery.applied
        first = self._applied[channel]
        while first < len(entries) and applied.get(entries[first].key, 0) >= entries[first].number:
            first += 1
        self._applied[channel] = first
        for entry in entries[first:]:
            if entry.committed > until - ROUNDING:
                break
            if not self._delivery.counts_as_applied(who, entry.key, entry.number):
                self._violate(
                    "figures",
                    f"{what} {until - EPOCH:.3f}; number {entry.number} of {entry.key}, committed at "
                    f"{entry.committed - EPOCH:.3f}, has not taken effect",
                )
                return

    def _check_owner(
        self, place: tuple[str, str], status: ChannelStatus, owner: str | None, client: str | None, now: float
    ) -> None:
        if status is not ChannelStatus.OPEN or owner is None or owner == client:
            self._strangers.pop(place, None)
            return
        since = self._strangers.setdefault(place, now)
        if now - since > self._patience:
            self._violate(
                "channels", f"{place[0]} shows {place[1][:8]} as open for {now - since:.0f} s; it belongs to {owner}"
            )

    def _check_known(self, name: str, worker: TunnelWorker, clients: Collection[str], now: float) -> None:
        place, client = (name, "forgotten"), worker.status.client_id
        is_open = any(view.status is ChannelStatus.OPEN for view in worker.status.channels.values())
        if not is_open or client is None or client in clients:
            self._strangers.pop(place, None)
        elif now - self._strangers.setdefault(place, now) > (
            self._patience if client in self._struck_off else self._short_patience
        ):
            self._violate("forgotten", f"{name} shows open channels; its client {client} is unknown to the service")

    def forgive(self, name: str) -> None:
        """A process was stopped: what it shows cannot have been corrected meanwhile."""
        for place in [place for place in self._strangers if place[0] == name]:
            del self._strangers[place]
