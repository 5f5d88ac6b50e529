"""What a reset is decided by: facts about one object, however they were learnt. Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Found(enum.Enum):
    """The tunnel that has the object's name at the service now."""

    GONE = "none"
    RECORDED = "the recorded one"
    ANOTHER = "another one"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts about one object; times are Unix seconds.

    Args:
        kind: type of the tunnel in the spec.
        by_spark: whether Spark copies existing rows.
        sink: member of the spec's sink, such as `tablestore`.
        former: id of the recorded tunnel; empty without one.
        is_used: whether anything is recorded that could be reset.
        is_ours: whether the operator created the recorded tunnel for this object.
        found: the tunnel of the name; of no meaning where none is needed.
        mismatch: why a tunnel of the name that is another one does not fit the spec; empty where it does.
        creates: whether the operator may create the tunnel (managementPolicy).
        base_copied: whether every existing row has been copied; None is unknown.
        delivered_until: every change before this time has reached the sink; None is unknown.
        kept_since: the stream certainly keeps every change since then; None is unknown.
        end: time of the last change to deliver; None without one.
        is_destination_lost: whether the table that was copied to is gone, empty, or another one.
        is_destination_empty: whether the sink is a table without any row.
    """

    namespace: str
    name: str
    kind: str
    by_spark: bool
    table: str
    tunnel: str
    sink: str
    former: str
    is_used: bool
    is_ours: bool
    found: Found
    mismatch: str = ""
    creates: bool
    base_copied: bool | None
    delivered_until: float | None
    kept_since: float | None
    end: float | None
    is_destination_lost: bool
    is_destination_empty: bool
    now: float

    @property
    def needs_tunnel(self) -> bool:
        """Whether the object has a tunnel at all: a copy of existing rows by Spark alone needs none."""
        return not (self.kind == "BaseData" and self.by_spark)

    @property
    def is_table(self) -> bool:
        """Whether the sink is a table, which a replay writes over, and not a log, to which it adds."""
        return self.sink == "tablestore"
