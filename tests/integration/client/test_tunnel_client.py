"""The client for scripts: tunnels are created, listed, described and deleted; impossible settings are refused."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel import Credentials, StreamConfig, SyncTunnelClient, TunnelClient, TunnelType
from ots_tunnel.errors import ConfigError, ObjectAlreadyExist, TunnelNotFound
from ots_tunnel.model import KeyColumn, KeyType
from ots_tunnel.tables import TableAdmin, TableSchema

KEYS = Credentials("test-id", "test-secret")
Clients = type[TunnelClient] | type[SyncTunnelClient]


@pytest.fixture
def endpoint() -> Iterator[str]:
    with Emulator(settings=Settings(init_delay=0.0)) as running:
        admin = TableAdmin(running.endpoint, "demo", lambda: KEYS)
        admin.create(TableSchema("orders", (KeyColumn("id", KeyType.INTEGER),)))
        admin.close()
        yield running.endpoint


@pytest.mark.parametrize("kind", [SyncTunnelClient, TunnelClient])
def test_a_tunnels_life(endpoint: str, kind: Clients) -> None:
    with asyncio.Runner() as loop:

        def call(method: Callable[..., Any], *arguments: Any) -> Any:
            answer = method(*arguments)
            return loop.run(answer) if inspect.iscoroutine(answer) else answer

        client = kind(endpoint, "demo", KEYS)
        try:
            both = call(client.create_tunnel, "orders", "both", TunnelType.BaseAndStream)
            stream = call(client.create_tunnel, "orders", "late", TunnelType.Stream, StreamConfig(earliest=True))
            with pytest.raises(ObjectAlreadyExist):
                call(client.create_tunnel, "orders", "late", TunnelType.Stream)
            listed = {info.tunnel_name: info.tunnel_id for info in call(client.list_tunnels, "orders")}
            assert listed == {"both": both, "late": stream}

            described = call(client.describe_tunnel, "orders", "both")
            assert (described.tunnel.tunnel_id, described.tunnel.tunnel_type) == (both, TunnelType.BaseAndStream)

            call(client.delete_tunnel, "orders", "late")
            with pytest.raises(TunnelNotFound):
                call(client.describe_tunnel, "orders", "late")

            successor = call(client.create_tunnel, "orders", "late", TunnelType.Stream)
            with pytest.raises(TunnelNotFound):
                call(client.delete_tunnel, "orders", "late", stream)
            assert call(client.describe_tunnel, "orders", "late").tunnel.tunnel_id == successor
            call(client.delete_tunnel, "orders", "late", successor)
            assert [info.tunnel_name for info in call(client.list_tunnels, "orders")] == ["both"]
        finally:
            call(client.close)


@pytest.mark.parametrize("kind", [SyncTunnelClient, TunnelClient])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("shop", "demo", KEYS), r"endpoint: found 'shop', allowed is http\(s\)://host\[:port\] with a port"),
        (("http://a b", "demo", KEYS), "endpoint: found 'http://a b'"),
        (("http://shop/path", "demo", KEYS), "endpoint: found 'http://shop/path'"),
        (("http://shop", "", KEYS), "instance: found '', allowed is letters, digits and hyphens"),
        (("http://shop", "demo", "hush"), "credentials: found str, allowed are Credentials"),
    ],
)
def test_an_invalid_instance_name_is_refused_at_once(kind: Clients, arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        kind(*arguments)
    assert "hush" not in str(refused.value)
