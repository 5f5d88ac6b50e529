"""Options of `ots-emulator serve` that cannot be meant."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from ots_emulator.__main__ import main


@pytest.mark.parametrize("option", ["--port", "--admin-port"])
@pytest.mark.parametrize("port", ["-1", "65536", "99999"])
def test_a_port_that_does_not_exist_is_refused(option: str, port: str) -> None:
    """The system takes the lower 16 bits of a greater number, and serves another port than was asked for."""
    refused = CliRunner().invoke(main, ["serve", option, port])

    assert refused.exit_code == 2
    assert f"{port} is not in the range 0<=x<=65535" in refused.output


def test_an_instance_that_no_client_can_name_is_refused() -> None:
    refused = CliRunner().invoke(main, ["serve", "--instance", ""])

    assert refused.exit_code == 2
    assert "--instance: found '', allowed is a name" in refused.output
