"""The table of leases comes into being: once, whichever of its workers starts first."""

from __future__ import annotations

import asyncio

from ots_tunnel.client.table_calls import TableDescription, describe_table_result
from ots_tunnel.errors import ObjectAlreadyExist, ServerUnavailable, TunnelError, WrongLeaseTable
from ots_tunnel.model import KeyColumn, KeyType
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.service_codes import is_refusal
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.lease.requests import create_table_request
from ots_tunnel.stream.lease.row import KEY_NAMES
from ots_tunnel.stream.shards import ShardId

#: Seconds until a new table answers at the latest, and between two looks, as in the Java library.
READY_SECONDS = 120.0
LOOK_SECONDS = 0.1
#: A name that no stream and no shard has.
_NOTHING = ShardId("NotExistLease")
_KEYS = tuple(KeyColumn(name, KeyType.STRING) for name in KEY_NAMES)


async def create_lease_table(table: LeaseTable, *, ready_seconds: float = READY_SECONDS) -> None:
    """Create the table if it does not exist, and wait until it answers.

    The tables are listed first: on an instance that may have no further table CreateTable answers by OTSQuotaExhausted,
    even if the table exists.

    Raises:
        WrongLeaseTable: a table of this name is not one for leases.
        ServerUnavailable: the table did not answer in time.
        ServiceError, TransportError: a call failed.
    """
    give_up = asyncio.get_running_loop().time() + ready_seconds
    while table.name not in (await table.call("ListTable", pb.ListTableRequest())).table_names:
        try:
            await table.call("CreateTable", create_table_request(table.name))
            break
        except ObjectAlreadyExist:
            break  # another worker was faster
        except TunnelError as error:
            if is_refusal(error):
                raise
            await _look_again(give_up, error)  # without an answer the list tells
    await look_at_table(table)
    while True:
        try:
            await table.get(_NOTHING, _NOTHING)
            return
        except ServerUnavailable as error:
            await _look_again(give_up, error)


async def look_at_table(table: LeaseTable) -> None:
    """Refuse a table that is not one for leases, by its description.

    Raises:
        WrongLeaseTable: names what differs. TunnelError: the call failed.
    """
    answer = await table.call("DescribeTable", pb.DescribeTableRequest(table_name=table.name))
    check_lease_table(describe_table_result(answer))


def check_lease_table(found: TableDescription) -> None:
    """Refuse a table that is not one for leases.

    Raises:
        WrongLeaseTable: names what differs.
    """
    check_lease_key(found)
    if found.time_to_live != -1:
        # Parents are written once: they would expire, and with them the row as a lease.
        ttl = found.time_to_live
        raise WrongLeaseTable(f"time to live of lease table {found.name!r}: found {ttl} s, allowed is -1")
    if not found.allow_update:
        raise WrongLeaseTable(f"updates of lease table {found.name!r}: found not allowed, they have to be")


def check_lease_key(found: TableDescription) -> None:
    """Refuse a table whose primary key is not that of leases: it never can be one for them.

    Raises:
        WrongLeaseTable: names both keys.
    """
    if found.primary_key != _KEYS:
        keys = ", ".join(f"{key.name} {key.type.name}" for key in found.primary_key)
        allowed = ", ".join(f"{name} STRING" for name in KEY_NAMES)
        raise WrongLeaseTable(f"primary key of lease table {found.name!r}: found {keys}, allowed is {allowed}")


async def _look_again(give_up: float, error: TunnelError) -> None:
    if asyncio.get_running_loop().time() > give_up:
        raise error
    await asyncio.sleep(LOOK_SECONDS)
