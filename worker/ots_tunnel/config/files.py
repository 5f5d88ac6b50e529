"""Files of changes, and the places that hold them."""

from __future__ import annotations

from posixpath import normpath
from typing import Annotated, ClassVar, Literal, Self
from urllib.parse import unquote, urlsplit

from ots_tunnel.config.base import ConfigModel, CredentialsConfig, Endpoint, Name, NonEmptyPath
from ots_tunnel.config.modelling import Field, model_validator, to_snake
from ots_tunnel.config.problems import Contradiction
from ots_tunnel.config.words import Words

#: Parts of a prefix that no path of the store's library has.
_NO_FOLDERS = frozenset({"", ".", ".."})


class FileStoreConfig(ConfigModel):
    """A folder on a mounted volume, or a prefix in a bucket of an S3-compatible store."""

    url: Annotated[
        str,
        # a query or a fragment would be no part of the path, which would end before it
        Field(pattern=r"^(file:///[^?#\s]*|s3://[^\[\]/@?#\s]+(/[^?#\s]*)?)$"),
        Words("file:///path or s3://bucket/prefix, without spaces, ? and #"),
    ]
    """file:///path or s3://bucket/prefix."""
    endpoint: Endpoint | None = None
    """Endpoint of the store without the bucket, such as https://oss-cn-hangzhou.aliyuncs.com; empty means Amazon S3."""
    region: Name | None = None
    """Region in the signature of requests; many stores accept any."""
    bucket_in_host: bool = False
    """Whether the bucket is part of the host name (virtual-hosted style), as OSS requires, or of the path."""
    credentials: CredentialsConfig | None = None
    """Credentials of the store."""
    ca_file: NonEmptyPath | None = None
    """File with certificate authorities of the store in PEM form, beside those of the system; read again when it
    changes."""

    _only_for_buckets: ClassVar[tuple[str, ...]] = ("endpoint", "region", "bucketInHost", "credentials", "caFile")
    #: Whether nothing but the document can tell the credentials of a bucket.
    _needs_credentials: ClassVar[bool] = True

    @property
    def place(self) -> tuple[str, str]:
        """Bucket and path, however they are written; endpoints do not count, because one store has many."""
        parts = urlsplit(self.url)
        path = unquote(parts.path) if parts.scheme == "file" else parts.path
        return parts.netloc, normpath("/" + path.lstrip("/"))

    @model_validator(mode="after")
    def _fits_its_scheme(self) -> Self:
        if self.url.startswith("s3:"):
            prefix = urlsplit(self.url).path.strip("/")
            if prefix and not _NO_FOLDERS.isdisjoint(prefix.split("/")):
                raise Contradiction("url", f"found {self.url!r}, allowed is a prefix without //, /./ and /../")
            if self.credentials is None and self._needs_credentials:
                raise Contradiction("credentials", f"missing, url {self.url!r} needs {{directory: ...}}")
            if self.ca_file is not None and str(self.endpoint or "").startswith("http:"):
                raise Contradiction("caFile", f"found with endpoint {self.endpoint}, allowed is https:// with it")
            return self
        for field in self._only_for_buckets:
            if getattr(self, to_snake(field)):
                raise Contradiction(field, f"found with url {self.url!r}, allowed is a url s3://bucket/prefix with it")
        return self


#: Columns that typed files have whatever the document declares (`ots_tunnel.sinks.files.rows.typed_rows`).
OWN_COLUMNS = ("action", "channel", "sequence", "key", "deleted", "others", "version", "versions", "cells")
#: Columns that a document can declare; each takes its room in every row, also where it is null.
MOST_COLUMNS = 128


class FileColumnConfig(ConfigModel):
    """A column of typed files: an attribute column of the table and the type of its values."""

    name: Name
    """Name of the attribute column, after `delivery.columns.rename`."""
    type: Literal["integer", "double", "boolean", "string", "binary"]
    """Type of its values. An integer is also taken for a double that is equal to it."""

    @model_validator(mode="after")
    def _is_no_own_column(self) -> Self:
        if self.name in OWN_COLUMNS:
            raise Contradiction(
                "name",
                f"found {self.name!r}, allowed is another name than {', '.join(OWN_COLUMNS)}: "
                "delivery.columns.rename gives a column a new one",
            )
        return self


class FilesSinkConfig(FileStoreConfig):
    """Files of changes, one folder per channel, named by their start position."""

    format: Literal["JsonLines", "Parquet"] = "JsonLines"
    """JsonLines: one object per record. Parquet: the same, typed."""
    columns: Annotated[tuple[FileColumnConfig, ...], Field(min_length=1, max_length=MOST_COLUMNS)] | None = None
    """Attribute columns that have a column of their own in Parquet; empty means that all cells of a record are in one
    column. A record with a value of another type is refused, see `delivery.onPermanentError`."""
    unknown_columns: Literal["Map", "Error"] | None = None
    """Treatment of attribute columns that `columns` does not name. Map, also where it is empty: they are in the column
    `others`. Error: a record with one of them is refused."""
    compression: Literal["none", "gzip", "zstd"] = "none"
    """Compression of the whole file (JsonLines) or of its pages (Parquet)."""
    max_file_bytes: int = Field(default=134_217_728, ge=65_536, le=5_368_709_120)
    """A file is published when its records reach this size, counted as received."""
    max_file_seconds: float = Field(default=60, ge=1, le=3600)
    """A file is published this long after its first record; its progress is not durable before."""
    spool_directory: NonEmptyPath | None = None
    """Folder where files for a bucket are collected before publishing; empty means the system's temporary folder."""

    _only_for_buckets: ClassVar[tuple[str, ...]] = (*FileStoreConfig._only_for_buckets, "spoolDirectory")

    @model_validator(mode="after")
    def _columns_fit(self) -> Self:
        if self.columns is not None and self.format != "Parquet":
            raise Contradiction("columns", f"found with format {self.format}, allowed is Parquet with it")
        if self.unknown_columns is not None and self.columns is None:
            raise Contradiction("unknownColumns", f"found {self.unknown_columns} without columns, allowed is with them")
        names = [column.name for column in self.columns or ()]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise Contradiction("columns", f"found {twice!r} twice, allowed is every name once")
        return self
