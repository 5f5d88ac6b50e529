"""Table administration through the vendor's SDK: describe, create, list, delete, and simple row writes.

`tables.sdk` is the only importer of `tablestore` (docs/architecture.md rule 20). The SDK's calls block, so
`AsyncTableAdmin` runs them in one bounded pool. Its errors are translated into the package's own.

What makes calls is imported on first access: a worker needs the schemas alone, and the SDK takes 24 MB.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ots_tunnel.model import KeyColumn as KeyColumn
from ots_tunnel.tables.schema import RowWrite as RowWrite
from ots_tunnel.tables.schema import TableSchema as TableSchema

if TYPE_CHECKING:
    from ots_tunnel.tables.admin import TableAdmin as TableAdmin
    from ots_tunnel.tables.async_admin import AsyncTableAdmin as AsyncTableAdmin
    from ots_tunnel.tables.pool import POOL_THREADS as POOL_THREADS
    from ots_tunnel.tables.pool import run_blocking as run_blocking

#: Public name -> module that defines it.
_HOMES = {
    "AsyncTableAdmin": "ots_tunnel.tables.async_admin",
    "POOL_THREADS": "ots_tunnel.tables.pool",
    "TableAdmin": "ots_tunnel.tables.admin",
    "run_blocking": "ots_tunnel.tables.pool",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
