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
from ots_tunnel.worker.completion import Completion, completion


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
