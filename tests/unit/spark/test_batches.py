"""Pages of a split: read again where its table keeps more versions by now."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel.client.table_calls import RangePage, StreamDescription, TableDescription
from ots_tunnel.model import Marker
from ots_tunnel.spark.batches import asked_columns, pages_of_all_versions

LOW, HIGH = (("k", Marker.INF_MIN),), (("k", Marker.INF_MAX),)


class Source:
    """Two pages a reading; a description gives the next of these maximums."""

    def __init__(self, *max_versions: int) -> None:
        self._max_versions = iter(max_versions)
        self.asked: list[int] = []

    def get_range(self, table: str, start: Any, end: Any, *, max_versions: int, columns: Any) -> RangePage:
        assert columns == ()
        self.asked.append(max_versions)
        return RangePage(b"%d" % max_versions, (("k", 5),) if start == LOW else None)

    def describe_table(self, table: str) -> TableDescription:
        return TableDescription(table, (), -1, next(self._max_versions), 86_400, StreamDescription(False))


@pytest.mark.parametrize(
    ("described", "read"),
    [
        ((3,), [3, 3]),
        ((1,), [3, 3]),
        ((4, 4), [3, 3, 4, 4]),
        ((4, 9, 5), [3, 3, 4, 4, 9, 9]),
    ],
)
def test_a_split_is_read_again_while_its_table_keeps_more_versions(described: tuple[int, ...], read: list[int]) -> None:
    source: Any = Source(*described)

    pages = list(pages_of_all_versions(source, "t", LOW, HIGH, 3))

    assert source.asked == read
    assert [int(page.rows) for page in pages] == read


def test_a_key_column_is_always_asked_for() -> None:
    assert asked_columns(LOW, (("a", "bigint"), ("b", "string"))) == ("k", "a", "b")
    assert asked_columns(LOW, (("a", "bigint"), ("k", "string"))) == ("k", "a")


def test_more_columns_than_the_service_takes_are_all_columns() -> None:
    assert len(asked_columns(LOW, [(f"c{number}", "bigint") for number in range(127)])) == 128
    assert asked_columns(LOW, [(f"c{number}", "bigint") for number in range(128)]) == ()
