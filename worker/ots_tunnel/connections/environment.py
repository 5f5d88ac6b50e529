"""Endpoint, instance and keys in environment variables. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ots_tunnel.connections.connection import Origin
from ots_tunnel.credentials import CredentialsProvider, static_credentials
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import Credentials

ENDPOINT, INSTANCE, PROFILE = "OTS_ENDPOINT", "OTS_INSTANCE", "OTS_PROFILE"
KEY_ID, KEY_SECRET = "OTS_ACCESS_KEY_ID", "OTS_ACCESS_KEY_SECRET"
#: Both names are in use: the token is issued with the pair, but it is no part of an AccessKey.
TOKENS = ("OTS_SECURITY_TOKEN", "OTS_ACCESS_KEY_SECURITY_TOKEN")

_NAMES = {
    "endpoint": ENDPOINT,
    "instance": INSTANCE,
    "credentials": f"{KEY_ID} and {KEY_SECRET}",
    "accessKeyId": KEY_ID,
    "accessKeySecret": KEY_SECRET,
}


def environment_origin(environment: Mapping[str, str]) -> Origin:
    """What the variables name; an empty variable counts as one that is not set.

    Raises:
        ConfigError: half of the keys is there, or there are two tokens; names the variables.
    """
    return Origin(environment.get(ENDPOINT) or None, environment.get(INSTANCE) or None, _keys(environment), _NAMES)


def _keys(environment: Mapping[str, str]) -> CredentialsProvider | None:
    given = {name: value for name in (KEY_ID, KEY_SECRET, *TOKENS) if (value := environment.get(name))}
    if not given:
        return None
    if missing := [name for name in (KEY_ID, KEY_SECRET) if name not in given]:
        raise ConfigError(f"{' and '.join(missing)}: missing, although {' and '.join(given)} is set")
    tokens = {given[name] for name in TOKENS if name in given}
    if len(tokens) > 1:
        raise ConfigError(f"{' and '.join(TOKENS)}: found two different tokens, allowed is one")
    return static_credentials(Credentials(given[KEY_ID], given[KEY_SECRET], next(iter(tokens), None)))
