"""What is wrong with a document, and how a message shows a value of it.

Users put secrets into the document although it must not hold any, so a value in the wrong place is not repeated.
"""

from __future__ import annotations

import re

#: Characters of a value that a message repeats.
MAX_SHOWN = 100
#: Type of pydantic's error where a validator cannot raise `NotAllowed`.
NOT_ALLOWED = "not_allowed"
#: What cannot be a user name with a password: behind a colon are digits alone.
_HOST = re.compile(r"([^\s:\[\]]*|\[[0-9a-fA-F:.]*\])(:[0-9]{0,5})?")


class NotAllowed(ValueError):
    """Raised by validators for a value that the field does not allow."""

    def __init__(self) -> None:
        super().__init__("not allowed")


class Contradiction(ValueError):
    """Raised by validators of a model: a setting contradicts other settings.

    Args:
        field: its name in the document.
        text: what was found and what is allowed.
    """

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}")
        self.field = field
        self.text = text


def looks_secret(value: object) -> bool:
    """Whether the value is a secret of Standard Webhooks, which users paste into other fields."""
    return isinstance(value, str) and value.startswith("whsec_")


def shown(value: object) -> str:
    """A value for a message: no collections, no text that may hold a user name or password, no query of an address."""
    match value:
        case None:
            return "nothing"
        case dict():
            return "a mapping"
        case list() | tuple() | set():
            return f"a list of {len(value)}"
        case bool():
            return str(value).lower()
    if looks_secret(value):
        return "a secret"
    if isinstance(value, int | float):
        return str(value)
    text = str(value)
    if "@" in text:
        return "a text with @"
    if "//" in text and _may_have_login(text):
        return "an address"
    query = r"(?s)\?.*" if "//" in text else r"(?s)\?.*=.*"  # an address may lack its slashes
    text = repr(re.sub(query, "?***", text))
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def _may_have_login(address: str) -> bool:
    """Whether there may be a user name or password: where they end is not known in a wrong address."""
    host = re.split("[/?#]", address.partition("//")[2])[0]
    return _HOST.fullmatch(host) is None
