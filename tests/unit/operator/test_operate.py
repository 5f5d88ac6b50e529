"""How the process of the operator ends."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kopf
import pytest
from click.testing import CliRunner

from ots_tunnel_operator import __main__ as command
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.running import operation
from ots_tunnel_operator.running.operation import operate
from ots_tunnel_operator.runtime import Runtime
from ots_tunnel_operator.server import Health
from ots_tunnel_operator.settings import Settings


async def test_an_error_of_kopf_ends_the_process_in_order(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """kopf raises an unexpected error; calls that hang in threads must not delay the end."""

    async def end(**_: Any) -> None:
        raise RuntimeError("a defect of kopf")

    monkeypatch.setattr(kopf, "operator", end)
    metrics = OperatorMetrics()

    code = await operate(Runtime(Settings(), metrics), Health(metrics), ("shop",), None)

    assert code == 1
    (record,) = caplog.records
    assert (record.action, record.levelname) == ("kopf_ended", "ERROR")
    assert "a defect of kopf" in caplog.text


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process ends as a command does, and keeps the log of the test."""

    def end(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(command, "end", end)
    for name in ("return_freed_memory", "allow_deep_objects", "read_in_small_pieces", "outlast_errors_of_watches"):
        monkeypatch.setattr(command, name, lambda: None)
    monkeypatch.setattr(command, "configure_logs", lambda _: None)
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("ended")
def test_without_a_cluster_it_ends_before_anything_is_served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    result = CliRunner().invoke(command.main, ["run", "--http-port", "0"])

    assert result.exit_code == 2
    assert result.stderr.startswith("ots-tunnel-operator: no cluster: neither a pod's account nor a kubeconfig")
    assert result.stderr.count("\n") == 1


@pytest.mark.usefixtures("ended")
@pytest.mark.parametrize("option", ["http", "console"])
def test_a_port_in_use_is_named(monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    async def find() -> None: ...

    monkeypatch.setattr(operation, "_find_cluster", find)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = ["--http-host", "127.0.0.1", "--http-port", "0", f"--{option}-host", "127.0.0.1"]
        result = CliRunner().invoke(command.main, ["run", *options, f"--{option}-port", str(port)])

    where = f"--{option}-host 127.0.0.1 --{option}-port {port}"
    assert result.stderr == f"ots-tunnel-operator: {where}: cannot listen: Address already in use\n"
    assert result.exit_code == 2
