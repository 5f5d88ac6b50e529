from __future__ import annotations

from tests.support.kube.config_maps import cluster_access, config_map_server

__all__ = ["cluster_access", "config_map_server"]
