"""Random changes of a table that keeps one version, inside the domain of docs/architecture.md, "equal tables".

Between two events that empty a column, column `one` gets a single version, which may then be deleted alone; no other
column loses a single version, and their versions may go back.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from ots_tunnel.model import Action, CellOp, PrimaryKey, Value
from ots_tunnel.protocol.plainbuffer.column import Column

#: Name of an attribute, and its values. Some have no single type, a name that Parquet could not have, or one that means
#: something else to Spark.
VALUES: dict[str, tuple[Value, ...]] = {
    "price": (1.5, -0.0, 1e300),
    "count": (0, -(1 << 63), (1 << 63) - 1),
    "flag": (True, False),
    "note": ("", "Ä", "x" * 40),
    "raw": (b"", b"\x00\xff"),
    "number": (5, 2.5, (1 << 53) + 1, (1 << 63) - 1),
    "mixed": (7, "seven", True),
    "odd `name`, (1).\\'": ("odd",),
    "Price": (9,),
    "gone": (True,),
    "${spark.app.name}": ("text",),
}
ONE = "one"


class Changes:
    """Makes changes of a number of keys.

    Args:
        base_ms: about which versions are.
    """

    def __init__(self, seed: int, keys: int, base_ms: int) -> None:
        self._random = random.Random(seed)
        self._keys = keys
        self._base_ms = base_ms
        self._one: dict[int, int] = {}

    def make(self, count: int) -> Iterator[tuple[PrimaryKey, Action, tuple[Column, ...]]]:
        """So many changes, in their order."""
        return (self._next() for _ in range(count))

    def _next(self) -> tuple[PrimaryKey, Action, tuple[Column, ...]]:
        chance = self._random
        number = chance.randrange(self._keys)
        key: PrimaryKey = (("carrier", f"c{number % 5}"), ("flight", number))
        action = chance.choices((Action.PUT, Action.UPDATE, Action.DELETE), (2, 6, 1))[0]
        if action is Action.DELETE:
            self._one.pop(number, None)
            return key, action, ()
        names = chance.sample(sorted(VALUES), chance.randrange(1, 5))
        if action is Action.PUT:
            self._one.pop(number, None)
            return key, action, (*map(self._put, names), *self._fresh_one(number))
        cells = [self._put(name) if chance.random() < 0.75 else _drop(name) for name in names]
        return key, action, (*cells, *self._change_of_one(number))

    def _version(self) -> int:
        return self._base_ms + self._random.randrange(1000)

    def _put(self, name: str) -> Column:
        return Column(name, self._random.choice(VALUES[name]), self._version())

    def _fresh_one(self, number: int) -> tuple[Column, ...]:
        if self._random.random() < 0.5:
            return ()
        self._one[number] = self._version()
        return (Column(ONE, self._one[number], self._one[number]),)

    def _change_of_one(self, number: int) -> tuple[Column, ...]:
        version = self._one.get(number)
        if self._random.random() < 0.5:
            return ()
        if version is None:
            return (_drop(ONE), *self._fresh_one(number))
        if self._random.random() < 0.5:
            return (Column(ONE, None, version, CellOp.DELETE_ONE_VERSION),)
        del self._one[number]
        return (_drop(ONE),)


def _drop(name: str) -> Column:
    return Column(name, None, None, CellOp.DELETE_ALL_VERSIONS)
