"""The read mark of a worker's document, which the operator renews while the worker runs.

The document is a file of a mounted ConfigMap, and the kubelet replaces it in a running pod. A worker that was idle for
long before a channel comes to it needs the mark as it is then (docs/architecture.md 3.8).
"""

from __future__ import annotations

import logging
from datetime import datetime
from pathlib import Path

from ots_tunnel.config import WorkerConfig
from ots_tunnel.config.problems import shown
from ots_tunnel.errors import ConfigError
from ots_tunnel.log_actions import LogAction
from ots_tunnel.worker.settings import read_mark_of

logger = logging.getLogger(__name__)


class RenewedMark:
    """Reads the mark again where the file has changed.

    Args:
        config: the document as it was read from the file.
        stamp: when the file was written last before that, in nanoseconds, as its `stat` has it; 0 is unknown.
    """

    def __init__(self, path: Path, config: WorkerConfig, stamp: int = 0) -> None:
        self._path = path
        self._tunnel_id = config.source.tunnel_id
        self._mark = read_mark_of(config)
        self._stamp = stamp

    def __repr__(self) -> str:
        return f"RenewedMark({self._path}, {self._mark})"

    def __call__(self) -> float | None:
        """The latest mark of this tunnel, Unix seconds; the last one that was read while the file cannot be."""
        try:
            stamp = self._path.stat().st_mtime_ns
            if stamp != self._stamp:
                self._take(*_tunnel_and_mark(self._path))
                self._stamp = stamp
        except (ConfigError, OSError) as error:
            fields = {"action": LogAction.RETENTION_UNKNOWN, "tunnel_id": self._tunnel_id, "error": str(error)}
            logger.warning("the read mark stays as it is: the document cannot be read", extra=fields)
        return self._mark

    def _take(self, tunnel_id: str, mark: float | None) -> None:
        if tunnel_id == self._tunnel_id and mark is not None:
            self._mark = max(mark, self._mark or mark)


def _tunnel_and_mark(path: Path) -> tuple[str, float | None]:
    """Id of the document's tunnel, and its read mark in Unix seconds.

    Raises:
        ConfigError: the file cannot be read, is not YAML, or has none of them.
    """
    from ots_tunnel.config.yaml_file import read_yaml

    document = read_yaml(path)
    source = document.get("source") if isinstance(document, dict) else None
    if not isinstance(source, dict) or not isinstance(source.get("tunnelId"), str):
        raise ConfigError(f"{path}: source.tunnelId: missing")
    mark = source.get("readUntil")
    if mark is None:
        return source["tunnelId"], None
    try:
        time = mark if isinstance(mark, datetime) else datetime.fromisoformat(mark)
    except (TypeError, ValueError):
        time = None
    if time is None or time.tzinfo is None:
        raise ConfigError(f"{path}: source.readUntil: found {shown(mark)}, allowed is a time with a time zone")
    return source["tunnelId"], time.timestamp()
