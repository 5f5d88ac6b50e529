"""Whether a destination is known to lack what a tunnel has delivered, from the ages of cells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import pytest

from ots_tunnel.client.table import TableClient
from ots_tunnel.client.table_calls import RangePage, StreamDescription, TableDescription
from ots_tunnel.console.explanations import Place
from ots_tunnel.errors import Explained, PermissionDenied, ServerUnavailable, ServiceError
from ots_tunnel.model import (
    ChannelId,
    ChannelInfo,
    ChannelStatus,
    ChannelType,
    ClientId,
    KeyColumn,
    KeyType,
    Marker,
    PrimaryKey,
    Stage,
    TunnelDescription,
    TunnelId,
    TunnelInfo,
    TunnelType,
)
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.replicate.evidence import LOOKED_AT, MOST_PAGES, Side, is_foreign

DAY = 86_400
PAGE_ROWS = 400
CREATED = 1_700_000_000
NOW = CREATED + DAY

Rows = dict[int, tuple[Column, ...]]


def old(value: int = 1, *, days: float = 10) -> tuple[Column, ...]:
    """A cell that was there before the tunnel."""
    return (Column("x", value, int((CREATED - days * DAY) * 1000)),)


def new(value: int = 1) -> tuple[Column, ...]:
    """A cell that may be younger than the tunnel."""
    return (Column("x", value, (CREATED - DAY) * 1000),)


class Table:
    """A table with a key of one integer, in the place of a `TableClient`."""

    def __init__(self, rows: Rows, *, time_to_live: int = -1, error: ServiceError | None = None) -> None:
        self._rows = rows
        self._time_to_live = time_to_live
        self._error = error
        self.calls = 0

    async def describe_table(self, table: str) -> TableDescription:
        key = (KeyColumn("k", KeyType.INTEGER),)
        return TableDescription(table, key, self._time_to_live, 1, DAY, StreamDescription(enabled=True))

    async def get_range(
        self,
        table: str,
        start: PrimaryKey,
        end: PrimaryKey,
        *,
        max_versions: int,
        limit: int | None,
        direction_forward: bool,
    ) -> RangePage:
        if self._error is not None:
            raise self._error
        self.calls += 1
        if self.calls == 1:
            return RangePage(b"", start)  # the service may answer without rows
        first, last = _number(start), _number(end)
        if direction_forward:
            found = [number for number in sorted(self._rows) if first <= number < last]
        else:
            found = [number for number in sorted(self._rows, reverse=True) if first >= number > last]
        taken = found[: min(limit or PAGE_ROWS, PAGE_ROWS)]
        following = (("k", found[len(taken)]),) if len(taken) < len(found) else None
        return RangePage(_page(((("k", number),), self._rows[number]) for number in taken), following)


def _number(key: PrimaryKey) -> float:
    value = key[0][1]
    assert isinstance(value, int | Marker)
    return value if isinstance(value, int) else {Marker.INF_MIN: float("-inf")}.get(value, float("inf"))


def _page(rows: Iterable[tuple[PrimaryKey, tuple[Column, ...]]]) -> bytes:
    bodies = [encode_row(*row) for row in rows]
    return b"".join([*bodies[:1], *(body[4:] for body in bodies[1:])])


def side(table: Table, *, is_destination: bool = False) -> Side:
    return Side(cast(TableClient, table), Place("http://host", "demo", "", "t"), is_destination)


def tunnel(stage: str = Stage.STREAM, status: ChannelStatus = ChannelStatus.TERMINATED) -> TunnelDescription:
    info = TunnelInfo(
        TunnelId("id"), "copy", TunnelType.BaseAndStream, "t", "i", "", stage, False, CREATED * 10**9, None
    )
    return TunnelDescription(info, (ChannelInfo(ChannelId("b"), ChannelType.BASE, status, ClientId(""), 0, 5),), 0)


async def foreign(source: Table, destination: Table, found: TunnelDescription | None = None) -> bool:
    return await is_foreign(side(source), side(destination, is_destination=True), found or tunnel(), NOW)


MANY = 3 * LOOKED_AT


@pytest.mark.parametrize(
    ("destination", "expected"),
    [
        ({5000: old()}, True),
        ({0: old(7)}, True),
        ({0: new()}, True),
        ({MANY - 1: old()}, False),
        ({0: old()}, False),
        ({MANY // 2: old()}, False),
        ({MANY // 2: old(7)}, True),
        (dict.fromkeys(range(LOOKED_AT), old(7)), True),
    ],
)
async def test_a_destination_is_foreign_if_no_old_cell_is_there(destination: Rows, expected: bool) -> None:
    assert await foreign(Table(dict.fromkeys(range(MANY), old())), Table(destination)) is expected


async def test_what_takes_too_long_to_look_for_may_be_there() -> None:
    source = {0: old(), 10 * MOST_PAGES * PAGE_ROWS: old()}
    between = dict.fromkeys(range(1, MOST_PAGES * PAGE_ROWS + 2), old(7))
    assert not await foreign(Table(source), Table(between))


@pytest.mark.parametrize(
    "source",
    [
        {},
        {1: ()},
        {1: new(), 2: new()},
        {1: (Column("x", 1, None),)},
    ],
)
async def test_without_old_cells_nothing_is_known(source: Rows) -> None:
    assert not await foreign(Table(source), Table({9: old()}))


async def test_cells_that_expire_soon_are_not_looked_for() -> None:
    source, lives = {1: old(days=10)}, 11 * DAY
    assert not await foreign(Table(source, time_to_live=lives), Table({9: old()}))
    assert await foreign(Table(source, time_to_live=lives + 2 * 3600), Table({9: old()}))
    assert not await foreign(Table(source), Table({9: old()}, time_to_live=lives)), "the destination drops them, too"


@pytest.mark.parametrize(
    "early",
    [tunnel(Stage.BASE), tunnel(Stage.INIT), tunnel(status=ChannelStatus.OPEN)],
)
async def test_while_existing_rows_are_copied_nothing_is_known(early: TunnelDescription) -> None:
    assert not await foreign(Table({1: old()}), Table({9: old()}), early)


async def test_without_the_right_to_read_the_source_nothing_is_known() -> None:
    denied = PermissionDenied("OTSNoPermissionAccess", "no")
    assert not await foreign(Table({1: old()}, error=denied), Table({9: old()}))


async def test_another_error_is_explained_for_its_side() -> None:
    busy = ServerUnavailable("OTSServerBusy", "busy")
    with pytest.raises(Explained, match="busy") as refused:
        await foreign(Table({1: old()}, error=busy), Table({9: old()}))
    assert refused.value.__cause__ is busy
    with pytest.raises(Explained, match="demo") as refused:
        await foreign(Table({1: old()}), Table({9: old()}, error=PermissionDenied("OTSNoPermissionAccess", "no")))
    assert type(refused.value.__cause__).__name__ == "SinkRejected"
