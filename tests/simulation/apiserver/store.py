"""Objects by kind, namespace and name, with one counter of versions and a log of events for the watches.

Every change gets the next resourceVersion and one entry in the log. The log is bounded: a watch that starts before its
first entry is told that its version is too old, as etcd's compaction makes the API server answer 410.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Manifest = dict[str, Any]
#: Kind, namespace and name.
Key = tuple[str, str, str]


def copied(value: Any) -> Any:
    """A copy of decoded JSON; several times as fast as `copy.deepcopy`, and copying takes much of the time."""
    if isinstance(value, dict):
        return {key: copied(below) for key, below in value.items()}
    return [copied(below) for below in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of the log; `object` must not be changed by a reader."""

    version: int
    type: str
    """ADDED, MODIFIED or DELETED."""
    key: Key
    object: Manifest


@dataclass
class Store:
    """The objects and their log.

    Args:
        listener: called after each change.
        kept: number of events that the log keeps.
    """

    listener: Callable[[Event], None] = lambda event: None
    kept: int = 2000
    version: int = 1000
    objects: dict[Key, Manifest] = field(default_factory=dict)
    log: list[Event] = field(default_factory=list)
    compacted: int = 1000
    """Versions up to this one are no longer in the log."""

    def read(self, key: Key) -> Manifest | None:
        """A copy of an object, or None."""
        found = self.objects.get(key)
        return None if found is None else copied(found)

    def peek(self, key: Key) -> Manifest | None:
        """An object itself, or None; it must not be changed, and never changes: another version takes its place."""
        return self.objects.get(key)

    def all(self, kind: str, namespace: str = "") -> Iterator[Manifest]:
        """The objects of a kind, by namespace and name; every namespace without one. They must not be changed."""
        for key in sorted(self.objects):
            if key[0] == kind and namespace in ("", key[1]):
                yield self.objects[key]

    def put(self, key: Key, manifest: Mapping[str, Any]) -> Manifest:
        """Store an object under the next version and return a copy of it."""
        known = key in self.objects
        stored = copied(dict(manifest))
        stored["metadata"]["resourceVersion"] = str(self._next())
        self.objects[key] = stored
        self._record("MODIFIED" if known else "ADDED", key, stored)
        return copied(stored)

    def remove(self, key: Key) -> Manifest:
        """Remove an object and return its last state."""
        gone = copied(self.objects.pop(key))
        gone["metadata"]["resourceVersion"] = str(self._next())
        self._record("DELETED", key, gone)
        return copied(gone)

    def at(self, key: Key, version: int) -> Manifest | None:
        """An object as it was at a version that the log still covers; what is older comes from today."""
        for event in reversed(self.log):
            if event.key == key and event.version <= version:
                return None if event.type == "DELETED" else copied(event.object)
        if any(event.key == key and event.version > version and event.type == "ADDED" for event in self.log):
            return None
        return self.read(key)

    def after(self, version: int) -> list[Event]:
        """Events after a version.

        Raises:
            LookupError: some of them are no longer in the log.
        """
        if version < self.compacted:
            raise LookupError(f"too old resource version: {version} ({self.compacted})")
        return [event for event in self.log if event.version > version]

    def compact(self) -> None:
        """Forget every event, as a compaction of etcd does."""
        self.log.clear()
        self.compacted = self.version

    def _next(self) -> int:
        self.version += 1
        return self.version

    def _record(self, kind: str, key: Key, stored: Manifest) -> None:
        event = Event(self.version, kind, key, stored)
        self.log.append(event)
        if len(self.log) > self.kept:
            self.compacted = self.log.pop(0).version
        self.listener(event)
