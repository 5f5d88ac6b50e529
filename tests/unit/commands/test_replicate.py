"""How `ots-tunnel replicate` ends: its text, its JSON object and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ots_tunnel.cli import cli
from ots_tunnel.console.exit_codes import exit_code_table
from ots_tunnel.replicate.job import Copied, ReplicationJob


@pytest.fixture
def job(tmp_path: Path) -> Path:
    common = {"endpoint": "http://127.0.0.1:9", "instanceName": "demo", "accessId": "a", "accessKey": "b"}
    reader = {**common, "tableName": "t", "tunnelName": "x", "endTime": "2026-11-22T00:00:00Z"}
    file = tmp_path / "job.json"
    file.write_text(json.dumps({"ots-reader": reader, "ots-writer": {**common, "tableName": "u"}}))
    return file


@pytest.mark.parametrize(
    ("copied", "code", "state", "text"),
    [
        (Copied(True, 5, 1.0), 0, "complete", "complete: 5 rows in 1 s"),
        (Copied(False, 5, 1.0, others=True), 6, "shareCopied", "this run's share is copied; another client holds"),
        (Copied(False, 5, 1.0), 6, "stopped", "stopped; the same command resumes: 5 rows"),
    ],
)
def test_success_means_a_complete_copy(
    monkeypatch: pytest.MonkeyPatch, job: Path, copied: Copied, code: int, state: str, text: str
) -> None:
    async def run(_: ReplicationJob) -> Copied:
        return copied

    monkeypatch.setattr(ReplicationJob, "run", run)
    plain = CliRunner().invoke(cli, ["replicate", str(job)])
    assert (plain.exit_code, plain.output.startswith(text)) == (code, True), plain.output

    result = CliRunner().invoke(cli, ["replicate", str(job), "-o", "json"])
    document = json.loads(result.stdout)
    assert (result.exit_code, document["complete"], document["state"]) == (code, code == 0, state)


def test_the_help_has_the_exit_code() -> None:
    assert "6 when" in CliRunner().invoke(cli, ["replicate", "--help"]).output
    assert "replicate" in dict(exit_code_table())["6"]
