"""`ots-tunnel verify`: names of the tables, refused options, exit codes, and the terminal's screen."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from ots_tunnel.cli import cli
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import KeyColumn, KeyType
from tests.support.programs.processes import bare_environment, module
from tests.support.verify_scene import COPY, SCHEMA, SOURCE, VerifyScene, row, verify_scene

DOCUMENT = """
source:
  endpoint: {endpoint}
  instance: demo
  table: {source}
  tunnelName: copy
  tunnelId: none
  credentials: {{directory: {folder}}}
sink:
  {sink}
{more}
"""
TABLESTORE = "tablestore: {{endpoint: {0}, instance: demo, table: {1}, credentials: {{directory: {2}}}}}"


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[VerifyScene]:
    with verify_scene(tmp_path) as made:
        made.create()
        yield made


@pytest.mark.parametrize("option", ["--sample", "--recheck"])
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_what_is_no_number_is_refused(option: str, value: str) -> None:
    refused = CliRunner().invoke(cli, ["verify", "none.json", option, value])

    assert refused.exit_code == 2
    assert f"Invalid value for '{option}'" in refused.output


def test_the_same_table_is_refused(tables: VerifyScene) -> None:
    refused = tables.verify("--to-table", SOURCE)

    assert isinstance(refused.exception, ConfigError)
    assert f"'{SOURCE}' in instance 'demo' is the source itself" in str(refused.exception)


def test_other_keys_are_refused_and_named(tmp_path: Path) -> None:
    with verify_scene(tmp_path) as tables:
        tables.create(replace(SCHEMA, name=COPY, keys=(SCHEMA.keys[0], KeyColumn("n", KeyType.STRING))))

        refused = tables.verify()

    assert isinstance(refused.exception, ConfigError)
    assert "found pk STRING, n STRING in table 'orders_copy'" in str(refused.exception)
    assert "needed pk STRING, n INTEGER" in str(refused.exception)


def test_a_missing_table_is_named(tables: VerifyScene) -> None:
    refused = tables.verify("--to-table", "nowhere")

    assert "there is no table 'nowhere' in instance 'demo' at http" in str(refused.exception)
    assert "(OTSObjectNotExist: " in str(refused.exception)


@pytest.mark.parametrize("option", ["--credentials", "--to-credentials"])
def test_the_side_of_denied_keys_is_named_in_one_line(tables: VerifyScene, tmp_path: Path, option: str) -> None:
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    (wrong / "accessKeyId").write_text("test-id")
    (wrong / "accessKeySecret").write_text("hush")
    right = [] if option == "--to-credentials" else ["--to-credentials", str(tables.folder)]

    process = tables.start(option, str(wrong), *right)
    _, err = process.communicate(timeout=50)

    assert process.returncode == 12, err
    assert err.startswith(
        f"error: instance 'demo' at {tables.emulator.endpoint} does not accept the AccessKey in {wrong}"
    )
    assert len(err.splitlines()) == 1
    assert "hush" not in err


def test_missing_options_are_named(tmp_path: Path) -> None:
    with verify_scene(tmp_path) as tables:
        arguments = tables.arguments()
        del arguments[arguments.index("--to-table") : arguments.index("--to-table") + 2]
        done = CliRunner().invoke(cli, arguments)

    assert done.exit_code == 2
    assert "missing FILE, --from-object, or --to-table" in done.stderr


def document(tables: VerifyScene, more: str = "", sink: str = "") -> Path:
    endpoint, path = tables.emulator.endpoint, tables.folder / "worker.yaml"
    sink = sink or TABLESTORE.format(endpoint, COPY, tables.folder)
    path.write_text(DOCUMENT.format(endpoint=endpoint, source=SOURCE, folder=tables.folder, sink=sink, more=more))
    return path


def test_a_workers_document_names_both_tables(tables: VerifyScene, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.fill([row(1)])
    monkeypatch.chdir(tables.folder)
    before = set(tables.folder.iterdir())
    path = document(tables, "delivery: {columns: {include: [], exclude: [], rename: {}}, filter: {}}")

    done = CliRunner().invoke(cli, ["verify", str(path), "-o", "json"])

    assert done.exit_code == 0, (done.output, done.exception)
    assert json.loads(done.stdout)["destination"]["table"] == COPY
    assert set(tables.folder.iterdir()) == before | {path}, "the state's default place is this folder"


def job_file(tables: VerifyScene, **keys: str) -> Path:
    common = {"endpoint": tables.emulator.endpoint, "instanceName": "demo", **keys}
    reader = {**common, "tableName": SOURCE, "tunnelName": "copy", "endTime": "2026-06-19 17:00:00"}
    path = tables.folder / "job.json"
    path.write_text(json.dumps({"ots-reader": reader, "ots-writer": {**common, "tableName": COPY}}))
    return path


def test_a_replication_jobs_file_names_both_tables(tables: VerifyScene, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.fill([row(1)])
    monkeypatch.chdir(tables.folder)

    done = CliRunner().invoke(
        cli, ["verify", str(job_file(tables, accessId="test-id", accessKey="test-secret")), "-o", "json"]
    )

    assert done.exit_code == 0, (done.output, done.exception)
    report = json.loads(done.stdout)
    assert (report["source"]["table"], report["destination"]["table"], report["rows"]) == (SOURCE, COPY, 1)


def test_the_keys_of_a_job_may_be_in_folders(tables: VerifyScene, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.fill([row(1)])
    monkeypatch.chdir(tables.folder)
    path, folder = str(job_file(tables)), str(tables.folder)

    refused = CliRunner().invoke(cli, ["verify", path, "--reader-credentials", folder])
    done = CliRunner().invoke(cli, ["verify", path, "--reader-credentials", folder, "--writer-credentials", folder])

    assert isinstance(refused.exception, ConfigError)
    assert "ots-writer.accessId and accessKey: empty" in str(refused.exception)
    assert done.exit_code == 0, (done.output, done.exception)


def test_folders_of_keys_are_for_job_files_only(tables: VerifyScene) -> None:
    arguments = ["--reader-credentials", str(tables.folder)]

    refused = CliRunner().invoke(cli, ["verify", str(document(tables)), *arguments])

    assert isinstance(refused.exception, ConfigError)
    assert "are for the file of a replication job" in str(refused.exception)
    assert tables.verify(*arguments).exit_code == 2


@pytest.mark.parametrize(
    ("more", "sink", "message"),
    [
        ("delivery: {columns: {exclude: [x]}}", "", "worker.yaml: delivery.columns: makes a copy that differs"),
        ("delivery: {filter: {actions: [PUT]}}", "", "worker.yaml: delivery.filter: makes a copy that differs"),
        ("", "count: {}", "worker.yaml: sink: found count, allowed is tablestore"),
        ("", "tablestore: {table: x}", "worker.yaml: sink.tablestore.endpoint: missing, allowed is http(s)://"),
    ],
)
def test_a_document_of_another_kind_of_copy_is_refused(tables: VerifyScene, more: str, sink: str, message: str) -> None:
    done = CliRunner().invoke(cli, ["verify", str(document(tables, more, sink))])

    assert isinstance(done.exception, ConfigError)
    assert message in str(done.exception)
    assert tables.emulator.calls == 2, "no call was made besides those that created the tables"


def test_a_document_and_options_exclude_each_other(tables: VerifyScene) -> None:
    done = CliRunner().invoke(
        cli,
        ["verify", str(document(tables)), "--to-table", "x"],
        env={"OTS_INSTANCE": "what stands in the environment does not matter"},
    )

    assert done.exit_code == 2
    assert "--to-table cannot be given with it" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--endpoint", "shop"], "--endpoint: found 'shop', allowed is http(s)://"),
        (["--to-endpoint", "shop"], "--to-endpoint: found 'shop', allowed is http(s)://"),
        (["--credentials", "/nowhere"], "/nowhere/accessKeyId: missing or empty"),
        (["--to-credentials", "/nowhere"], "/nowhere/accessKeyId: missing or empty"),
    ],
)
def test_wrong_options_are_named(tables: VerifyScene, arguments: list[str], message: str) -> None:
    done = tables.verify(*arguments)

    assert isinstance(done.exception, ConfigError)
    assert message in str(done.exception)
    assert tables.emulator.calls == 2, "no call was made besides those that created the tables"


@pytest.mark.parametrize("arguments", [["--sample", "0"], ["--sample", "101"], ["--parallel", "0"], ["--seed", "1"]])
def test_options_out_of_range_are_usage_errors(tables: VerifyScene, arguments: list[str]) -> None:
    assert tables.verify(*arguments).exit_code == 2


def test_a_folder_that_is_not_writable_is_noted(tables: VerifyScene, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.fill([row(1)])
    monkeypatch.setattr("ots_tunnel.verify.verification.default_name", lambda *_: "nowhere/state.json")

    done = CliRunner().invoke(cli, ["verify", str(document(tables))])

    assert done.exit_code == 0
    assert "note: nowhere/state.json: the state cannot be written: No such file or directory" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 0, ""),
        (("--to-table", "nowhere"), 11, "error: there is no table 'nowhere'"),
        (("--to-table", SOURCE), 2, "is the source itself"),
    ],
)
def test_exit_codes_of_the_process(tables: VerifyScene, arguments: tuple[str, ...], code: int, message: str) -> None:
    tables.fill([row(1)])
    process = tables.start(*arguments)
    _, err = process.communicate(timeout=50)

    assert process.returncode == code, err
    assert message in err
    assert "Traceback" not in err


def test_a_terminal_sees_a_bar(tables: VerifyScene) -> None:
    tables.fill(row(number) for number in range(50))
    ours, its = pty.openpty()
    process = subprocess.Popen(
        module("ots_tunnel", *tables.arguments("-o", "json")),
        stdout=subprocess.PIPE,
        stderr=its,
        env=bare_environment(TERM="xterm", COLUMNS="150"),
    )
    os.close(its)
    seen = b""
    with contextlib.suppress(OSError):  # reading a terminal whose other side is closed fails
        while piece := os.read(ours, 4096):
            seen += piece
    out, _ = process.communicate(timeout=30)
    os.close(ours)

    assert json.loads(out)["rows"] == 50
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    assert "50 rows, " in text
    assert "slices 1/1, 0 differences" in text
    assert "━" in text
