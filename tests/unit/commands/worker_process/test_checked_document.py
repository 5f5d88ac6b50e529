"""What another process has checked is what this one would have read; and its errors are those of the document."""

from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ots_tunnel import checking
from ots_tunnel.commands.worker_process import checked_document
from ots_tunnel.config import load_config, load_stream_document
from ots_tunnel.errors import ConfigError, NotChecked
from tests.support.programs.processes import bare_environment, unmeasured

from .plain_program import plain

ROOT = Path(__file__).parents[4]
SIDE = "endpoint: http://127.0.0.1:1, instance: demo, credentials: {directory: /keys}"
SOURCE = f"{SIDE}, table: orders, tunnelName: copy, tunnelId: id"
#: What no document that the operator renders has.
ODD = f"""
source: {{{SOURCE}, endTime: "2027-01-01T00:00:00.25+08:00", readUntil: 2026-01-01 00:00:00Z, onPossibleGap: Continue}}
sink: {{files: {{url: "s3://shop/a", credentials: {{directory: /k}}, format: Parquet, unknownColumns: Error,
  columns: [{{name: a, type: integer}}, {{name: b, type: binary}}]}}}}
delivery:
  columns: {{include: [a, b], rename: {{a: c}}}}
  filter:
    actions: [PUT]
    keyPrefix: {{pk: "\\u00e4"}}
    keyRange: {{begin: [a, -9223372036854775808, {{base64: AAE=}}], end: [b]}}
  onPermanentError: DeadLetter
  deadLetter: {{files: {{url: "file:///letters"}}}}
  rateLimit: {{rowsPerSecond: 7}}
"""


def documents(folder: Path) -> Iterator[Path]:
    """Every worker's document among the golden files, and odd ones; those of a stream have it in their name."""
    for file in sorted((ROOT / "tests/golden/operator").glob("workers-*.yaml")):
        for each in yaml.safe_load_all(file.read_text()):
            for name, text in ((each or {}).get("data") or {}).items():
                if name == "worker.yaml":
                    yield _written(folder / file.name, text)
    yield _written(folder / "odd.yaml", ODD)
    yield _written(folder / "least.yaml", f"source: {{{SOURCE}}}\nsink: {{count: {{}}}}\n")


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.fixture
def apart_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have documents checked by another process, although this one has the models."""
    monkeypatch.setattr(checked_document, "_checks_here", lambda: False)
    monkeypatch.setattr(checking, "is_apart", checking.is_apart)  # as it was, afterwards


def test_plain_parts_have_the_values_of_the_models(tmp_path: Path) -> None:
    paths = list(documents(tmp_path))
    assert len(paths) > 10

    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.commands.worker_process.plain_program", *map(str, paths)],
        env=unmeasured(bare_environment()) | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    found, of_pydantic = json.loads(done.stdout)
    expected = [plain(load_stream_document(path) if "stream" in path.name else load_config(path)) for path in paths]
    assert found == json.loads(json.dumps(expected))
    assert of_pydantic == []


@pytest.mark.usefixtures("apart_here")
@pytest.mark.parametrize(
    "text",
    [
        "source: {",
        "- 1",
        "source: {leaseTable: leases}",
        f"source: {{{SOURCE}}}\nsink: {{count: {{}}}}\nclient: {{heartbeatIntervalSeconds: 4}}",
        f"source: {{{SOURCE}}}\nsink: {{kafka: {{topic: 'ä'}}}}",
        '{"\\ud800": 1, "\\ud800": 2}',
    ],
)
def test_a_wrong_document_is_told_as_it_would_be_here(tmp_path: Path, text: str) -> None:
    path = _written(tmp_path / "wörker.yaml", text)

    with pytest.raises(ConfigError) as told:
        checked_document.worker_config(path)

    with pytest.raises(ConfigError) as here:
        load_config(path)
    assert str(told.value) == str(here.value)


@pytest.mark.usefixtures("apart_here")
@pytest.mark.parametrize(
    "script", ["exit 1", "kill -9 $$", "exit 0", "printf + > /dev/fd/$5", "printf '+\\200' > /dev/fd/$5"]
)
def test_a_process_that_ends_without_a_result_may_be_tried_again(
    tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = _written(tmp_path / "python", f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))

    with pytest.raises(NotChecked, match="the process that checks it was ended, with") as told:
        checked_document.worker_config(tmp_path / "worker.yaml")

    assert told.value.retryable


@pytest.mark.usefixtures("apart_here")
def test_a_process_that_cannot_be_started_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    with pytest.raises(NotChecked, match=r"worker\.yaml: the process that checks it cannot be started: .*No such file"):
        checked_document.worker_config(tmp_path / "worker.yaml")


@pytest.mark.usefixtures("apart_here")
def test_an_error_of_the_check_itself_has_its_reason(tmp_path: Path) -> None:
    number = "-0x" + "f" * 5000  # more digits than Python makes a text of
    path = _written(tmp_path / "worker.yaml", f"source: {{{SOURCE}}}\nclient: {{lanesPerChannel: {number}}}\n")

    with pytest.raises(NotChecked, match="the process that checks it failed: ValueError: Exceeds the limit"):
        checked_document.worker_config(path)


@pytest.mark.usefixtures("apart_here")
def test_what_is_installed_may_print_and_exit_codes_may_be_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _written(tmp_path / "sitecustomize.py", "print('started', flush=True)")
    monkeypatch.syspath_prepend(tmp_path)
    path = _written(tmp_path / "worker.yaml", f"source: {{{SOURCE}}}\nsink: {{count: {{}}}}\n")
    wrong = _written(tmp_path / "wrong.yaml", "source: {")

    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert checked_document.worker_config(path).sink.kind == "count"
        with pytest.raises(ConfigError, match="not YAML"):
            checked_document.worker_config(wrong)
    finally:
        signal.signal(signal.SIGCHLD, before)


@pytest.mark.usefixtures("apart_here")
def test_a_file_of_the_working_directory_is_no_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _written(tmp_path / "yaml.py", "raise SystemExit('imported')")
    path = _written(tmp_path / "worker.yaml", f"source: {{{SOURCE}}}\nsink: {{count: {{}}}}\n")
    monkeypatch.chdir(tmp_path)

    assert checked_document.worker_config(path).sink.kind == "count"


@pytest.mark.usefixtures("apart_here")
def test_a_path_may_name_an_open_file(tmp_path: Path) -> None:
    path = _written(tmp_path / "worker.yaml", f"source: {{{SOURCE}}}\nsink: {{count: {{}}}}\n")
    with path.open() as file:
        os.set_inheritable(file.fileno(), True)

        assert checked_document.worker_config(Path(f"/dev/fd/{file.fileno()}")).sink.kind == "count"


def test_a_process_with_the_models_checks_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _written(tmp_path / "worker.yaml", f"source: {{{SOURCE}}}\nsink: {{count: {{}}}}\n")
    monkeypatch.setattr(sys, "executable", "/nowhere")

    assert checked_document.worker_config(path) == load_config(path)


def test_plain_parts_are_frozen_equal_by_value_and_told() -> None:
    from ots_tunnel.checking.plain_parts import BaseModel, Field

    class Part(BaseModel):
        name: str
        count: Any = Field(default=5, ge=1)

    part = Part(name="a")

    assert part.count == 5
    assert part == Part(name="a")
    assert hash(part) == hash(Part(name="a"))
    assert part != Part(name="b")
    assert part != ("a",)
    assert part == Part(name="a", count=5)
    assert part == copy.deepcopy(part)
    assert dict(part) == {"name": "a", "count": 5}
    assert repr(part) == "Part(name='a', count=5)"
    with pytest.raises(TypeError, match="Part has no field size, allowed is one of name, count"):
        Part(size=1)
    with pytest.raises(TypeError, match="Part is frozen, so count cannot be set"):
        part.count = 6
