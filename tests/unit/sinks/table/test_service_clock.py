"""The service's clock as its answers tell it."""

from __future__ import annotations

import pytest

from ots_tunnel.protocol.http.rpc import MOST_APART
from ots_tunnel.sinks.table.service_clock import ServiceClock


def test_the_service_s_clock_is_that_of_its_last_answer() -> None:
    now = 1_000_000.0
    clock = ServiceClock(lambda: now)

    clock.heard(now + 60)
    clock.heard(None)

    assert clock() == now + 60


@pytest.mark.parametrize("apart", [MOST_APART + 1, -MOST_APART - 1, 2 * 86_400])
def test_a_time_that_no_service_with_an_accepted_request_has_is_not_believed(
    apart: float, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody else has written it, such as a proxy in its own answer's Date; cells would be left out for good."""
    now = 1_000_000.0
    clock = ServiceClock(lambda: now)
    clock.heard(now + 60)

    clock.heard(now + apart)
    clock.heard(now + apart)

    assert clock() == now + 60
    [line] = caplog.records
    assert f"{apart:+.0f} s" in line.getMessage()
