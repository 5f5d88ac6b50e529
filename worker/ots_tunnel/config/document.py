"""The whole document of a worker that consumes a tunnel."""

from __future__ import annotations

from pathlib import Path

from ots_tunnel.config.client import ClientConfig, TunnelConfig
from ots_tunnel.config.document_file import checked, dump_document
from ots_tunnel.config.kind import is_of_stream
from ots_tunnel.config.worker_document import WorkerDocument
from ots_tunnel.errors import ConfigError


class WorkerConfig(WorkerDocument):
    """The whole document."""

    source: TunnelConfig
    client: ClientConfig = ClientConfig()


def load_config(path: Path) -> WorkerConfig:
    """Read and check a worker document.

    Raises:
        ConfigError: see `load_document`; or it is the document of `ots-tunnel stream run`.
    """
    from ots_tunnel.config.yaml_file import read_yaml

    document = read_yaml(path)
    if is_of_stream(document):
        raise ConfigError(
            f"{path}: source.leaseTable: found without source.tunnelId and source.tunnelName, so it is the document of "
            "`ots-tunnel stream run`"
        )
    return checked(path, document, WorkerConfig)


def dump_config(config: WorkerDocument) -> str:
    """The document as YAML for the operator's ConfigMap; equal configurations give equal text."""
    return dump_document(config)
