"""The worker's document: one YAML file, one frozen model.

The operator renders it from a TablestoreTunnel object, `ots-tunnel run --config` reads it, so the two cannot
disagree. Secrets are never in it: it names the folder whose files hold them. Field names in the document are
camelCase, as in the object.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.alias_generators import to_camel

from ots_tunnel.errors import ConfigError

#: Sinks that can refuse one record and take the next.
REFUSING_SINKS = ("tablestore", "http", "kafka")


class ConfigModel(BaseModel):
    """Base of the document's parts: frozen, camelCase, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class CredentialsConfig(ConfigModel):
    """Where the AccessKey pair is."""

    directory: Path
    """Folder with the files `accessKeyId`, `accessKeySecret` and, for temporary keys, `securityToken`.
    They are read again when they change, so a rotated Secret needs no restart."""


class InstanceConfig(ConfigModel):
    """An instance of the service and who calls it."""

    endpoint: str = Field(pattern=r"^https?://[^/\s]+/?$")
    """Instance endpoint without a path, such as https://shop.cn-hangzhou.ots.aliyuncs.com."""
    instance: str = Field(min_length=1)
    """Instance name."""
    credentials: CredentialsConfig


class TunnelConfig(InstanceConfig):
    """The tunnel that is consumed."""

    table: str = Field(min_length=1)
    """Source table."""
    tunnel_name: str = Field(min_length=1)
    """Tunnel name, for messages and metrics."""
    tunnel_id: str = Field(min_length=1)
    """Tunnel id; a worker never creates a tunnel."""
    end_time: datetime | None = None
    """Stop here instead of following for ever: records after it are not written (with a time zone)."""

    @field_validator("end_time")
    @classmethod
    def _has_a_time_zone(cls, end_time: datetime | None) -> datetime | None:
        if end_time is not None and end_time.tzinfo is None:
            raise ValueError("allowed is a time with a time zone, such as 2026-06-19T17:00:00+08:00")
        return end_time


class ClientConfig(ConfigModel):
    """How the worker behaves as a client of the tunnel."""

    tag_prefix: str = ""
    """Put before the host name in the client tag; the operator sets the first 8 characters of the object's uid."""
    heartbeat_interval_seconds: int = Field(default=10, ge=5)
    """Seconds between heartbeats; the service's minimum is 5."""
    heartbeat_timeout_seconds: int = Field(default=60, ge=6)
    """Without a heartbeat for so long the service gives the channels to others. More than the interval."""
    checkpoint_interval_seconds: float = Field(default=5, ge=0.1)
    """Confirmed progress is stored at most so often per channel."""
    max_parallel_channels: int = Field(default=0, ge=0)
    """Channels read at the same time; 0 means all."""
    lanes_per_channel: int = Field(default=8, ge=1)
    """Parallel writers inside one channel, by key."""
    memory_budget_bytes: int = Field(default=268_435_456, ge=16_777_216)
    """Bytes of records held by this worker, raw and parsed; reading waits beyond it."""
    drain_seconds: float = Field(default=45, ge=1)
    """Time a drain may take, less than the pod's termination grace period."""
    rate_limit_rows_per_second: int = Field(default=0, ge=0)
    """Rows read per second by this worker; 0 means no limit."""

    @model_validator(mode="after")
    def _timeout_exceeds_interval(self) -> Self:
        if self.heartbeat_timeout_seconds <= self.heartbeat_interval_seconds:
            raise ValueError(
                f"heartbeatTimeoutSeconds {self.heartbeat_timeout_seconds} must be more than "
                f"heartbeatIntervalSeconds {self.heartbeat_interval_seconds}"
            )
        return self

    @property
    def write_deadline(self) -> float:
        """D of the design's rule 4: seconds a write may take, and the fence's margin."""
        return (self.heartbeat_timeout_seconds - self.heartbeat_interval_seconds) / 3


class RetryConfig(ConfigModel):
    """Pauses between tries of a failed write."""

    backoff_seconds: float = Field(default=1, gt=0)
    """First pause; doubles."""
    backoff_max_seconds: float = Field(default=60, gt=0)
    """Longest pause."""


class ColumnsConfig(ConfigModel):
    """Which attribute columns reach the sink, and under which names. Key columns always do, unchanged."""

    include: tuple[str, ...] = ()
    """Only these; empty means all."""
    exclude: tuple[str, ...] = ()
    """All but these."""
    rename: dict[str, str] = {}
    """Name at the source: name at the sink."""

    @model_validator(mode="after")
    def _do_not_contradict(self) -> Self:
        if self.include and self.exclude:
            raise ValueError("include and exclude contradict each other: allowed is one of them")
        targets = list(self.rename.values())
        for target in targets:
            if not target or targets.count(target) > 1:
                raise ValueError(f"rename: found {target!r} {targets.count(target)} times, names must differ")
        gone = sorted(set(self.rename) & set(self.exclude) or set(self.rename) - set(self.include or self.rename))
        if gone:
            raise ValueError(f"rename: {', '.join(gone)} is left out by include or exclude")
        return self


class FilterConfig(ConfigModel):
    """Which records reach the sink; all others count as processed."""

    actions: tuple[Literal["PUT", "UPDATE", "DELETE"], ...] = ("PUT", "UPDATE", "DELETE")
    """Kinds of change."""
    key_prefix: dict[str, str] = {}
    """Key column: text its value has to begin with. A key column that is no text does not match."""


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


class DeadLetterConfig(ConfigModel):
    """A place for refused records."""

    files: FileStoreConfig
    """Files of JSON lines: the record and the error."""


class DeliveryConfig(ConfigModel):
    """How records are grouped and what happens to refused ones."""

    batch_max_rows: int = Field(default=200, ge=1, le=200)
    """Rows per write; the service's maximum is 200."""
    batch_max_bytes: int = Field(default=4_000_000, ge=1024, le=4_194_304)
    """Bytes per write; the service's maximum is 4194304."""
    retry: RetryConfig = RetryConfig()
    columns: ColumnsConfig | None = None
    filter: FilterConfig | None = None
    on_permanent_error: Literal["Fail", "Skip", "DeadLetter"] = "Fail"
    """What happens to a record that the sink refuses for good. Fail ends the worker before it; Skip counts and logs it;
    DeadLetter stores it with the error. Skip and DeadLetter can leave partial rows at the sink."""
    dead_letter: DeadLetterConfig | None = None
    """Where DeadLetter stores records; while it cannot, their channel waits."""

    @model_validator(mode="after")
    def _dead_letters_have_a_place(self) -> Self:
        if (self.on_permanent_error == "DeadLetter") != (self.dead_letter is not None):
            raise ValueError(
                f"onPermanentError {self.on_permanent_error} and deadLetter "
                f"{'given' if self.dead_letter else 'missing'}: DeadLetter needs a place, and nothing else takes one"
            )
        return self


class TablestoreSinkConfig(InstanceConfig):
    """Another table; it exists already (the operator ensures it)."""

    table: str = Field(min_length=1)
    """Destination table."""


class StdoutSinkConfig(ConfigModel):
    """JSON lines on standard output, for looking."""


class CountSinkConfig(ConfigModel):
    """Counts and forgets; for measuring."""


class PythonSinkConfig(ConfigModel):
    """The user's own code."""

    factory: str = Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    """`package.module:name` of a ProcessorFactory, or of a function without arguments that returns one."""


class HttpSinkConfig(ConfigModel):
    """A web service that takes batches of CloudEvents."""

    url: str = Field(pattern=r"^https?://[^\s]+$")
    """Where batches are posted."""
    hmac_secret_file: Path | None = None
    """File with the secret that signs every request (Standard Webhooks); read again when it changes."""
    timeout_seconds: float = Field(default=30, gt=0, le=300)
    """Time a request may take."""


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


class KafkaSaslConfig(ConfigModel):
    """How the worker logs in at the brokers."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    """How the password is shown to a broker."""
    directory: Path
    """Folder with the files `username` and `password`. They are read again when they change."""


class KafkaSinkConfig(ConfigModel):
    """A topic; it exists already."""

    bootstrap_servers: tuple[Annotated[str, Field(pattern=r"^[^,\s/]+:\d{1,5}$")], ...] = Field(min_length=1)
    """Brokers to begin with, each as host:port."""
    topic: str = Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")
    """Topic of every record."""
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """What the brokers' listener speaks."""
    sasl: KafkaSaslConfig | None = None
    """Needed with SASL_PLAINTEXT and SASL_SSL, refused without."""
    ca_file: Path | None = None
    """PEM file with the certificates that the brokers' have to descend from; None means the system's."""
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "lz4"
    """How batches of records are compressed."""
    timeout_seconds: float = Field(default=30, ge=1, le=300)
    """Time after which a record without confirmation is sent again; never more than D of the design's rule 4."""

    @model_validator(mode="after")
    def _protocol_fits(self) -> Self:
        protocol = self.security_protocol
        if self.sasl is None and protocol.startswith("SASL_"):
            raise ValueError(f"sasl is missing, securityProtocol {protocol} needs it")
        if self.sasl is not None and not protocol.startswith("SASL_"):
            raise ValueError(
                f"sasl contradicts securityProtocol {protocol}: allowed with it are SASL_PLAINTEXT and SASL_SSL"
            )
        if self.ca_file is not None and not protocol.endswith("SSL"):
            raise ValueError(f"caFile contradicts securityProtocol {protocol}: allowed with it are SSL and SASL_SSL")
        return self


class SinkConfig(ConfigModel):
    """Exactly one member."""

    tablestore: TablestoreSinkConfig | None = None
    files: FilesSinkConfig | None = None
    http: HttpSinkConfig | None = None
    kafka: KafkaSinkConfig | None = None
    python: PythonSinkConfig | None = None
    stdout: StdoutSinkConfig | None = None
    count: CountSinkConfig | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"exactly one sink is needed, found {given or 'none'}")
        return self

    @property
    def kind(self) -> str:
        """Name of the member that is given."""
        return next(name for name in type(self).model_fields if getattr(self, name) is not None)


class HttpConfig(ConfigModel):
    """Where metrics, health and the channel list are served."""

    host: str = "127.0.0.1"
    """Address to listen on; the operator renders 0.0.0.0 for the pod's own network."""
    port: int = Field(default=8080, ge=0, le=65535)
    """Port; 0 takes a free one."""


class WorkerConfig(ConfigModel):
    """The whole document."""

    source: TunnelConfig
    sink: SinkConfig
    client: ClientConfig = ClientConfig()
    delivery: DeliveryConfig = DeliveryConfig()
    http: HttpConfig = HttpConfig()

    @model_validator(mode="after")
    def _sink_can_refuse(self) -> Self:
        policy, kind = self.delivery.on_permanent_error, self.sink.kind
        if policy != "Fail" and kind not in REFUSING_SINKS:
            raise ValueError(
                f"delivery.onPermanentError {policy} has no meaning with sink.{kind}, which refuses no single record: "
                f"allowed is Fail, or one of the sinks {', '.join(REFUSING_SINKS)}"
            )
        return self

    @model_validator(mode="after")
    def _destination_is_not_the_source(self) -> Self:
        sink = self.sink.tablestore
        if sink is not None and (sink.endpoint.rstrip("/"), sink.instance, sink.table) == (
            self.source.endpoint.rstrip("/"),
            self.source.instance,
            self.source.table,
        ):
            raise ValueError(
                f"sink.tablestore.table {sink.table!r} is the source itself: copying a table into itself never ends"
            )
        return self


def load_config(path: Path) -> WorkerConfig:
    """Read and check a worker document.

    Raises:
        ConfigError: the file is missing, no YAML, or a field is wrong; each wrong field is named with what
            was found and what is allowed.
    """
    try:
        document = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {error}") from error
    try:
        return WorkerConfig.model_validate(document)
    except ValidationError as error:
        raise ConfigError(f"{path}: {describe(error)}") from error


def describe(error: ValidationError) -> str:
    """One clause per wrong field: where, what was found, what is allowed."""
    clauses = []
    for item in error.errors(include_url=False):
        where = ".".join(str(part) for part in item["loc"]) or "document"
        # What stands under a name that is none of ours may be anything, a secret too.
        shown = item["type"] != "extra_forbidden" and not isinstance(item["input"], dict | list)
        found = f", found {item['input']!r}" if shown else ""
        clauses.append(f"{where}: {item['msg']}{found}")
    return "; ".join(clauses)


def dump_config(config: WorkerConfig) -> str:
    """The document as YAML, as the operator puts it into a ConfigMap; stable for equal configurations."""
    return yaml.safe_dump(config.model_dump(mode="json", by_alias=True, exclude_none=True), sort_keys=True)
