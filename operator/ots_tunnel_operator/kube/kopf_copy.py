"""What kopf keeps of an object: its metadata, and no record of its own.

kopf compares each body with the last one that it has handled, for handlers of changes, of which there are none here. It
stores that one in an annotation, and copies the whole body for each event. It also keeps the last body for as long as
the object's loop runs: with managedFields and status some 60 kB for each object. What the operator reads of an object
comes from its own watch (`kube.watched`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import kopf

#: Parts of a body that kopf itself does not look at.
UNUSED = ("spec", "status")


class MetadataAlone(kopf.DiffBaseStorage):
    """Takes every two bodies of an object for equal, stores nothing, and cuts a body down to what kopf looks at."""

    def build(self, *, body: kopf.Body, extra_fields: Iterable[Any] | None = None) -> kopf.BodyEssence:
        """What kopf compares: nothing. It calls this for every event, before it decides anything.

        The body is kopf's own, decoded for it alone, and these parts of it are dropped in place.
        """
        metadata = body.get("metadata")
        if isinstance(metadata, dict):
            metadata.pop("managedFields", None)
        for part in UNUSED:
            if isinstance(found := body.get(part), dict):
                found.clear()
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        """What was compared last: nothing, so that no object counts as new or changed."""
        return kopf.BodyEssence()

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Write nothing."""
