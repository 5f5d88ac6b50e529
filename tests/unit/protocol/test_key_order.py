"""The order of keys is the service's: by value, text by its bytes, between the two ends of a range."""

from __future__ import annotations

import pytest

from ots_tunnel.model import KeyValue, Marker
from ots_tunnel.protocol.key_order import key_order, value_order


@pytest.mark.parametrize(
    "rising",
    [
        (Marker.INF_MIN, -5, 0, 7, Marker.INF_MAX),
        (Marker.INF_MIN, "", "B", "a", "é", "\U0001f600", Marker.INF_MAX),
        (Marker.INF_MIN, b"", b"\x00", b"\xff", Marker.INF_MAX),
    ],
)
def test_values_of_one_column_are_ordered(rising: tuple[KeyValue, ...]) -> None:
    assert sorted(reversed(rising), key=value_order) == list(rising)


def test_the_first_column_that_differs_decides() -> None:
    low, high = (("a", 1), ("b", "z")), (("a", 2), ("b", "a"))

    assert key_order(low) < key_order(high)


def test_a_value_that_the_service_chooses_has_no_order() -> None:
    with pytest.raises(ValueError, match="AUTO_INCREMENT has no place"):
        value_order(Marker.AUTO_INCREMENT)
