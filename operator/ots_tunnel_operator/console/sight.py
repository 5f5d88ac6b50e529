"""What the process has in memory of one object, for the console."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from ots_tunnel.model import ChannelInfo
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.world.report import KeptReport

#: Namespace and name.
Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Sight:
    """One object; taken in the event loop, read in any thread.

    Args:
        ott: the object as the watch has it.
        observed: time of the last pass of this process that observed everything, Unix seconds; None before the first.
        reports: name of the pod -> last report of its worker, and its time.
        channels: of the tunnel, as the service described it last; empty while that is unknown.
        posted: reason and message of each event that this process has posted -> time, Unix seconds.
    """

    ott: Ott
    observed: float | None = None
    reports: Mapping[str, KeptReport] = field(default_factory=dict)
    channels: tuple[ChannelInfo, ...] = ()
    posted: Mapping[tuple[str, str], float] = field(default_factory=dict)

    @classmethod
    def glance(cls, body: Mapping[str, Any], cache: LoopCache | None) -> Self:
        """The object and how old its figures are: what a line of the fleet needs."""
        return cls(Ott(body), None if cache is None else cache.observed_time)

    @classmethod
    def look(cls, body: Mapping[str, Any], cache: LoopCache | None) -> Self:
        """Everything about an object; copies what the next pass changes in place."""
        if cache is None:
            return cls(Ott(body))
        channels = () if cache.tunnel is None else cache.tunnel.description.channels
        return cls(Ott(body), cache.observed_time, dict(cache.reports), channels, dict(cache.posted))

    @property
    def place(self) -> Place:
        """Namespace and name of the object."""
        return self.ott.namespace, self.ott.name
