"""Checks before a command runs, so that its error names the cause."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import TypeVar

from ots_tunnel.client.table import TableClient
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.config import TunnelConfig
from ots_tunnel.errors import (
    AuthFailed,
    CodecError,
    ObjectNotExist,
    ParameterInvalid,
    ServiceError,
    TableNotFound,
    TransportError,
    TunnelNotFound,
    WrongTable,
    WrongTunnel,
)
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import TunnelDescription, TunnelId, TunnelInfo

_T = TypeVar("_T")

logger = logging.getLogger(__name__)


async def check_tunnel(client: TunnelClient, source: TunnelConfig) -> None:
    """Check that the tunnel with the document's id exists and has the document's table and name.

    Other errors are logged only: they may pass, or concern the describing call alone. The worker connects and reports
    its own error if it cannot.

    Raises:
        TunnelNotFound, TableNotFound, WrongTunnel, AuthFailed: the tunnel cannot be consumed.
    """
    try:
        found = await find_tunnel(client, source.table, source.tunnel_name, TunnelId(source.tunnel_id))
    except (ParameterInvalid, AuthFailed):
        raise
    except (ServiceError, TransportError, CodecError) as error:
        logger.info(
            "tunnel cannot be described",
            extra={"action": LogAction.PREFLIGHT_FAILED, "tunnel_id": source.tunnel_id, "error": str(error)},
        )
        return
    tunnel = found.tunnel
    if tunnel.table_name != source.table:
        raise WrongTable(
            f"found {source.table!r}, but tunnel {source.tunnel_id!r} belongs to table {tunnel.table_name!r}"
        )
    if tunnel.tunnel_name != source.tunnel_name:
        raise WrongTunnel(
            f"found {source.tunnel_name!r}, but tunnel {source.tunnel_id!r} has the name {tunnel.tunnel_name!r}"
        )


async def find_tunnel(
    client: TunnelClient, table: str, name: str, tunnel_id: TunnelId | None = None
) -> TunnelDescription:
    """Describe a tunnel.

    Raises:
        TunnelNotFound: the tunnel does not exist. TableNotFound: the table does not exist either.
        ServiceError, TransportError: the call failed.
    """
    return await _with_table_error(client, table, client.describe_tunnel(table, name, tunnel_id))


async def list_tunnels(client: TunnelClient, table: str) -> tuple[TunnelInfo, ...]:
    """The tunnels of a table.

    Raises:
        TableNotFound: the table does not exist; the service answers with an empty list then.
        ServiceError, TransportError: the call failed.
    """
    found = await client.list_tunnels(table)
    if not found and (missing := await _missing_table(client, table)):
        raise missing
    return found


async def delete_tunnel(client: TunnelClient, table: str, name: str) -> None:
    """Delete a tunnel.

    Raises:
        TunnelNotFound, TableNotFound, ServiceError, TransportError: as `find_tunnel`.
    """
    await _with_table_error(client, table, client.delete_tunnel(table, name))


async def _with_table_error(client: TunnelClient, table: str, call: Awaitable[_T]) -> _T:
    """The call's result; a missing tunnel of a missing table becomes TableNotFound."""
    try:
        return await call
    except TunnelNotFound as error:
        if missing := await _missing_table(client, table):
            raise missing from error
        raise


async def _missing_table(client: TunnelClient, table: str) -> TableNotFound | None:
    """The error of a table that certainly does not exist; the Tunnel Service reports only what it has of it."""
    tables = TableClient(client.endpoint, client.instance, client.credentials)
    try:
        await tables.describe_table(table)
    except (ObjectNotExist, TableNotFound) as error:
        return TableNotFound(error.code, error.message, error.request_id, error.http_status)
    except (ServiceError, TransportError, CodecError):
        return None  # an AccessKey for tunnels may lack the permission to describe tables
    finally:
        await tables.close()
    return None
