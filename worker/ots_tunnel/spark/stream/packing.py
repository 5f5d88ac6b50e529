"""Records on their way from the driver to a task: three buffers, which pickle without an object per record. Pure.

Previous values of a stream's origin columns are left out: no column of the rows has them.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from ots_tunnel.model import Action
from ots_tunnel.protocol.record import Record


@dataclass(frozen=True, slots=True)
class PackedRecords:
    """Records of one channel.

    Args:
        actions: one byte for each, the wire's number.
        sizes: bytes of each body, numbers of eight bytes.
        bodies: one after the other.
    """

    actions: bytes = field(repr=False)
    sizes: bytes = field(repr=False)
    bodies: bytes = field(repr=False)

    @classmethod
    def of(cls, records: Sequence[Record]) -> PackedRecords:
        """Pack records."""
        return cls(
            bytes(int(record.action) for record in records),
            array("q", (len(record.body) for record in records)).tobytes(),
            b"".join(record.body for record in records),
        )

    def records(self) -> list[Record]:
        """The records again."""
        sizes = array("q")
        sizes.frombytes(self.sizes)
        found, at = [], 0
        for action, size in zip(self.actions, sizes, strict=True):
            found.append(Record(Action(action), self.bodies[at : at + size]))
            at += size
        return found
