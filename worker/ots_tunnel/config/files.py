"""Files of changes, and where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from ots_tunnel.config.base import ConfigModel, CredentialsConfig


class FileStoreConfig(ConfigModel):
    """A folder on a mounted volume, or a prefix in a bucket of an S3-compatible store."""

    url: str = Field(pattern=r"^(file:///[^\s]*|s3://[^/\s]+(/[^\s]*)?)$")
    """file:///path or s3://bucket/prefix."""
    endpoint: str | None = Field(default=None, pattern=r"^https?://[^/\s]+/?$")
    """Of the store, without the bucket, such as https://oss-cn-hangzhou.aliyuncs.com; empty means Amazon's."""
    region: str | None = Field(default=None, min_length=1)
    """Region that requests are signed for; many stores take any."""
    bucket_in_host: bool = False
    """The bucket's name is part of the host name (virtual-hosted style), as OSS asks for; else of the path."""
    credentials: CredentialsConfig | None = None
    """Of the store."""

    @model_validator(mode="after")
    def _fits_its_scheme(self) -> Self:
        given = [name for name in ("endpoint", "region", "credentials") if getattr(self, name) is not None]
        if self.url.startswith("file:") and given:
            raise ValueError(f"{', '.join(given)}: only allowed with a url s3://bucket/prefix, found {self.url!r}")
        if self.url.startswith("s3:") and self.credentials is None:
            raise ValueError("credentials: needed with a url s3://bucket/prefix")
        return self


class FilesSinkConfig(FileStoreConfig):
    """Files of changes, one folder per channel, named by where they start."""

    format: Literal["JsonLines", "Parquet"] = "JsonLines"
    """JsonLines: one object per record. Parquet: the same, typed."""
    compression: Literal["none", "gzip", "zstd"] = "none"
    """Of the whole file (JsonLines) or of its pages (Parquet)."""
    max_file_bytes: int = Field(default=134_217_728, ge=65_536, le=5_368_709_120)
    """A file is published when it holds so many bytes of records, as they came."""
    max_file_seconds: float = Field(default=60, ge=1, le=3600)
    """A file is published so long after its first record; progress is not durable before."""
    spool_directory: Path | None = None
    """Where files for a bucket are collected before they are published; empty means the system's temporary folder."""
