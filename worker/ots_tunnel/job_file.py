"""The file of a replication job: sections `ots-reader` and `ots-writer` in JSON (docs/architecture.md 4.6).

The format is that of the vendor's sample. Unlike the sample, this module refuses a malformed end time, unknown keys,
and a destination that is the source.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from ots_tunnel.config.base import Endpoint, InstanceName, TableName
from ots_tunnel.config.messages.describing import describe
from ots_tunnel.config.problems import Contradiction
from ots_tunnel.console.explanations import Place
from ots_tunnel.credentials import CredentialsProvider, FileCredentials, static_credentials
from ots_tunnel.endpoint import table_identity
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import Credentials

#: Java's yyyy-MM-dd HH:mm:ss.
END_TIME_FORMAT = "%Y-%m-%d %H:%M:%S"


class TableSection(BaseModel):
    """Fields of both sections: a table and the credentials for it."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, hide_input_in_errors=True)

    endpoint: Endpoint
    """Instance endpoint without a path."""
    instance_name: InstanceName
    """Instance name."""
    table_name: TableName
    """Table."""
    access_id: str = ""
    """AccessKey id; empty if an option names a folder of credentials."""
    access_key: SecretStr = SecretStr("")
    """AccessKey secret; never shown."""


class ReaderSection(TableSection):
    """The source."""

    tunnel_name: str = Field(min_length=1)
    """Tunnel to resume or to create."""
    end_time: str = Field(min_length=1)
    """Changes up to this time are copied: yyyy-MM-dd HH:mm:ss, or ISO 8601 with an offset."""


class WriterSection(TableSection):
    """The destination."""

    batch_write_count: int = Field(default=100, ge=1, le=200)
    """Rows per write; the service's maximum is 200."""


class JobFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    reader: ReaderSection = Field(alias="ots-reader")
    writer: WriterSection = Field(alias="ots-writer")

    @model_validator(mode="after")
    def _destination_is_not_the_source(self) -> JobFile:
        places = [
            table_identity(each.endpoint, each.instance_name, each.table_name) for each in (self.reader, self.writer)
        ]
        if places[0] == places[1]:
            raise Contradiction(
                "ots-writer.tableName",
                f"found {self.writer.table_name!r}, the source itself: copying a table into itself never ends",
            )
        return self


def is_job_file(path: Path) -> bool:
    """Whether a file has a section of a replication job, valid or not."""
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and not {"ots-reader", "ots-writer"}.isdisjoint(document)


def load_job(path: Path) -> JobFile:
    """Read and check a job's file.

    Raises:
        ConfigError: the file is missing or not JSON, or fields are wrong; names each wrong field.
    """
    try:
        document: Any = json.loads(path.read_text(), object_pairs_hook=_each_once)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: not JSON: {error}") from error
    except RecursionError:
        raise ConfigError(f"{path}: not JSON of a job: too deep") from None
    try:
        return JobFile.model_validate(document)
    except ValidationError as error:
        raise ConfigError(f"{path}: {describe(error, JobFile)}") from error


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name} is given twice")
    return dict(pairs)


def credentials_of(section: TableSection, name: str, folder: Path | None) -> CredentialsProvider:
    """Credentials of a section: those of a folder, which may change at run time, or those in the file.

    Args:
        name: of the section, for messages.

    Raises:
        ConfigError: neither has credentials.
    """
    if folder is not None:
        provider = FileCredentials(folder)
        provider()  # missing files are a wrong configuration, not a failed call
        return provider
    key = section.access_key.get_secret_value()
    if not section.access_id or not key:
        option = f"--{name.removeprefix('ots-')}-credentials"
        raise ConfigError(f"{name}.accessId and accessKey: empty; allowed are both, or {option} with a folder")
    return static_credentials(Credentials(section.access_id, key))


def place_of(section: ReaderSection | WriterSection, name: str, folder: Path | None) -> Place:
    """The place that a section names, for messages.

    Args:
        name: of the section.
        folder: of its credentials, if they are not in the file.
    """
    tunnel = section.tunnel_name if isinstance(section, ReaderSection) else ""
    names = {"instance": "instanceName", "table": "tableName"}
    if folder is None:
        names |= {"accessKeyId": "accessId", "accessKeySecret": "accessKey"}
    keys = name if folder is None else str(folder)
    return Place(section.endpoint, section.instance_name, keys, section.table_name, tunnel, "", f"{name}.", names)


def zone_of(name: str | None) -> tzinfo | None:
    """A time zone by its name, such as Asia/Shanghai; None means this machine's zone.

    Raises:
        ConfigError: the zone does not exist.
    """
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(f"--time-zone: found {name!r}, allowed are names such as Asia/Shanghai or UTC") from error


def end_of(text: str, zone: tzinfo | None) -> datetime:
    """The end time in UTC; pure except for the machine's own zone.

    Args:
        zone: zone of a text without an offset; None means this machine's zone.

    Raises:
        ConfigError: the text is not a time, or the clocks change then, so that it names two moments or none, or it lies
            outside of the years 1 to 9999.
    """
    try:
        return _end_of(text, zone)
    except OverflowError:
        raise ConfigError(f"ots-reader.endTime: found {text!r}, allowed are the years 1 to 9999 in UTC") from None


def _end_of(text: str, zone: tzinfo | None) -> datetime:
    try:
        return _moment(datetime.strptime(text, END_TIME_FORMAT), text, zone)
    except ValueError:
        pass
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        given = None
    if given is None or given.tzinfo is None:
        raise ConfigError(
            f"ots-reader.endTime: found {text!r}, allowed are yyyy-MM-dd HH:mm:ss and ISO 8601 with an offset, such as "
            "2026-06-19T17:00:00+08:00"
        )
    return given.astimezone(UTC)


def _moment(local: datetime, text: str, zone: tzinfo | None) -> datetime:
    early, late = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if early != late:
        raise ConfigError(
            f"ots-reader.endTime: clocks are changed at {text!r}, which is {early:%H:%M:%S} or {late:%H:%M:%S} UTC: "
            "give it in ISO 8601 with an offset"
        )
    return early
