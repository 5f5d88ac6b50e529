"""Channels that other clients hold: those of a run beside this one, or of a run that is gone. Pure.

The service gives the channels of a client that ended without a word to others only after its heartbeat timeout. Until
then a run that is started again copies nothing of them, which looks like a hang unless it says so.
"""

from __future__ import annotations

from collections import Counter

from ots_tunnel.model import ChannelStatus, ClientId, TunnelDescription


class OtherClients:
    """Knows the clients of this run, and says once of every other client what it holds.

    Args:
        timeout: seconds after its last heartbeat when the service frees the channels of a client.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._own: set[str] = set()
        self._named: set[str] = set()

    def __repr__(self) -> str:
        return f"OtherClients({len(self._named)} named)"

    def is_own(self, client_id: str | None) -> None:
        """Note a client of this run; None while it has none."""
        if client_id is not None:
            self._own.add(client_id)

    def held(self, tunnel: TunnelDescription) -> Counter[ClientId]:
        """How many unfinished channels each other client holds."""
        return Counter(
            channel.client_id
            for channel in tunnel.channels
            if channel.client_id
            and channel.client_id not in self._own
            and channel.status is not ChannelStatus.TERMINATED
        )

    def notes(self, tunnel: TunnelDescription) -> list[str]:
        """A sentence for every client that was not named before."""
        found = {client: count for client, count in self.held(tunnel).items() if client not in self._named}
        self._named.update(found)
        return [self._note(client, count) for client, count in sorted(found.items())]

    def _note(self, client: str, count: int) -> str:
        channels = "1 channel" if count == 1 else f"{count} channels"
        return (
            f"client {client} holds {channels}: it shares the work, or its run is gone; then this run gets "
            f"{'it' if count == 1 else 'them'} {self._timeout:g} s after that client's last heartbeat"
        )
