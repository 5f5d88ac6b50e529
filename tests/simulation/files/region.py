"""A region whose workers publish files on a disk that they share, as pods of one machine do."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from tests.simulation.faults import Kind
from tests.simulation.files.filters import KINDS_WITH_ROLLOUTS, passes
from tests.simulation.files.oracle import PublishedFiles
from tests.simulation.files.scenario import FilesScenario
from tests.simulation.machine.determinism import CURRENT
from tests.simulation.machine.disk import Disk, install_disk
from tests.simulation.region import Region
from tests.support.ledger import Entry, Stored, Written
from tests.support.row_changes import NUMBER


class FilesRegion(Region):
    """Everything of one story."""

    kinds: ClassVar[Mapping[str, Kind]] = KINDS_WITH_ROLLOUTS
    scenario: FilesScenario

    def __init__(self, scenario: FilesScenario, folder: Path) -> None:
        super().__init__(scenario, folder)
        #: Section of the workers' document; None without one.
        self._filter: Mapping[str, Any] | None = None
        #: What waits for a `file` or a `checkpoint`; the first one does.
        self.waiting: deque[tuple[str, Callable[[], None]]] = deque()
        self.files = PublishedFiles(self.history, self.delivery, self.violate, lambda: self.loop.now, self.witness)
        self.disk = Disk(
            folder.resolve() / "disk",
            random.Random(f"disk:{scenario.seed}"),
            self.files.finished,
            self.files.gone,
            self.files.back,
        )
        install_disk(self.disk)

    def counts(self) -> dict[str, int]:
        return {**super().counts(), "files": self.files.published}

    # For faults

    def lose_power(self, away: float) -> None:
        """The machine of all workers loses its power."""
        for pod in self.pods:
            pod.kill(away, power=True)
        self.disk.lose_power()

    def strike(self, calls: int, away: float, *, power: bool) -> None:
        """End the process that makes a call of the disk, in the middle of it, after so many others."""

        def strike() -> None:
            process = CURRENT.get()
            self.story.tell("fault", "  ends %s at the disk", process.name if process is not None else "nobody")
            if power:
                self.lose_power(away)
                return
            for pod in self.pods:
                if pod.process is process:
                    pod.kill(away)

        self.disk.strikes_in, self.disk.strike = calls, strike

    def end_faults(self) -> None:
        super().end_faults()
        self.disk.strikes_in, self.disk.failing = None, 0
        self.waiting.clear()

    def give_filter(self, section: Mapping[str, Any] | None) -> None:
        """Every pod is started with this filter from now on."""
        self._filter = section
        for pod in self.pods:
            pod.document = self.document()

    # The story

    def witness(self, entry: Entry) -> None:
        super().witness(entry)
        happened = "file" if isinstance(entry, Written) else "checkpoint" if isinstance(entry, Stored) else ""
        if self.waiting and self.waiting[0][0] == happened:
            self.loop.after(0, self.waiting.popleft()[1])

    def passes(self, who: str, key: str, action: str) -> bool:
        pod = next(pod for pod in self.pods if who in pod.documents)
        return passes(pod.documents[who]["delivery"].get("filter"), key, action)

    def document(self) -> dict[str, Any]:
        document = super().document()
        if self._filter is not None:
            document["delivery"]["filter"] = self._filter
        return document

    def sink(self) -> dict[str, Any]:
        scenario = self.scenario
        section: dict[str, Any] = {
            "url": self.disk.root.as_uri(),
            "format": scenario.file_format,
            "compression": scenario.compression,
            "maxFileSeconds": scenario.file_seconds,
            "maxFileBytes": 65_536,
        }
        if scenario.typed:
            section["columns"] = [{"name": NUMBER, "type": "integer"}]
        return {"files": section}

    def unlike(self) -> list[str]:
        return self.files.unfit()
