"""Blocking calls on tunnels: what is no answer of the service is none."""

from __future__ import annotations

from typing import cast

import pytest

from ots_tunnel.client.sync_tunnel import SyncTunnelClient
from ots_tunnel.errors import ConnectionLost
from ots_tunnel.model import Credentials
from ots_tunnel.protocol.http.message import HttpResponse
from ots_tunnel.transport.sync import BlockingTransport


class Balancer:
    """Answers everything by an empty success that is not the service's."""

    def send(self, *_: object, **__: object) -> HttpResponse:
        return HttpResponse(200, {}, b"")


@pytest.mark.parametrize("call", ["list", "delete"])
def test_an_empty_answer_shows_no_tunnels_and_deletes_none(call: str) -> None:
    transport = cast(BlockingTransport, Balancer())
    client = SyncTunnelClient("http://balancer:1", "demo", Credentials("id", "secret"), transport)

    with pytest.raises(ConnectionLost, match="x-ots-requestid"):
        client.list_tunnels("t") if call == "list" else client.delete_tunnel("t", "n")
