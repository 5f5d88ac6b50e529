"""The Lease of the operator that serves an object. Pure."""

from __future__ import annotations

from dataclasses import dataclass

#: Seconds without a renewal after which a Lease counts as given up (docs/architecture.md 6.2).
LEASE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Serving:
    """The Lease of the operator that serves an object.

    Args:
        lease: namespace and name, as `namespace/name`.
        holder: identity of the process that holds it; empty where none does.
        renewed: time of its last renewal, Unix seconds; None where it was never renewed.
        failure: why it could not be read; empty where it was.
    """

    lease: str
    holder: str = ""
    renewed: float | None = None
    failure: str = ""

    def is_gone(self, now: float) -> bool:
        """Whether the Lease was read, and no process renews it."""
        return not self.failure and (not self.holder or self.renewed is None or now - self.renewed > LEASE_SECONDS)
