"""The answers of the console: documents in JSON, made of what the event loop hands over.

Theory of operation
-------------------
The console's threads ask, the operator's event loop hands over references, the asking thread makes the document: the
loop spends a millisecond on a thousand objects. The document of the fleet is kept for `FRESH_SECONDS`, so that many
open pages cost no more than one. A loop that does not answer within `ANSWER_SECONDS` is told to the page as such.

A process that does not lead has no watch and knows no object: it says for whom it stands by.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import TimeoutError as NoAnswer
from typing import Any, Protocol, TypeVar

from ots_tunnel.version import __version__
from ots_tunnel_operator.console.detail import object_document
from ots_tunnel_operator.console.fleet import Lines
from ots_tunnel_operator.console.history import KEPT, SAMPLE_SECONDS, LagHistory
from ots_tunnel_operator.console.sight import Place, Sight
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.log_actions import LogAction
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.server import Health

logger = logging.getLogger(__name__)

#: Seconds for which the document of the fleet is kept.
FRESH_SECONDS = 2.0
#: Seconds that the event loop has to hand over what it knows.
ANSWER_SECONDS = 5.0
#: Seconds that the copy of the objects has to be vouched for; it is at once, but for the first list after a start.
VOUCH_SECONDS = 0.5
#: Seconds without a look at an object after which its figures count as old, and its lag as unknown in the history; or
#: this many pauses between two looks, where that is longer.
OLD_SECONDS = 60.0
OLD_LOOKS = 4

Found = TypeVar("Found")


class Fleet(Protocol):
    """The operator's objects; called in its event loop."""

    def served(self) -> list[tuple[Manifest, LoopCache | None]]:
        """Every object that the watch has, with what its loop keeps."""

    async def vouch(self) -> None:
        """Vouch for the copy of the objects.

        Raises:
            KubeError: nothing recent is known.
        """


class StandsStill(Exception):
    """The event loop does not answer; the text says since when."""


class Console:
    """What the page asks for; any thread may ask.

    Args:
        health: of the process.
        lease: of the leader election, as `namespace/name`; empty without one.
        clock: Unix seconds.
        poll_seconds: pause between two looks at an object (`Settings`).
    """

    def __init__(
        self, health: Health, lease: str = "", clock: Callable[[], float] = time.time, *, poll_seconds: float = 15.0
    ) -> None:
        self._health = health
        self._lease = lease
        #: Port of its server, for the command that opens the page of another replica.
        self.port = 0
        self._clock = clock
        self._old_seconds = max(OLD_SECONDS, OLD_LOOKS * poll_seconds)
        self._followed: tuple[asyncio.AbstractEventLoop, Fleet] | None = None
        self._history = LagHistory()
        self._since: float | None = None
        self._lines = Lines()
        self._lock = threading.Lock()
        self._kept: tuple[float, bytes] = (float("-inf"), b"")

    async def follow(self, fleet: Fleet) -> None:
        """Answer with these objects and keep their history, until cancelled."""
        loop = asyncio.get_running_loop()
        self._followed, self._since = (loop, fleet), self._clock()
        last = loop.time()
        try:
            while True:
                missed = round((loop.time() - last) / SAMPLE_SECONDS) - 1
                last = loop.time()
                try:
                    self.sample(fleet, missed=max(0, missed))
                except Exception:
                    # a page must not end with one object that it cannot read, nor must the operator
                    logger.exception(LogAction.CONSOLE_FAILED.description, extra={"action": LogAction.CONSOLE_FAILED})
                await asyncio.sleep(SAMPLE_SECONDS)
        finally:
            self._followed = None

    def sample(self, fleet: Fleet, *, missed: int = 0) -> None:
        """Take one sample of the history of every object (`LagHistory.add`)."""
        now = self._clock()
        sights = (Sight.glance(body, cache) for body, cache in fleet.served())
        oldest = now - self._old_seconds
        self._history.add({sight.place: _lag(sight, oldest) for sight in sights}, missed=missed)

    def fleet_json(self) -> bytes:
        """The document of the fleet: the process, and a line for each object.

        Raises:
            StandsStill: the event loop does not answer.
        """
        # whoever waits longer than the loop may take waits for others that it does not answer either
        if not self._lock.acquire(timeout=2 * ANSWER_SECONDS):
            raise StandsStill(self._still())
        try:
            made, document = self._kept
            if time.monotonic() - made > FRESH_SECONDS:
                document = _packed(self._fleet_document())
                self._kept = time.monotonic(), document
            return document
        finally:
            self._lock.release()

    def object_json(self, place: Place) -> bytes:
        """The document of one object: the process, and the object, which is null where it is not known.

        Raises:
            StandsStill: the event loop does not answer.
        """
        found = self._ask(lambda fleet: self._look(fleet, place))
        (sight, lags), stale = found or ((None, []), "")
        shown = None if sight is None else object_document(sight, lags, self._lease, self._clock())
        return _packed(self._process(stale) | {"object": shown})

    def _fleet_document(self) -> dict[str, Any]:
        found = self._ask(lambda fleet: [Sight.glance(body, cache) for body, cache in fleet.served()])
        if found is None:
            return self._process("") | {"objects": None}
        sights, stale = found
        return self._process(stale) | {"objects": self._lines.of(sights, self._lease)}

    def _look(self, fleet: Fleet, place: Place) -> tuple[Sight | None, list[int | None]]:
        for body, cache in fleet.served():
            if (body["metadata"].get("namespace"), body["metadata"]["name"]) == place:
                return Sight.look(body, cache), self._history.of(place)
        return None, []

    def _process(self, stale: str) -> dict[str, Any]:
        """What the page says of this process; `stale` is why the objects may be old."""
        return {
            "version": __version__,
            "pod": socket.gethostname(),
            "namespace": self._lease.partition("/")[0],
            "state": self._health.state(),
            "port": self.port,
            "leads": self._followed is not None,
            "holder": self._health.waits_for.partition(",")[0].partition("_")[0],
            "stale": stale,
            "time": self._clock(),
            "oldSeconds": self._old_seconds,
            "historySince": self._since,
            "historySeconds": KEPT * SAMPLE_SECONDS,
        }

    def _ask(self, take: Callable[[Fleet], Found]) -> tuple[Found, str] | None:
        """What `take` finds in the event loop, and why it may be old; None where this process follows no objects."""
        followed = self._followed
        if followed is None:
            return None
        loop, fleet = followed

        async def taken() -> tuple[Found, str]:
            stale = ""
            try:
                async with asyncio.timeout(VOUCH_SECONDS):
                    await fleet.vouch()
            except KubeError as error:
                stale = str(error)
            except TimeoutError:
                stale = "the API server has not answered since this operator started"
            return take(fleet), stale

        waiting = taken()
        try:
            future = asyncio.run_coroutine_threadsafe(waiting, loop)
        except RuntimeError as error:
            waiting.close()
            raise StandsStill("the operator is ending") from error
        try:
            return future.result(ANSWER_SECONDS)
        except NoAnswer as error:
            future.cancel()
            raise StandsStill(self._still()) from error

    def _still(self) -> str:
        return f"the operator's event loop has not run for {self._health.still():.0f} s"


def _lag(sight: Sight, oldest: float) -> int | None:
    """The lag for the history; unknown where nothing was observed since a time."""
    is_old = sight.observed is None or sight.observed < oldest
    return None if is_old or sight.ott.condition("Ready").status == "Unknown" else sight.ott.number("lag", "seconds")


def _packed(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
