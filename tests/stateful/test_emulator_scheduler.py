"""The scheduler under any history: at most one owner, no channel left over, as few moves as possible."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ots_emulator.tunnels.scheduler import Seat, schedule
from ots_tunnel.model import ChannelId, ChannelStatus, ClientId

pytestmark = pytest.mark.unmeasured

OPEN, CLOSING, CLOSE, WAIT, TERMINATED = (
    ChannelStatus.OPEN,
    ChannelStatus.CLOSING,
    ChannelStatus.CLOSE,
    ChannelStatus.WAIT,
    ChannelStatus.TERMINATED,
)


def fewest_moves(held: list[int], active: int) -> int:
    """Return how many channels must be taken back so that `active` ones can be spread evenly.

    With `active` = share * clients + rest, `rest` clients may keep one more than the share: the richest should.
    """
    share, rest = divmod(active, len(held))
    richest_first = sorted(held, reverse=True)
    return sum(max(0, count - share - (place < rest)) for place, count in enumerate(richest_first))


class Scheduling(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.seats: dict[ChannelId, Seat] = {}
        self.clients: list[ClientId] = []
        self.joined = 0

    def _put(self, channel: ChannelId, status: ChannelStatus, owner: ClientId | None, eligible: bool = True) -> None:
        self.seats[channel] = Seat(channel, status, owner, eligible)

    @rule()
    def join(self) -> None:
        if len(self.clients) < 6:
            self.joined += 1
            self.clients.append(ClientId(f"client-{self.joined}"))

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        if not self.clients:
            return
        client = data.draw(st.sampled_from(self.clients))
        self.clients.remove(client)
        for seat in list(self.seats.values()):
            if seat.owner == client:
                self._put(seat.channel_id, CLOSE, None)

    @rule(eligible=st.booleans())
    def appear(self, eligible: bool) -> None:
        if len(self.seats) < 20:
            self._put(ChannelId(f"channel-{len(self.seats)}"), WAIT, None, eligible)

    @rule(data=st.data())
    def unlock(self, data: st.DataObject) -> None:
        waiting = [seat for seat in self.seats.values() if seat.status is WAIT and not seat.eligible]
        if waiting:
            self._put(data.draw(st.sampled_from(waiting)).channel_id, WAIT, None)

    @rule(data=st.data(), ends=st.sampled_from([CLOSE, TERMINATED]))
    def let_go(self, data: st.DataObject, ends: ChannelStatus) -> None:
        held = [seat for seat in self.seats.values() if seat.owner is not None]
        if held:
            self._put(data.draw(st.sampled_from(held)).channel_id, ends, None, ends is CLOSE)

    @rule()
    def heartbeat(self) -> None:
        before = Counter(seat.owner for seat in self.seats.values() if seat.status is OPEN)
        free = [seat for seat in self.seats.values() if seat.owner is None and seat.eligible]
        under_way = sum(1 for seat in self.seats.values() if seat.status is CLOSING and seat.eligible)

        moves = schedule(list(self.seats.values()), self.clients)

        moved = [move.channel_id for move in moves]
        assert len(moved) == len(set(moved))
        closed = 0
        for move in moves:
            seat = self.seats[move.channel_id]
            assert move.client in self.clients
            if move.status is OPEN:
                assert seat.owner is None
                assert seat.eligible
            else:
                assert (seat.status, seat.owner) == (OPEN, move.client)
                closed += 1
            self._put(seat.channel_id, move.status, move.client)
        if self.clients:
            assert len(moves) - closed == len(free)
            active = sum(before.values()) + len(free) + under_way
            even = -(-active // len(self.clients))
            assert closed == fewest_moves([before[client] for client in self.clients], active)
            for client in self.clients:
                kept = sum(1 for seat in self.seats.values() if seat.owner == client and seat.status is OPEN)
                if before[client] <= active // len(self.clients):
                    assert kept >= before[client]
                assert kept <= max(even, 0)

    @invariant()
    def no_moves_after_every_client_obeyed(self) -> None:
        seats = dict(self.seats)
        if not self.clients:
            return
        for _ in range(2):
            # Two rounds: closing channels are released, then every eligible channel has an owner.
            for seat in list(seats.values()):
                if seat.status is CLOSING:
                    seats[seat.channel_id] = Seat(seat.channel_id, CLOSE, None, seat.eligible)
            for move in schedule(list(seats.values()), self.clients):
                seats[move.channel_id] = Seat(move.channel_id, move.status, move.client, True)
        for seat in list(seats.values()):
            if seat.status is CLOSING:
                seats[seat.channel_id] = Seat(seat.channel_id, CLOSE, None, seat.eligible)
        for move in schedule(list(seats.values()), self.clients):
            seats[move.channel_id] = Seat(move.channel_id, move.status, move.client, True)
        load = Counter({client: 0 for client in self.clients})
        load.update(seat.owner for seat in seats.values() if seat.owner is not None)
        assert all(seat.owner is not None for seat in seats.values() if seat.eligible)
        assert max(load.values()) - min(load.values()) <= 1
        assert schedule(list(seats.values()), self.clients) == []


TestScheduling = Scheduling.TestCase
# Machines differ in speed; the suite has its own time limit.
TestScheduling.settings = settings(deadline=None, stateful_step_count=40)
