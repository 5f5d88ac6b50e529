"""The worker's document: one YAML file, one frozen model.

The operator renders it from a TablestoreTunnel object, and `ots-tunnel run --config` reads it with the same model. It
contains no secrets: it names the folders whose files hold them. Field names in the document are camelCase, as in the
object.
"""

from __future__ import annotations

from ots_tunnel.config.base import ConfigModel, CredentialsConfig, InstanceConfig
from ots_tunnel.config.client import ClientConfig, TunnelConfig
from ots_tunnel.config.delivery import DeadLetterConfig, DeliveryConfig, RateLimitConfig, RetryConfig
from ots_tunnel.config.document import WorkerConfig, dump_config, load_config
from ots_tunnel.config.files import FileColumnConfig, FilesSinkConfig, FileStoreConfig
from ots_tunnel.config.kafka import KafkaSaslConfig, KafkaSinkConfig
from ots_tunnel.config.selection import BytesValue, ColumnsConfig, FilterConfig, KeyRangeConfig
from ots_tunnel.config.sink_document import SinkDocument
from ots_tunnel.config.sinks import (
    CountSinkConfig,
    HttpSinkConfig,
    PythonSinkConfig,
    SinkConfig,
    StdoutSinkConfig,
    TablestoreSinkConfig,
)
from ots_tunnel.config.stream import StreamClientConfig, StreamDocument, StreamSourceConfig, load_stream_document
from ots_tunnel.config.worker_document import HttpConfig, PaceConfig

__all__ = [
    "BytesValue",
    "ClientConfig",
    "ColumnsConfig",
    "ConfigModel",
    "CountSinkConfig",
    "CredentialsConfig",
    "DeadLetterConfig",
    "DeliveryConfig",
    "FileColumnConfig",
    "FileStoreConfig",
    "FilesSinkConfig",
    "FilterConfig",
    "HttpConfig",
    "HttpSinkConfig",
    "InstanceConfig",
    "KafkaSaslConfig",
    "KafkaSinkConfig",
    "KeyRangeConfig",
    "PaceConfig",
    "PythonSinkConfig",
    "RateLimitConfig",
    "RetryConfig",
    "SinkConfig",
    "SinkDocument",
    "StdoutSinkConfig",
    "StreamClientConfig",
    "StreamDocument",
    "StreamSourceConfig",
    "TablestoreSinkConfig",
    "TunnelConfig",
    "WorkerConfig",
    "dump_config",
    "load_config",
    "load_stream_document",
]
