"""Assignment of channels to clients; pure (docs/protocol.md 4.5).

Theory of operation
-------------------
Every heartbeat calls `schedule` with the channels of the tunnel (`Seat`) and its live clients. The result is a list of
moves. A move has one of two forms: OPEN assigns a channel without an owner, CLOSING asks an owner to give one back.

A channel never moves directly from one live client to another. It passes three heartbeats: CLOSING is sent to the
owner, the owner reports CLOSE, and the next heartbeat assigns the channel. So two clients never hold one channel.

Cases in order of priority:

1. No client: no moves.
2. An eligible channel without an owner goes to the client with the lowest load. Eligible means: not terminated, not
   suspended, and its parents are done (`Tunnel._eligible`).
3. An eligible channel in CLOSING counts as load of the client with the lowest load, because that client will get it.
   Without this rule, the first heartbeats of a new client would take back too many channels.
4. While the highest and the lowest load differ by two or more, one channel is taken back from the highest. A difference
   of one is the best that whole channels can reach, so it causes no move.

Ties go to the client that connected first, so the result depends on nothing but the arguments.

Example: client A holds four channels, and client B connects. Loads are A 4, B 0. Rule 4 takes one channel back (A 3,
B 1), then a second one (A 2, B 2), and stops. The moves are two times CLOSING for A. When A reports both as closed,
rule 2 assigns them to B.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ots_tunnel.model import ChannelId, ChannelStatus, ClientId

#: Difference of loads that moving one channel makes smaller.
_UNEVEN: Final = 2


@dataclass(frozen=True, slots=True)
class Seat:
    """A channel as the scheduler sees it; `eligible` is whether a client may read it now."""

    channel_id: ChannelId
    status: ChannelStatus
    owner: ClientId | None
    eligible: bool


@dataclass(frozen=True, slots=True)
class Move:
    """One decision: assign a channel to `client` (OPEN), or take it back from its owner `client` (CLOSING)."""

    channel_id: ChannelId
    status: ChannelStatus
    client: ClientId


def schedule(seats: Sequence[Seat], clients: Sequence[ClientId]) -> list[Move]:
    """Return the moves after which loads differ by at most one, as few as possible.

    Args:
        seats: the channels in their order; owners must be among the clients.
        clients: live clients in the order they connected; earlier ones win ties.
    """
    if not clients:
        return []
    moves: list[Move] = []
    load = Counter({client: 0 for client in clients})
    held: dict[ClientId, list[ChannelId]] = {client: [] for client in clients}
    for seat in seats:
        if seat.owner is not None and seat.status is ChannelStatus.OPEN:
            load[seat.owner] += 1
            held[seat.owner].append(seat.channel_id)
    for seat in seats:
        if seat.owner is None and seat.eligible:
            client = _least_loaded(load, clients)
            load[client] += 1
            moves.append(Move(seat.channel_id, ChannelStatus.OPEN, client))
    for seat in seats:
        if seat.status is ChannelStatus.CLOSING and seat.eligible:
            load[_least_loaded(load, clients)] += 1
    while True:
        poorest = _least_loaded(load, clients)
        richest = max((client for client in clients if held[client]), key=lambda client: load[client], default=None)
        if richest is None or load[richest] - load[poorest] < _UNEVEN:
            return moves
        moves.append(Move(held[richest].pop(), ChannelStatus.CLOSING, richest))
        load[richest] -= 1
        load[poorest] += 1


def _least_loaded(load: Counter[ClientId], clients: Sequence[ClientId]) -> ClientId:
    return min(clients, key=lambda client: load[client])
