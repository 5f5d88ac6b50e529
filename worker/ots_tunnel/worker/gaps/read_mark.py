"""The read mark of a worker's document, which the operator renews while the worker runs.

The document is a file of a mounted ConfigMap, and the kubelet replaces it in a running pod. A worker that was idle for
long before a channel comes to it needs the mark as it is then (docs/architecture.md 3.8).
"""

from __future__ import annotations

import logging
from pathlib import Path

from ots_tunnel.config import WorkerConfig, load_config
from ots_tunnel.errors import ConfigError
from ots_tunnel.log_actions import LogAction
from ots_tunnel.worker.settings import read_mark_of

logger = logging.getLogger(__name__)


class RenewedMark:
    """Reads the mark again where the file has changed.

    Args:
        config: the document as it was read from the file.
    """

    def __init__(self, path: Path, config: WorkerConfig) -> None:
        self._path = path
        self._tunnel_id = config.source.tunnel_id
        self._mark = read_mark_of(config)
        self._stamp = 0

    def __repr__(self) -> str:
        return f"RenewedMark({self._path}, {self._mark})"

    def __call__(self) -> float | None:
        """The latest mark of this tunnel, Unix seconds; the last one that was read while the file cannot be."""
        try:
            stamp = self._path.stat().st_mtime_ns
            if stamp != self._stamp:
                self._take(load_config(self._path))
                self._stamp = stamp
        except (ConfigError, OSError) as error:
            fields = {"action": LogAction.RETENTION_UNKNOWN, "tunnel_id": self._tunnel_id, "error": str(error)}
            logger.warning("the read mark stays as it is: the document cannot be read", extra=fields)
        return self._mark

    def _take(self, config: WorkerConfig) -> None:
        mark = read_mark_of(config)
        if config.source.tunnel_id == self._tunnel_id and mark is not None:
            self._mark = max(mark, self._mark or mark)
