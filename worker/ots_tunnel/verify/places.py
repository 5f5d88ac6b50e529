"""The two tables of a comparison, from a worker's document, the file of a replication job, or options."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ots_tunnel.client.caller import RetryListener
from ots_tunnel.client.table import TableClient
from ots_tunnel.config import (
    ColumnsConfig,
    FilterConfig,
    InstanceConfig,
    WorkerConfig,
    load_config,
)
from ots_tunnel.connections import Connection
from ots_tunnel.console.explanations import Place
from ots_tunnel.credentials import CredentialsProvider, FileCredentials
from ots_tunnel.errors import ConfigError
from ots_tunnel.job_file import ReaderSection, WriterSection, credentials_of, is_job_file, load_job, place_of
from ots_tunnel.verify.state_document import TablePlace


@dataclass(frozen=True, slots=True)
class TableAccess:
    """A table and the credentials that read it."""

    place: TablePlace
    credentials: CredentialsProvider
    wording: Place
    """Names of the table and its settings, for messages."""

    def client(self, on_retry: RetryListener) -> TableClient:
        """A client of the table's instance."""
        return TableClient(self.place.endpoint, self.place.instance, self.credentials, on_retry=on_retry)


#: Source and destination.
Places = tuple[TableAccess, TableAccess]


def places_of_file(
    path: Path, reader_credentials: Path | None = None, writer_credentials: Path | None = None
) -> Places:
    """The tables of a worker's document or of the file of a replication job.

    Args:
        path: the file.
        reader_credentials: folder of the source's keys, if a job file holds none.
        writer_credentials: the same for the destination.

    Raises:
        ConfigError: the file is wrong, its sink is not a table, or the worker transforms the records.
    """
    if is_job_file(path):
        job = load_job(path)
        reader = credentials_of(job.reader, "ots-reader", reader_credentials)
        writer = credentials_of(job.writer, "ots-writer", writer_credentials)
        return (
            _job_access(job.reader, reader, place_of(job.reader, "ots-reader", reader_credentials)),
            _job_access(job.writer, writer, place_of(job.writer, "ots-writer", writer_credentials)),
        )
    if reader_credentials is not None or writer_credentials is not None:
        raise ConfigError(
            f"{path}: --reader-credentials and --writer-credentials are for the file of a replication job"
        )
    return _places_of_document(path)


def _job_access(
    section: ReaderSection | WriterSection, credentials: CredentialsProvider, wording: Place
) -> TableAccess:
    place = TablePlace(endpoint=section.endpoint.rstrip("/"), instance=section.instance_name, table=section.table_name)
    return TableAccess(place, credentials, replace(wording, tunnel=""))


def _places_of_document(path: Path) -> Places:
    config = load_config(path)
    sink = config.sink.tablestore
    if sink is None:
        raise ConfigError(f"{path}: sink: found {config.sink.kind}, allowed is tablestore: only tables can be compared")
    _refuse_transform(config, path)
    return _access(config.source, config.source.table, "source."), _access(sink, sink.table, "sink.tablestore.")


def _refuse_transform(config: WorkerConfig, path: Path) -> None:
    """Refuse a document whose worker leaves out or renames columns, or filters records."""
    wanted = (("columns", ColumnsConfig()), ("filter", FilterConfig()))
    changed = [name for name, nothing in wanted if getattr(config.delivery, name) not in (None, nothing)]
    if not changed:
        return
    field = f"delivery.{changed[0]}"
    raise ConfigError(
        f"{path}: {field}: makes a copy that differs from its source; name the tables by options to compare them anyway"
    )


def place_of_connection(connection: Connection, table: str) -> TableAccess:
    """A table of an instance that options, a profile or an object name."""
    place = TablePlace(endpoint=connection.endpoint.rstrip("/"), instance=connection.instance, table=table)
    return TableAccess(place, connection.credentials, connection.place(table))


def _access(config: InstanceConfig, table: str, settings: str) -> TableAccess:
    credentials = FileCredentials(config.credentials.directory)
    credentials()  # fail now if files are missing, not in the first call
    place = TablePlace(endpoint=config.endpoint.rstrip("/"), instance=config.instance, table=table)
    wording = Place(config.endpoint, config.instance, str(config.credentials.directory), table, settings=settings)
    return TableAccess(place, credentials, wording)
