"""Who gets which channel; pure (docs/protocol.md 4.5).

A channel that moves is first taken back (CLOSING) and given away only when its owner has let go, so nobody ever
steals. Channels under way count for the client that will get them, else the first heartbeat of a newcomer would make
the others give up too many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ots_tunnel.model import ChannelId, ChannelStatus, ClientId


@dataclass(frozen=True, slots=True)
class Seat:
    """A channel as the scheduler sees it; `eligible` is whether somebody may read it now."""

    channel_id: ChannelId
    status: ChannelStatus
    owner: ClientId | None
    eligible: bool


@dataclass(frozen=True, slots=True)
class Move:
    """One decision: give a channel to `client` (OPEN), or take it from its owner (CLOSING)."""

    channel_id: ChannelId
    status: ChannelStatus
    client: ClientId


def schedule(seats: Sequence[Seat], clients: Sequence[ClientId]) -> list[Move]:
    """Decide what to give and what to take so that loads differ by at most one, with as few moves as possible.

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
        if richest is None or load[richest] - load[poorest] < 2:
            return moves
        moves.append(Move(held[richest].pop(), ChannelStatus.CLOSING, richest))
        load[richest] -= 1
        load[poorest] += 1


def _least_loaded(load: Counter[ClientId], clients: Sequence[ClientId]) -> ClientId:
    return min(clients, key=lambda client: load[client])
