"""Calls on what no table has here: search and secondary indexes, delivery tasks, time series.

They answer as the service answers for a table without them: lists are empty, what is named does not exist. Calls that
would create one, and SQL, are unsupported operations like any unknown name. Only the code of these answers is certain,
the texts are guesses.

Source: docs/data-plane.md 1.5, 1.11; the names are those of the vendor's SDKs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ots_emulator.api.call import Call
from ots_emulator.refusal import Refusal, table_missing
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_API_VERSION, Operation

#: Calls that list what a table has.
_LISTS: Final = ("ListSearchIndex", "ListDeliveryTask")
#: Calls that name an index of a table, or a task.
_PARTS: Final = {
    **dict.fromkeys(
        ("DescribeSearchIndex", "UpdateSearchIndex", "DeleteSearchIndex", "Search", "ParallelScan", "ComputeSplits"),
        "index",
    ),
    "DropIndex": "index",
    **dict.fromkeys(("DescribeDeliveryTask", "UpdateDeliveryTask", "DeleteDeliveryTask"), "delivery task"),
}
#: Calls that name a time series table.
_SERIES: Final = (
    "DescribeTimeseriesTable",
    "UpdateTimeseriesTable",
    "DeleteTimeseriesTable",
    "PutTimeseriesData",
    "GetTimeseriesData",
    "QueryTimeseriesMeta",
    "UpdateTimeseriesMeta",
    "DeleteTimeseriesMeta",
    "SplitTimeseriesScanTask",
    "ScanTimeseriesData",
    "DescribeTimeseriesAnalyticalStore",
    "UpdateTimeseriesAnalyticalStore",
    "DeleteTimeseriesAnalyticalStore",
    "DeleteTimeseriesLastpointIndex",
)


def list_nothing(call: Call, request: pb.ListStreamRequest) -> bytes:
    """List what a table has, or all tables where none is named: nothing.

    Raises:
        Refusal: the table does not exist.
    """
    if request.table_name:
        call.instance.table(request.table_name)
    return b""


def _no_part(kind: str) -> Callable[[Call, pb.ListStreamRequest], bytes]:
    def handle(call: Call, request: pb.ListStreamRequest) -> bytes:
        call.instance.table(request.table_name)
        raise Refusal("OTSObjectNotExist", f"Requested {kind} does not exist.")

    return handle


def no_series(call: Call, request: pb.ListStreamRequest) -> bytes:
    """Refuse a call on a time series table.

    Raises:
        Refusal: always; a table of this name would be none of time series.
    """
    raise table_missing(request.table_name)


HANDLERS: Final[Mapping[str, Callable[[Call, Any], bytes]]] = {
    **dict.fromkeys(_LISTS, list_nothing),
    "ListTimeseriesTable": lambda call, request: b"",
    **{name: _no_part(kind) for name, kind in _PARTS.items()},
    **dict.fromkeys(_SERIES, no_series),
}

# All of them name their table in field 1, the rest of the messages does not matter here.
OPERATIONS_BY_PATH: Final[Mapping[str, Operation]] = {
    f"/{name}": Operation(
        name, f"/{name}", pb.ListStreamRequest, pb.ListStreamResponse, idempotent=True, api_version=TABLE_API_VERSION
    )
    for name in HANDLERS
}
