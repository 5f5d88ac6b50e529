"""What happens to the changes of one request until each is stored or refused: pure (docs/architecture.md 4.2).

The shell does what `step` says and reports back with `answered` or `failed`. Rules: every row's status counts;
only failed rows with transient codes are sent again; a request that is refused as a whole because of some row is
halved until the row is found; a request whose answer was lost is sent again as it was, which is harmless because
cells carry their versions (docs/architecture.md 4.3). But not before its deadline is over: it may still take effect
until then, and what follows the repetition must not be overtaken by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ots_tunnel.client.retry import REFUSED_CODES
from ots_tunnel.client.table_calls import RowOutcome
from ots_tunnel.errors import (
    CodecError,
    ConnectError,
    ParameterInvalid,
    RowRejected,
    ServiceError,
    SinkRejected,
    TransportError,
    TunnelError,
)
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel.sinks.key_text import key_text
from ots_tunnel.sinks.table.row_change import Change

#: Refused rows that are looked for and named in one error.
MAX_REJECTIONS = 10


@dataclass(frozen=True, slots=True)
class Send:
    """Write these changes in one request."""

    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait before the next step: `attempt` counts the failures in a row, `code` is the last one's.

    `in_doubt` says that what was sent last may still take effect: nothing is sent before its deadline is over.
    """

    seconds: float
    attempt: int
    code: str
    in_doubt: bool = False

    def wait(self, in_doubt: float) -> float:
        """Seconds to wait when the last request may still take effect for `in_doubt` seconds: none may overtake it."""
        return max(self.seconds, in_doubt) if self.in_doubt else self.seconds


@dataclass(frozen=True, slots=True)
class Rejection:
    """A change that the service refuses for good."""

    change: Change
    code: str
    message: str

    @property
    def is_about_the_row(self) -> bool:
        """Whether other rows may be taken still; what is wrong with table or rights concerns them all."""
        return isinstance(service_error(self.code, self.message), ParameterInvalid | RowRejected)


class Delivery:
    """The changes of one request on their way.

    Args:
        most_rejections: so many refused changes end it.
    """

    def __init__(self, changes: Sequence[Change], backoff: Backoff, most_rejections: float = MAX_REJECTIONS) -> None:
        #: Groups still to be sent, the next one last.
        self._groups: list[tuple[Change, ...]] = [tuple(changes)]
        self._backoff = backoff
        self._attempt = 0
        self._failure: str | None = None
        self._in_doubt = False
        self._most_rejections = most_rejections
        self.rejections: list[Rejection] = []

    def __repr__(self) -> str:
        rows = sum(map(len, self._groups))
        return f"Delivery({rows} rows left, attempt {self._attempt}, {len(self.rejections)} rejected)"

    def step(self, entropy: float) -> Send | Pause | None:
        """What to do now; None when every change is stored or refused, or enough are refused.

        Args:
            entropy: random number in [0, 1) for the pause.
        """
        if not self._groups or len(self.rejections) >= self._most_rejections:
            return None
        if self._failure is not None:
            seconds = self._backoff.delay(self._attempt - 1, entropy)
            pause = Pause(seconds, self._attempt, self._failure, self._in_doubt)
            self._failure, self._in_doubt = None, False
            return pause
        return Send(self._groups[-1])

    def answered(self, outcomes: Sequence[RowOutcome]) -> tuple[Change, ...]:
        """Take the status of every row of the last request; returns the changes that are stored.

        Raises:
            CodecError: the answer has another number of rows than the request.
        """
        group = self._groups[-1]
        if len(outcomes) != len(group):
            raise CodecError(f"an answer of {len(outcomes)} rows to a request of {len(group)}")
        stored: list[Change] = []
        again: list[Change] = []
        code = ""
        in_doubt = False
        for change, outcome in zip(group, outcomes, strict=True):
            if outcome.code is None:
                stored.append(change)
            elif service_error(outcome.code, outcome.message).retryable:
                again.append(change)
                code = outcome.code
                in_doubt = in_doubt or code not in REFUSED_CODES
            else:
                self.rejections.append(Rejection(change, outcome.code, outcome.message))
        self._groups.pop()
        if stored:
            self._attempt = 0
        if again:
            self._groups.append(tuple(again))
            self._pause(code, in_doubt=in_doubt)
        return tuple(stored)

    def failed(self, error: TunnelError) -> None:
        """Take the failure of the last request as a whole.

        Raises:
            TunnelError: `error` itself where it is not about the request, such as `OwnershipLost`.
        """
        match error:
            case ServiceError(retryable=True):
                self._pause(error.code, in_doubt=error.code not in REFUSED_CODES)
            case ConnectError():
                self._pause(type(error).__name__, in_doubt=False)
            case TransportError() | CodecError():
                # No answer, or one that made no sense; the write may have happened, so it is sent again.
                self._pause(type(error).__name__, in_doubt=True)
            case ParameterInvalid() | RowRejected():
                self._halve(error)
            case ServiceError():
                rejected = self._groups.pop()
                self.rejections.extend(Rejection(change, error.code, error.message) for change in rejected)
            case _:
                raise error

    def _pause(self, code: str, *, in_doubt: bool) -> None:
        self._attempt += 1
        self._failure = code
        self._in_doubt = in_doubt

    def _halve(self, error: ServiceError) -> None:
        group = self._groups.pop()
        if len(group) == 1:
            self.rejections.append(Rejection(group[0], error.code, error.message))
            return
        middle = len(group) // 2
        self._groups += [group[middle:], group[:middle]]


def rejection_error(rejections: Sequence[Rejection]) -> SinkRejected:
    """The error that names the first refusal and the keys of at most ten."""
    first = rejections[0]
    keys = tuple(key_text(rejection.change.key) for rejection in rejections[:MAX_REJECTIONS])
    return SinkRejected(first.code, first.message, keys)
