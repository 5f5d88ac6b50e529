"""Files of changes in a bucket or on a mounted volume (docs/sinks.md)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from ots_tunnel_operator.api.schema import ApiModel, immutable, list_map, rule, rules
from ots_tunnel_operator.api.source import CertificateKey, Credentials, Endpoint

#: A folder or a bucket with a prefix, in ASCII without spaces.
FileUrl = Annotated[
    str, Field(max_length=1024, pattern=r"^(file:///[!-~]*|s3://[A-Za-z0-9][-A-Za-z0-9._]{1,62}(/[!-~]*)?)$")
]
_IS_BUCKET = "self.url.startsWith('s3:')"
#: Formats whose files are a table with transactions, which Spark alone writes.
TABLES: Final = ("Delta", "Iceberg")
#: CEL, behind a path with its dot: whether the files are one.
IS_TABLE: Final = f"format in {list(TABLES)}"
_STORE_RULES = (
    rule(
        f"{_IS_BUCKET} == has(self.credentials)",
        "files.credentials is needed with files.url s3://bucket/prefix and only with it",
        field=".credentials",
    ),
    rule(
        f"{_IS_BUCKET} || !has(self.endpoint) && !has(self.region) && !self.bucketInHost",
        "files.endpoint, files.region and files.bucketInHost are only for files.url s3://bucket/prefix",
        field=".url",
        found="'found url ' + self.url",
    ),
    rule(
        f"!has(self.caRef) || {_IS_BUCKET} && (!has(self.endpoint) || self.endpoint.startsWith('https:'))",
        "files.caRef is only for files.url s3://bucket/prefix and a files.endpoint https://host",
        field=".caRef",
    ),
    # The pattern of the url leaves both to this rule and to the worker's document: an object that was stored with one
    # of them has to stay readable, so that it is told what is wrong.
    rule(
        "!self.url.contains('?') && !self.url.contains('#')",
        "files.url: ? and # are not allowed, because what follows would be no part of the path",
        field=".url",
        found="'found ' + self.url",
    ),
)


class FileStore(ApiModel):
    """A prefix in a bucket of an S3-compatible store, or a folder on a volume of the workers."""

    model_config = ConfigDict(json_schema_extra=rules(*_STORE_RULES))

    url: FileUrl
    """s3://bucket/prefix, or file:///path on a volume that workers.podTemplate mounts into the container `worker`."""
    endpoint: Endpoint | None = None
    """Endpoint of the store, http(s)://host[:port] without the bucket, such as https://oss-cn-hangzhou.aliyuncs.com;
    absent means Amazon S3. A change restarts the workers one by one."""
    region: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[!-~]+$")] | None = None
    """Region in the signature of requests; many stores accept any."""
    bucket_in_host: bool = False
    """Whether the bucket is part of the host name (virtual-hosted style), as OSS requires, or of the path."""
    credentials: Credentials | None = None
    """Credentials that may list, read, write and delete below the prefix; needed for a bucket."""
    ca_ref: CertificateKey | None = None
    """Certificate authorities of the store, beside those of the image; workers read a changed Secret without a
    restart."""

    @property
    def is_bucket(self) -> bool:
        """Whether the place is a bucket; otherwise it is a folder."""
        return self.url.startswith("s3:")


#: Columns that typed files have whatever is declared, as `ots_tunnel.config.files` has them; a test compares both.
OWN_COLUMNS = ("action", "channel", "sequence", "key", "deleted", "others", "version", "versions", "cells")


class FileColumn(ApiModel):
    """A column of typed files: an attribute column of the table and the type of its values."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                f"!(self.name in {list(OWN_COLUMNS)})",
                f"files.columns: {', '.join(OWN_COLUMNS)} are columns that the files have anyway: let "
                "delivery.columns.rename give the column another name, or, with engine.stream Spark, leave it out",
                field=".name",
                found="'found ' + self.name",
            )
        )
    )

    name: Annotated[str, Field(min_length=1, max_length=255)]
    """Name of the attribute column, after delivery.columns.rename."""
    type: Annotated[
        Literal["integer", "double", "boolean", "string", "binary"],
        Field(json_schema_extra=immutable("sink.files.columns[].type")),
    ]
    """Type of its values. An integer is also taken for a double that is equal to it. Immutable while the column is in
    the list: finished files keep the former type."""


class FilesSink(FileStore):
    """Files of changes, one folder per channel, named by the position of their first record."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            *_STORE_RULES,
            rule(
                f"self.mode == 'ChangeLog' || self.{IS_TABLE}",
                "files.mode Mirror, the present rows of a table, is only for files.format Delta and Iceberg: take one "
                "of them, or sink.tablestore",
                field=".mode",
                found="'found format ' + self.format",
            ),
            rule(
                "!has(self.columns) || self.format != 'JsonLines'",
                "files.columns is only for files.format Parquet, Delta and Iceberg",
                field=".columns",
                found="'found format ' + self.format",
            ),
            rule(
                "!has(self.unknownColumns) || has(self.columns) || self.mode == 'Mirror'",
                "files.unknownColumns is only for files with files.columns, and for files.mode Mirror: leave it out",
                field=".unknownColumns",
            ),
            rule(
                f"!has(self.unknownColumns) || self.unknownColumns != 'Add' || self.{IS_TABLE}",
                "files.unknownColumns Add is only for files.format Delta and Iceberg, whose tables can get columns",
                field=".unknownColumns",
                found="'found format ' + self.format",
            ),
            rule(
                "has(self.columns) == has(oldSelf.columns)",
                "sink.files.columns cannot be added or left out later, because the other files would have another "
                "form: create another object instead",
                field=".columns",
            ),
        )
    )

    url: Annotated[FileUrl, Field(json_schema_extra=immutable("sink.files.url"))]
    """s3://bucket/prefix, or file:///path on a volume that workers.podTemplate mounts into the container `worker`; with
    engine.stream Spark, on one that spark.driver.podTemplate and spark.executor.podTemplate mount, and a bucket only
    with format Delta. Immutable: another place would get only what comes later."""
    format: Annotated[
        Literal["JsonLines", "Parquet", "Delta", "Iceberg"], Field(json_schema_extra=immutable("sink.files.format"))
    ] = "JsonLines"
    """JsonLines: one JSON object per record. Parquet: the same records with one schema for every table. Delta: a table
    of Delta Lake. Iceberg: a table of Apache Iceberg, in a folder alone. Both only with engine.stream Spark.
    Immutable."""
    columns: (
        Annotated[tuple[FileColumn, ...], Field(min_length=1, max_length=128, json_schema_extra=list_map("name"))]
        | None
    ) = None
    """Attribute columns that have a column of their own, for the formats Parquet, Delta and Iceberg; absent means that
    all cells of a record are in one column, and that a mirror has those that unknownColumns adds. A record with a value
    of another type is refused, see delivery.onPermanentError; a mirror has it in the column `_others`. Columns may be
    added later, but for engine.stream Spark."""
    unknown_columns: Literal["Add", "Map", "Error"] | None = None
    """Treatment of attribute columns that columns does not name. Map: they are in the column `others`, `_others` of a
    mirror. Error: a record with one of them is refused. Add, for Delta and Iceberg: the table gets a column. Absent
    means Add for both, and Map otherwise."""
    mode: Annotated[Literal["ChangeLog", "Mirror"], Field(json_schema_extra=immutable("sink.files.mode"))] = "ChangeLog"
    """What the files hold. ChangeLog: every record, in order per key, deletions included. Mirror, only for Delta and
    Iceberg: the present rows of the table, beginning with those that exist. Immutable."""
    compression: Literal["none", "gzip", "zstd"] = "none"
    """Compression of whole files (JsonLines) or of their pages (Parquet)."""
    max_file_bytes: Annotated[int, Field(ge=65_536, le=5_368_709_120, json_schema_extra={"format": "int64"})] = (
        134_217_728
    )
    """Bytes of records, as received, at which a file is published."""
    max_file_seconds: Annotated[int, Field(ge=1, le=3600)] = 60
    """Seconds after its first record at which a file is published; its records are not checkpointed before."""

    @property
    def is_table(self) -> bool:
        """Whether the files are a table with transactions, which Spark alone writes."""
        return self.format in TABLES
