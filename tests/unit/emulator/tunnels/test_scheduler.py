from __future__ import annotations

from ots_emulator.tunnels.scheduler import Move, Seat, schedule
from ots_tunnel.model import ChannelId, ChannelStatus, ClientId

A, B, C = ClientId("a"), ClientId("b"), ClientId("c")
OPEN, CLOSING, CLOSE, WAIT = (
    ChannelStatus.OPEN,
    ChannelStatus.CLOSING,
    ChannelStatus.CLOSE,
    ChannelStatus.WAIT,
)


def seat(number: int, status: ChannelStatus, owner: ClientId | None = None, *, eligible: bool = True) -> Seat:
    return Seat(ChannelId(f"c{number}"), status, owner, eligible)


def test_free_channels_go_to_the_least_loaded() -> None:
    seats = [seat(0, OPEN, A), seat(1, WAIT), seat(2, CLOSE), seat(3, WAIT)]

    moves = schedule(seats, [A, B])

    assert moves == [Move("c1", OPEN, B), Move("c2", OPEN, A), Move("c3", OPEN, B)]


def test_channels_that_are_not_eligible_stay_where_they_are() -> None:
    assert schedule([seat(0, WAIT, eligible=False)], [A]) == []
    assert schedule([seat(0, CLOSING, A, eligible=False), seat(1, OPEN, A)], [A, B]) == []


def test_a_newcomer_gets_half_and_no_more() -> None:
    seats = [seat(number, OPEN, A) for number in range(4)]

    first = schedule(seats, [A, B])
    after = [*seats[:2], seat(2, CLOSING, A), seat(3, CLOSING, A)]

    assert [(move.status, move.client) for move in first] == [(CLOSING, A), (CLOSING, A)]
    assert schedule(after, [A, B]) == []


def test_a_difference_of_one_moves_nothing() -> None:
    assert schedule([seat(0, OPEN, A), seat(1, OPEN, A), seat(2, OPEN, B)], [A, B]) == []
    assert schedule([seat(0, OPEN, A)], [A, B, C]) == []


def test_without_clients_nothing_moves() -> None:
    assert schedule([seat(0, WAIT)], []) == []
