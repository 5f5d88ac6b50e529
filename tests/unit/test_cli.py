from __future__ import annotations

import importlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ots_tunnel.cli import COMMANDS, SUMMARIES, cli, main
from ots_tunnel.commands.worker_process.termination_message import write_termination_message
from ots_tunnel.config import load_config
from ots_tunnel.console.exit_codes import EXIT_CODES, exit_code
from ots_tunnel.errors import (
    ConfigError,
    ConnectionLost,
    Explained,
    NoStream,
    SinkRejected,
    StreamReplaced,
    WrongLeaseTable,
    WrongTable,
    WrongTunnel,
)
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel.worker.settings import WorkerSettings
from tests.support.programs.processes import bare_environment

WORKER = Path(__file__).parents[2] / "worker"

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
    (tmp_path / "accessKeyId").write_text("id")
    (tmp_path / "accessKeySecret").write_text("hush")
    return path


def test_every_listed_command_exists_and_has_a_summary() -> None:
    for where in COMMANDS.values():
        module, _, attribute = where.partition(":")
        assert isinstance(getattr(importlib.import_module(module), attribute), click.Command)
    assert set(SUMMARIES) == set(COMMANDS)


#: All that `--help` may import of the package, so that it stays fast; of other distributions only click.
HELP_NEEDS = {
    "ots_tunnel",
    "ots_tunnel.cli",
    "ots_tunnel.console",
    "ots_tunnel.console.examples",
    "ots_tunnel.console.exit_codes",
    "ots_tunnel.console.lazy_group",
    "ots_tunnel.errors",
    "ots_tunnel.version",
}


def test_help_imports_no_more_than_it_needs() -> None:
    code = (
        "import sys; before = set(sys.modules); from ots_tunnel.cli import cli; "
        "cli(['--help'], standalone_mode=False); print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(WORKER)})

    assert "run " in done.stdout, done.stderr
    imported = done.stdout.splitlines()[-1].split()
    assert {name for name in imported if name.partition(".")[0] == "ots_tunnel"} == HELP_NEEDS
    roots = {name.partition(".")[0] for name in imported}
    assert roots - sys.stdlib_module_names == {"ots_tunnel", "click"}
    assert roots.isdisjoint({"asyncio", "ssl", "email", "http", "json"})


def test_checking_a_right_document_says_ok(document: Path) -> None:
    done = CliRunner().invoke(cli, ["config", "check", str(document)])

    assert (done.exit_code, done.output) == (0, f"{document}: ok\n")


def test_the_document_of_a_stream_is_checked_too_and_leads_to_its_command(document: Path) -> None:
    text = document.read_text().replace("  tunnelName: orders-copy\n  tunnelId: tid\n", "  leaseTable: leases\n")
    document.write_text(text.partition("client:")[0])

    checked = CliRunner().invoke(cli, ["config", "check", str(document)])

    assert (checked.exit_code, checked.output) == (0, f"{document}: ok\n")
    with pytest.raises(ConfigError, match=r"source\.leaseTable: .*the document of `ots-tunnel stream run`"):
        load_config(document)


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
        (service_error("OTSParameterInvalid", "[tunnelservice] tunnel not exist"), 10),
        (WrongTunnel("x"), 10),
        (service_error("OTSParameterInvalid", "[tunnelservice] table not exist: orders"), 11),
        (service_error("OTSObjectNotExist", "Requested table does not exist."), 11),
        (WrongTable("x"), 11),
        (service_error("OTSPermissionDenied", "no"), 12),
        (service_error("OTSNoPermissionAccess", "no"), 12),
        (service_error("OTSAuthFailed", "Signature mismatch."), 12),
        (service_error("OTSTunnelExpired", "no"), 13),
        (service_error("OTSTunnelServerUnavailable", "OTSTrimmedDataAccess: gone"), 13),
        (NoStream("orders"), 15),
        (StreamReplaced("orders", "old", "new"), 16),
        (WrongLeaseTable("x"), 17),
        (service_error("OTSParameterInvalid", "no such channel"), 3),
        (service_error("OTSTunnelExist", "no"), 3),
        (SinkRejected("OTSInvalidPK", "no"), 4),
        (ConnectionLost("x"), 5),
        (ValueError("x"), 5),
    ],
)
def test_exit_codes(error: Exception, code: int) -> None:
    explained = Explained("in words")
    explained.__cause__ = error

    assert exit_code(error) == exit_code(explained) == code


def test_the_help_lists_every_exit_code() -> None:
    said = CliRunner().invoke(cli, ["--help"]).output

    assert len({row.code for row in EXIT_CODES}) == len(EXIT_CODES)
    for row in EXIT_CODES:
        assert re.search(rf"^ +{row.code} +{re.escape(row.meaning[:20])}", said, re.MULTILINE)


@pytest.mark.parametrize("error", [RuntimeError("a bug"), PermissionError(13, "Permission denied", "/keys")])
def test_an_unexpected_error_is_not_mistaken_for_tables_that_differ(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def broken() -> None:
        raise error

    monkeypatch.setattr("ots_tunnel.commands.config.config", broken)
    monkeypatch.setattr("sys.argv", ["ots-tunnel", "config"])

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 5
    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert str(error) in said.splitlines()[-1]


def test_a_closed_pipe_is_not_mistaken_for_tables_that_differ() -> None:
    gone, output = os.pipe()
    os.close(gone)
    with os.fdopen(output, "w") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "ots_tunnel", "config", "--help"],
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            env=bare_environment(),
        )

    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_an_output_that_is_full_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ots_tunnel", "config", "schema"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=bare_environment(),
        )

    assert (done.returncode, done.stderr) == (5, "error: standard output: No space left on device\n")


def test_what_the_character_set_of_the_output_lacks_is_escaped(document: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ots_tunnel", "config", "check", str(document.rename(document.parent / "Ж"))],
        capture_output=True,
        text=True,
        env=bare_environment(PYTHONIOENCODING="latin-1"),
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("/\\u0416: ok\n")


def test_the_termination_message_is_one_line(tmp_path: Path) -> None:
    log = tmp_path / "termination-log"
    write_termination_message("no such file outside a pod", log)
    assert list(tmp_path.iterdir()) == []

    log.write_text("of a container before, which is longer than the one that follows")
    write_termination_message("SinkRejected: OTSInvalidPK: no\nsecond line", log)
    assert log.read_text() == "SinkRejected: OTSInvalidPK: no\n"


def test_a_long_message_fits_what_kubernetes_shows(tmp_path: Path) -> None:
    log = tmp_path / "termination-log"
    log.touch()

    write_termination_message("é" * 5000, log)

    assert len(log.read_bytes()) <= 4096
    assert log.read_text().startswith("ééé")


def test_a_name_that_is_not_utf_8_is_escaped(tmp_path: Path) -> None:
    log = tmp_path / "termination-log"
    log.touch()

    write_termination_message(f"ConfigError: {os.fsdecode(b'bad%c.yaml' % 0xFF)}: No such file or directory", log)

    assert log.read_text() == "ConfigError: bad\\udcff.yaml: No such file or directory\n"


def test_settings_follow_the_document(document: Path) -> None:
    settings = WorkerSettings.of(load_config(document))

    assert settings.client_tag.startswith("abcdef12-")
    assert (settings.interval, settings.timeout, settings.drain) == (5, 15, 20)
    assert settings.write_deadline == pytest.approx(10 / 3)
    assert settings.abandon_after == pytest.approx(18 - 10 / 3)  # a tenth is left for handing back


def test_limits_of_the_document_reach_the_worker(document: Path) -> None:
    limits = (
        "maxParallelChannels: 3, rateLimitRowsPerSecond: 7, memoryBudgetBytes: 20000000, checkpointIntervalSeconds: 2"
    )
    document.write_text(document.read_text().replace("drainSeconds: 20", f"drainSeconds: 20, {limits}"))

    settings = WorkerSettings.of(load_config(document))

    assert (settings.max_parallel_channels, settings.rows_per_second) == (3, 7)
    assert (settings.memory_budget_bytes, settings.checkpoint_interval) == (20_000_000, 2)
