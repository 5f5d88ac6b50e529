"""The programs printed by `ots-emulator serve`, run like a user runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ots_emulator import Emulator
from ots_emulator.snippets import Connection, go_snippet, java_snippet, python_snippet
from ots_tunnel.model import Credentials, KeyColumn, KeyType
from ots_tunnel.tables import TableAdmin, TableSchema

pytestmark = pytest.mark.oracle
SECRET = "hush-hush"


@pytest.mark.parametrize("secret", ["test-secret", SECRET])
def test_the_python_program_lists_tables(secret: str, tmp_path: Path) -> None:
    with Emulator({"shop": {"test-id": secret}}) as emulator:
        keys = Credentials("test-id", secret)
        TableAdmin(emulator.endpoint, "shop", lambda: keys).create(
            TableSchema("orders", (KeyColumn("id", KeyType.INTEGER),))
        )
        program = tmp_path / "program.py"
        program.write_text(python_snippet(Connection(emulator.endpoint, "shop", "test-id", secret)))
        done = subprocess.run(
            [sys.executable, "-W", "ignore", program],
            env={"OTS_ACCESS_KEY_SECRET": SECRET, "PATH": ""},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )

    assert done.stdout.strip() == "['orders']"


@pytest.mark.parametrize("snippet", [python_snippet, go_snippet, java_snippet])
def test_a_users_own_secret_is_not_printed(snippet: object) -> None:
    text = snippet(Connection("http://127.0.0.1:8300", "shop", "some-id", SECRET))

    assert SECRET not in text
    assert "OTS_ACCESS_KEY_SECRET" in text
    assert text.count("http://127.0.0.1:8300") == text.count('"shop"') == text.count('"some-id"') == 1


def test_the_java_program_lists_tables(java_worker: Path, tmp_path: Path) -> None:
    found = re.search(r"exec '(.+?)'.*-cp '(.+?)'", java_worker.read_text(), re.DOTALL)
    assert found is not None
    java, class_path = found.groups()
    with Emulator({"shop": {"test-id": "test-secret"}}) as emulator:
        keys = Credentials("test-id", "test-secret")
        TableAdmin(emulator.endpoint, "shop", lambda: keys).create(
            TableSchema("orders", (KeyColumn("id", KeyType.INTEGER),))
        )
        program = tmp_path / "ListTables.java"
        program.write_text(java_snippet(Connection(emulator.endpoint, "shop", "test-id", "test-secret")))
        done = subprocess.run(
            [java, "-cp", class_path, program], capture_output=True, text=True, timeout=60, check=True
        )

    assert done.stdout.strip().endswith("[orders]")


@pytest.mark.long
@pytest.mark.lasts(60)
@pytest.mark.timeout(600)
def test_the_go_program_lists_tables(go_worker: Path, tmp_path: Path) -> None:
    for name in ("go.mod", "go.sum"):
        shutil.copy(Path(__file__).parent / "go" / name, tmp_path)
    with Emulator({"shop": {"test-id": "test-secret"}}) as emulator:
        (tmp_path / "main.go").write_text(go_snippet(Connection(emulator.endpoint, "shop", "test-id", "test-secret")))
        environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOCACHE": str(tmp_path / "cache")}
        done = subprocess.run(
            ["go", "run", "."], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=500, check=True
        )

    assert done.stdout.strip().endswith("<nil>")
