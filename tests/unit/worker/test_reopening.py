"""How often a channel is opened once more, whose next records the service has dropped."""

from __future__ import annotations

import pytest

from ots_tunnel.errors import TunnelExpired
from ots_tunnel.protocol.possible_gap import SHORTEST_RETENTION, Gap, gap_of_refusal
from ots_tunnel.worker.channel.reopening import Reopening

NOW = 1_700_000_000.0


def test_it_is_opened_once_without_progress() -> None:
    fresh = Reopening()
    opened = fresh.opened(NOW)

    assert fresh.may_open(NOW)
    assert not opened.may_open(NOW + 1)
    assert not opened.confirmed(rows=0).may_open(NOW + 1), "an empty page is none"
    assert opened.confirmed(rows=1).may_open(NOW + 1)
    assert opened.confirmed(rows=0).may_open(NOW + SHORTEST_RETENTION), "what is dropped then was written later"


@pytest.mark.parametrize(
    ("read_until", "first", "gap"),
    [
        (NOW - 60, None, Gap(NOW - 60, NOW)),
        (NOW - 60, NOW - 30, Gap(NOW - 60, NOW - 30)),
        (NOW - 60, NOW - 60, None),
        (NOW, None, Gap(NOW, NOW)),
        (None, NOW - 30, Gap(0.0, NOW - 30)),
    ],
    ids=["no record", "a later record", "a record of before", "at once", "unknown"],
)
def test_what_is_dropped_is_a_gap_within_the_retention_as_well(
    read_until: float | None, first: float | None, gap: Gap | None
) -> None:
    assert gap_of_refusal(read_until, answered=NOW, first=first) == gap


@pytest.mark.parametrize(
    ("code", "message", "is_trimmed"),
    [
        ("OTSTunnelServerUnavailable", "OTSTrimmedDataAccess Requested stream data is already trimmed.", True),
        ("OTSTrimmedDataAccess", "Requested stream data is already trimmed.", True),
        ("OTSTunnelExpired", "the tunnel has expired", False),
    ],
)
def test_a_tunnel_that_has_expired_is_another_error(code: str, message: str, is_trimmed: bool) -> None:
    assert TunnelExpired(code, message).is_trimmed is is_trimmed
