from __future__ import annotations

import pytest

from ots_tunnel.model import (
    ChannelId,
    ChannelInfo,
    ChannelStatus,
    ChannelType,
    ClientId,
    Stage,
    TunnelDescription,
    TunnelId,
    TunnelInfo,
    TunnelType,
)
from ots_tunnel.worker.end_time import Completion, completion, cut_page
from tests.support.records import page_of_times

END_US = 1_000_000_000


@pytest.mark.parametrize(
    ("times", "kept", "done", "whole"),
    [
        ((END_US - 2, END_US), 2, False, True),
        ((END_US - 1, END_US, END_US + 1, END_US + 2), 2, True, False),
        ((END_US + 1,), 0, True, False),
    ],
)
def test_what_is_later_is_cut_off(times: tuple[int, ...], kept: int, done: bool, whole: bool) -> None:
    cut = cut_page(page_of_times(*times, service_time=5000.0), END_US)

    assert (len(cut.page.records), cut.done, cut.whole) == (kept, done, whole)


@pytest.mark.parametrize(("service_time", "done"), [(999.0, False), (1000.0, False), (1001.0, True), (None, False)])
def test_an_empty_read_counts_by_the_services_clock(service_time: float | None, done: bool) -> None:
    cut = cut_page(page_of_times(service_time=service_time), END_US)

    assert (cut.done, cut.whole) == (done, True)


def tunnel(*channels: tuple[str, ChannelStatus, str], stage: Stage = Stage.STREAM) -> TunnelDescription:
    info = TunnelInfo(TunnelId("t"), "t", TunnelType.BaseAndStream, "t", "i", "s", stage, False, 0, None)
    return TunnelDescription(
        info,
        tuple(
            ChannelInfo(ChannelId(name), ChannelType.STREAM, status, ClientId(owner), 0, 0)
            for name, status, owner in channels
        ),
        0,
    )


S = ChannelStatus


@pytest.mark.parametrize(
    ("channels", "done", "settled", "expected"),
    [
        ([("a", S.TERMINATED, ""), ("b", S.TERMINATED, "")], set(), False, Completion.ALL),
        ([("a", S.TERMINATED, ""), ("b", S.OPEN, "me")], {"b"}, False, Completion.ALL),
        ([("a", S.TERMINATED, ""), ("b", S.OPEN, "me")], set(), False, Completion.OPEN),
        ([("a", S.OPEN, "me"), ("b", S.OPEN, "other")], {"a"}, False, Completion.MINE),
        ([("a", S.OPEN, "me"), ("b", S.OPEN, "elder")], {"a"}, False, Completion.THEIRS),
        ([("a", S.OPEN, "me"), ("b", S.OPEN, "elder")], set(), False, Completion.OPEN),
        ([("a", S.TERMINATED, ""), ("b", S.OPEN, "elder")], set(), False, Completion.MINE),
        ([("a", S.OPEN, "me"), ("b", S.CLOSE, "")], {"a"}, True, Completion.OPEN),
        ([("a", S.OPEN, "me"), ("b", S.WAIT, "")], {"a"}, False, Completion.OPEN),
        ([("a", S.OPEN, "me"), ("b", S.WAIT, "")], {"a"}, True, Completion.ALL),
        ([("a", S.TERMINATED, ""), ("b", S.WAIT, "")], set(), True, Completion.OPEN),
        ([], set(), True, Completion.OPEN),
    ],
)
def test_completion(
    channels: list[tuple[str, ChannelStatus, str]], done: set[str], settled: bool, expected: Completion
) -> None:
    mine = {ChannelId(name) for name in done}

    assert completion(tunnel(*channels), ClientId("me"), mine, settled=settled) is expected


def test_before_the_stream_nothing_is_complete() -> None:
    early = tunnel(("a", S.TERMINATED, ""), stage=Stage.BASE)

    assert completion(early, ClientId("me"), set(), settled=True) is Completion.OPEN
