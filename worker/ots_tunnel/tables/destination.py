"""Creation of the destination table, or a check that an existing one fits (`compatibility`).

The operator and the commands call `ensure_destination` before a tunnel exists; workers never do
(docs/architecture.md 3.2).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from ots_tunnel.endpoint import table_identity
from ots_tunnel.errors import (
    ConfigError,
    ConnectError,
    ObjectAlreadyExist,
    ObjectNotExist,
    ServerUnavailable,
    TransportError,
    TunnelError,
)
from ots_tunnel.protocol.service_codes import is_refusal
from ots_tunnel.tables import AsyncTableAdmin, TableAdmin, TableSchema
from ots_tunnel.tables.compatibility import Problem, check_destination, planned_schema
from ots_tunnel.tables.interface import Place, Tables

#: Seconds within which a new table must answer row calls; the service needs up to a minute (docs/data-plane.md 2.4).
READY_DEADLINE = 120.0

#: Seconds between two checks of a new table.
READY_PAUSE = 1.0


@dataclass(frozen=True, slots=True)
class DestinationResult:
    """The table that `ensure_destination` found or created; usable if there are no problems."""

    created: bool
    schema: TableSchema | None
    problems: tuple[Problem, ...] = ()

    @property
    def usable(self) -> TableSchema | None:
        """The table, if it exists and fits; None otherwise."""
        return None if self.problems else self.schema


@dataclass(slots=True)
class CreateCall:
    """What became of the one call that may create the table.

    Args:
        before_send: called right before the call; what it raises is raised, and nothing is sent.
    """

    before_send: Callable[[], None] | None = None
    may_have_created: bool = False
    """Whether the table may exist because of this call; False before it, and where it was not sent or was refused."""
    is_given_up: bool = False
    """Whether nobody waits for the call any more: where it was not sent yet, it never is."""

    def send(self, destination: TableAdmin, schema: TableSchema) -> bool:
        """Create the table; False where it exists already. Errors as of `TableAdmin.create`."""
        # set before the look: whoever gives the call up first and reads this afterwards cannot miss a call that is sent
        self.may_have_created = True
        try:
            self._check()
        except BaseException:
            self.may_have_created = False
            raise
        try:
            destination.create(schema)
        except ObjectAlreadyExist:
            # Another process was faster: the following check decides.
            self.may_have_created = False
            return False
        except TunnelError as error:
            self.may_have_created = not is_refusal(error)
            raise
        return True

    def _check(self) -> None:
        if self.is_given_up:
            raise ConnectError("the call was given up before it was sent")
        if self.before_send is not None:
            self.before_send()


async def ensure_destination(
    source: TableAdmin | Tables,
    destination: TableAdmin | Tables,
    source_table: str,
    destination_table: str,
    *,
    create: bool,
    deadline: float = READY_DEADLINE,
    call: CreateCall | None = None,
) -> DestinationResult:
    """Make sure that the destination exists, fits and answers; a second call changes nothing.

    The SDK's calls block, so they run in the pool of `run_blocking`; no thread is held while a new table gets ready.
    A caller with another client for the looks passes `Tables`.

    Args:
        source: instance of the source.
        destination: instance of the destination.
        source_table: table to copy.
        destination_table: table to copy into.
        create: create it when it is missing; False reports a problem instead.
        deadline: seconds within which a new table must answer.
        call: tells afterwards, errors included, whether the table may have been created.

    Raises:
        ConfigError: the destination is the source.
        ObjectNotExist: the source table does not exist.
        ServerUnavailable: the destination does not answer by the deadline.
        ServiceError, TransportError: as the service and the network report.
    """
    looked = _tables(destination)
    creating = (call or CreateCall()) if create else None
    result = await _make(_tables(source), looked, source_table, destination_table, creating)
    until = time.monotonic() + deadline
    while result.usable is not None and not await _answers(looked, result.usable):
        _check_deadline(result.usable, time.monotonic() >= until)
        await asyncio.sleep(READY_PAUSE)
    return result


def _tables(found: TableAdmin | Tables) -> Tables:
    return AsyncTableAdmin(found) if isinstance(found, TableAdmin) else found


async def _make(
    source: Tables, destination: Tables, source_table: str, destination_table: str, call: CreateCall | None
) -> DestinationResult:
    refuse_same_table(source, destination, source_table, destination_table)
    wanted = await source.describe(source_table)
    if wanted is None:
        raise ObjectNotExist("OTSObjectNotExist", f"source table {source_table!r} does not exist", http_status=404)
    found = await destination.describe(destination_table)
    created = False
    if found is None and call is not None:
        created = await destination.create_by(call.send, planned_schema(wanted, destination_table))
        found = await destination.describe(destination_table)
    if found is None:
        return DestinationResult(created, None, (Problem("table", "no such table", f"table {destination_table!r}"),))
    return DestinationResult(created, found, check_destination(wanted, found))


def refuse_same_table(source: Place, destination: Place, source_table: str, destination_table: str) -> None:
    """Refuse a copy of a table into itself: it would follow its own writes without end (docs/architecture.md 4.4).

    Raises:
        ConfigError: both are one table.
    """
    one = table_identity(source.endpoint, source.instance, source_table)
    if one == table_identity(destination.endpoint, destination.instance, destination_table):
        raise ConfigError(
            f"sink.tablestore.table: {destination_table!r} in instance {destination.instance!r} is the source itself, "
            "a copy of a table into itself never ends"
        )


def _check_deadline(schema: TableSchema, late: bool) -> None:
    if late:
        raise ServerUnavailable("OTSTableNotReady", f"table {schema.name!r} does not answer row calls yet")


async def _answers(destination: Tables, schema: TableSchema) -> bool:
    try:
        return await destination.answers(schema.name, schema)
    except (ServerUnavailable, TransportError):
        return False
