"""The picture in the README is the table that the worker runs on."""

from __future__ import annotations

from ots_tunnel.protocol.channel import State
from tests.golden.draw_channel_machine import README, drawn, picture


def test_the_readme_shows_the_machine_of_now() -> None:
    readme = README.read_text()
    assert drawn(readme) == readme, "run: make generate"


def test_every_state_is_drawn() -> None:
    for state in State:
        assert f"--> {state.name}" in picture()
