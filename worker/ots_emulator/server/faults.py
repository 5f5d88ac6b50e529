"""Fault injection by rules: latency, error codes, lost answers, outages; rules come from the admin port only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ots_emulator.refusal import STATUS, Refusal


@dataclass(slots=True, eq=False)
class FaultRule:
    """Faults for matching calls; every call takes one from `count`."""

    operation: str = "*"
    """Name of the call, such as ``ReadRecords``; ``*`` matches every call."""
    access_key_id: str | None = None
    """Only calls signed with this key; None matches every caller."""
    count: int | None = None
    """Number of calls; None is unlimited."""
    until: float | None = None
    """Service time at which the rule ends."""
    latency: float = 0.0
    """Seconds before the call is executed."""
    code: str | None = None
    """Error code to answer with instead of executing the call."""
    message: str = "injected fault"
    status: int | None = None
    """HTTP status; by default the code's."""
    drop_response: bool = False
    """Execute the call, then close the connection without an answer."""
    cut_response: bool = False
    """Execute the call, then close the connection in the middle of the answer's body."""
    row_code: str | None = None
    """Error code for the first row of a batch, which is not executed."""


@dataclass(frozen=True, slots=True)
class InjectedFaults:
    """The faults injected into one call."""

    latency: float = 0.0
    refusal: Refusal | None = None
    drop_response: bool = False
    cut_response: bool = False
    row_refusal: Refusal | None = None
    """Refuses the first row of a batch."""


NO_FAULTS: Final = InjectedFaults()


class Faults:
    """The rules in force."""

    def __init__(self) -> None:
        self._rules: list[FaultRule] = []

    def __len__(self) -> int:
        return len(self._rules)

    def rules(self, now: float) -> tuple[FaultRule, ...]:
        """The rules in force, in the order they were added."""
        self._end(now)
        return tuple(self._rules)

    def add(self, rule: FaultRule) -> None:
        """Put a rule into force."""
        self._rules.append(rule)

    def clear(self) -> None:
        """Remove all rules."""
        self._rules.clear()

    def unavailable(self, seconds: float, now: float) -> None:
        """Answer every call with 503 for a number of seconds."""
        self.add(FaultRule(until=now + seconds, code="OTSServerUnavailable", message="Server is not available."))

    def _end(self, now: float) -> None:
        """Remove the rules whose time is over."""
        self._rules = [rule for rule in self._rules if rule.until is None or now < rule.until]

    def take(self, operation: str, access_key_id: str, now: float) -> InjectedFaults:
        """Return the faults of one call and count it against the rules; `NO_FAULTS` where no rule matches."""
        if not self._rules:
            return NO_FAULTS
        self._end(now)
        matching = [
            rule
            for rule in self._rules
            if rule.operation in ("*", operation) and rule.access_key_id in (None, access_key_id)
        ]
        for rule in matching:
            if rule.count is not None:
                rule.count -= 1
        self._rules = [rule for rule in self._rules if rule.count is None or rule.count > 0]
        if not matching:
            return NO_FAULTS
        refusals = [
            Refusal(rule.code, rule.message, STATUS.get(rule.code, 400) if rule.status is None else rule.status)
            for rule in matching
            if rule.code is not None
        ]
        return InjectedFaults(
            sum(rule.latency for rule in matching),
            refusals[0] if refusals else None,
            any(rule.drop_response for rule in matching),
            any(rule.cut_response for rule in matching),
            next((Refusal(rule.row_code, rule.message) for rule in matching if rule.row_code is not None), None),
        )
