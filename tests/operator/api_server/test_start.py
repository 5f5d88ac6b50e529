"""The tests' own API server starts although another program has taken one of the ports that it chose."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from tests.support.kube.api_server import missing_program, running_api_server
from tests.support.lacking import lack

pytestmark = pytest.mark.api

CHOICE = """#!/bin/bash
# stands before the real python3 in PATH: its first choice is a port that is taken
if [[ ! -e {first} ]]; then touch {first}; echo "{ports}"; else exec {python} "$@"; fi
"""


def test_a_port_that_was_taken_meanwhile_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if reason := missing_program("kubeone", "kubectl"):
        lack("kubernetes", reason)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = " ".join([str(taken.getsockname()[1])] * 3)
        chooser = tmp_path / "bin" / "python3"
        chooser.parent.mkdir()
        chooser.write_text(CHOICE.format(first=tmp_path / "chosen", ports=ports, python=sys.executable))
        chooser.chmod(0o755)
        monkeypatch.setenv("PATH", f"{chooser.parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")

        with running_api_server(tmp_path / "server") as server:
            server.must("get", "namespaces")

    assert "a port was taken meanwhile" in (tmp_path / "server.log").read_text()
