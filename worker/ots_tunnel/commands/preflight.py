"""What a command asks the service beforehand, so that a person learns what is wrong and not only that something is."""

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
from ots_tunnel.model import TunnelDescription, TunnelId

_T = TypeVar("_T")

logger = logging.getLogger(__name__)


async def check_tunnel(client: TunnelClient, source: TunnelConfig) -> None:
    """See that the tunnel of the document's id is there, and is the one that the document names.

    What may pass, or is only about this question, is left to the worker: it connects or says why it cannot.

    Raises:
        TunnelNotFound, TableNotFound, WrongTunnel, AuthFailed: it cannot be consumed.
    """
    try:
        found = await find_tunnel(client, source.table, source.tunnel_name, TunnelId(source.tunnel_id))
    except (ParameterInvalid, AuthFailed):
        raise
    except (ServiceError, TransportError, CodecError) as error:
        logger.info(
            "the tunnel cannot be looked at",
            extra={"action": LogAction.PREFLIGHT_FAILED, "tunnel_id": source.tunnel_id, "error": str(error)},
        )
        return
    tunnel = found.tunnel
    if tunnel.table_name != source.table:
        raise WrongTable(
            f"found {source.table!r}, but the tunnel {source.tunnel_id!r} is of table {tunnel.table_name!r}"
        )
    if tunnel.tunnel_name != source.tunnel_name:
        raise WrongTunnel(
            f"found {source.tunnel_name!r}, but the tunnel {source.tunnel_id!r} is called {tunnel.tunnel_name!r}"
        )


async def find_tunnel(
    client: TunnelClient, table: str, name: str, tunnel_id: TunnelId | None = None
) -> TunnelDescription:
    """Describe a tunnel.

    Raises:
        TunnelNotFound: there is none. TableNotFound: nor is there the table. ServiceError, TransportError: no answer.
    """
    return await _or_no_table(client, table, client.describe_tunnel(table, name, tunnel_id))


async def delete_tunnel(client: TunnelClient, table: str, name: str) -> None:
    """Delete a tunnel.

    Raises:
        TunnelNotFound, TableNotFound, ServiceError, TransportError: as `find_tunnel`.
    """
    await _or_no_table(client, table, client.delete_tunnel(table, name))


async def _or_no_table(client: TunnelClient, table: str, call: Awaitable[_T]) -> _T:
    try:
        return await call
    except TunnelNotFound as error:
        if await _is_missing(client, table):
            raise TableNotFound(error.code, error.message, error.request_id, error.http_status) from error
        raise


async def _is_missing(client: TunnelClient, table: str) -> bool:
    """Whether the table is surely not there: the Tunnel Service only says that the tunnel is not."""
    tables = TableClient(client.endpoint, client.instance, client.credentials)
    try:
        await tables.describe_table(table)
    except ObjectNotExist:
        return True
    except (ServiceError, TransportError, CodecError):
        return False  # whoever may read a tunnel may not have to know the table
    finally:
        await tables.close()
    return False
