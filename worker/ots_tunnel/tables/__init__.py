"""Table administration through the vendor's SDK: describe, create, list, delete, and simple row writes.

`tables.sdk` is the only importer of `tablestore` (docs/architecture.md rule 20). The SDK's calls block, so
`AsyncTableAdmin` runs them in one bounded pool. Its errors are translated into the package's own.
"""

from ots_tunnel.model import KeyColumn
from ots_tunnel.tables.admin import TableAdmin
from ots_tunnel.tables.async_admin import AsyncTableAdmin
from ots_tunnel.tables.pool import POOL_THREADS, run_blocking
from ots_tunnel.tables.schema import RowWrite, TableSchema

__all__ = ["POOL_THREADS", "AsyncTableAdmin", "KeyColumn", "RowWrite", "TableAdmin", "TableSchema", "run_blocking"]
