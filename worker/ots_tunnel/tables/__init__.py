"""Tables through the vendor's SDK: describe, create, list, delete, and row writes for those who want them from it.

The only importer of `tablestore` (docs/architecture.md rule 20), in `sdk`. Its calls block, so `AsyncTableAdmin`
runs them in one bounded pool. Whatever the SDK raises is translated into the package's own errors.
"""

from ots_tunnel.model import KeyColumn
from ots_tunnel.tables.admin import TableAdmin
from ots_tunnel.tables.async_admin import AsyncTableAdmin
from ots_tunnel.tables.pool import POOL_THREADS, run_blocking
from ots_tunnel.tables.schema import RowWrite, TableSchema

__all__ = ["POOL_THREADS", "AsyncTableAdmin", "KeyColumn", "RowWrite", "TableAdmin", "TableSchema", "run_blocking"]
