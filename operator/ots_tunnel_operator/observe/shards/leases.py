"""The leases of a stream, and whether a worker would start with the settings of their table. Changes nothing.

A table that does not exist has no leases: the first worker creates it. One with another key refuses the range, and can
never be one for leases. Any other one is described once a minute, and in each look while a setting of it does not fit:
so a corrected one is noticed at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeVar

from ots_tunnel.errors import ObjectNotExist, ServiceError, WrongLeaseTable
from ots_tunnel.stream.calls.lease_table import Listing
from ots_tunnel.stream.calls.lease_table_creation import check_lease_key, check_lease_table
from ots_tunnel_operator.instance import Instance
from ots_tunnel_operator.loop_cache import LoopCache

#: Seconds for which a table that fits is not described again.
FITS_SECONDS = 60.0

R = TypeVar("R")


class Caller(Protocol):
    """Makes a call of a look in its turn."""

    async def __call__(self, call: Callable[[], Awaitable[R]], *, about: str) -> R:
        """The answer; `about` names what the call is about."""


async def look_at_leases(instance: Instance, cache: LoopCache, make: Caller) -> tuple[Listing, str]:
    """The leases that the cache's `leases_of` names, and which setting of their table keeps workers from starting.

    Raises:
        WrongLeaseTable: the table is none for leases.
        TunnelError: a call failed.
    """
    table, stream_id = cache.leases_of
    describe = partial(make, partial(instance.rows.describe_table, table), about=f"table {table}")
    try:
        listing = await make(partial(instance.leases(table).list, stream_id), about=table)
    except ObjectNotExist:
        cache.leases_fit = None
        return Listing(()), ""
    except ServiceError:
        # a table with another key refuses the range; what it is tells its description
        check_lease_key(await describe())
        raise
    now = asyncio.get_running_loop().time()
    if cache.leases_fit is not None and now - cache.leases_fit < FITS_SECONDS:
        return listing, ""
    cache.leases_fit = None
    try:
        check_lease_table(await describe())
    except ObjectNotExist:
        return Listing(()), ""
    except WrongLeaseTable as error:
        return listing, str(error)
    cache.leases_fit = now
    return listing, ""
