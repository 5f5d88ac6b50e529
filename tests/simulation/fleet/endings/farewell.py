"""What accompanies the deletion of an object at the end of a story, by the seed.

tidying     another controller has a finalizer of its own on the object: the object stays until it has tidied up
refused     the API server refuses the release for longer than kopf repeats it: the object goes nevertheless
denied      the service refuses to delete the tunnel for a while

As long as the object exists, its status soon says that it is being deleted; at once where only others hold it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ots_emulator.server.faults import FaultRule
from ots_tunnel_operator import names
from tests.simulation.apiserver.refusal import injected
from tests.simulation.fleet.claims import condition

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

OTHER_FINALIZER = "else.dev/tidies-up"
#: Seconds that the other controller takes once it has the object for itself.
TIDYING_SECONDS = 5.0
#: Seconds for which a release is refused; kopf gives up after 54.
REFUSING_SECONDS = 90.0
REFUSALS = (500, 409)
#: Seconds for which the service refuses to delete the tunnel.
DENYING_SECONDS = 60.0
#: Seconds within which the status says that the object is being deleted.
TELLING_SECONDS = 30.0


class Farewell:
    """Looks after the object while it is deleted."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._is_held = False
        self._alone_since: float | None = None
        self._began = 0.0

    def begin(self) -> None:
        """The object is about to be deleted."""
        fleet, seed = self._fleet, self._fleet.scenario.seed
        found = fleet.stored()
        self._began = fleet.loop.now
        if seed % 2 and found is not None:
            self._is_held = True
            self._write([*(found["metadata"].get("finalizers") or ()), OTHER_FINALIZER])
        if seed % 3 == 1:
            fleet.fates.refuse_finalizers(injected(REFUSALS[seed % 2]), REFUSING_SECONDS)
        if seed % 3 == 2:
            until = fleet.service.clock.now() + DENYING_SECONDS
            denied = FaultRule(operation="DeleteTunnel", code="OTSNoPermissionAccess", until=until)
            fleet.service.emulator.add_fault(denied)

    def look(self) -> None:
        """Judge the status, and tidy up once nobody else holds the object."""
        if self._fleet.loop.now > self._began + TELLING_SECONDS:
            self._judge("for a while")
        if not self._is_held:
            return
        fleet, found = self._fleet, self._fleet.stored()
        if found is None:
            self._is_held = False
            fleet.violate("foreign", "the object went before another controller had tidied up")
            return
        if names.FINALIZER in found["metadata"]["finalizers"]:
            return
        if self._alone_since is None:
            self._alone_since = fleet.loop.now
            self._judge("and released by the operator")
        if fleet.loop.now > self._alone_since + TIDYING_SECONDS:
            self._is_held = False
            self._write([])

    def _judge(self, what: str) -> None:
        """The status of an object that is being deleted claims neither that it is Ready nor a figure."""
        found = self._fleet.stored()
        status = (found or {}).get("status") or {}
        claims = ["Ready=True"] if condition(status, "Ready") == "True" else []
        claims += [key for key in ("lag", "channels", "readyReplicas", "workers") if key in status]
        if claims and not self._fleet.strangers.is_claimed:
            self._fleet.violate("deleting", f"the object is being deleted {what}, and says {', '.join(claims)}")

    def _write(self, finalizers: list[str]) -> None:
        self._fleet.user("PATCH", self._fleet.path, {"metadata": {"finalizers": finalizers}})
