"""What a sink's refusal is about, by the words of the worker, and whether such records may be left out. Pure.

`spec.delivery.onPermanentError` is about single records alone. A setting of `spec.delivery` that does not fit the
table, a file that cannot be read, and a destination with another key are met whatever it says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

#: Sinks that can refuse one record and take the next, as `ots_tunnel.config.sinks` has them; a test compares both.
#: So can `files` where it has columns.
REFUSING_SINKS = ("tablestore", "kafka", "http")

#: Codes of `ots_tunnel.sinks.middleware`, which compares settings with the records.
_OF_SETTINGS = frozenset({"KeyRange", "KeyPrefix", "ColumnName"})
#: Codes of `ots_tunnel.sinks.files.channel_files`, about files of earlier runs.
_OF_FILES = frozenset({"UnreadableFile", "UnknownPosition"})
#: Name of the error, and the sink's code.
_WORDS = re.compile(r"\b(SinkRejected|WrongDestination): (HTTP \d+|[^:]+): ")


class Subject(Enum):
    """What a refusal is about."""

    SETTING = auto()
    """A field of spec.delivery."""
    FILE = auto()
    """A file or a folder of an earlier run."""
    TABLE = auto()
    """The destination table as a whole."""
    RECORD = auto()
    """Records, or anything else that the sink's own words tell."""


def code_of(text: str) -> str | None:
    """The sink's code in a text that has the words with which a worker ended; None without such words."""
    found = _WORDS.search(text)
    return found and found[2]


def subject_of(text: str) -> Subject:
    """What a refusal is about, by a text that has the words with which a worker ended."""
    found = _WORDS.search(text)
    if found is None:
        return Subject.RECORD
    if found[1] == "WrongDestination":
        return Subject.TABLE
    if found[2] in _OF_SETTINGS:
        return Subject.SETTING
    return Subject.FILE if found[2] in _OF_FILES else Subject.RECORD


def may_leave_out(spec: Mapping[str, Any]) -> bool:
    """Whether onPermanentError could be something else than Fail, by the API server's rules, and is not yet.

    Args:
        spec: of the object as the API server has it.
    """
    sink, delivery, engine = (spec.get(name) or {} for name in ("sink", "delivery", "engine"))
    if delivery.get("onPermanentError", "Fail") != "Fail" or engine.get("baseData") == "Spark":
        return False
    return any(name in sink for name in REFUSING_SINKS) or bool((sink.get("files") or {}).get("columns"))
