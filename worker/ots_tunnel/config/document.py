"""The whole document of a worker that consumes a tunnel."""

from __future__ import annotations

from pathlib import Path

from ots_tunnel.config.client import ClientConfig, TunnelConfig
from ots_tunnel.config.document_file import dump_document, load_document
from ots_tunnel.config.worker_document import WorkerDocument


class WorkerConfig(WorkerDocument):
    """The whole document."""

    source: TunnelConfig
    client: ClientConfig = ClientConfig()


def load_config(path: Path) -> WorkerConfig:
    """Read and check a worker document.

    Raises:
        ConfigError: see `load_document`.
    """
    return load_document(path, WorkerConfig)


def dump_config(config: WorkerDocument) -> str:
    """The document as YAML for the operator's ConfigMap; equal configurations give equal text."""
    return dump_document(config)
