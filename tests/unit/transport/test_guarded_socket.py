"""The limits of a connection stay from one write to the next, never longer than a write allows."""

from __future__ import annotations

import socket
import struct

import pytest

from ots_tunnel.transport.guarded_socket import GuardedSocket

#: Seconds that a write may take with the defaults, and the kernel's part of them in milliseconds.
SECONDS, ITS_MS = 16.7, 15_030
RESETS, SENDS = struct.pack("ii", 1, 0), struct.pack("ii", 0, 0)


class Options:
    """A socket that keeps its options, and every call that set one."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int | bytes]] = []

    def setsockopt(self, level: int, option: int, value: int | bytes) -> None:
        self.calls.append((option, value))

    def fileno(self) -> int:
        raise AssertionError("nothing is asked of the kernel")

    @property
    def limit_ms(self) -> int | bytes:
        return dict(self.calls)[socket.TCP_USER_TIMEOUT]

    @property
    def on_close(self) -> int | bytes:
        return dict(self.calls)[socket.SO_LINGER]


@pytest.fixture
def options() -> Options:
    return Options()


@pytest.fixture
def guarded(options: Options) -> GuardedSocket:
    return GuardedSocket(options)


def test_the_first_write_sets_both_limits(options: Options, guarded: GuardedSocket) -> None:
    guarded.limit(SECONDS)

    assert (options.limit_ms, options.on_close) == (ITS_MS, RESETS)


def test_a_limit_stays_where_the_next_write_has_as_much_time(options: Options, guarded: GuardedSocket) -> None:
    guarded.limit(SECONDS)
    before = len(options.calls)

    for _ in range(10):
        guarded.limit(SECONDS)
        guarded.limit(SECONDS * 1.02)

    assert len(options.calls) == before


def test_a_write_with_less_time_has_a_shorter_limit(options: Options, guarded: GuardedSocket) -> None:
    guarded.limit(SECONDS)

    for left in (SECONDS - 0.002, SECONDS - 1, 0.5, 0.0):
        guarded.limit(left)
        assert 1 <= int(options.limit_ms) <= max(1, left * 1000)


def test_a_write_with_much_more_time_has_its_own_limit(options: Options, guarded: GuardedSocket) -> None:
    guarded.limit(1.0)
    guarded.limit(SECONDS)

    assert options.limit_ms == ITS_MS


def test_a_connection_without_a_write_is_closed_politely(options: Options, guarded: GuardedSocket) -> None:
    guarded.limit(SECONDS)
    guarded.lift()

    assert (options.limit_ms, options.on_close) == (0, SENDS)


def test_the_write_behind_a_read_is_limited_again(options: Options, guarded: GuardedSocket) -> None:
    guarded.limit(SECONDS)
    guarded.lift()
    guarded.limit(SECONDS)

    assert (options.limit_ms, options.on_close) == (ITS_MS, RESETS)


def test_nothing_is_lifted_where_no_write_was(options: Options, guarded: GuardedSocket) -> None:
    guarded.lift()

    assert options.calls == []


def test_what_is_given_up_stays_given_up(options: Options, guarded: GuardedSocket) -> None:
    guarded.limit(SECONDS)
    guarded.discard()
    guarded.lift()

    assert options.on_close == RESETS


def test_a_closed_socket_has_nothing_to_send() -> None:
    """TLS tells of a lost connection one round of the loop after its socket is closed."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        sock = socket.create_connection(server.getsockname())
        guarded = GuardedSocket(sock)
        assert guarded.is_sent()
        sock.close()

        assert guarded.is_sent()
