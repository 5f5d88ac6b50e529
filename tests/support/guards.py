"""Guards that sinks ask before they send: one that lets everything pass, and one that lets nothing pass."""

from __future__ import annotations

from ots_tunnel.errors import OwnershipLost


class Open:
    """The channel is ours."""

    def check(self) -> None:
        return None


class Closed:
    """The channel is somebody else's by now."""

    def check(self) -> None:
        raise OwnershipLost("late")
