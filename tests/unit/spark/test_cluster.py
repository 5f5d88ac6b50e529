"""Access of the driver's pod to the API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from ots_tunnel.errors import ConfigError, ConnectionLost
from ots_tunnel.spark import cluster
from ots_tunnel.spark.cluster import ClusterAccess, ConfigMaps, in_cluster


def test_outside_a_pod_the_driver_has_no_access(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(ConfigError, match="runs in a pod"):
        in_cluster()


@pytest.mark.parametrize(
    ("host", "url"), [("10.0.0.1", "https://10.0.0.1:6443"), ("fd00::1", "https://[fd00::1]:6443")]
)
def test_in_a_pod_the_driver_uses_its_service_account(
    host: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    monkeypatch.setattr(cluster, "SERVICE_ACCOUNT", tmp_path)
    with pytest.raises(ConfigError, match="needs a service account"):
        in_cluster()
    (tmp_path / "token").write_text("hush")

    access = in_cluster()

    assert (access.url, access.token_file, access.ca_file) == (url, tmp_path / "token", tmp_path / "ca.crt")


@pytest.mark.parametrize(("missing", "scheme"), [("token", "http"), ("ca.crt", "https")])
def test_a_file_of_the_service_account_that_is_missing_for_a_moment_is_a_call_that_failed(
    missing: str, scheme: str, tmp_path: Path
) -> None:
    for name in {"token", "ca.crt"} - {missing}:
        (tmp_path / name).write_text("")
    access = ClusterAccess(f"{scheme}://127.0.0.1:1", tmp_path / "token", tmp_path / "ca.crt")

    with pytest.raises(ConnectionLost, match="GET /api/v1/namespaces/shop/configmaps/c: FileNotFoundError"):
        ConfigMaps(access, "shop").get("c")
