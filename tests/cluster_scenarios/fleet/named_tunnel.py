"""A tunnel as the service has it: its channels, who owns them, and how many rows it has delivered."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from tests.cluster_scenarios.fleet.fleet import Fleet
from tests.support.waiting import wait_until

Document = dict[str, Any]
#: Seconds between two looks: kubectl costs 0.2 s of a processor.
PAUSE = 1.0


@dataclass(frozen=True)
class NamedTunnel:
    """The tunnel of a name, of which there is one at most; what it is may change."""

    fleet: Fleet
    name: str

    def found(self) -> Document | None:
        """Return it as the service has it; None where there is none."""
        found = [tunnel for tunnel in self.fleet.tunnels() if tunnel["name"] == self.name]
        assert len(found) <= 1, found
        return found[0] if found else None

    def channels(self) -> list[Document]:
        """Return the channels that are not read to their end."""
        tunnel = self.found()
        assert tunnel is not None, f"the tunnel {self.name} is gone"
        return [channel for channel in tunnel["channels"] if channel["status"] != "TERMINATED"]

    def rows(self) -> int:
        """Return the number of rows that it has delivered."""
        return sum(int(channel["rows"]) for channel in (self.found() or {"channels": []})["channels"])

    def owners(self) -> Counter[str]:
        """Count the channels of each client; those without one are under the empty text."""
        return Counter(channel["owner"] or "" for channel in self.channels())

    def until_spread(self, count: int) -> Counter[str]:
        """Wait until each of so many clients owns channels and no channel is without one."""

        def look() -> Counter[str] | None:
            owners = self.owners()
            return owners if len(owners) == count and "" not in owners else None

        found = wait_until(look, self.fleet.scenario.patience, f"{count} clients own every channel", pause=PAUSE)
        assert found is not None
        return found

    def until_delivered(self, rows: int) -> None:
        """Wait until so many further rows were delivered."""
        begin = self.rows()
        wait_until(lambda: self.rows() >= begin + rows, 120, f"{rows} further rows are delivered", pause=PAUSE)

    def until_left_by(self, client: str, seconds: float) -> None:
        """Wait until a client owns no channel, and no channel is without an owner."""
        wait_until(
            lambda: client not in (owners := self.owners()) and "" not in owners,
            seconds,
            f"the channels of {client} have other owners",
            pause=PAUSE,
            explain=lambda: str(self.owners()),
        )
