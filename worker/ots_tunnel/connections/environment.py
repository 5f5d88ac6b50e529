"""Endpoint, instance and keys in environment variables. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ots_tunnel.connections.connection import Origin
from ots_tunnel.credentials import CredentialsProvider, static_credentials
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import Credentials

ENDPOINT, INSTANCE, PROFILE = "OTS_ENDPOINT", "OTS_INSTANCE", "OTS_PROFILE"
KEY_ID, KEY_SECRET, TOKEN = "OTS_ACCESS_KEY_ID", "OTS_ACCESS_KEY_SECRET", "OTS_SECURITY_TOKEN"

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
        ConfigError: half of the keys is there; names the other half.
    """
    return Origin(environment.get(ENDPOINT) or None, environment.get(INSTANCE) or None, _keys(environment), _NAMES)


def _keys(environment: Mapping[str, str]) -> CredentialsProvider | None:
    key_id, secret, token = (environment.get(name) or None for name in (KEY_ID, KEY_SECRET, TOKEN))
    if key_id is not None and secret is not None:
        return static_credentials(Credentials(key_id, secret, token))
    found = [name for name, value in ((KEY_ID, key_id), (KEY_SECRET, secret), (TOKEN, token)) if value is not None]
    if not found:
        return None
    missing = [name for name, value in ((KEY_ID, key_id), (KEY_SECRET, secret)) if value is None]
    raise ConfigError(f"{' and '.join(missing)}: missing, although {' and '.join(found)} is set")
