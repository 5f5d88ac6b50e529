"""The document of either worker, that of a tunnel or that of a stream."""

from __future__ import annotations

from pathlib import Path

from ots_tunnel.config.document import WorkerConfig
from ots_tunnel.config.document_file import checked
from ots_tunnel.config.kind import is_of_stream
from ots_tunnel.config.stream import StreamDocument
from ots_tunnel.config.yaml_file import read_yaml


def load_either(path: Path) -> WorkerConfig | StreamDocument:
    """Read and check a document for the worker that its source is of.

    Raises:
        ConfigError: see `load_document`.
    """
    document = read_yaml(path)
    return checked(path, document, StreamDocument) if is_of_stream(document) else checked(path, document, WorkerConfig)
