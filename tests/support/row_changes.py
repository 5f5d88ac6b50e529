"""The changes of a row by their number, inside the domain of docs/architecture.md rule 14."""

from __future__ import annotations

from typing import Final

from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.model import Action, CellOp
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column

#: Column with the number of the change that wrote it; a removed row has none.
NUMBER: Final = "n"
#: Versions that the tables keep.
VERSIONS: Final = 3
#: Number of changes after which those of a key repeat.
CYCLE: Final = 8
#: Actions within a cycle; all others are updates.
_ACTIONS: Final = {0: Action.DELETE, 1: Action.PUT, 5: Action.PUT}


def is_removal(number: int) -> bool:
    """Whether the change of a key with this number removes the row; such a change carries no number."""
    return number % CYCLE == 0


def action_of(number: int) -> Action:
    """The action of the change with this number."""
    return _ACTIONS.get(number % CYCLE, Action.UPDATE)


def change_of(key: str, number: int, base_ms: int) -> RowChange:
    """The change of a key with this number, from 1 on.

    Column `a` loses a single version once a cycle, and until it is emptied again no more versions are written to it
    than the table keeps; `b` and `c` lose all of theirs.

    Args:
        base_ms: cell versions are this plus the number.
    """
    version = base_ms + number

    def put(name: str) -> Column:
        return Column(name, number, version)

    action, columns = action_of(number), [put(NUMBER)]
    match number % CYCLE:
        case 0:
            columns = []
        case 1:
            columns += [put("a"), put("b"), put("c")]
        case 2:
            columns += [put("a")]
        case 3:
            columns += [_drop_one("a", version - 1), _drop_all("b")]
        case 4:
            columns += [put("a"), put("b")]
        case 5:
            columns += [put("a"), put("b")]
        case 6:
            columns += [put("b"), put("c")]
        case 7:
            columns += [_drop_all("a"), put("c")]
    body = encode_row((("pk", key),), tuple(columns), delete=action is Action.DELETE)
    return RowChange(action, body)


def _drop_one(name: str, version: int) -> Column:
    return Column(name, None, version, CellOp.DELETE_ONE_VERSION)


def _drop_all(name: str) -> Column:
    return Column(name, None, None, CellOp.DELETE_ALL_VERSIONS)
