"""The driver program around its rounds: its document and its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from ots_tunnel.snapshot.document import SnapshotConfig, dump_snapshot_config
from ots_tunnel.spark.snapshot import driver as snapshot
from tests.support.documents.snapshot_document import DOCUMENT


@pytest.fixture(autouse=True)
def no_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "set_up_logs", lambda: None)


@pytest.mark.parametrize("text", [None, "source: [", "source: {}"])
def test_a_wrong_document_is_exit_code_2(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "snapshot.yaml"
    if text is not None:
        path.write_text(text)

    assert snapshot.main(["--config", str(path)]) == 2


def test_outside_a_pod_is_exit_code_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    path = tmp_path / "snapshot.yaml"
    path.write_text(dump_snapshot_config(SnapshotConfig.model_validate(DOCUMENT)))

    assert snapshot.main(["--config", str(path)]) == 2
