"""Consume Tablestore tunnels.

The public names are those of the vendor's workers. Each is imported on first access, so that commands start fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ots_tunnel.version import __version__ as __version__

if TYPE_CHECKING:
    from ots_tunnel.client.sync_tunnel import SyncTunnelClient as SyncTunnelClient
    from ots_tunnel.client.tunnel import TunnelClient as TunnelClient
    from ots_tunnel.daemon import TunnelDaemon as TunnelDaemon
    from ots_tunnel.daemon import TunnelWorkerConfig as TunnelWorkerConfig
    from ots_tunnel.model import Credentials as Credentials
    from ots_tunnel.model import StreamConfig as StreamConfig
    from ots_tunnel.model import TunnelType as TunnelType
    from ots_tunnel.processor import ChannelContext as ChannelContext
    from ots_tunnel.processor import ChannelProcessor as ChannelProcessor
    from ots_tunnel.processor import SimpleProcessorFactory as SimpleProcessorFactory
    from ots_tunnel.protocol.record import Record as Record
    from ots_tunnel.stream.processing.processor import InitializationInput as InitializationInput
    from ots_tunnel.stream.processing.processor import ProcessRecordsInput as ProcessRecordsInput
    from ots_tunnel.stream.processing.processor import RecordProcessor as RecordProcessor
    from ots_tunnel.stream.processing.processor import RecordProcessorFactory as RecordProcessorFactory
    from ots_tunnel.stream.processing.processor import ShutdownInput as ShutdownInput
    from ots_tunnel.stream.processing.processor import ShutdownReason as ShutdownReason
    from ots_tunnel.stream.processing.settings import StreamWorkerConfig as StreamWorkerConfig
    from ots_tunnel.stream.processing.worker import StreamWorker as StreamWorker
    from ots_tunnel.worker.worker import TunnelWorker as TunnelWorker

#: Public name -> module that defines it.
_HOMES = {
    "ChannelContext": "ots_tunnel.processor",
    "ChannelProcessor": "ots_tunnel.processor",
    "Credentials": "ots_tunnel.model",
    "InitializationInput": "ots_tunnel.stream.processing.processor",
    "ProcessRecordsInput": "ots_tunnel.stream.processing.processor",
    "Record": "ots_tunnel.protocol.record",
    "RecordProcessor": "ots_tunnel.stream.processing.processor",
    "RecordProcessorFactory": "ots_tunnel.stream.processing.processor",
    "ShutdownInput": "ots_tunnel.stream.processing.processor",
    "ShutdownReason": "ots_tunnel.stream.processing.processor",
    "SimpleProcessorFactory": "ots_tunnel.processor",
    "StreamConfig": "ots_tunnel.model",
    "StreamWorker": "ots_tunnel.stream.processing.worker",
    "StreamWorkerConfig": "ots_tunnel.stream.processing.settings",
    "SyncTunnelClient": "ots_tunnel.client.sync_tunnel",
    "TunnelClient": "ots_tunnel.client.tunnel",
    "TunnelDaemon": "ots_tunnel.daemon",
    "TunnelType": "ots_tunnel.model",
    "TunnelWorker": "ots_tunnel.worker.worker",
    "TunnelWorkerConfig": "ots_tunnel.daemon",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
