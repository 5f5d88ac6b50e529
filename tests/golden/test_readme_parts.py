"""What the README says of the code is what the code says: both machines, exit codes, settings."""

from __future__ import annotations

import pytest

from ots_tunnel.console.exit_codes import EXIT_CODES
from ots_tunnel.protocol.channel import State
from ots_tunnel.protocol.lifecycle import ClientState
from tests.golden.draw_channel_machine import client_picture, picture
from tests.golden.fill_readme import README, codes, filled, settings


def test_the_readme_shows_the_code_of_now() -> None:
    readme = README.read_text()
    assert filled(readme) == readme, "run: make generate"


def test_a_readme_without_a_place_for_a_part_is_refused() -> None:
    with pytest.raises(ValueError, match="exit codes: begin"):
        filled(README.read_text().replace("<!-- exit codes: begin -->", ""))


def test_every_state_is_drawn() -> None:
    for state in State:
        assert f"--> {state.name}" in picture()


def test_every_state_of_the_client_is_drawn() -> None:
    for state in ClientState:
        assert f"--> {state.name}" in client_picture()


def test_every_exit_code_is_listed() -> None:
    for row in EXIT_CODES:
        assert f"\n| {row.code} | {row.meaning} |\n" in codes()


def test_settings_stand_there_with_their_defaults() -> None:
    assert "`heartbeatIntervalSeconds: 10`" in settings()
    assert "`onPermanentError: Fail`" in settings()
    assert '`tagPrefix: ""`' in settings()
