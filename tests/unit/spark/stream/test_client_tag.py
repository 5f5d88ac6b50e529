"""By which tag a query tells its own clients from those of others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ots_tunnel.errors import ConfigError
from ots_tunnel.spark.stream.options import StreamOptions, own_tag
from ots_tunnel.spark.stream.tunnel_calls import check_clients, is_own
from tests.support.operator.worlds import channel, description

PLACE = {"endpoint": "https://shop.example", "instance": "shop", "table": "orders", "tunnel": "lake"}


def test_a_tag_comes_before_that_of_the_query() -> None:
    assert StreamOptions.parse(PLACE).tag_of("1a2b") == "spark-1a2b"
    assert StreamOptions.parse({**PLACE, "clientTag": "01234567"}).tag_of("1a2b") == "01234567-spark-1a2b"


@pytest.mark.parametrize("tag", ["a_b", "a b", "a" * 65])
def test_a_tag_that_the_service_may_not_take_is_refused(tag: str) -> None:
    with pytest.raises(ConfigError, match="option 'clientTag': found "):
        StreamOptions.parse({**PLACE, "clientTag": tag})


def test_clients_of_the_same_query_are_its_own_whatever_their_option_was() -> None:
    """An object that was deleted and applied again has another uid, and the same folder."""
    own = own_tag("1a2b")

    for client in ("spark-1a2b-1", "01234567-spark-1a2b-1", "76543210-spark-1a2b-9"):
        assert is_own(channel("c1", client=client), own)
        check_clients(description(channel("c1", client=client)), own)
    for client in ("spark-9z9z-1", "01234567-pod-1"):
        with pytest.raises(ConfigError, match=f"which client {client} consumes"):
            check_clients(description(replace(channel("c1"), client_id=client)), own)  # type: ignore[arg-type]
