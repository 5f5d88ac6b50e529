from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ots_tunnel.spark.progress import ClusterAccess
from tests.spark.config_maps import ConfigMapServer, serving


@pytest.fixture
def config_map_server() -> ConfigMapServer:
    return ConfigMapServer()


@pytest.fixture
def cluster_access(config_map_server: ConfigMapServer, tmp_path: Path) -> Iterator[ClusterAccess]:
    token = tmp_path / "token"
    token.write_text("secret-token\n")
    with serving(config_map_server) as url:
        yield ClusterAccess(url, token)
