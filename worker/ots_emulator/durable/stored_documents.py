"""The documents of one instance as the database holds them: the number of each, and the facts in it."""

from __future__ import annotations

from typing import Any

from ots_emulator.durable.database import Batch, Storage
from ots_emulator.durable.documents import Kept, facts_of, kind_and_body
from ots_emulator.tables.keys import KeySchema


class StoredDocuments:
    """Writes a document when its facts differ from the stored ones.

    Args:
        storage: gives new documents their numbers.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._stored: dict[Kept, tuple[int, tuple[Any, ...]]] = {}

    def __len__(self) -> int:
        return len(self._stored)

    def __contains__(self, kept: Kept) -> bool:
        return kept in self._stored

    def number(self, kept: Kept) -> int:
        """Return the number of a stored document."""
        return self._stored[kept][0]

    def adopt(self, kept: Kept, number: int) -> None:
        """Register an object that was read from a document; it is written again after a change."""
        self._stored[kept] = number, facts_of(kept)

    def save(self, kept: Kept, owner: int, schema: KeySchema, batch: Batch, *, force: bool = False) -> bool:
        """Write a document if its facts have changed, or if `force` is set; return whether it was written.

        Args:
            kept: what the document describes.
            owner: number of the document it belongs to.
            schema: keys of the table it belongs to.
            batch: where to write.
            force: whether to write it unchanged.
        """
        number, stored = self._stored.get(kept) or (None, None)
        facts = facts_of(kept)
        if facts == stored and not force:
            return False
        if number is None:
            number = self._storage.new_number()
        self._stored[kept] = number, facts
        batch.documents.append((number, *kind_and_body(kept, schema, owner)))
        return True

    def remove(self, kept: Kept, batch: Batch) -> int:
        """Delete a document and return its number."""
        number, _ = self._stored.pop(kept)
        batch.gone.append((number,))
        return number
