"""Calls of the service that the emulator lacks: indexes, SQL, time series, delivery tasks, bulk calls, global tables,
knowledge bases, memory stores.

Each is refused in words, whatever it names: an empty list or a missing index would say something about the caller's
data that is not known here. Names that no SDK knows are unsupported operations, as the service says it.

Source: the names are those of the vendor's SDKs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ots_emulator.api.call import Call
from ots_emulator.ledger import guessed
from ots_emulator.refusal import parameter_invalid, unavailable
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_API_VERSION, Operation

#: What is missing, with its calls.
GAPS: Final[Mapping[str, tuple[str, ...]]] = {
    "secondary indexes": ("CreateIndex", "DropIndex", "AddDefinedColumn", "DeleteDefinedColumn"),
    "search indexes": (
        "CreateSearchIndex",
        "UpdateSearchIndex",
        "ListSearchIndex",
        "DescribeSearchIndex",
        "DeleteSearchIndex",
        "Search",
        "ParallelScan",
        "ComputeSplits",
    ),
    "SQL": ("SQLQuery",),
    "bulk calls": ("BulkImport", "BulkExport"),
    "delivery tasks": (
        "CreateDeliveryTask",
        "UpdateDeliveryTask",
        "ListDeliveryTask",
        "DescribeDeliveryTask",
        "DeleteDeliveryTask",
    ),
    "global tables": (
        "CreateGlobalTable",
        "UpdateGlobalTable",
        "DescribeGlobalTable",
        "BindGlobalTable",
        "UnbindGlobalTable",
    ),
    "knowledge bases": (
        "CreateKnowledgeBase",
        "UpdateKnowledgeBase",
        "ListKnowledgeBase",
        "DescribeKnowledgeBase",
        "DeleteKnowledgeBase",
        "AddDocuments",
        "UpdateDocument",
        "GetDocument",
        "ListDocuments",
        "DeleteDocuments",
        "UpdateChunks",
        "ListChunks",
        "Retrieve",
    ),
    "memory stores": (
        "CreateMemoryStore",
        "UpdateMemoryStore",
        "GetMemoryStore",
        "ListMemoryStores",
        "ListMemoryStoreMessages",
        "ListMemoryStoreRequests",
        "ListMemoryStoreScopes",
        "DeleteMemoryStore",
        "AddMemories",
        "UpdateMemory",
        "GetMemory",
        "ListMemories",
        "SearchMemories",
        "DeleteMemory",
        "GetMemoryTask",
        "ListMemoryTasks",
        "CreateMemoryDreamTask",
        "GetMemoryDreamTask",
        "ListMemoryDreamTasks",
        "CancelMemoryDreamTask",
        "ListMemoryDreamActions",
        "ApplyMemoryDreamActions",
    ),
    "time series": (
        "CreateTimeseriesTable",
        "UpdateTimeseriesTable",
        "ListTimeseriesTable",
        "DescribeTimeseriesTable",
        "DeleteTimeseriesTable",
        "PutTimeseriesData",
        "GetTimeseriesData",
        "QueryTimeseriesMeta",
        "UpdateTimeseriesMeta",
        "DeleteTimeseriesMeta",
        "SplitTimeseriesScanTask",
        "ScanTimeseriesData",
        "CreateTimeseriesAnalyticalStore",
        "UpdateTimeseriesAnalyticalStore",
        "DescribeTimeseriesAnalyticalStore",
        "DeleteTimeseriesAnalyticalStore",
        "CreateTimeseriesLastpointIndex",
        "DeleteTimeseriesLastpointIndex",
    ),
}


def _refuse(name: str) -> Callable[[Call, Any], bytes]:
    def handle(call: Call, request: Any) -> bytes:
        raise parameter_invalid(unavailable(name))

    return handle


HANDLERS: Final[Mapping[str, Callable[[Call, Any], bytes]]] = {
    name: _refuse(name) for names in GAPS.values() for name in names
}

# Nothing of these requests is read: every field is unknown to the message of ListTable.
OPERATIONS_BY_PATH: Final[Mapping[str, Operation]] = {
    f"/{name}": Operation(
        name, f"/{name}", pb.ListTableRequest, pb.ListTableResponse, idempotent=True, api_version=TABLE_API_VERSION
    )
    for name in HANDLERS
}

LEDGER: Final = (
    guessed(", ".join(sorted(HANDLERS)), "`... is not available in this emulator`", "the service has these calls"),
)
