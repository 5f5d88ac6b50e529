"""What the process logs."""

from __future__ import annotations

import logging

from ots_tunnel.logs import JsonLine


def configure_logs(level: str) -> None:
    """Log JSON lines to standard error; of libraries only warnings and errors."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLine())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("ots_tunnel_operator").setLevel(level.upper())
    logging.getLogger("ots_tunnel").setLevel(level.upper())
    # The SDK logs every missing table as an error; for the operator that is a valid answer.
    logging.getLogger("tablestore-client").setLevel(logging.CRITICAL)
    # of a missing kubeconfig the error that is raised tells
    logging.getLogger("kubernetes.aio.config.kube_config").setLevel(logging.ERROR)
