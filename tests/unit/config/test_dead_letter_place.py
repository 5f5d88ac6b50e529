"""Dead letters beside files of rows need a place of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ots_tunnel.config import WorkerConfig


def checked(keys: Path, files: dict[str, Any], letters: dict[str, Any]) -> WorkerConfig:
    for name in ("accessKeyId", "accessKeySecret"):
        (keys / name).write_text("key")
    credentials = {"directory": str(keys)}
    if files["url"].startswith("s3:"):
        files, letters = {**files, "credentials": credentials}, {**letters, "credentials": credentials}
    source = {"endpoint": "http://127.0.0.1:1", "instance": "shop", "table": "orders", "tunnelId": "t"}
    declared = {"format": "Parquet", "columns": [{"name": "x", "type": "integer"}]}
    return WorkerConfig.model_validate(
        {
            "source": {**source, "tunnelName": "t", "credentials": credentials},
            "sink": {"files": files | declared},
            "delivery": {"onPermanentError": "DeadLetter", "deadLetter": {"files": letters}},
        }
    )


@pytest.mark.parametrize(
    ("files", "letters"),
    [
        ({"url": "file:///lake/orders"}, {"url": "file:///lake/orders"}),
        ({"url": "file:///lake/orders"}, {"url": "file:///lake//x/../orders/"}),
        ({"url": "file:///lake/orders"}, {"url": "file:////lake/order%73"}),
        ({"url": "file:///lake/orders"}, {"url": "file:///lake/x/%2e%2e/orders"}),
        ({"url": "s3://lake/orders"}, {"url": "s3://lake/orders/"}),
        ({"url": "s3://lake/orders", "endpoint": "https://a.example"}, {"url": "s3://lake/orders"}),
    ],
)
def test_the_place_of_the_files_is_refused(tmp_path: Path, files: dict[str, Any], letters: dict[str, Any]) -> None:
    """A restart replaces files of its own by their names, and both would have the same ones."""
    with pytest.raises(ValidationError, match=r"the place of sink\.files: allowed is another one"):
        checked(tmp_path, files, letters)


@pytest.mark.parametrize(
    ("files", "letters"),
    [
        ({"url": "file:///lake/orders"}, {"url": "file:///lake/orders-dead"}),
        ({"url": "s3://lake/orders"}, {"url": "s3://dead/orders"}),
    ],
)
def test_another_place_is_allowed(tmp_path: Path, files: dict[str, Any], letters: dict[str, Any]) -> None:
    assert checked(tmp_path, files, letters).delivery.dead_letter is not None
