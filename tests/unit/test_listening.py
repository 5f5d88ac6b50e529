"""Sockets of servers: every address of a machine is of both versions of IP, where it has both."""

from __future__ import annotations

import errno
import socket
from typing import Any

import pytest

from ots_tunnel.listening import EVERY_ADDRESS, listening_socket
from tests.support.network.ip_versions import HAS_BOTH


def answers(at: socket.socket, host: str) -> bool:
    try:
        socket.create_connection((host, at.getsockname()[1]), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


@HAS_BOTH
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_every_address_is_of_both_versions(host: str) -> None:
    with listening_socket(EVERY_ADDRESS, 0) as found:
        assert answers(found, host)


@HAS_BOTH
@pytest.mark.parametrize(("host", "other"), [("127.0.0.1", "::1"), ("::1", "127.0.0.1")])
def test_one_address_is_that_one(host: str, other: str) -> None:
    with listening_socket(host, 0) as found:
        assert answers(found, host)
        assert not answers(found, other)


@pytest.mark.parametrize("code", [errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT])
def test_a_machine_whose_version_6_is_switched_off_has_version_4(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    create = socket.create_server

    def without(address: tuple[str, int], **options: Any) -> socket.socket:
        if options.get("family") == socket.AF_INET6:
            raise OSError(code, "not here")
        return create(address, **options)

    monkeypatch.setattr(socket, "create_server", without)
    with listening_socket(EVERY_ADDRESS, 0) as found:
        assert answers(found, "127.0.0.1")


def test_a_kernel_without_version_6_is_not_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    with listening_socket(EVERY_ADDRESS, 0) as found:
        assert found.family == socket.AF_INET


def test_a_name_is_looked_up() -> None:
    with listening_socket("localhost", 0) as found:
        assert answers(found, "localhost")


def test_a_port_that_is_taken_is_an_error() -> None:
    with listening_socket(EVERY_ADDRESS, 0) as first, pytest.raises(OSError, match="in use"):
        listening_socket(EVERY_ADDRESS, first.getsockname()[1])
