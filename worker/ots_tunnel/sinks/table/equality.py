"""Whether the destination can hold an equal copy of the source, before the first row is written.

A table that keeps fewer versions, or cells for a shorter time, takes every write and is another table in the end,
without an error. So the sink compares both tables when it is opened, as the operator and `ots-tunnel replicate` do
before.
"""

from __future__ import annotations

import logging

from ots_tunnel.client.table import TableClient
from ots_tunnel.client.table_calls import TableDescription
from ots_tunnel.config import SinkDocument
from ots_tunnel.credentials import FileCredentials
from ots_tunnel.errors import (
    AuthFailed,
    CodecError,
    ObjectNotExist,
    ParameterInvalid,
    PermissionDenied,
    ServiceError,
    SourceUnanswered,
    TransportError,
    WrongDestination,
)
from ots_tunnel.log_actions import LogAction
from ots_tunnel.tables.compatibility import check_destination
from ots_tunnel.tables.schema import TableSchema

logger = logging.getLogger(__name__)

#: Answers about the source itself, which another try would get as well.
_FINAL = (AuthFailed, ObjectNotExist, ParameterInvalid)
#: In the place of the service's code: it would have taken the writes.
CODE = "DestinationIncompatible"


class SourceTable:
    """The table that is copied, as it is when it is asked for.

    Args:
        client: its instance; closed by `close`.
    """

    def __init__(self, client: TableClient, table: str) -> None:
        self._client = client
        self._table = table

    @classmethod
    def of(cls, config: SinkDocument) -> SourceTable:
        """The source of a worker's document.

        Raises:
            ConfigError: files of credentials are missing.
        """
        source = config.source
        credentials = FileCredentials(source.credentials.directory).checked("source.credentials.directory")
        return cls(TableClient(source.endpoint, source.instance, credentials), source.table)

    def __repr__(self) -> str:
        return f"SourceTable({self._table})"

    @property
    def _where(self) -> str:
        return (
            f"source.table {self._table!r} in instance {self._client.instance!r} at {self._client.endpoint}, with "
            "which the sink's table is compared"
        )

    async def check(self, destination: TableDescription, where: str) -> None:
        """Refuse a destination that cannot be equal.

        A source that may not be described is none to compare with: reading it needs other rights. Every other error,
        such as the page of a load balancer, says nothing about rights: the copy does not begin without the comparison.

        Args:
            where: names the destination.

        Raises:
            WrongDestination: it cannot; names each property. SourceUnanswered: the source cannot be described now.
            ServiceError: it is not there, or refuses the AccessKey.
        """
        try:
            source = await self._client.describe_table(self._table)
        except PermissionDenied as error:
            logger.warning(
                "the source table may not be described, so that the sink's table was not compared with it",
                extra={"action": LogAction.SINK_NOT_COMPARED, "error": str(error)},
            )
            return
        except _FINAL as error:
            text = f"{self._where}: {error.message}"
            raise type(error)(error.code, text, error.request_id, error.http_status) from error
        except (ServiceError, TransportError, CodecError) as error:
            raise SourceUnanswered(f"{self._where}: {error}") from error
        problems = check_destination(_schema(source), _schema(destination))
        if problems:
            found = "; ".join(map(str, problems))
            raise WrongDestination(
                CODE, f"{where}: {found}: alter the table, or name another one; `ots-tunnel replicate` creates one"
            )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def _schema(table: TableDescription) -> TableSchema:
    return TableSchema(
        table.name,
        table.primary_key,
        table.defined_columns,
        table.time_to_live,
        table.max_versions,
        table.max_version_deviation,
        table.allow_update,
    )
