"""Writes recorded in the API server's audit log."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Status patches a minute that an object may cost while rows move (docs/architecture.md rule 9).
PATCHES_A_MINUTE = 4
_CHANGING = frozenset({"create", "update", "patch", "delete", "deletecollection"})
#: Time in which the API server writes an answered request to its log.
_FLUSH_SECONDS = 1.0


@dataclass(frozen=True)
class Write:
    """One write by any user, accepted or refused."""

    user: str
    verb: str
    resource: str
    subresource: str
    name: str

    def __str__(self) -> str:
        return f"{self.user} {self.verb} {'/'.join(filter(None, (self.resource, self.subresource, self.name)))}"

    @property
    def is_lease(self) -> bool:
        return self.resource == "leases"

    @property
    def is_status(self) -> bool:
        return (self.verb, self.resource, self.subresource) == ("patch", "tablestoretunnels", "status")


class AuditLog:
    """The part of the log written after construction, limited to some namespaces."""

    def __init__(self, path: Path, namespaces: Iterable[str]) -> None:
        self._path = path
        self._namespaces = frozenset(namespaces)
        self._offset = path.stat().st_size

    def writes(self) -> list[Write]:
        """Every write since construction."""
        time.sleep(_FLUSH_SECONDS)
        return [_write(event) for event in self._events() if _is_change(event, self._namespaces)]

    def _events(self) -> Iterator[dict[str, Any]]:
        with self._path.open("rb") as lines:
            lines.seek(self._offset)
            for line in lines:
                if line.endswith(b"\n"):
                    yield json.loads(line)


def others(writes: Iterable[Write]) -> list[Write]:
    """Writes to anything but the Lease and the status."""
    return [write for write in writes if not write.is_lease and not write.is_status]


def patches_allowed(seconds: float) -> int:
    """Most status patches allowed in any window of this length."""
    return int(seconds * PATCHES_A_MINUTE / 60) + 1


def summary(writes: Iterable[Write]) -> str:
    """Number of times that each write happened, for assertion messages."""
    return "\n".join(f"{count} x {write}" for write, count in Counter(map(str, writes)).most_common())


def _is_change(event: dict[str, Any], namespaces: frozenset[str]) -> bool:
    place = (event.get("objectRef") or {}).get("namespace")
    return event["verb"] in _CHANGING and event["stage"] == "ResponseComplete" and place in namespaces


def _write(event: dict[str, Any]) -> Write:
    target = event["objectRef"]
    return Write(
        event["user"]["username"],
        event["verb"],
        target.get("resource", ""),
        target.get("subresource", ""),
        target.get("name", ""),
    )
