"""Options of `ots-emulator serve` that cannot be meant."""

from __future__ import annotations

import socket

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


@pytest.mark.parametrize("option", ["--port", "--admin-port"])
def test_a_port_in_use_is_named_with_its_option(option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        ports = {"--port": 0, "--admin-port": 0, option: port}
        refused = CliRunner().invoke(main, ["serve", *(str(word) for pair in ports.items() for word in pair)])

    assert refused.exit_code == 2
    assert refused.stderr == f"{option}: cannot listen on 127.0.0.1:{port}: Address already in use\n"


@pytest.mark.parametrize("option", ["--host", "--admin-host"])
def test_an_address_of_another_machine_is_named_with_its_option(option: str) -> None:
    refused = CliRunner().invoke(main, ["serve", "--port", "0", "--admin-port", "0", option, "192.0.2.1"])

    assert refused.exit_code == 2
    assert refused.stderr == f"{option}: cannot listen on 192.0.2.1:0: Cannot assign requested address\n"


def test_an_instance_that_no_client_can_name_is_refused() -> None:
    refused = CliRunner().invoke(main, ["serve", "--instance", ""])

    assert refused.exit_code == 2
    assert "--instance: found '', allowed is a name" in refused.output
