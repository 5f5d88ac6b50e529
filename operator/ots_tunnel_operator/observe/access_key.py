"""The AccessKey in a Secret. Pure; values never appear in a message."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from ots_tunnel.model import Credentials
from ots_tunnel_operator.diagnosis import Place
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world import Failure


def read_credentials(secret: Mapping[str, Any] | None, name: str, place: Place) -> Credentials | Failure:
    """The AccessKey in a Secret, or the problem of the Secret.

    Args:
        secret: as the API server has it; None where it does not exist.
        name: name of the Secret.
        place: the side that it belongs to.
    """
    field = f"{place.path}.credentials.secretRef.name {name!r}"
    affected = ("CredentialsValid",) if place.condition == "TunnelReady" else ("CredentialsValid", place.condition)
    if secret is None:
        message = f"{field}: no such Secret: create it with the keys accessKeyId and accessKeySecret"
        return Failure(Problem(Reason.SECRET_NOT_FOUND, message, affected))
    data = secret.get("data") or {}
    values: dict[str, str] = {}
    for key in ("accessKeyId", "accessKeySecret", "securityToken"):
        try:
            values[key] = base64.b64decode(data.get(key) or "", validate=True).decode().strip()
        except (binascii.Error, UnicodeDecodeError):
            values[key] = ""
    missing = [key for key in ("accessKeyId", "accessKeySecret") if not values[key]]
    if missing:
        message = (
            f"{field}: the Secret has no usable {' and no '.join(missing)}, its keys are {sorted(data)}: "
            f"add what is missing"
        )
        return Failure(Problem(Reason.KEY_MISSING, message, affected))
    return Credentials(values["accessKeyId"], values["accessKeySecret"], values["securityToken"] or None)
