"""What a reset is asked for: the annotation `ots-tunnel.dev/reset`, as text and as values. Pure.

Example: {"token": "2026-11-23-a", "form": "Rewind", "startTime": "2026-11-20T00:00:00Z", "existingTunnel": "Delete"}

The token makes one request: the operator carries out, or refuses, each token once, however often it is applied.
"""

from __future__ import annotations

import enum
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ots_tunnel_operator.times import parse_time

TOKEN = re.compile(r"[A-Za-z0-9][-A-Za-z0-9._:]{0,63}")
TOKEN_WORDS = "1 to 64 letters, digits and any of . _ : -, the first a letter or digit"
#: A time with a zone, in the years that the service takes as the start of a tunnel.
TIME = re.compile(r"(197[1-9]|19[89]\d|2[01]\d\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
TIME_WORDS = "a time such as 2026-01-31T12:00:00Z"

_KEYS = ("token", "form", "startTime", "existingTunnel")


class Form(enum.StrEnum):
    """What a reset begins with; docs/operations.md describes each."""

    NEW_TUNNEL = "NewTunnel"
    """Changes from the creation of a new tunnel on."""
    REWIND = "Rewind"
    """Changes again, from an earlier time on."""
    NEW_BASE = "NewBase"
    """Existing rows again, then changes."""


class Existing(enum.StrEnum):
    """What becomes of a tunnel that has the name."""

    KEEP = "Keep"
    """Nothing: the reset is refused while there is one."""
    DELETE = "Delete"
    """It is deleted, if it is the recorded one and the operator created it for this object."""
    ADOPT = "Adopt"
    """One that another client has created in place of the recorded one is used, from its checkpoints on."""


@dataclass(frozen=True, slots=True)
class Request:
    """One wanted reset.

    Args:
        start_time: with REWIND, the time of the first change; None is the oldest change that the stream keeps.
    """

    token: str
    form: Form
    start_time: str | None = None
    existing: Existing = Existing.KEEP

    def annotation(self) -> str:
        """The value of the annotation."""
        found = {"token": self.token, "form": str(self.form), "existingTunnel": str(self.existing)}
        if self.start_time is not None:
            found["startTime"] = self.start_time
        return json.dumps({key: found[key] for key in _KEYS if key in found})


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An annotation that asks for nothing that can be done; `token` stands for its text."""

    token: str
    message: str


def read_request(text: str) -> Request | Unreadable:
    """The request of an annotation's value."""
    token = f"unreadable-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    try:
        found = json.loads(text)
    except ValueError as error:
        return Unreadable(token, f"it is no JSON ({error}): write an object with {', '.join(_KEYS)}")
    except RecursionError:
        return Unreadable(token, f"it is nested too deeply: write an object with {', '.join(_KEYS)}")
    if not isinstance(found, Mapping):
        return Unreadable(token, f"found {json.dumps(found)[:60]}, allowed is an object with {', '.join(_KEYS)}")
    if wrong := _wrong(found):
        return Unreadable(token, wrong)
    return Request(
        found["token"], Form(found["form"]), found.get("startTime"), Existing(found.get("existingTunnel", "Keep"))
    )


def _wrong(found: Mapping[str, Any]) -> str:
    """The first field that is wrong: its name, what was found and what is allowed; empty without one."""
    if unknown := sorted(set(found) - set(_KEYS)):
        return f"field {unknown[0]!r} is not known, allowed are {', '.join(_KEYS)}"
    token, form, start, existing = (found.get(key) for key in _KEYS)
    if not isinstance(token, str) or not TOKEN.fullmatch(token):
        return f"token: found {_shown(token)}, allowed are {TOKEN_WORDS}"
    if form not in list(Form):
        return f"form: found {_shown(form)}, allowed are {', '.join(Form)}"
    if "existingTunnel" in found and existing not in list(Existing):
        return f"existingTunnel: found {_shown(existing)}, allowed are {', '.join(Existing)}"
    if existing == Existing.ADOPT and form != Form.NEW_TUNNEL:
        return f"existingTunnel: Adopt goes with form NewTunnel alone, found form {form}"
    if "startTime" not in found:
        return ""
    if form != Form.REWIND:
        return f"startTime: it goes with form Rewind alone, found form {form}"
    if not isinstance(start, str) or not TIME.fullmatch(start) or parse_time(start) is None:
        return f"startTime: found {_shown(start)}, allowed is {TIME_WORDS}"
    return ""


def _shown(value: Any) -> str:
    return "nothing" if value is None else repr(str(value)[:60])
