"""How late a query is."""

from __future__ import annotations

from ots_tunnel.model import ChannelId, ChannelType
from ots_tunnel.spark.stream.lag import lag_of_channels
from ots_tunnel.worker.progress.channel_progress import ChannelProgress

NOW = 1_700_000_000.0


def channel(consumed: float | None, looked: float | None = None) -> ChannelProgress:
    return ChannelProgress(
        ChannelId("c1"), ChannelType.STREAM, consumed_up_to=consumed, last_look=looked, clock=lambda: 100.0
    )


def test_a_table_that_nobody_changes_is_not_late_between_two_reads() -> None:
    assert lag_of_channels([channel(NOW - 6, looked=94.0), channel(NOW - 3, looked=97.0)], NOW) == 0


def test_the_slowest_channel_tells() -> None:
    assert lag_of_channels([channel(NOW - 60), channel(NOW - 3, looked=97.0)], NOW) == 60


def test_a_channel_of_which_nothing_is_committed_yet_may_be_the_slowest() -> None:
    """After a start an idle channel is read to its end at once, and one with hours of changes batch by batch."""
    assert lag_of_channels([channel(NOW - 3, looked=97.0), channel(None)], NOW) is None


def test_existing_rows_have_no_lag() -> None:
    rows = ChannelProgress(ChannelId("b1"), ChannelType.BASE)

    assert lag_of_channels([rows, channel(NOW - 60)], NOW) == 60
    assert lag_of_channels([rows], NOW) is None


def test_without_a_channel_nothing_is_known() -> None:
    assert lag_of_channels([], NOW) is None
    assert lag_of_channels([channel(None)], NOW) is None
