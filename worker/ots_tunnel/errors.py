"""Every error of the package, and whether a repetition can succeed.

    TunnelError                          retryable: ClassVar[bool]
    |- Explained                         another error, explained for the user
    |- ConfigError                       a bad file, flag or field
    |    |- WrongLeaseTable              the table of leases is another kind of table, or something else writes to it
    |    `- QueryRefused                 a query of Spark cannot go on from where it stands
    |- NotChecked               (retry)  what should check a document ended without a result
    |- CodecError                        malformed bytes or a wrong checksum
    |- InvalidTransition                 a state machine got an impossible event
    |- TransportError           (retry)  ConnectError, ReadTimeout, ConnectionLost
    |- WrongTunnel                       the document's tunnel id belongs to another tunnel
    |    `- WrongTable                   ... of another table
    |- NoStream                          the stream of a table is switched off
    |- StreamReplaced                    ... and was switched on again: its shards are other ones
    |- ServiceError                      the service answered with an error code
    |    |- ServerUnavailable   (retry)  busy, throttled, internal
    |    |- ResourceGone                 the client is unknown: connect again with a new one
    |    |- SequenceNumberMismatch       read the checkpoint again
    |    |- TunnelExpired                terminal: the log the tunnel needs is gone
    |    |- ParameterInvalid             terminal: bad argument
    |    |    |- TunnelNotFound          the tunnel does not exist
    |    |    `- TableNotFound           the table does not exist (error of the Tunnel Service)
    |    |- PermissionDenied             terminal
    |    |- AuthFailed                   terminal
    |    |- ObjectNotExist               the table does not exist (error of the table service)
    |    |- ObjectAlreadyExist           table or tunnel exists
    |    `- RowRejected                  the row is the problem, not the call
    |- ProcessorFailed                   a user's callback raised: the channel is opened again from its checkpoint
    |- PossibleGap                       changes may be missing before the next records of a channel
    |- ReplayDiffers                     the records of a logged batch are not there again
    |- OwnershipLost                     the channel may belong to another client: stop without a checkpoint
    |- SourceUnanswered         (retry)  the source cannot be compared with the sink now
    `- SinkError                (retry)  SinkRejected (final: these records are the problem)
         `- WrongDestination             a SinkRejected: the destination cannot hold a copy of the source

Source: docs/protocol.md 1.10 and 5.3; docs/data-plane.md 1.10 and 1.11.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import ClassVar, Final

#: Code of the table's stream for records that it has dropped; the Tunnel Service has it at the beginning of its text.
TRIMMED: Final = "OTSTrimmedDataAccess"


class TunnelError(Exception):
    """Base of every error raised by this package."""

    retryable: ClassVar[bool] = False


class Explained(TunnelError):
    """Another error, explained for the user; raised from that error."""


class ConfigError(TunnelError):
    """A file, flag or field is wrong; the text names it, what was found and what is allowed."""


class WrongLeaseTable(ConfigError):
    """The table that is to hold leases is another kind of table, or holds rows that something else has written."""


class QueryRefused(ConfigError):
    """A query of Spark cannot go on from where it stands, whoever tries it again."""


class NotChecked(TunnelError):
    """The process that should check a document ended without a result, such as by a limit of memory."""

    retryable: ClassVar[bool] = True


class CodecError(TunnelError):
    """Malformed bytes or a checksum that does not match.

    Args:
        message: what was expected.
        offset: byte position in the buffer; -1 if unknown.
    """

    def __init__(self, message: str, offset: int = -1) -> None:
        super().__init__(message)
        self.offset = offset

    def __str__(self) -> str:
        where = f" at byte {self.offset}" if self.offset >= 0 else ""
        return f"{self.args[0]}{where}"


class InvalidTransition(TunnelError):
    """A state machine has no transition for this event; its state is unchanged."""

    def __init__(self, state: object, event: object) -> None:
        super().__init__(state, event)
        self.state = state
        self.event = event

    def __str__(self) -> str:
        return f"no transition from {self.state} on {self.event}"


class WrongTunnel(TunnelError):
    """The tunnel with the given id has another name than the given one."""


class WrongTable(WrongTunnel):
    """The tunnel with the given id belongs to another table than the given one."""


class NoStream(TunnelError):
    """The stream of a table is switched off, so that the table has no shards to read.

    Args:
        table: its name.
    """

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table

    def __str__(self) -> str:
        return f"table {self.table!r} has no stream: switch it on with a retention of 1 to 168 hours"


class StreamReplaced(TunnelError):
    """The stream of a table was switched off and on again while it was followed: its shards are other ones.

    Args:
        table: its name.
        stream_id: the stream that was followed. found: the present one.
    """

    def __init__(self, table: str, stream_id: str, found: str) -> None:
        super().__init__(table, stream_id, found)
        self.table = table
        self.stream_id = stream_id
        self.found = found

    def __str__(self) -> str:
        return (
            f"the stream of table {self.table!r} was switched off and on again: found {self.found!r}, followed was "
            f"{self.stream_id!r}, of which nothing more can be read; changes from between the two are in neither: copy "
            "the table again, or start again to follow the new one"
        )


class TransportError(TunnelError):
    """No answer was received; the request may or may not have been executed."""

    retryable: ClassVar[bool] = True


class ConnectError(TransportError):
    """The connection could not be opened; the request was not executed."""


class ReadTimeout(TransportError):
    """The answer did not arrive in time."""


class ConnectionLost(TransportError):
    """The connection broke before the answer was complete."""


class ServiceError(TunnelError):
    """The service answered with an error.

    Args:
        code: the service's code, such as ``OTSParameterInvalid``.
        message: the service's text.
        request_id: ``x-ots-requestid`` of the answer; empty if it had none.
        http_status: 400 to 599.
    """

    def __init__(self, code: str, message: str, request_id: str = "", http_status: int = 0) -> None:
        super().__init__(code, message, request_id, http_status)
        self.code = code
        self.message = message
        self.request_id = request_id
        self.http_status = http_status

    def __str__(self) -> str:
        return f"{self.code}: {self.message} (http {self.http_status}, request {self.request_id or 'unknown'})"


class ServerUnavailable(ServiceError):
    """The service is busy, throttling or temporarily broken."""

    retryable: ClassVar[bool] = True


class ResourceGone(ServiceError):
    """The client is unknown to the service: connect again with a new client."""


class SequenceNumberMismatch(ServiceError):
    """The checkpoint's sequence number is stale: another checkpoint was stored since."""


class TunnelExpired(ServiceError):
    """The part of the log that the tunnel needs is past its retention; the tunnel has to be created again."""

    @property
    def is_trimmed(self) -> bool:
        """Whether one read was refused: the service may go on from another cursor once the channel is opened again."""
        return TRIMMED in (self.code, self.message[: len(TRIMMED)])


class ParameterInvalid(ServiceError):
    """A bad argument, or the table or tunnel does not exist."""


class TunnelNotFound(ParameterInvalid):
    """The tunnel does not exist."""


class TableNotFound(ParameterInvalid):
    """The table does not exist; error of the Tunnel Service."""


class PermissionDenied(ServiceError):
    """The credentials lack a permission, or the instance belongs to another account."""


class AuthFailed(ServiceError):
    """The key is unknown, the signature wrong, or the clock too far off."""


class ObjectNotExist(ServiceError):
    """The table does not exist; error of the table service."""


class LeaseTableNotFound(ObjectNotExist):
    """The table of leases of a stream's workers does not exist; the message begins with its name."""


class ObjectAlreadyExist(ServiceError):
    """The table or tunnel exists already."""


class RowRejected(ServiceError):
    """The service refuses this row permanently."""


class ProcessorFailed(TunnelError):
    """A callback of the user raised; its channel is opened again from the last checkpoint after the next heartbeat."""


_TIME = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00)"
#: The text of PossibleGap.
_POSSIBLE_GAP = re.compile(rf"channel (\S+): changes from {_TIME} to {_TIME} may be missing")


class PossibleGap(TunnelError):
    """Changes may be missing: they were not read while the stream kept them, and the service went on without them.

    Args:
        channel_id: the channel whose next records lie behind them.
        start, end: Unix seconds; what was committed between them may be missing.
    """

    def __init__(self, channel_id: str, start: float, end: float) -> None:
        super().__init__(channel_id, start, end)
        self.channel_id = channel_id
        self.start = start
        self.end = end

    def __str__(self) -> str:
        start, end = (
            datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds") for time in (self.start, self.end)
        )
        return (
            f"channel {self.channel_id}: changes from {start} to {end} may be missing, because they were not read "
            "while the stream kept them"
        )

    @classmethod
    def read(cls, text: str) -> PossibleGap | None:
        """The error that a text such as a termination message tells of; None where it tells of another one."""
        found = _POSSIBLE_GAP.search(text)
        if found is None:
            return None
        start, end = (datetime.fromisoformat(time).timestamp() for time in found.group(2, 3))
        return cls(found[1], start, end)


class ReplayDiffers(TunnelError):
    """A batch that was planned before cannot be read again as it was.

    Args:
        channel_id: the channel whose records differ.
        what: found and expected.
    """

    def __init__(self, channel_id: str, what: str) -> None:
        super().__init__(channel_id, what)
        self.channel_id = channel_id
        self.what = what

    def __str__(self) -> str:
        return (
            f"channel {self.channel_id}: the batch that was planned before cannot be read again: {self.what}; begin "
            "with a new checkpointLocation, which may repeat records"
        )


class OwnershipLost(TunnelError):
    """The channel may belong to another client: stop without a checkpoint."""


class SourceUnanswered(TunnelError):
    """The source does not answer, so that the sink, which does, cannot be compared with it."""

    retryable: ClassVar[bool] = True


class SinkError(TunnelError):
    """The sink did not confirm a batch, which can be tried again."""

    retryable: ClassVar[bool] = True


#: Keys that a refusal names at most: a page may hold thousands, and a log line has room for about ten.
MAX_REFUSED_KEYS = 10


class SinkRejected(SinkError):
    """The sink refuses records permanently.

    Args:
        code: the sink's reason code.
        message: the sink's text.
        keys: primary keys of the refused records as text, at most MAX_REFUSED_KEYS.
    """

    retryable: ClassVar[bool] = False

    def __init__(self, code: str, message: str, keys: tuple[str, ...] = ()) -> None:
        super().__init__(code, message, keys)
        self.code = code
        self.message = message
        self.keys = keys

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class WrongDestination(SinkRejected):
    """The destination cannot hold an equal copy of the source: another primary key, fewer versions, a shorter life."""


def first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first failure of a task group; the other failures usually follow from it."""
    error = group.exceptions[0]
    return first_error(error) if isinstance(error, BaseExceptionGroup) else error
