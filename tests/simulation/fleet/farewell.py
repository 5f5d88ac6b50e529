"""What accompanies the deletion of an object at the end of a story, by the seed.

tidying     another controller has a finalizer of its own on the object: the object stays until it has tidied up
refused     the API server refuses the release for longer than kopf repeats it: the object goes nevertheless
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ots_tunnel_operator import names
from tests.simulation.apiserver.refusal import injected

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

OTHER_FINALIZER = "else.dev/tidies-up"
#: Seconds that the other controller takes once it has the object for itself.
TIDYING_SECONDS = 5.0
#: Seconds for which a release is refused; kopf gives up after 54.
REFUSING_SECONDS = 90.0
REFUSALS = (500, 409)


class Farewell:
    """Looks after the object while it is deleted."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._is_held = False
        self._alone_since: float | None = None

    def begin(self) -> None:
        """The object is about to be deleted."""
        fleet, seed = self._fleet, self._fleet.scenario.seed
        found = fleet.stored()
        if seed % 2 and found is not None:
            self._is_held = True
            self._write([*(found["metadata"].get("finalizers") or ()), OTHER_FINALIZER])
        if seed % 3 == 1:
            fleet.fates.refuse_finalizers(injected(REFUSALS[seed % 2]), REFUSING_SECONDS)

    def look(self) -> None:
        """Tidy up once nobody else holds the object."""
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
        if fleet.loop.now > self._alone_since + TIDYING_SECONDS:
            self._is_held = False
            self._write([])

    def _write(self, finalizers: list[str]) -> None:
        self._fleet.user("PATCH", self._fleet.path, {"metadata": {"finalizers": finalizers}})
