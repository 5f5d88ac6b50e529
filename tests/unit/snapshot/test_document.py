"""The document of a snapshot's driver: wrong fields are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ots_tunnel.errors import ConfigError
from ots_tunnel.snapshot.document import load_snapshot_config
from tests.support.documents.snapshot_document import DOCUMENT


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("sink", {"count": {}}, "sink.tablestore is needed"),
        ("sink", {"tablestore": DOCUMENT["source"]}, "is the source itself"),
        ("sink", {"tablestore": DOCUMENT["source"] | {"endpoint": f"{DOCUMENT['source']['endpoint']}/"}}, "itself"),
        ("splits", {"deadlineSeconds": 30}, "splits.deadlineSeconds 30 must be at least twice writeDeadlineSeconds 20"),
        ("splits", {"bytesPerSplit": 1}, "splits.bytesPerSplit"),
        ("progress", {**DOCUMENT["progress"], "label": "a/b"}, "progress.label"),
        ("speed", 9, "speed"),
    ],
)
def test_wrong_fields_are_named(tmp_path: Path, part: str, value: Any, message: str) -> None:
    path = tmp_path / "snapshot.yaml"
    path.write_text(yaml.safe_dump({**DOCUMENT, part: value}))

    with pytest.raises(ConfigError) as caught:
        load_snapshot_config(path)
    assert message in str(caught.value)
