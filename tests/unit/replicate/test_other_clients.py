"""What a run says of channels that other clients hold."""

from __future__ import annotations

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
from ots_tunnel.replicate.other_clients import OtherClients

INFO = TunnelInfo(
    TunnelId("tid"), "copy", TunnelType.BaseAndStream, "orders", "demo", "stream", Stage.STREAM, False, 0, None
)


def described(*owners: str, status: ChannelStatus = ChannelStatus.OPEN) -> TunnelDescription:
    channels = tuple(
        ChannelInfo(ChannelId(f"c{number}"), ChannelType.STREAM, status, ClientId(owner), 0, 0)
        for number, owner in enumerate(owners)
    )
    return TunnelDescription(INFO, channels, 0)


def test_a_client_is_named_once_with_what_to_wait_for() -> None:
    others = OtherClients(30)
    others.is_own("mine")

    assert others.notes(described("mine", "theirs", "theirs", "")) == [
        "client theirs holds 2 channels: it shares the work, or its run is gone; then this run gets them 30 s after "
        "that client's last heartbeat"
    ]
    assert others.notes(described("theirs")) == []
    assert [note[:30] for note in others.notes(described("theirs", "new"))] == ["client new holds 1 channel: it"]


def test_former_clients_of_this_run_are_its_own() -> None:
    others = OtherClients(30)
    for client in (None, "first", "second"):
        others.is_own(client)

    assert others.held(described("first", "second", "third")) == {"third": 1}


def test_what_is_finished_is_not_waited_for() -> None:
    assert OtherClients(30).notes(described("theirs", status=ChannelStatus.TERMINATED)) == []
