"""The Lease of the operator that serves an object. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.text.spans import of, words

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


def unserved_sentences(objects: Sequence[Ott], found: Sequence[Serving], now: float) -> list[str]:
    """Which of the objects no operator looks at any more: what is shown of them may be true no longer.

    Args:
        found: the Leases that the objects name.
    """
    return list(_unserved(objects, found, now))


def _unserved(objects: Sequence[Ott], found: Sequence[Serving], now: float) -> Iterator[str]:
    for serving in found:
        named = sum(ott.lease is not None and "/".join(ott.lease) == serving.lease for ott in objects)
        if serving.failure:
            yield f"Whether the operator of Lease {serving.lease} runs could not be read: {serving.failure}"
        elif serving.is_gone(now) and serving.holder and serving.renewed is not None:
            age = words(now - serving.renewed)
            yield (
                f"No operator looks at {of(named, 'object')}: {serving.holder} last renewed Lease {serving.lease} "
                f"{age} ago, so what is shown is as old as that."
            )
        elif serving.is_gone(now):
            yield (
                f"No operator looks at {of(named, 'object')}: no process holds Lease {serving.lease}, so what is "
                "shown may be old."
            )
