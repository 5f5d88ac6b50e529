from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ots_tunnel.cli import COMMANDS, SUMMARIES, cli, exit_code
from ots_tunnel.commands import run as commands_run
from ots_tunnel.config import load_config
from ots_tunnel.errors import ConfigError, ConnectionLost, SinkRejected, service_error
from ots_tunnel.settings import WorkerSettings

WORKER = Path(__file__).parents[3] / "worker"

DOCUMENT = """
source:
  endpoint: http://127.0.0.1:1
  instance: demo
  table: orders
  tunnelName: orders-copy
  tunnelId: tid
  credentials: {{directory: {directory}}}
sink: {{count: {{}}}}
client: {{tagPrefix: abcdef12, heartbeatIntervalSeconds: 5, heartbeatTimeoutSeconds: 15, drainSeconds: 20}}
"""


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "worker.yaml"
    path.write_text(DOCUMENT.format(directory=tmp_path))
    return path


def test_every_listed_command_exists_and_has_a_summary() -> None:
    for where in COMMANDS.values():
        module, _, attribute = where.partition(":")
        assert isinstance(getattr(importlib.import_module(module), attribute), click.Command)
    assert set(SUMMARIES) == set(COMMANDS)


def test_help_imports_no_command() -> None:
    code = (
        "import sys; from ots_tunnel.cli import cli; cli(['--help'], standalone_mode=False); "
        "print([name for name in sys.modules if name.startswith('ots_tunnel.commands') or name == 'aiohttp'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(WORKER)})

    assert "run " in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_checking_a_right_document_says_ok(document: Path) -> None:
    done = CliRunner().invoke(cli, ["config", "check", str(document)])

    assert (done.exit_code, done.output) == (0, f"{document}: ok\n")


def test_checking_names_the_wrong_field(document: Path) -> None:
    document.write_text(document.read_text().replace("heartbeatIntervalSeconds: 5", "heartbeatIntervalSeconds: 4"))

    done = CliRunner().invoke(cli, ["config", "check", str(document)])

    assert isinstance(done.exception, ConfigError)
    assert "client.heartbeatIntervalSeconds" in str(done.exception)


def test_a_secret_in_the_wrong_place_is_not_repeated(document: Path) -> None:
    document.write_text(document.read_text().replace("{directory:", "{accessKeySecret: hush, directory:"))

    with pytest.raises(ConfigError, match=r"source\.credentials\.accessKeySecret") as caught:
        load_config(document)

    assert "hush" not in str(caught.value)


def test_an_end_time_without_time_zone_is_refused(document: Path) -> None:
    document.write_text(document.read_text().replace("tunnelId: tid", "tunnelId: tid\n  endTime: 2026-01-01T00:00:00"))

    with pytest.raises(ConfigError, match=r"source\.endTime: .*allowed is a time with a time zone"):
        load_config(document)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 2),
        (service_error("OTSParameterInvalid", "tunnel not exist"), 3),
        (service_error("OTSPermissionDenied", "no"), 3),
        (SinkRejected("OTSInvalidPK", "no"), 4),
        (ConnectionLost("x"), 5),
        (ValueError("x"), 5),
    ],
)
def test_exit_codes(error: Exception, code: int) -> None:
    assert exit_code(error) == code


def test_what_ended_a_worker_is_left_as_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands_run, "TERMINATION_LOG", tmp_path / "termination-log")

    commands_run.leave_message("no such file outside a pod")
    assert list(tmp_path.iterdir()) == []

    (tmp_path / "termination-log").touch()
    commands_run.leave_message("SinkRejected: OTSInvalidPK: no\nsecond line")
    assert (tmp_path / "termination-log").read_text() == "SinkRejected: OTSInvalidPK: no\n"


def test_settings_follow_the_document(document: Path) -> None:
    settings = WorkerSettings.of(load_config(document))

    assert settings.client_tag.startswith("abcdef12-")
    assert (settings.interval, settings.timeout, settings.drain) == (5, 15, 20)
    assert settings.write_deadline == pytest.approx(10 / 3)
    assert settings.abandon_after == pytest.approx(18 - 10 / 3)  # a tenth is left for handing back
