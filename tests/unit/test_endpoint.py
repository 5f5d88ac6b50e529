"""Endpoints are refused before anything is connected, with what was found and what is allowed."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from ots_tunnel.client.sync_table import SyncTableClient
from ots_tunnel.client.table import TableClient
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.config.base import InstanceConfig
from ots_tunnel.config.messages.describing import describe
from ots_tunnel.credentials import static_credentials
from ots_tunnel.endpoint import ENDPOINT_WORDS, check_place, is_endpoint
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import Credentials
from ots_tunnel.tables import TableAdmin
from ots_tunnel_operator.api.object import TablestoreTunnel
from tests.support.endpoints import ACCEPTED, REFUSED
from tests.support.operator.objects import tunnel_object

KEYS = static_credentials(Credentials("id", "secret"))


def parsed(endpoint: str) -> TablestoreTunnel:
    return TablestoreTunnel.from_body(tunnel_object(source__endpoint=endpoint, sink__tablestore__endpoint=endpoint))


def config(endpoint: str) -> InstanceConfig:
    document = {"endpoint": endpoint, "instance": "demo", "credentials": {"directory": "/keys"}}
    return InstanceConfig.model_validate(document)


@pytest.mark.parametrize("endpoint", ACCEPTED)
def test_accepted(endpoint: str) -> None:
    check_place(endpoint, "demo")

    assert is_endpoint(endpoint)
    assert config(endpoint).endpoint == endpoint
    assert parsed(endpoint).spec.source.endpoint == endpoint


@pytest.mark.parametrize("endpoint", REFUSED)
def test_refused(endpoint: str) -> None:
    with pytest.raises(ConfigError) as at_a_call:
        check_place(endpoint, "demo")
    with pytest.raises(ValidationError) as in_a_document:
        config(endpoint)
    with pytest.raises(ValidationError) as in_an_object:
        parsed(endpoint)

    message = describe(in_a_document.value, InstanceConfig)
    for text in (str(at_a_call.value), message):
        assert text.startswith("endpoint: found ")
        assert ENDPOINT_WORDS in text
        assert "user:hush" not in text
    assert {error["loc"] for error in in_an_object.value.errors()} == {
        ("spec", "source", "endpoint"),
        ("spec", "sink", "tablestore", "endpoint"),
    }


@pytest.mark.parametrize("kind", [TunnelClient, TableClient, SyncTableClient, TableAdmin])
def test_no_client_is_made_for_a_malformed_endpoint_or_instance(kind: type[TableAdmin]) -> None:
    with pytest.raises(ConfigError, match="endpoint: found 'http://h:99999'"):
        kind("http://h:99999", "demo", KEYS)
    with pytest.raises(ConfigError, match="instance: found 'a b'"):
        kind("http://h", "a b", KEYS)
