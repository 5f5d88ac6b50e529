"""Which reports of librdkafka are believed."""

from __future__ import annotations

from dataclasses import dataclass

from ots_tunnel.sinks.kafka.places import DOUBTED_SECONDS, Places
from ots_tunnel.sinks.kafka.settings import QUEUE_MESSAGES


@dataclass(frozen=True)
class Reported:
    """A message as it is reported without an error."""

    place: int | None
    number: int = 0

    def offset(self) -> int | None:
        """See `confluent_kafka.Message`."""
        return self.place

    def partition(self) -> int:
        """See `confluent_kafka.Message`."""
        return self.number


def test_offsets_that_may_be_counted_are_in_doubt_whatever_is_reported_in_between() -> None:
    places = Places(lambda: 0)

    assert places.has_one(Reported(0), alone=False)
    told = [places.has_one(Reported(place), alone=False) for place in (None, 0, 1, 60_859, 2, 3)]

    assert told == [False, False, False, True, False, False]
    assert places.has_one(Reported(1, number=7), alone=False), "another partition"


def test_a_message_that_was_alone_in_its_request_is_believed_by_its_offset() -> None:
    places = Places(lambda: 0)

    assert not places.has_one(Reported(None), alone=True)
    assert places.has_one(Reported(0), alone=True)
    assert not places.has_one(Reported(1), alone=False)


def test_high_offsets_and_those_of_a_later_time_are_believed() -> None:
    now = 0.0
    places = Places(lambda: now)
    places.has_one(Reported(None), alone=False)

    assert not places.has_one(Reported(QUEUE_MESSAGES - 1), alone=False)
    assert places.has_one(Reported(QUEUE_MESSAGES), alone=False)
    for _ in range(4):
        now += DOUBTED_SECONDS / 4
        told = places.has_one(Reported(5), alone=False)
    assert told


def test_a_process_that_stands_still_believes_no_offset_that_may_be_counted() -> None:
    now = 0.0
    places = Places(lambda: now)
    places.has_one(Reported(None), alone=False)

    now = 3600.0  # between two reports of one request
    assert [places.has_one(Reported(place), alone=False) for place in (0, 1)] == [False, False]
