"""Records on their way from the driver to a task: three buffers, which pickle without an object per record. Pure.

Previous values of a stream's origin columns are left out: no column of the rows has them.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from ots_tunnel.model import Action
from ots_tunnel.protocol.record import Record

#: Actions by their numbers.
_ACTIONS = {int(action): action for action in Action}


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
        bodies = [record.body for record in records]
        return cls(
            bytes([record.action for record in records]), array("q", map(len, bodies)).tobytes(), b"".join(bodies)
        )

    def records(self) -> list[Record]:
        """The records again."""
        sizes = array("q")
        sizes.frombytes(self.sizes)
        ends = [0, *accumulate(sizes)]
        bodies = map(self.bodies.__getitem__, map(slice, ends, ends[1:]))
        # no loop of the interpreter: a batch has tens of thousands of records
        return list(map(Record, map(_ACTIONS.__getitem__, self.actions), bodies))
