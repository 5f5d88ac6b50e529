"""The programs of docs/python.md and docs/sinks.md consume a tunnel as they are."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ots_emulator import Emulator, Settings
from ots_tunnel.client.sync_tunnel import SyncTunnelClient
from ots_tunnel.model import TunnelType
from ots_tunnel.tables import TableAdmin
from tests.docs.pages import page
from tests.support.programs.processes import bare_environment, module
from tests.support.verify_scene import INSTANCE, KEYS, SCHEMA, SOURCE, VerifyScene, key, row

#: Seconds until the first records, at most: two heartbeats, and the start of Python on a busy machine.
FIRST_RECORDS = 45.0


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[Emulator]:
    """An emulator with a table of three rows."""
    with Emulator(settings=Settings(init_delay=0.01)) as emulator:
        admin = TableAdmin(emulator.endpoint, INSTANCE, KEYS)
        admin.create(replace(SCHEMA, deviation_seconds=9_223_372_036_854))
        admin.close()
        VerifyScene(emulator, tmp_path).put(SOURCE, [row(number) for number in range(3)])
        yield emulator


@pytest.mark.lasts(8)
def test_the_program_consumes_within_seconds(emulator: Emulator, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        page("docs/python.md")
        .block("How do I consume a tunnel?", "python")
        .replace("http://127.0.0.1:8300", emulator.endpoint)
    )
    process = subprocess.Popen(
        [sys.executable, "-u", str(program)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    limit = threading.Timer(FIRST_RECORDS, process.kill)
    limit.start()
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.terminate()
        rest = process.communicate()[0]
    finally:
        limit.cancel()
        process.kill()
        process.wait()

    assert process.returncode == 0, rest
    assert [line.split(" ", 1)[0] for line in lines] == ["PUT"] * 3, [*lines, rest]


@pytest.mark.lasts(8)
def test_the_factory_of_the_python_sink_is_found_and_called(emulator: Emulator, tmp_path: Path) -> None:
    client = SyncTunnelClient(emulator.endpoint, INSTANCE, KEYS)
    tunnel_id = client.create_tunnel(SOURCE, "copy", TunnelType.BaseData)
    client.close()
    package = tmp_path / "code" / "shop"
    package.mkdir(parents=True)
    package.joinpath("orders.py").write_text(page("docs/sinks.md").block("`python`: your own code", "python"))
    sink = yaml.safe_load(page("docs/sinks.md").block("`python`: your own code", "yaml"))
    (tmp_path / "accessKeyId").write_text("test-id")
    (tmp_path / "accessKeySecret").write_text("test-secret")
    source = {
        "endpoint": emulator.endpoint,
        "instance": INSTANCE,
        "table": SOURCE,
        "tunnelName": "copy",
        "tunnelId": tunnel_id,
        "credentials": {"directory": str(tmp_path)},
    }
    path = tmp_path / "worker.yaml"
    fast = {"heartbeatIntervalSeconds": 5, "heartbeatTimeoutSeconds": 15}
    path.write_text(yaml.safe_dump({"source": source, "client": fast, "http": {"port": 0}, **sink}))

    check = module("ots_tunnel", "config", "check", str(path))
    lost = subprocess.run(check, capture_output=True, text=True, env=bare_environment(), timeout=60)
    found = bare_environment(tmp_path / "code")
    checked = subprocess.run(check, capture_output=True, text=True, env=found, timeout=60)
    run = module("ots_tunnel", "run", "--config", str(path), "--exit-when-complete")
    ran = subprocess.run(run, capture_output=True, text=True, env=found, timeout=90)

    assert lost.returncode == 2
    assert "No module named 'shop'; modules are looked for in the folders of PYTHONPATH" in lost.stderr
    assert (checked.returncode, checked.stdout) == (0, f"{path}: ok\n"), checked.stderr
    assert ran.returncode == 0, ran.stderr
    printed = [line for line in ran.stdout.splitlines() if line.startswith("PUT ")]
    assert printed == [f"PUT {dict(key(number))}" for number in range(3)], ran.stdout
