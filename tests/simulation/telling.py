"""What every kind of story stands on: a clock, a network, a service, its history, and the first broken promise.

A kind of story is a class below `Telling`: it has `tell`, which lives through the story and calls `violate` as soon as
an oracle objects, and `counts`. `tell_out` runs one, and makes an outcome of it.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import logging
import random
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.simulation.machine.determinism import CURRENT, wall_seconds
from tests.simulation.machine.loop import Deadlock, Livelock, VirtualLoop
from tests.simulation.machine.network import Network
from tests.simulation.machine.process import Process
from tests.simulation.oracles.delivery import Delivery
from tests.simulation.oracles.history import History
from tests.simulation.replayable import Replayable
from tests.simulation.service import SimulatedService
from tests.simulation.story import Story
from tests.support.ledger import Entry

#: Loggers of the code under test.
LOGS = ("ots_tunnel", "ots_tunnel_operator")


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise: the rule, the region's time, and what happened."""

    rule: str
    at: float
    text: str

    def __str__(self) -> str:
        return f"{self.rule} at {self.at:.3f} s: {self.text}"


@dataclass
class Outcome:
    """How a story ended."""

    scenario: Replayable
    violation: Violation | None
    seconds: float
    wall: float
    counts: dict[str, int] = field(default_factory=dict)
    digest: str = ""
    story: list[str] = field(default_factory=list)


class Telling(ABC):
    """A story under way.

    Args:
        seed: the text that everything random comes from.
        is_fenced: whether the sink asks the fence before each write.
        service: settings of the emulator.
    """

    def __init__(self, seed: str, *, is_fenced: bool = True, **service: Any) -> None:
        self.loop = VirtualLoop(random.Random(f"loop:{seed}"))
        self.loop.on_failure = self._unhandled
        self.story = Story(self.loop)
        self.network = Network(self.loop, random.Random(f"network:{seed}"))
        self.service = SimulatedService(self.loop, self.story, self.witness, **service)
        self.history = History(self.service)
        self.delivery = Delivery(self.history, self.violate, is_fenced=is_fenced, passes=self.passes)
        self.violation: Violation | None = None
        self._over = asyncio.Event()

    @abstractmethod
    async def tell(self) -> None:
        """Live through the story."""

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """What happened, in numbers."""

    def passes(self, who: str, key: str, action: str) -> bool:
        """Whether the filter that a process was started with lets a change pass."""
        return True

    def violate(self, rule: str, text: str) -> None:
        """Note a broken promise; the first one ends the story."""
        if self.violation is None:
            self.violation = Violation(rule, self.loop.now, text)
            self.story.tell("ORACLE", "%s: %s", rule, text)
            self._over.set()

    def witness(self, entry: Entry) -> None:
        """Take note of a call that the service has executed."""
        self.delivery.take(entry)

    async def run(self) -> None:
        """Live until everything is over, or a promise is broken."""
        telling = asyncio.create_task(self.tell())
        watching = asyncio.create_task(self._over.wait())
        await asyncio.wait((telling, watching), return_when=asyncio.FIRST_COMPLETED)
        if telling.done():
            telling.result()
        for task in (telling, watching):
            task.cancel()

    def _unhandled(self, process: Process, failure: dict[str, Any]) -> None:
        error = failure.get("exception")
        self.violate("unhandled", f"{process.name}: {failure['message']}: {error!r}")


class LogLines(logging.Handler):
    """Puts the log of simulated processes into the story; an error of ours is a finding.

    Args:
        folder: of the story's files, whose name differs from run to run.
    """

    def __init__(self, story: Story, violate: Callable[[str, str], None], folder: str) -> None:
        super().__init__(logging.INFO)
        self._story = story
        self._folder = folder
        self._violate = violate

    def emit(self, record: logging.LogRecord) -> None:
        process = CURRENT.get()
        name = process.name if process is not None else "region"
        extra = getattr(record, "error", "")
        text = f"{record.getMessage()}{f': {extra}' if extra else ''}"
        self._story.tell(name, "%s", text.replace(self._folder, ""))
        if record.exc_info and record.levelno >= logging.ERROR:
            self._violate("bug", f"{name} logs {record.getMessage()}: {record.exc_info[1]!r}")


AScenario = TypeVar("AScenario", bound=Replayable)


def tell_out(make: Callable[[AScenario, Path], Telling], scenario: AScenario, keep_story: bool) -> Outcome:
    """Run a scenario in this process, which has to end without a clean-up afterwards (see `apart`).

    Args:
        make: makes the story of a scenario, with a folder for its files.
        keep_story: whether the outcome holds the story as text.
    """
    began = wall_seconds()
    gc.disable()
    with tempfile.TemporaryDirectory(prefix="simulation-") as name:
        telling = make(scenario, Path(name))
        for log in map(logging.getLogger, LOGS):
            log.handlers, log.propagate = [LogLines(telling.story, telling.violate, name)], False
            log.setLevel(logging.INFO)
        try:
            telling.loop.run_until_complete(telling.loop.region.start(telling.run()))
        except (Deadlock, Livelock) as error:
            telling.violate(type(error).__name__.lower(), str(error))
    counts = {
        **telling.delivery.counts,
        "calls": telling.service.calls,
        "callbacks": telling.loop.callbacks,
        **telling.counts(),
    }
    lines = list(telling.story.lines())
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
    wall = wall_seconds() - began
    return Outcome(scenario, telling.violation, telling.loop.now, wall, counts, digest, lines if keep_story else [])
