"""What can go wrong in a story with leases: the faults of a region that need no tunnel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tests.simulation import faults
from tests.simulation.faults import Kind

#: Calls of a worker: of the leases, of the shards, and of the destination.
_OPERATIONS = (
    *("GetRange", "GetRow", "UpdateRow", "UpdateRow", "PutRow"),
    *("ListStream", "DescribeStream", "GetShardIterator", "GetStreamRecord", "BatchWriteRow"),
)
_PASSING = ("OTSServerBusy", "OTSServerUnavailable", "OTSInternalServerError", "OTSTimeout")
_ERRORS = tuple(f"{operation} {code}" for operation in (*_OPERATIONS, "*") for code in _PASSING)
#: Kinds that are as in other stories.
_AS_THEY_ARE = (
    *("lose power", "hiccup", "suspend", "clock jump", "terminate", "slow disk", "dark", "slow", "hold", "isolated"),
    *("severed", "stale", "frozen", "cut", "forget", "down", "row errors"),
)

KINDS: Final[Mapping[str, Kind]] = {
    **{name: faults.KINDS[name] for name in _AS_THEY_ARE},
    # away for shorter, and for longer, than the lease lasts
    "kill": replace(faults.KINDS["kill"], weight=6, seconds=(0.02, 3.0)),
    "pause": replace(faults.KINDS["pause"], weight=8),
    "errors": replace(faults.KINDS["errors"], values=_ERRORS),
    "few errors": replace(faults.KINDS["few errors"], values=_ERRORS),
    "lost answers": replace(faults.KINDS["lost answers"], weight=8, values=_OPERATIONS),
    "broken answers": replace(faults.KINDS["broken answers"], values=_OPERATIONS),
    "split": replace(faults.KINDS["split"], weight=8),
    "merge": replace(faults.KINDS["merge"], weight=6),
}
