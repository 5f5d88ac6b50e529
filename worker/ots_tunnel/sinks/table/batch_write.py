"""One BatchWriteRow until each of its changes is stored or refused: decisions without input or output.

Theory of operation. A shell asks `step` what to do, does it, and reports with `answered` or `failed`:

    Send    write these changes in one request
    Pause   wait, then ask again
    None    every change is stored or refused, or enough are refused

The changes are held in groups; a group is one request. What a report means for the group that was sent:

    answered    a row without a code is stored
                a row with a transient code stays in its group, which is sent again after a pause
                a row with a final code is refused
    failed      transient, or no usable answer: the group is sent again as it was, after a pause
                because of some row: the group is halved until the row is found; one bad row of 200, the most that
                a request may hold, costs 16 more requests
                for another reason: all are refused, since the table or the rights concern every row

Sending again is harmless because cells carry their versions (docs/architecture.md 4.3). A request without an answer may
still take effect until its deadline, and must not overtake what follows: its pause lasts at least until then
(`Pause.in_doubt`). Codes by which the service says that it did nothing (`REFUSED_CODES`) leave no such doubt, nor does
the page of a proxy that has passed nothing on (425, 429).

A shell may find that a refused change can be stored in another form (`again`): it is sent before the others.

Example: of three rows the second one is too large. The request is refused as a whole and goes out as [1] and [2, 3].
The second of these is refused again and goes out as [2] and [3]. Row 2 is refused, rows 1 and 3 are stored.

Source: docs/architecture.md 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ots_tunnel.client.table_calls import RowOutcome
from ots_tunnel.errors import (
    MAX_REFUSED_KEYS,
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
from ots_tunnel.protocol.service_codes import REFUSED_CODES, service_error, was_not_begun
from ots_tunnel.sinks.key_text import key_text
from ots_tunnel.sinks.table.row_change import Change

#: Refused changes after which a write ends: its error can name no more.
MAX_REFUSALS = MAX_REFUSED_KEYS


@dataclass(frozen=True, slots=True)
class Send:
    """Write these changes in one request."""

    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait before the next step.

    Args:
        attempt: failures in a row.
        code: of the last failure.
        in_doubt: the request that was sent last may still take effect: nothing is sent before its deadline.
    """

    seconds: float
    attempt: int
    code: str
    in_doubt: bool = False

    def wait(self, doubt: float) -> float:
        """Seconds to wait when the request that was sent last is in doubt for `doubt` seconds."""
        return max(self.seconds, doubt) if self.in_doubt else self.seconds


@dataclass(frozen=True, slots=True)
class Refusal:
    """A change that the service refuses for good."""

    change: Change
    code: str
    message: str

    @property
    def is_about_the_row(self) -> bool:
        """Whether other rows may still be accepted; a wrong table or missing rights concern all of them."""
        return isinstance(service_error(self.code, self.message), ParameterInvalid | RowRejected)


class BatchWrite:
    """The state of one batch write.

    Args:
        changes: of different rows.
        backoff: pauses between tries.
        max_refusals: refused changes that end it.
    """

    def __init__(self, changes: Sequence[Change], backoff: Backoff, max_refusals: float = MAX_REFUSALS) -> None:
        #: Groups still to be sent, the next one last.
        self._groups: list[tuple[Change, ...]] = [tuple(changes)]
        self._backoff = backoff
        self._attempt = 0
        self._failure: str | None = None
        self._in_doubt = False
        self._max_refusals = max_refusals
        self.refusals: list[Refusal] = []

    def __repr__(self) -> str:
        rows = sum(map(len, self._groups))
        return f"BatchWrite({rows} rows left, attempt {self._attempt}, {len(self.refusals)} refused)"

    def step(self, entropy: float) -> Send | Pause | None:
        """Return what to do now; None when every change is stored or refused, or enough are refused.

        Args:
            entropy: random number in [0, 1) for the pause.
        """
        if not self._groups or len(self.refusals) >= self._max_refusals:
            return None
        if self._failure is not None:
            seconds = self._backoff.delay(self._attempt - 1, entropy)
            pause = Pause(seconds, self._attempt, self._failure, self._in_doubt)
            self._failure, self._in_doubt = None, False
            return pause
        return Send(self._groups[-1])

    def answered(self, outcomes: Sequence[RowOutcome]) -> tuple[Change, ...]:
        """Take the outcome of every row of the last request; return the changes that are stored.

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
                self.refusals.append(Refusal(change, outcome.code, outcome.message))
        self._groups.pop()
        if stored:
            self._attempt = 0
        if again:
            self._groups.append(tuple(again))
            self._pause(code, in_doubt=in_doubt)
        return tuple(stored)

    def again(self, refusals: Sequence[Refusal], changes: Sequence[Change]) -> None:
        """Forget some refusals, and send these changes in their place."""
        gone = set(map(id, refusals))
        self.refusals = [refusal for refusal in self.refusals if id(refusal) not in gone]
        if changes:
            self._groups.append(tuple(changes))

    def failed(self, error: TunnelError) -> None:
        """Take the failure of the last request as a whole.

        Raises:
            TunnelError: `error` itself where it is not about the request, such as `OwnershipLost`.
        """
        match error:
            case ServiceError(retryable=True):
                self._pause(error.code, in_doubt=not was_not_begun(error))
            case ConnectError():
                self._pause(type(error).__name__, in_doubt=False)
            case TransportError() | CodecError():
                # No answer, or one that makes no sense: the write may have happened.
                self._pause(type(error).__name__, in_doubt=True)
            case ParameterInvalid() | RowRejected():
                self._halve(error)
            case ServiceError():
                refused = self._groups.pop()
                self.refusals.extend(Refusal(change, error.code, error.message) for change in refused)
            case _:
                raise error

    def _pause(self, code: str, *, in_doubt: bool) -> None:
        self._attempt += 1
        self._failure = code
        self._in_doubt = in_doubt

    def _halve(self, error: ServiceError) -> None:
        group = self._groups.pop()
        if len(group) == 1:
            self.refusals.append(Refusal(group[0], error.code, error.message))
            return
        middle = len(group) // 2
        self._groups += [group[middle:], group[:middle]]


def refusal_error(refusals: Sequence[Refusal]) -> SinkRejected:
    """The error that names the first refusal and the keys of at most `MAX_REFUSED_KEYS`."""
    first = refusals[0]
    keys = tuple(key_text(refusal.change.key) for refusal in refusals[:MAX_REFUSED_KEYS])
    return SinkRejected(first.code, first.message, keys)
