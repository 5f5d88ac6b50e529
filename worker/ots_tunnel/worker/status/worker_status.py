"""Status of a worker: the document of `/channels`, and what the gauges are computed from.

Unknown is None, never 0 (docs/architecture.md rule 11).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ots_tunnel.model import ChannelId
from ots_tunnel.protocol.lifecycle import ClientEvent, ClientState, after
from ots_tunnel.protocol.possible_gap import Gap
from ots_tunnel.sinks.contact import Contact, FailingWrite
from ots_tunnel.sinks.tally import Tally
from ots_tunnel.worker.pages.budget import ByteBudget
from ots_tunnel.worker.status.channel_view import ChannelView, channel_document
from ots_tunnel.worker.status.iso_time import iso_time
from ots_tunnel.worker.status.metrics import WorkerMetrics
from ots_tunnel.worker.status.rates import Rate
from ots_tunnel.worker.status.source_clock import SourceClock


class WorkerStatus:
    """Figures of one worker, written by the worker and its sessions, read by the status server."""

    def __init__(
        self,
        tunnel_id: str,
        client_tag: str,
        metrics: WorkerMetrics,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.tunnel_id = tunnel_id
        self.client_tag = client_tag
        self.state = ClientState.READY
        self.client_id: str | None = None
        self.last_heartbeat: float | None = None
        self.draining = False
        self.completed = False
        #: Whether one description of the tunnel showed every channel as done, those of others included.
        self.tunnel_done = False
        self.error: str | None = None
        self.hand_overs = 0
        self.channels: dict[ChannelId, ChannelView] = {}
        #: The last gap of each channel, also of those that another client has meanwhile.
        self.possible_gaps: dict[ChannelId, Gap] = {}
        #: Whether this worker reads on behind a gap.
        self.passes_gaps = False
        self.budget: ByteBudget | None = None
        #: The sink's counts.
        self.tally: Callable[[], Tally] = Tally
        #: What the sink knows of its destination.
        self.contact: Callable[[], Contact | None] = Contact
        #: Why the sink cannot be opened, and since when; None where it is open, or no try has failed.
        self.unopened: FailingWrite | None = None
        self.metrics = metrics
        self.wall = wall
        #: Since when everything here is counted: a later process of this worker's pod begins again.
        self.started = wall()
        #: By which lags are told; the wall may be replaced.
        self.source_clock = SourceClock(lambda: self.wall())
        self._rows = Rate(lambda: metrics.rows_total, clock)
        self._busy = Rate(metrics.busy.seconds, clock)

    def __repr__(self) -> str:
        return f"WorkerStatus({self.client_id}, {len(self.channels)} channels)"

    @property
    def is_ready(self) -> bool:
        """Whether a heartbeat of the present client was answered."""
        return self.last_heartbeat is not None

    def happened(self, event: ClientEvent) -> None:
        """Move the client's state.

        Raises:
            InvalidTransition: the event is not possible in this state.
        """
        self.state = after(self.state, event)

    def sink_opened(self) -> None:
        """The sink is open, or answers, while something else keeps it from being opened."""
        self.unopened = None

    def sink_not_opened(self, error: str) -> None:
        """The sink could not be opened, which is tried again."""
        since = self.wall() if self.unopened is None else self.unopened.since
        self.unopened = FailingWrite(since, error)

    def sample(self) -> None:
        """Sample the rates, so that their windows are filled without scrapes; called at every heartbeat."""
        self._rows.sample()
        self._busy.sample()

    def busy_ratio(self) -> float | None:
        """Share of the last seconds in which a sink was writing, 0 to 1; None while unknown."""
        share = self._busy.sample()
        return None if share is None else min(1.0, share)

    def document(self) -> dict[str, Any]:
        """The answer of `/channels`."""
        now, rate, busy = self.wall(), self._rows.sample(), self.busy_ratio()
        tally, service_now = self.tally(), self.source_clock()
        return {
            "tunnelId": self.tunnel_id,
            "state": self.state.value,
            "clientId": self.client_id,
            "clientTag": self.client_tag,
            "time": iso_time(now),
            "startedTime": iso_time(self.started),
            "rowsTotal": self.metrics.rows_total,
            "bytesTotal": self.metrics.bytes_total,
            "rowsPerSecond": None if rate is None else round(rate, 1),
            "busyPercent": None if busy is None else round(100 * busy),
            "handOvers": self.hand_overs,
            "lastHeartbeatTime": iso_time(self.last_heartbeat),
            "draining": self.draining,
            "error": self.error,
            "completed": self.completed,
            "refused": {"records": tally.records_refused, "keys": tally.keys_refused},
            "sink": contact_document(Contact(failing=self.unopened) if self.unopened else self.contact()),
            "possibleGaps": [
                gap_document(channel_id, gap, is_passed=self.passes_gaps)
                for channel_id, gap in sorted(self.possible_gaps.items())
            ],
            "channels": [channel_document(view, service_now) for _, view in sorted(self.channels.items())],
        }


def contact_document(contact: Contact | None) -> dict[str, Any] | None:
    """The member `sink`: times of the last look and confirmation, and the write that is tried again, if one is."""
    if contact is None:
        return None
    failing = contact.failing
    return {
        "lookedTime": iso_time(contact.looked),
        "confirmedTime": iso_time(contact.confirmed),
        "failing": None if failing is None else {"since": iso_time(failing.since), "error": failing.error},
    }


def gap_document(channel_id: ChannelId, gap: Gap, *, is_passed: bool) -> dict[str, Any]:
    """One entry of `possibleGaps`."""
    return {"channel": channel_id, "from": iso_time(gap.start), "to": iso_time(gap.end), "passed": is_passed}
