"""What every call knows: the instance it is for, and when it runs."""

from __future__ import annotations

from dataclasses import dataclass

from ots_emulator.instance import Instance
from ots_emulator.settings import Settings


@dataclass(frozen=True, slots=True)
class Call:
    """One call under way; `now` is the service's time in seconds and stands still during the call."""

    instance: Instance
    now: float

    @property
    def settings(self) -> Settings:
        """Settings of the emulator."""
        return self.instance.settings

    @property
    def now_us(self) -> int:
        """The service's time in microseconds."""
        return int(self.now * 1_000_000)

    @property
    def now_ms(self) -> int:
        """The service's time in milliseconds."""
        return int(self.now * 1000)
