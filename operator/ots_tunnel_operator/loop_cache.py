"""What one loop keeps between two passes: caches and times, nothing that correctness depends on.

All of it may be lost at any moment: a restarted operator reaches the same state, a little later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from ots_tunnel.model import Credentials
from ots_tunnel.stream.decide.sightings import Sightings
from ots_tunnel_operator.api.identity import TunnelIdentity
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.autoscale.history import History
from ots_tunnel_operator.instance import Instance, InstancePool
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.reasons import Problem
from ots_tunnel_operator.turns.passes import PassTurn
from ots_tunnel_operator.turns.queue import Patience
from ots_tunnel_operator.world.pod import SparkRole
from ots_tunnel_operator.world.report import KeptReport
from ots_tunnel_operator.world.service import Peek, Table, Tunnel


@dataclass(slots=True)
class Side:
    """Source or sink: its credentials, its clients, its table."""

    pool: InstancePool = field(default_factory=InstancePool)
    """Where the clients come from; objects of one endpoint and key pair share them."""
    credentials: Credentials | None = None
    secret: tuple[str, str] = ("", "")
    """Name and resourceVersion of the Secret that they come from."""
    instance: Instance | None = None
    table: Table | None = None
    table_name: str = ""
    """Name of the table that `table` describes, in the instance of `instance`."""
    table_time: float = 0.0
    look_time: float = 0.0
    """Time of the last look that found the table."""

    def forget(self) -> None:
        """Drop credentials and table after a failed call, so that the next pass reads them again."""
        self.credentials = None
        self.table = None

    async def connect(self, endpoint: str, instance: str, credentials: Credentials) -> Instance:
        """Clients with these credentials; new ones after any change."""
        now = self.instance
        if now is not None and (now.endpoint, now.instance, now.credentials) == (endpoint, instance, credentials):
            return now
        after = self.pool.acquire(endpoint, instance, credentials)
        await self.close()
        self.table, self.instance = None, after
        return after

    async def close(self) -> None:
        """Give the clients back."""
        instance, self.instance = self.instance, None
        if instance is not None:
            await self.pool.release(instance)


@dataclass(frozen=True, slots=True)
class Trial:
    """What the API server has answered about a pod template; `template` is its hash, empty before the first one."""

    template: str = ""
    time: float = 0.0
    refusal: str = ""
    """Its words; empty where it takes the template."""


@dataclass(frozen=True, slots=True)
class MonitorRefusal:
    """Why the API server did not take, or did not remove, a PodMonitor."""

    wanted: bool
    """Whether it was to be made, not to be removed."""
    time: float
    problem: Problem


@dataclass(slots=True)
class LoopCache:
    """Everything that the loop of one object keeps."""

    uid: str = ""
    """The object; another one of its name is none of this loop's. Empty stands for whichever has the name."""
    time: float = 0.0
    """Time at which the last pass began; every other time here is not later than the passes since."""
    source: Side = field(default_factory=Side)
    sink: Side = field(default_factory=Side)
    tunnel: Tunnel | None = None
    """The last description; None after a failure."""
    tunnel_of: TunnelIdentity | None = None
    """The place that `tunnel` describes."""
    tunnel_time: float = 0.0
    picture: frozenset[tuple[str, str, str]] = frozenset()
    """Channels of the last description, with their states and owners."""
    picture_time: float = 0.0
    """Time of the first of the looks in a row that found this picture."""
    version: str = ""
    """resourceVersion of the object as last read or written here; the next write of its status carries it."""
    outdated: bool = False
    """Whether the API server refused a write because the object has changed: it is read again from there."""
    parsed: tuple[object, TablestoreTunnel, dict[Hashable, Any]] | None = None
    """The object as last validated, with the parts of its body that this depends on, and what was rendered from it."""
    silent_since: dict[str, float] = field(default_factory=dict)
    """Ready pods that did not answer: name -> time of the first of the asks in a row."""
    reports: dict[str, KeptReport] = field(default_factory=dict)
    """The last report of each ready pod, by name."""
    pull_causes: dict[str, str] = field(default_factory=dict)
    """Why the images of waiting pods could not be fetched, by image: the pause before the next try names no cause."""
    marks: dict[str, tuple[tuple[object, ...], float]] = field(default_factory=dict)
    """Channels: id -> figures that change when it moves, and the time since which they are these."""
    none_runs_since: dict[SparkRole, float] = field(default_factory=dict)
    """Roles of which no pod of Spark runs: role -> time of the first of the looks in a row that found none."""
    stopped_until: dict[str, float] = field(default_factory=dict)
    """SparkApplications: name -> time of the last look that found it, or the object, suspended."""
    orphaned_since: dict[str, float] = field(default_factory=dict)
    """Living pods of Spark whose application is gone: name -> time of the first of the looks in a row."""
    consumed_until: dict[str, float] = field(default_factory=dict)
    """Until when workers have reported channels as consumed: channel id -> Unix seconds."""
    consumed_of: str = ""
    """Id of the tunnel that they are about."""
    foreign_since: dict[str, float] = field(default_factory=dict)
    peeks: dict[str, Peek] = field(default_factory=dict)
    """The last look at each channel without a client."""
    peeks_of: str = ""
    """Id of the tunnel that they are about."""
    peek_failure: str = ""
    """Why the last of them has failed; empty where it has not."""
    peek_failed: float | None = None
    """Time of that failure."""
    unread_shards: dict[str, float] = field(default_factory=dict)
    """Shards whose last look has failed: id -> time of it."""
    leases_of: tuple[str, str] = ("", "")
    """Table of leases, and id of the stream, that the sightings and peeks of an object without a tunnel are about."""
    sightings: Sightings = field(default_factory=dict)
    """Its leases as last listed, and since when their counters stand still, by the clock of the event loop."""
    leases_fit: float | None = None
    """Time of the last description of that table, by the clock of the event loop; None where it did not fit."""
    scaling: History | None = None
    """What the autoscaler remembers; None before the first look."""
    calm: tuple[object, float] | None = None
    """The pods, and the time of the first of the looks in a row that found them at rest; None while something moves."""
    moving: tuple[object, float] | None = None
    """The pods, and the time since which something moves with them; None at rest."""
    last_write: float = 0.0
    """Time of the last status write."""
    written: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None
    """The last status written, as wanted, and as the API server has stored it; None where both are the same."""
    body: Mapping[str, Any] | None = None
    """The object as last read."""
    absent_since: float | None = None
    """Start of the first of the passes in a row that did not find the object; None after one that did."""
    observed_time: float | None = None
    """Time of the last pass that observed everything."""
    failing_since: float | None = None
    """Start of the first of the passes in a row that could not observe the object; None after one that could."""
    action_failed: bool = False
    """Whether an action of the last step failed: its problem stays shown until the actions of a step succeed."""
    failures: int = 0
    """Consecutive passes that ended with a problem or an error."""
    posted: dict[tuple[str, str], float] = field(default_factory=dict)
    """Posted events: (reason, message) -> time."""
    applied: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """Applied children: (kind, name) -> (hash of the manifest, `owned_hash` right after applying it)."""
    deployment: Manifest | None = None
    """The Deployment as last looked at (`kube.looked_at`); None where there was none."""
    current: dict[tuple[str, str], tuple[Mapping[str, Any], str]] = field(default_factory=dict)
    """Children that were found as rendered: (kind, name) -> (what was rendered, resourceVersion of the child)."""
    hidden: set[tuple[str, str]] = field(default_factory=set)
    """Names of children, (kind, name), that something has which no copy shows: it is looked at before each write."""
    trial: Trial = Trial()
    """The last pod template that the API server was asked about."""
    monitor_refusal: MonitorRefusal | None = None
    """The last one; None before the first, and after an attempt that succeeded."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    forgotten: bool = False
    """Whether a watch, or the end of its deletion, has told that the object no longer exists."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held during a pass and during a step of the deletion: the two exclude each other."""
    tunnel_deleted: bool = False
    """Whether the object's deletion has deleted its tunnel, or found that it is gone."""
    turn: PassTurn = field(default_factory=PassTurn)
    """That of the pass under way."""
    patience: Patience | None = None
    """That of the last look at the service."""

    @classmethod
    def sharing(cls, pool: InstancePool, uid: str = "") -> Self:
        """A cache of the object with this uid, whose clients come from this pool."""
        return cls(uid, source=Side(pool=pool), sink=Side(pool=pool))

    def is_of(self, body: Mapping[str, Any]) -> bool:
        """Whether this is the object, not another one that has, or had, its name."""
        return not self.uid or body["metadata"].get("uid") == self.uid

    def keep_time(self, now: float) -> None:
        """Notice that the clock was set back, and move every time back with it; called at the begin of a pass.

        Otherwise nothing would be due until the clock has caught up: no look, no figure, no event, no finding.

        Args:
            now: the clock of the operator, Unix seconds.
        """
        back, self.time = min(0.0, now - self.time), now
        if not back:
            return
        for side in (self.source, self.sink):
            side.table_time += back
            side.look_time += back
        self.tunnel, self.picture = None, frozenset()
        self.last_write += back
        if self.monitor_refusal is not None:
            self.monitor_refusal = replace(self.monitor_refusal, time=self.monitor_refusal.time + back)
        self.trial = replace(self.trial, time=self.trial.time + back)
        self.reports = {name: replace(kept, time=kept.time + back) for name, kept in self.reports.items()}
        self.marks = {channel: (figures, since + back) for channel, (figures, since) in self.marks.items()}
        self.silent_since = {name: since + back for name, since in self.silent_since.items()}
        self.none_runs_since = {role: since + back for role, since in self.none_runs_since.items()}
        self.stopped_until = {name: time + back for name, time in self.stopped_until.items()}
        self.orphaned_since = {name: since + back for name, since in self.orphaned_since.items()}
        self.scaling = None if self.scaling is None else self.scaling.moved(back)
        self.foreign_since = {client: since + back for client, since in self.foreign_since.items()}
        self.peeks = {channel: peek.moved(back) for channel, peek in self.peeks.items()}
        self.peek_failed = None if self.peek_failed is None else self.peek_failed + back
        self.unread_shards = {shard: time + back for shard, time in self.unread_shards.items()}
        self.calm = None if self.calm is None else (self.calm[0], self.calm[1] + back)
        self.moving = None if self.moving is None else (self.moving[0], self.moving[1] + back)
        self.posted = {key: time + back for key, time in self.posted.items()}
        self.observed_time = None if self.observed_time is None else self.observed_time + back
        self.absent_since = None if self.absent_since is None else self.absent_since + back
        self.failing_since = None if self.failing_since is None else self.failing_since + back

    async def close(self) -> None:
        """Give every client back."""
        await self.source.close()
        await self.sink.close()
