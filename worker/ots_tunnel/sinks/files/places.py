"""The store and the format that a section of the document names.

A bucket's client and Parquet are imported where they are named: they take time and memory.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from ots_tunnel.config import FilesSinkConfig, FileStoreConfig
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.files.folder import FolderStore
from ots_tunnel.sinks.files.format import FileFormat
from ots_tunnel.sinks.files.json_lines import JsonLines
from ots_tunnel.sinks.files.rows.declared import Declared
from ots_tunnel.sinks.files.store import FileStore
from ots_tunnel.sinks.json_bytes import json_lines


def open_store(
    config: FileStoreConfig, *, path: str, deadline: float, spool_directory: Path | None = None
) -> FileStore:
    """Make the store that a section of the document names.

    Args:
        path: of the section in the document, for messages.
        deadline: D, seconds within which a file appears after its guard was asked (docs/architecture.md rule 4).
        spool_directory: where files for a bucket are filled; None means the system's temporary folder.

    Raises:
        ConfigError: files of credentials are missing.
    """
    parts = urlsplit(config.url)
    if parts.scheme == "file":
        return FolderStore(Path(unquote(parts.path)))
    from ots_tunnel.sinks.files.bucket import BucketStore

    return BucketStore(config, path=path, deadline=deadline, spool_directory=spool_directory)


def format_of(config: FilesSinkConfig) -> FileFormat[Record]:
    """Make the format that a section of the document names."""
    if config.format == "Parquet":
        from ots_tunnel.sinks.files.parquet import Parquet
        from ots_tunnel.sinks.files.rows.row_form import TypedForm

        declared = Declared.of(config)
        return Parquet(config.compression, None if declared is None else TypedForm(declared))
    return JsonLines(json_lines, config.compression)
