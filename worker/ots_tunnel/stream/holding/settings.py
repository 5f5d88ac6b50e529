"""Times of a worker's rounds."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from ots_tunnel.errors import ConfigError


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """Times in seconds; the defaults are those of the Java library.

    Args:
        duration: a lease whose counter has stood still for longer has expired; the same in all workers of a table.
        renew_interval, take_interval: between two rounds.
        steals: whether leases of others are asked for.

    Raises:
        ConfigError: names the field, what was found and what is allowed.
    """

    duration: float = 20.0
    renew_interval: float = 6.0
    take_interval: float = 6.0
    steals: bool = True

    def __post_init__(self) -> None:
        for name in ("duration", "renew_interval", "take_interval"):
            if not 0 < getattr(self, name) < inf:  # not a number is neither
                raise ConfigError(f"{name}: found {getattr(self, name):g}, allowed is a number of seconds above 0")
        if self.renew_interval > self.duration / 3:
            # Two renewals may fail before a lease is lost.
            raise ConfigError(
                f"renew_interval: found {self.renew_interval:g}, allowed is at most a third of duration, "
                f"{self.duration / 3:g}"
            )
