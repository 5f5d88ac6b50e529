"""A record that was refused for good, on its way to the place for such; that one needs libraries, this does not."""

from __future__ import annotations

from dataclasses import dataclass, field

from ots_tunnel.protocol.record import Record


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that was refused for good."""

    record: Record = field(repr=False)
    code: str
    message: str

    @property
    def size(self) -> int:
        """Bytes of the record as it came."""
        return self.record.size
