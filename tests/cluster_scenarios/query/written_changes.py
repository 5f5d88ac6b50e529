"""Every change of a table as its stream has it, to compare with what a query has stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from ots_tunnel.credentials import static_credentials
from ots_tunnel.model import Credentials
from ots_tunnel.stream.calls.client import StreamClient
from tests.demo.scenario import ACCESS_KEY_ID, ACCESS_KEY_SECRET, Scenario

#: The values of a key, and its place in the stream: epoch, microseconds, row index.
Place = tuple[tuple[Any, ...], tuple[int, ...]]


def places_of(lines: Iterable[dict[str, Any]]) -> list[Place]:
    """Return key and place of each line of the files."""
    return [(tuple(line["key"].values()), tuple(line["sequence"].values())) for line in lines]


async def written(endpoint: str, scenario: Scenario, *, since_us: int) -> Counter[Place]:
    """Count the records of the table's stream by key and place.

    Args:
        since_us: records that were committed before this moment are left out, Unix microseconds.
    """
    credentials = static_credentials(Credentials(ACCESS_KEY_ID, ACCESS_KEY_SECRET))
    client = StreamClient(endpoint, scenario.instance, credentials)
    found: Counter[Place] = Counter()
    try:
        stream = await client.stream_of(scenario.table)
        for shard in await client.shards(stream.stream_id):
            iterator = await client.iterator(stream.stream_id, shard.shard_id)
            while True:
                page = await client.read(iterator)
                for record in page.records:
                    place = record.sequence
                    assert place is not None
                    if place.timestamp_us >= since_us:
                        key = tuple(value for _, value in record.primary_key)
                        found[key, (place.epoch, place.timestamp_us, place.row_index)] += 1
                if page.is_last or not page.records:
                    break
                assert page.next_iterator is not None
                iterator = page.next_iterator
    finally:
        await client.close()
    return found


def first_step_back(lines: Iterable[dict[str, Any]]) -> Any:
    """Return the first change that stands behind a later one of its key; None where all are in their order."""
    last: dict[Any, Any] = {}
    for key, place in places_of(lines):
        if last.get(key, place) > place:
            return key, last[key], place
        last[key] = place
    return None
