"""Numbers in the options of a query that no request can hold are refused by name, where the query is planned."""

from __future__ import annotations

import pytest

from ots_tunnel.errors import ConfigError
from ots_tunnel.spark.reader.option_values import END_OF_VERSIONS
from ots_tunnel.spark.reader.options import SourceOptions

PLACE = {"endpoint": "http://localhost:80", "instance": "shop", "table": "orders", "mode": "raw"}
LARGE = "9" * 5_000


@pytest.mark.parametrize(
    ("name", "value", "most"),
    [
        ("splitBytes", str(2**63), 2**63 - 1),
        ("splitBytes", LARGE, 2**63 - 1),
        ("maxVersions", str(2**31), 2**31 - 1),
        ("startVersion", str(END_OF_VERSIONS), END_OF_VERSIONS - 1),
        ("endVersion", str(END_OF_VERSIONS + 1), END_OF_VERSIONS),
    ],
)
def test_a_number_that_is_too_large_is_named(name: str, value: str, most: int) -> None:
    with pytest.raises(ConfigError, match=rf"^option '{name}': found '\d+', allowed are \d+ to {most}$"):
        SourceOptions.parse({**PLACE, name: value})


def test_the_largest_numbers_are_taken() -> None:
    options = SourceOptions.parse({**PLACE, "splitBytes": str(2**63 - 1), "endVersion": str(END_OF_VERSIONS)})

    assert (options.split_bytes, options.versions) == (2**63 - 1, (0, END_OF_VERSIONS))
