"""Endpoint, instance and keys, each from the first place that names it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ots_tunnel.connections import Origin, choose
from ots_tunnel.connections.environment import environment_origin
from ots_tunnel.credentials import static_credentials
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import Credentials

WAYS = {"endpoint": "the endpoint: --endpoint", "instance": "the instance: --instance", "credentials": "the keys: a"}
KEYS = {"OTS_ACCESS_KEY_ID": "id", "OTS_ACCESS_KEY_SECRET": "hush"}
WHOLE = {"OTS_ENDPOINT": "http://env:1", "OTS_INSTANCE": "env", **KEYS}


def origin(name: str, *parts: str) -> Origin:
    keys = static_credentials(Credentials(name, "s"))
    return Origin(
        f"http://{name}:1" if "endpoint" in parts else None,
        name if "instance" in parts else None,
        keys if "credentials" in parts else None,
        {part: f"{name}.{part}" for part in ("endpoint", "instance", "credentials")},
    )


def test_each_part_comes_from_the_first_place_that_names_it() -> None:
    chosen = choose([origin("a", "instance"), origin("b", "instance", "credentials"), environment_origin(WHOLE)], WAYS)

    assert (chosen.endpoint, chosen.instance, chosen.credentials().access_key_id) == ("http://env:1", "a", "b")
    place = chosen.place("orders", "copy")
    assert (place.setting("endpoint"), place.setting("instance"), place.credentials) == (
        "OTS_ENDPOINT",
        "a.instance",
        "b.credentials",
    )


def test_nothing_is_read_that_is_not_needed() -> None:
    def places() -> Iterator[Origin]:
        yield origin("a", "endpoint", "instance", "credentials")
        raise AssertionError("a later place was read")

    assert choose(places(), WAYS).instance == "a"


def test_every_missing_part_is_named_with_the_ways_to_give_it() -> None:
    with pytest.raises(ConfigError) as missing:
        choose([origin("a", "instance")], WAYS)

    assert str(missing.value) == "missing the endpoint: --endpoint; missing the keys: a"


def test_a_wrong_part_is_named_as_where_it_comes_from() -> None:
    with pytest.raises(ConfigError) as wrong:
        choose([environment_origin({**WHOLE, "OTS_ENDPOINT": "https://me:hush@shop", "OTS_INSTANCE": "-"})], WAYS)

    assert str(wrong.value).startswith("OTS_ENDPOINT: found a text with @, allowed is http(s)://host[:port]")
    assert "; OTS_INSTANCE: found '-', allowed is letters" in str(wrong.value)


def test_keys_of_the_environment_have_a_token_if_there_is_one() -> None:
    provider = environment_origin({**KEYS, "OTS_SECURITY_TOKEN": "token"}).credentials

    assert provider is not None
    assert provider() == Credentials("id", "hush", "token")
    other = environment_origin({**KEYS, "OTS_ACCESS_KEY_SECURITY_TOKEN": "token"}).credentials
    assert other is not None
    assert other() == provider()
    assert environment_origin({}).credentials is None
    assert "hush" not in repr(environment_origin(WHOLE))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"OTS_ACCESS_KEY_ID": "id"}, "OTS_ACCESS_KEY_SECRET: missing, although OTS_ACCESS_KEY_ID is set"),
        ({"OTS_SECURITY_TOKEN": "hush"}, "OTS_ACCESS_KEY_ID and OTS_ACCESS_KEY_SECRET: missing, although OTS_SECURITY"),
        (
            {"OTS_ACCESS_KEY_SECRET": "hush", "OTS_ACCESS_KEY_ID": ""},
            "OTS_ACCESS_KEY_ID: missing, although OTS_ACCESS_KEY_SECRET is set",
        ),
        (
            {**KEYS, "OTS_SECURITY_TOKEN": "one hush", "OTS_ACCESS_KEY_SECURITY_TOKEN": "hush"},
            "OTS_SECURITY_TOKEN and OTS_ACCESS_KEY_SECURITY_TOKEN: found two different tokens",
        ),
    ],
)
def test_wrong_keys_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as half:
        environment_origin(given)

    assert message in str(half.value)
    assert "hush" not in str(half.value)
