"""The values in a Secret, or what it lacks. Pure; values never appear in a message."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator.api.secrets import ACCESS_KEY, SECURITY_TOKEN, SecretUse
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.absence import Failure


def read_keys(secret: Mapping[str, Any] | None, use: SecretUse) -> Mapping[str, str] | Failure:
    """The values in a Secret by their keys, empty ones left out; a failure where a key that is needed has none.

    Bytes that are no text are left out, too, or have another character in place of each where they need not be text.

    Args:
        secret: as the API server has it; None where it does not exist.
        use: the role of the Secret.
    """
    field = f"{use.path}.name {use.name!r}"
    if secret is None:
        keys = f"key{'s' * (len(use.keys) > 1)} {' and '.join(use.keys)}"
        message = f"{field}: no such Secret: create it with the {keys}"
        return Failure(Problem(Reason.SECRET_NOT_FOUND, message, use.conditions))
    data = secret.get("data") or {}
    values = {key: text for key in data if (text := _text(data[key], use.is_text))}
    missing = [key for key in use.keys if key not in values]
    if missing:
        lacking = (
            f"{field}: the Secret has no usable {' and no '.join(missing)}, its keys are {sorted(data)}: "
            f"add what is missing"
        )
        return Failure(Problem(Reason.KEY_MISSING, lacking, use.conditions))
    if use.keys == ACCESS_KEY and (broken := _broken(values)):
        unfit = (
            f"{field}: {' and '.join(broken)} of the Secret has a line break or another control character within: "
            f"write it in one line"
        )
        return Failure(Problem(Reason.KEY_MISSING, unfit, use.conditions))
    return values


def _broken(values: Mapping[str, str]) -> list[str]:
    """Parts of an AccessKey that no header of a request can have: a request with them would not be sent."""
    return [key for key in (*ACCESS_KEY, SECURITY_TOKEN) if not values.get(key, "").isprintable()]


def _text(value: str | None, is_text: bool) -> str:
    try:
        found = base64.b64decode(value or "", validate=True)
        return found.decode(errors="strict" if is_text else "replace").strip()
    except (binascii.Error, UnicodeDecodeError):
        return ""
