"""Wrong options are refused before any call."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from ots_tunnel.cli import cli
from ots_tunnel.errors import ConfigError

UNREACHABLE = "http://127.0.0.1:9"


@pytest.fixture
def keys(tmp_path: Path) -> str:
    (tmp_path / "accessKeyId").write_text("id")
    (tmp_path / "accessKeySecret").write_text("hush")
    return str(tmp_path)


COMMANDS = [
    ("tunnel", "create", "orders", "t"),
    ("tunnel", "list", "orders"),
    ("tunnel", "describe", "orders", "t"),
    ("tunnel", "delete", "orders", "t", "--yes"),
    ("channels", "orders", "t"),
    ("tail", "orders"),
    ("verify", "--table", "orders", "--to-table", "copy"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_wrong_option_is_named(command: tuple[str, ...], keys: str) -> None:
    options = ["--endpoint", "shop", "--instance", "", "--credentials", keys]

    refused = CliRunner().invoke(cli, [*command, *options]).exception

    assert isinstance(refused, ConfigError)
    assert str(refused).startswith("--endpoint: found 'shop', allowed is http(s)://host[:port] with a port")
    assert "; --instance: found '', allowed is letters, digits and hyphens" in str(refused)


def test_a_stream_tunnel_has_one_start(keys: str) -> None:
    place = ["--endpoint", UNREACHABLE, "--instance", "demo", "--credentials", keys]
    beginnings = ["--type", "Stream", "--earliest", "--start-time", "2026-01-01T00:00:00Z"]

    done = CliRunner().invoke(cli, ["tunnel", "create", "orders", "t", *beginnings, *place])

    assert done.exit_code == 2
    assert "--earliest and --start-time exclude each other" in done.output
