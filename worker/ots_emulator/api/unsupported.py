"""Calls on features that no table has here: search and secondary indexes, delivery tasks, time series.

Answers are those of the service for a table without the feature: lists are empty, a named index does not exist. Calls
that create one, and SQL, are unsupported operations like any unknown name. The codes of these answers are certain, the
texts are guesses.

Source: docs/data-plane.md 1.5, 1.11; the names are those of the vendor's SDKs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ots_emulator.api.call import Call
from ots_emulator.refusal import Refusal, table_missing
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_API_VERSION, Operation

#: Calls that list indexes or tasks.
_LISTS: Final = ("ListSearchIndex", "ListDeliveryTask")
#: Calls that name an index or a task of a table.
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
    """Return an empty list.

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
        Refusal: always; no table has time series.
    """
    raise table_missing(request.table_name)


HANDLERS: Final[Mapping[str, Callable[[Call, Any], bytes]]] = {
    **dict.fromkeys(_LISTS, list_nothing),
    "ListTimeseriesTable": lambda call, request: b"",
    **{name: _no_part(kind) for name, kind in _PARTS.items()},
    **dict.fromkeys(_SERIES, no_series),
}

# All of them name their table in field 1, as ListStreamRequest does; other fields are not read.
OPERATIONS_BY_PATH: Final[Mapping[str, Operation]] = {
    f"/{name}": Operation(
        name, f"/{name}", pb.ListStreamRequest, pb.ListStreamResponse, idempotent=True, api_version=TABLE_API_VERSION
    )
    for name in HANDLERS
}
