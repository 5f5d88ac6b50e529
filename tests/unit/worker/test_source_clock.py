"""How late a worker says it is, by the clock of the service that it reads."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ots_tunnel.model import ChannelId, ChannelStatus, ChannelType
from ots_tunnel.protocol.http.rpc import MOST_APART
from ots_tunnel.worker.progress.channel_progress import ChannelProgress
from ots_tunnel.worker.status.channel_view import ChannelView
from ots_tunnel.worker.status.gauges import StatusCollector
from ots_tunnel.worker.status.metrics import WorkerMetrics
from ots_tunnel.worker.status.source_clock import SourceClock
from ots_tunnel.worker.status.worker_status import WorkerStatus

NOW = 1_700_000_000.0


@dataclass
class Own:
    """A machine's clock."""

    time: float = NOW

    def __call__(self) -> float:
        return self.time


@pytest.mark.parametrize("ahead", [0.0, 300.0, -300.0])
def test_the_lag_is_by_the_service_s_clock(ahead: float) -> None:
    status = WorkerStatus("tid", "uid-pod", WorkerMetrics("t"), wall=lambda: NOW + ahead, clock=lambda: 0.0)
    progress = ChannelProgress(ChannelId("c"), ChannelType.STREAM, consumed_up_to=NOW - 50)
    status.channels = {progress.channel_id: ChannelView(progress, ChannelStatus.OPEN)}

    status.source_clock.heard(NOW, asked=status.source_clock.running())

    [channel] = status.document()["channels"]
    assert abs(channel["lagSeconds"] - 50) < 2
    [gauge] = [found for found in StatusCollector(status).collect() if found.name == "ots_tunnel_channel_lag_seconds"]
    assert abs(gauge.samples[0].value - 50) < 2


def test_clocks_that_agree_within_an_answer_s_precision_are_taken_for_equal() -> None:
    own = Own()
    clock = SourceClock(own, own)

    # it was 0.75 s past the second that the answer names, and the answer took a second and a half
    own.time = NOW + 1.5
    clock.heard(NOW, asked=NOW)

    assert clock() == NOW + 1.5


@pytest.mark.parametrize(("ahead", "least"), [(300.0, 299.0), (-300.0, -300.0)])
def test_a_difference_is_taken_as_the_least_that_an_answer_allows(ahead: float, least: float) -> None:
    own = Own(NOW + ahead)
    clock = SourceClock(own, own)

    clock.heard(NOW, asked=NOW + ahead)
    own.time += 10

    assert own.time - clock() == least


def test_an_answer_that_waited_for_room_changes_nothing() -> None:
    """Its page is taken into memory minutes after the service has sent it."""
    own = Own(NOW + 300)
    clock = SourceClock(own, own)
    clock.heard(NOW, asked=own.time)
    before = clock() - own.time

    own.time += 120
    clock.heard(NOW + 1, asked=NOW + 301)

    assert clock() - own.time == before


@pytest.mark.parametrize("ahead", [600.0, -600.0])
def test_a_clock_that_is_set_changes_no_lag_while_no_read_is_answered(ahead: float) -> None:
    own, running = Own(NOW + ahead), Own(50.0)
    clock = SourceClock(own, running)
    clock.heard(NOW, asked=running.time)

    own.time, running.time = NOW + 60, running.time + 60

    assert clock() == pytest.approx(NOW + 60, abs=1)


@pytest.mark.parametrize("apart", [MOST_APART + 2, -MOST_APART - 2, 2 * 86_400])
def test_a_time_that_no_service_with_an_accepted_request_has_is_not_believed(
    apart: float, caplog: pytest.LogCaptureFixture
) -> None:
    own = Own()
    clock = SourceClock(own, own)
    clock.heard(None, asked=NOW)

    for _ in range(2):
        clock.heard(NOW + apart, asked=NOW)

    assert clock() == NOW
    [line] = caplog.records
    assert f"{apart:+.0f} s" in line.getMessage()
