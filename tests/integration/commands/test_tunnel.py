"""`ots-tunnel tunnel` and `ots-tunnel channels`: a tunnel's life from the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ots_emulator import Settings
from ots_tunnel.cli import cli
from ots_tunnel.console.exit_codes import exit_code
from ots_tunnel.errors import Explained, ObjectAlreadyExist, TableNotFound
from tests.support.verify_scene import INSTANCE, SOURCE, VerifyScene, verify_scene


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[VerifyScene]:
    with verify_scene(tmp_path, Settings(init_delay=0.0)) as scene:
        scene.create()
        yield scene


def call(scene: VerifyScene, *arguments: str, typed: str = "") -> Result:
    place = ["--endpoint", scene.emulator.endpoint, "--instance", INSTANCE, "--credentials", str(scene.folder)]
    return CliRunner().invoke(cli, [*arguments, *place], input=typed)


def rows(scene: VerifyScene, *arguments: str) -> list[dict[str, Any]]:
    result = call(scene, *arguments, "-o", "jsonl")
    assert result.exit_code == 0, (result.output, result.exception)
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_tunnels_life(scene: VerifyScene) -> None:
    [made] = rows(scene, "tunnel", "create", SOURCE, "copy")
    an_hour_ago = (datetime.now(UTC) - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    rows(scene, "tunnel", "create", SOURCE, "late", "--type", "Stream", "--start-time", an_hour_ago)

    listed = {row["tunnel"]: row for row in rows(scene, "tunnel", "list", SOURCE)}
    assert {name: row["type"] for name, row in listed.items()} == {"copy": "BaseAndStream", "late": "Stream"}
    assert listed["copy"]["id"] == made["id"]

    [described] = rows(scene, "tunnel", "describe", SOURCE, "copy")
    channels = described["channels"]
    assert described["tunnel"] == "copy"
    assert channels == rows(scene, "channels", SOURCE, "copy")
    assert [(row["type"], row["client"], row["consumed"]) for row in channels if row["type"] == "BaseData"] == [
        ("BaseData", None, None)
    ]

    assert rows(scene, "tunnel", "delete", SOURCE, "late", "--yes") == [{"tunnel": "late", "deleted": True}]
    assert [row["tunnel"] for row in rows(scene, "tunnel", "list", SOURCE)] == ["copy"]


def test_a_deletion_without_an_answer_needs_yes_and_names_what_it_deletes(scene: VerifyScene) -> None:
    rows(scene, "tunnel", "create", SOURCE, "copy")

    result = call(scene, "tunnel", "delete", SOURCE, "copy")

    assert result.exit_code == 2
    assert f"Delete tunnel 'copy' of table '{SOURCE}' with its checkpoints?" in result.stderr
    assert "needs --yes without a terminal" in result.stderr
    assert len(rows(scene, "tunnel", "list", SOURCE)) == 1


@pytest.mark.parametrize(("answer", "left"), [("y", 0), ("n", 1)])
def test_an_answer_may_be_piped(scene: VerifyScene, answer: str, left: int) -> None:
    rows(scene, "tunnel", "create", SOURCE, "copy")

    call(scene, "tunnel", "delete", SOURCE, "copy", typed=answer)

    assert len(rows(scene, "tunnel", "list", SOURCE)) == left


def test_a_table_has_aligned_columns_and_a_dash_for_nothing(scene: VerifyScene) -> None:
    assert call(scene, "tunnel", "list", SOURCE).stdout == "none\n"
    rows(scene, "tunnel", "create", SOURCE, "copy")

    lines = call(scene, "tunnel", "describe", SOURCE, "copy").stdout.splitlines()

    assert lines[0].split() == ["TUNNEL", "ID", "TYPE", "STAGE", "EXPIRED", "CREATED"]
    assert lines[1].index("BaseAndStream") == lines[0].index("TYPE")
    assert lines[2] == ""
    assert lines[3].split() == ["CHANNEL", "TYPE", "STATE", "CLIENT", "ROWS", "CONSUMED"]
    assert lines[4].split()[3] == "-"


def test_a_server_that_is_not_tablestore_leads_to_the_option(scene: VerifyScene) -> None:
    place = ["--endpoint", scene.emulator.admin_url, "--instance", INSTANCE, "--credentials", str(scene.folder)]

    result = CliRunner().invoke(cli, ["tunnel", "describe", SOURCE, "copy", *place])

    assert isinstance(result.exception, Explained)
    assert "does not answer as Tablestore does" in str(result.exception)
    assert "correct --endpoint" in str(result.exception)


def test_a_refusal_names_the_place(scene: VerifyScene) -> None:
    rows(scene, "tunnel", "create", SOURCE, "copy")

    refused = call(scene, "tunnel", "create", SOURCE, "copy").exception
    missing = call(scene, "tunnel", "describe", "nothing", "copy").exception

    assert isinstance(refused, Explained)
    assert isinstance(refused.__cause__, ObjectAlreadyExist)
    assert str(refused).startswith(f"tunnel 'copy' of table '{SOURCE}' in instance")
    assert "use it, or take another name" in str(refused)
    assert isinstance(missing, Explained)
    assert isinstance(missing.__cause__, TableNotFound)
    assert "'nothing'" in str(missing)


@pytest.mark.parametrize("start", [["--earliest"], ["--start-time", "2026-01-01T00:00:00Z"]])
def test_only_a_stream_tunnel_has_a_start(scene: VerifyScene, start: list[str]) -> None:
    refused = call(scene, "tunnel", "create", SOURCE, "copy", *start)

    assert refused.exit_code == 2
    assert "--earliest and --start-time are for type Stream, not BaseAndStream" in refused.output


def test_tail_with_a_tunnel_has_no_start(scene: VerifyScene) -> None:
    refused = call(scene, "tail", SOURCE, "copy", "--earliest")

    assert refused.exit_code == 2
    assert "a tunnel is read from its checkpoints" in refused.output


@pytest.mark.parametrize(
    "asked",
    [
        ("tunnel", "list", "nowhere"),
        ("tunnel", "list", "no-such-table"),
        ("tunnel", "create", "nowhere", "t"),
        ("tail", "nowhere"),
        ("tail", "nowhere", "t"),
        ("tail", "no-such-table", "t"),
    ],
    ids=" ".join,
)
def test_a_missing_table_is_not_mistaken_for_one_without_tunnels(scene: VerifyScene, asked: tuple[str, ...]) -> None:
    missing = call(scene, *asked).exception

    assert isinstance(missing, Explained)
    assert exit_code(missing) == 11
    table = asked[1] if asked[0] == "tail" else asked[2]
    assert str(missing).startswith(f"there is no table {table!r} in instance 'demo' at http")


def test_a_missing_tunnel_is_named_by_a_tail(scene: VerifyScene) -> None:
    missing = call(scene, "tail", SOURCE, "nothing").exception

    assert isinstance(missing, Explained)
    assert exit_code(missing) == 10
