"""Values and errors of the vendor's SDK."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest
import urllib3
from tablestore import OTSClientError, OTSServiceError
from urllib3.exceptions import MaxRetryError, NewConnectionError, ProtocolError, ReadTimeoutError

from ots_tunnel.errors import (
    AuthFailed,
    CodecError,
    ConnectError,
    ConnectionLost,
    ReadTimeout,
    TransportError,
    TunnelError,
)
from ots_tunnel.model import Action, CellOp
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.tables.schema import RowWrite
from ots_tunnel.tables.sdk import translate
from ots_tunnel.tables.sdk_values import sdk_row

POOL = urllib3.HTTPConnectionPool("shop.example.com")
REFUSED = NewConnectionError(urllib3.connection.HTTPConnection("shop.example.com"), "refused")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OTSServiceError(403, "OTSAuthFailed", "Signature mismatch."), AuthFailed),
        (OTSClientError("no such value"), CodecError),
        (REFUSED, ConnectError),
        (MaxRetryError(POOL, "/ListTable", REFUSED), ConnectError),
        (MaxRetryError(POOL, "/ListTable"), TransportError),
        (ReadTimeoutError(POOL, "/ListTable", "late"), ReadTimeout),
        (ProtocolError("cut"), ConnectionLost),
        (socket.gaierror(-2, "Name or service not known"), TransportError),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value.__name__,
)
def test_every_error_has_its_own_of_the_package(error: Exception, kind: type[TunnelError]) -> None:
    assert type(translate(error)) is kind


def test_an_update_keeps_each_operation_apart() -> None:
    columns = (
        Column("a", b"\x00", 7),
        Column("b", None, 7, CellOp.DELETE_ONE_VERSION),
        Column("c", None, None, CellOp.DELETE_ALL_VERSIONS),
        Column("d", 5, None, CellOp.INCREMENT),
    )

    item = sdk_row(RowWrite(Action.UPDATE, (("pk", "k"),), columns))

    assert item.row.attribute_columns == {
        "PUT": [("a", bytearray(b"\x00"), 7)],
        "DELETE": [("b", None, 7)],
        "DELETE_ALL": [("c", None)],
        "INCREMENT": [("d", 5)],
    }


def test_a_row_change_shows_no_values() -> None:
    assert repr(RowWrite(Action.PUT, (("pk", "hush"),), (Column("a", "hush", 7),))) == "RowWrite(PUT, 1 columns)"


WITHOUT_NUMPY = """
import sys
from ots_tunnel.tables.sdk import sdk
builder = sys.modules["flatbuffers"].Builder(0)
builder.Finish(builder.CreateString("text"))
assert b"text" in builder.Output()
assert sdk.OTSClient is not None
sys.exit("numpy" in sys.modules)
"""

WITH_NUMPY = """
import sys, numpy
import ots_tunnel.tables.sdk
import flatbuffers.compat
sys.exit(flatbuffers.compat.import_numpy() is not numpy)
"""


@pytest.mark.parametrize("program", [WITHOUT_NUMPY, WITH_NUMPY], ids=["unused", "used already"])
def test_numpy_is_not_imported_for_the_sdk_and_stays_where_it_is_used(program: str) -> None:
    assert subprocess.run([sys.executable, "-c", program], timeout=50, check=False).returncode == 0
