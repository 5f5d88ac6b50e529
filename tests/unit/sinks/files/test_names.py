"""Every pair of ids has a folder of its own, two levels below the sink's."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ots_tunnel.model import ChannelId, TunnelId
from ots_tunnel.sinks.files.names import folder_of

IDS = st.text(max_size=8) | st.text(alphabet="./%2Eab", max_size=8)


@given(tunnel=IDS, channel=IDS)
@example(tunnel="..", channel="..")
@example(tunnel=".", channel="")
@example(tunnel="../..", channel="/etc")
def test_a_folder_is_two_levels_below_the_sinks_own(tunnel: str, channel: str) -> None:
    folder = folder_of(TunnelId(tunnel), ChannelId(channel))

    parts = folder.split("/")
    assert len(parts) == 2
    assert not {"", ".", ".."} & set(parts)
    assert PurePosixPath("/out", folder).parts == ("/", "out", *parts)
    assert "\0" not in folder


@given(first=st.tuples(IDS, IDS), second=st.tuples(IDS, IDS))
@example(first=(".", "c"), second=("%2E", "c"))
@example(first=("", "c"), second=("%", "c"))
@example(first=("a/b", "c"), second=("a", "b/c"))
def test_different_ids_have_different_folders(first: tuple[str, str], second: tuple[str, str]) -> None:
    folders = {folder_of(TunnelId(tunnel), ChannelId(channel)) for tunnel, channel in (first, second)}

    assert len(folders) == len({first, second})


def test_an_id_of_the_service_is_its_own_name() -> None:
    channel = "4873ae54-05d0-49b9-b440-0242772808b1_1554348641329421"

    assert folder_of(TunnelId("t"), ChannelId(channel)) == f"t/{channel}"


@pytest.mark.parametrize(("name", "expected"), [(".", "%2E"), ("..", "%2E%2E"), ("...", "..."), ("", "%")])
def test_names_that_mean_another_folder_are_quoted(name: str, expected: str) -> None:
    assert folder_of(TunnelId(name), ChannelId(name)) == f"{expected}/{expected}"
