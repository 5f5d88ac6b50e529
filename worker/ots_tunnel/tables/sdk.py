"""The only import of the vendor's SDK: connecting, and translating its errors."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import urllib3.exceptions

from ots_tunnel.errors import CodecError, ConnectError, ConnectionLost, ReadTimeout, TransportError, TunnelError
from ots_tunnel.model import Credentials
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel.tables.pool import POOL_THREADS

__all__ = ["ERRORS", "connect", "sdk", "translate"]


@contextlib.contextmanager
def _quiet_import() -> Iterator[None]:
    """Silence the SDK's messages about its compiled codec, which exists for one Python version only.

    The SDK warns twice and logs twice through each of two loggers; its pure Python codec then does the work.
    """
    loggers = [logging.getLogger(name) for name in ("tablestore.encoder", "tablestore.decoder")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="OTS C\\+\\+ SDK extension", category=ImportWarning)
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def _leave_numpy_out() -> None:
    """Let flatbuffers do without numpy, which takes 25 MB, for a function that the SDK does not call.

    flatbuffers imports it wherever it is installed, and the SDK imports flatbuffers, for a kind of tables that is not
    used here. In a process that has imported either of them already nothing changes.
    """
    spec = importlib.util.find_spec("flatbuffers")
    if spec is None or spec.loader is None or sys.modules.keys() & {"flatbuffers", "numpy"}:
        return
    # the package is there before its own first line, so that its part can be imported before it asks that
    package = sys.modules["flatbuffers"] = importlib.util.module_from_spec(spec)
    compat: Any = importlib.import_module("flatbuffers.compat")
    compat.import_numpy = lambda: None
    spec.loader.exec_module(package)


_leave_numpy_out()
with _quiet_import():
    import tablestore as sdk
    from tablestore.retry import DefaultRetryPolicy

# The SDK logs every refused call as an error, and below this level it formats each request with its rows and headers.
# Our callers get every failure as an exception.
_SDK_LOGGER = logging.getLogger("ots_tunnel.tables.sdk")
_SDK_LOGGER.setLevel(logging.CRITICAL)

#: Seconds for opening a connection, and for an answer; own choice, as each try occupies one of few threads.
SOCKET_TIMEOUT = 15.0

#: Retries inside the SDK for throttling and read errors, about three seconds in total; callers have their own loops.
MAX_RETRIES = 4

#: Errors of the SDK's calls.
ERRORS = (sdk.OTSServiceError, sdk.OTSClientError, urllib3.exceptions.HTTPError, OSError)


def connect(endpoint: str, instance: str, credentials: Credentials) -> Any:
    """The SDK's client of an instance; its first call opens a connection."""
    policy = DefaultRetryPolicy()
    policy.max_retry_times = MAX_RETRIES
    client = sdk.OTSClient(
        endpoint,
        credentials.access_key_id,
        credentials.access_key_secret,
        instance,
        sts_token=credentials.security_token,
        socket_timeout=SOCKET_TIMEOUT,
        logger_name=_SDK_LOGGER.name,
        max_connection=POOL_THREADS,
        retry_policy=policy,
    )
    # The connection pool would try four times, SOCKET_TIMEOUT each, in one of few threads.
    client.connection.pool.connection_pool_kw["retries"] = False
    return client


def translate(error: Exception) -> TunnelError:
    """The package's error for an error of the SDK, urllib3 or the socket."""
    match error:
        case sdk.OTSServiceError():
            return service_error(error.code, error.message, error.request_id or "", error.http_status)
        case sdk.OTSClientError():
            return CodecError(f"the SDK refused a request or an answer: {error}")
        case urllib3.exceptions.MaxRetryError() if error.reason is not None:
            return translate(error.reason)
        case urllib3.exceptions.NewConnectionError() | urllib3.exceptions.ConnectTimeoutError():
            return ConnectError(str(error))
        case urllib3.exceptions.ReadTimeoutError():
            return ReadTimeout(str(error))
        case urllib3.exceptions.ProtocolError():
            return ConnectionLost(str(error))
        case _:
            return TransportError(str(error))
