"""What the columns of a typed row tell of the cells of a record, and which cells are left over. Pure.

A record may do more to an attribute than to put a value: delete it, delete single versions, put several versions,
increment it. A column can tell one value. The rule, for the cells of one attribute in the record's order:

    [delete all versions] [delete one version | increment]... [put]...

is the order in which columns can tell them: `deleted` has the name, the attribute's column has the put of the latest
version, and what is between them or older is left over. Where a record has them in another order, all cells of the
attribute are left over. Whoever applies `deleted`, then what is left over in its order, then the columns, has done what
the record did; nothing is lost.

Example: a record deletes version 5 of `a`, puts `a` with the versions 8 and 7, and deletes `b`. The column `a` has the
value of version 8, `deleted` has `b`, and the deletion of version 5 and the put of version 7 are left over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ots_tunnel.model import CellOp
from ots_tunnel.protocol.plainbuffer.column import Column


class Told(NamedTuple):
    """The cells of a record by where a typed row has them.

    Args:
        deleted: names of attributes of which all versions are deleted.
        values: the put that a column tells, by the attribute's name, in the record's order.
        rest: cells that are left over, in the record's order.
    """

    deleted: Sequence[str]
    values: Mapping[str, Column]
    rest: Sequence[Column]


def told(cells: Sequence[Column]) -> Told:
    """Divide the cells of a record."""
    values = {cell.name: cell for cell in cells}
    if len(values) == len(cells) and all(cell.op is CellOp.PUT for cell in cells):
        return Told((), values, ())
    deleted: list[str] = []
    latest: list[int] = []
    taken: set[int] = set()
    for name, places in _places(cells).items():
        if not _are_in_order([cells[place] for place in places]):
            continue
        if cells[places[0]].op is CellOp.DELETE_ALL_VERSIONS:
            deleted.append(name)
            taken.add(places[0])
        if cells[places[-1]].op is CellOp.PUT:
            puts = (place for place in places if cells[place].op is CellOp.PUT)
            latest.append(max(puts, key=lambda place: (*_age(cells[place]), place)))
    taken.update(latest)
    return Told(
        deleted,
        {cells[place].name: cells[place] for place in sorted(latest)},
        [cell for place, cell in enumerate(cells) if place not in taken],
    )


def versions_of(values: Mapping[str, Column]) -> tuple[int | None, Sequence[tuple[str, int | None]]]:
    """The version of the first value, and name and version of each value that has another one, milliseconds.

    None is a version that the record does not tell, or that of a row without values.
    """
    version = next((cell.timestamp_ms for cell in values.values()), None)
    return version, [(name, cell.timestamp_ms) for name, cell in values.items() if cell.timestamp_ms != version]


def _places(cells: Sequence[Column]) -> Mapping[str, Sequence[int]]:
    """The places of each attribute's cells."""
    places: dict[str, list[int]] = {}
    for place, cell in enumerate(cells):
        places.setdefault(cell.name, []).append(place)
    return places


def _are_in_order(cells: Sequence[Column]) -> bool:
    """Whether the cells of an attribute are in the order that columns can tell."""
    first, *others = cells
    if first.op is CellOp.DELETE_ALL_VERSIONS and (first.value is not None or first.timestamp_ms is not None):
        return False  # no writer makes one, and a name could not tell it
    after_put = first.op is CellOp.PUT
    for cell in others:
        if cell.op is CellOp.DELETE_ALL_VERSIONS or (after_put and cell.op is not CellOp.PUT):
            return False
        after_put = cell.op is CellOp.PUT
    return True


def _age(cell: Column) -> tuple[bool, int]:
    """Grows with the version; one that the service chooses is the newest."""
    return (cell.timestamp_ms is None, cell.timestamp_ms or 0)
