"""Access of the driver's pod to the API server."""

from __future__ import annotations

import pytest

from ots_tunnel.errors import ConfigError
from ots_tunnel.spark.cluster import in_cluster


def test_outside_a_pod_the_driver_has_no_access(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(ConfigError, match="runs in a pod"):
        in_cluster()
