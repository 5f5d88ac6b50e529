"""Channels that are in no batch yet, compared with what a new one looks like."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import pytest

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import PossibleGap, QueryRefused
from ots_tunnel.model import (
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
from ots_tunnel.protocol.possible_gap import Gap
from ots_tunnel.spark.stream.alignment import Ended, align, first_offset
from ots_tunnel.spark.stream.offsets import Offset

C, D = ChannelId("c"), ChannelId("d")
CREATED, NOW = 1_700_000_000, 1_700_009_000
TUNNEL = TunnelInfo(
    TunnelId("id"), "t", TunnelType.Stream, "flights", "demo", "", Stage.STREAM, False, CREATED * 10**9, None
)
NEW = ChannelInfo(C, ChannelType.STREAM, ChannelStatus.OPEN, ClientId(""), 0, 0)
RESUMED = Offset(TUNNEL.tunnel_id, "query", {}, frozenset({D}))


@dataclass
class Checkpoints:
    """The service's sequence numbers by channel; 0 where none is given."""

    numbers: Mapping[ChannelId, int]

    async def get_checkpoint(self, tunnel_id: TunnelId, client_id: ClientId, channel_id: ChannelId) -> Checkpoint:
        return Checkpoint(Token("t"), self.numbers.get(channel_id, 0))


def tunnel(*channels: ChannelInfo) -> TunnelDescription:
    return TunnelDescription(TUNNEL, channels, 0, NOW)


def aligned(
    offset: Offset, *channels: ChannelInfo, number: int = 0, goes_on: bool = False, is_new: bool = False
) -> Ended:
    client = cast("TunnelClient", Checkpoints({C: number}))
    return asyncio.run(align(client, tunnel(*channels), offset, goes_on=goes_on, is_new=is_new))


@pytest.mark.parametrize(
    ("offset", "channel", "number"),
    [
        (RESUMED, NEW, 0),
        (RESUMED, replace(NEW, consume_point_ns=1, rows=1), 0),
        (replace(RESUMED, ended=frozenset({C})), replace(NEW, status=ChannelStatus.TERMINATED, rows=5), 9),
        (replace(RESUMED, read_before={C: 7}), replace(NEW, rows=5), 7),
        (replace(RESUMED, ended=None), replace(NEW, rows=5), 9),
    ],
    ids=[
        "new",
        "new with figures that the service may give",
        "read to its end",
        "as it was when the folder was made",
        "a folder of a former release",
    ],
)
def test_a_channel_that_nobody_else_has_read(offset: Offset, channel: ChannelInfo, number: int) -> None:
    assert aligned(offset, channel, number=number).gaps == {}


@pytest.mark.parametrize(
    ("offset", "channel", "number"),
    [
        (RESUMED, NEW, 1),
        (RESUMED, replace(NEW, status=ChannelStatus.TERMINATED), 1),
        (replace(RESUMED, read_before={C: 7}), NEW, 8),
    ],
)
def test_a_channel_that_another_client_has_read(offset: Offset, channel: ChannelInfo, number: int) -> None:
    with pytest.raises(
        QueryRefused, match=r"^checkpointLocation: channel c was read by another client before this query"
    ):
        aligned(offset, channel, number=number)
    assert aligned(offset, channel, number=number, is_new=True) == Ended(frozenset(), {})


def test_a_channel_that_the_service_has_ended_unread_is_a_gap_that_is_told_once() -> None:
    ended = replace(NEW, status=ChannelStatus.TERMINATED)

    with pytest.raises(PossibleGap):
        aligned(RESUMED, ended)
    found = aligned(RESUMED, ended, goes_on=True)

    assert found == Ended(frozenset({C}), {C: Gap(CREATED, NOW)})
    assert aligned(replace(RESUMED, ended=found.over), ended) == Ended(frozenset({C}), {})


def test_an_ended_channel_that_the_service_lists_no_more_is_forgotten() -> None:
    assert aligned(RESUMED, NEW).over == frozenset()
    assert aligned(RESUMED, replace(NEW, channel_id=D, status=ChannelStatus.TERMINATED)).over == {D}


def test_a_new_folder_names_what_others_have_read() -> None:
    others = replace(NEW, channel_id=D, status=ChannelStatus.TERMINATED)
    client = cast("TunnelClient", Checkpoints({C: 7}))

    assert asyncio.run(first_offset(client, tunnel(NEW, others), "q")) == Offset(
        TUNNEL.tunnel_id, "q", {}, frozenset({D}), {C: 7}
    )
    assert asyncio.run(first_offset(cast("TunnelClient", Checkpoints({})), tunnel(NEW), "q")).read_before == {}
