"""The AccessKey in a Secret. Pure; values never appear in a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel.model import Credentials
from ots_tunnel_operator.api.secrets import ACCESS_KEY, SecretUse
from ots_tunnel_operator.diagnosis import Place
from ots_tunnel_operator.observe.secret_keys import read_keys
from ots_tunnel_operator.world.absence import Failure


def read_credentials(secret: Mapping[str, Any] | None, name: str, place: Place) -> Credentials | Failure:
    """The AccessKey in a Secret, or the problem of the Secret.

    Args:
        secret: as the API server has it; None where it does not exist.
        name: name of the Secret.
        place: the side that it belongs to.
    """
    affected = ("CredentialsValid",) if place.condition == "TunnelReady" else ("CredentialsValid", place.condition)
    use = SecretUse(f"{place.path}.credentials.secretRef", name, ACCESS_KEY, "", affected, by_operator=True)
    found = read_keys(secret, use)
    if isinstance(found, Failure):
        return found
    return Credentials(found["accessKeyId"], found["accessKeySecret"], found.get("securityToken"))
