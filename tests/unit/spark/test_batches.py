"""The columns that a query asks the service for."""

from __future__ import annotations

from ots_tunnel.model import Marker
from ots_tunnel.spark.batches import asked_columns

LOW = (("k", Marker.INF_MIN),)


def test_a_key_column_is_always_asked_for() -> None:
    assert asked_columns(LOW, (("a", "bigint"), ("b", "string"))) == ("k", "a", "b")
    assert asked_columns(LOW, (("a", "bigint"), ("k", "string"))) == ("k", "a")


def test_more_columns_than_the_service_takes_are_all_columns() -> None:
    assert len(asked_columns(LOW, [(f"c{number}", "bigint") for number in range(127)])) == 128
    assert asked_columns(LOW, [(f"c{number}", "bigint") for number in range(128)]) == ()
