"""Whether a tunnel has moved: the operator's preflight and the replication job decide by the same function."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ots_tunnel.model import (
    FINISHED,
    ChannelId,
    ChannelInfo,
    ChannelStatus,
    ChannelType,
    Checkpoint,
    ClientId,
    Stage,
    Token,
    TunnelDescription,
    TunnelId,
    TunnelInfo,
    TunnelType,
)
from ots_tunnel.protocol.movement import has_moved

C1 = ChannelId("c1")
FRESH = {C1: Checkpoint(Token("t"), 0)}
UNTOUCHED = ChannelInfo(C1, ChannelType.STREAM, ChannelStatus.OPEN, ClientId(""), 0, 0)
INFO = TunnelInfo(TunnelId("id"), "copy", TunnelType.Stream, "t", "i", "", Stage.STREAM, False, 0, None)


@pytest.mark.parametrize(
    ("channel", "checkpoints", "moved"),
    [
        (UNTOUCHED, FRESH, False),
        (UNTOUCHED, {C1: Checkpoint(Token("t"), 1)}, True),
        (UNTOUCHED, {C1: Checkpoint(FINISHED, 0)}, True),
        (replace(UNTOUCHED, consume_point_ns=1), FRESH, True),
        (replace(UNTOUCHED, rows=1), FRESH, True),
        (replace(UNTOUCHED, status=ChannelStatus.TERMINATED), FRESH, True),
        (UNTOUCHED, None, None),
    ],
)
def test_any_sign_of_consumption_means_that_a_tunnel_has_moved(
    channel: ChannelInfo, checkpoints: dict[ChannelId, Checkpoint] | None, moved: bool | None
) -> None:
    assert has_moved(TunnelDescription(INFO, (channel,), 0), checkpoints) is moved


def test_a_tunnel_without_channels_has_not_moved() -> None:
    assert has_moved(TunnelDescription(INFO, (), 0)) is False
