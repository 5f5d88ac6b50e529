"""What stories of the data path have in common, whatever their workers read: pods, writers, faults, and two tables."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Protocol

from ots_emulator.server.faults import FaultRule
from ots_emulator.tables.keys import BOTTOM_KEY, TOP_KEY
from tests.simulation.faults import Fault, Kind, happen
from tests.simulation.machine.process import Process
from tests.simulation.processors import UserCode
from tests.simulation.service import COPY, KEY, SOURCE, TABLE
from tests.simulation.telling import Telling
from tests.simulation.worker import Pod
from tests.support.emulator.emulator_scene import create_table_request
from tests.support.ledger import Entry, Written
from tests.support.row_changes import VERSIONS


class Load(Protocol):
    """What a scenario says of writers and faults.

    `burst` is the most changes at once, `pause` the longest time between two bursts in seconds.
    """

    @property
    def keys(self) -> int: ...
    @property
    def burst(self) -> int: ...
    @property
    def pause(self) -> float: ...
    @property
    def faults(self) -> tuple[Fault, ...]: ...


class Workload(Telling):
    """A story under way.

    Args:
        seed: the text that everything random comes from.
        folder: of the story's files; it gets the keys of the workers.
        is_fenced, service: as of `Telling`.
    """

    #: Faults that can happen.
    kinds: ClassVar[Mapping[str, Kind]]

    def __init__(self, seed: str, load: Load, folder: Path, *, is_fenced: bool = True, **service: int | float) -> None:
        super().__init__(seed, is_fenced=is_fenced, **service)
        self.chance = random.Random(f"writers:{seed}")
        self.pods: list[Pod] = []
        self._load = load
        self._folder = folder
        self._last_written = 0.0
        #: When the writers end.
        self._writes_until = 0.0
        UserCode.witness = self.witness
        (folder / "accessKeyId").write_text(KEY.access_key_id)
        (folder / "accessKeySecret").write_text(KEY.access_key_secret)

    def witness(self, entry: Entry) -> None:
        if isinstance(entry, Written) and entry.rows:
            self._last_written = self.loop.now
        self.judge(entry)

    def judge(self, entry: Entry) -> None:
        """Let the oracles see a call that the service has executed."""
        self.delivery.take(entry)

    # For faults

    def add_rule(self, rule: FaultRule) -> None:
        """Let the service fail calls of the workers."""
        self.service.emulator.add_fault(replace(rule, access_key_id=KEY.access_key_id))

    def resume(self, process: Process) -> None:
        """End a pause or a suspension."""
        if not process.is_dead:
            self.story.tell("fault", "  %s runs again", process.name)
            self.forgive(process)
            process.resume()

    def forgive(self, process: Process) -> None:
        """What a process says may be wrong for a while after a pause."""

    def _expect(self, number: int) -> None:
        """Let the next fault happen at its time; no timer of a later one changes the story until then."""
        if number < len(self._load.faults):
            fault = self._load.faults[number]
            self.loop.call_at(max(fault.at, self.loop.now), self._happen, number, context=self.loop.region.context)

    def _happen(self, number: int) -> None:
        happen(self, self._load.faults[number])
        self._expect(number + 1)

    async def _wait_undisturbed(self) -> None:
        """Wait until no path of the network is disturbed any more."""
        for _ in range(2):  # a path that falls dark once a proxy has held answers back is disturbed twice
            await asyncio.sleep(max(0.0, self.network.disturbed_until - self.loop.now))

    # Tables

    @property
    def _keys(self) -> list[str]:
        return [f"k{number:02}" for number in range(self._load.keys)]

    def _create_tables(self) -> None:
        for instance in (SOURCE, COPY):
            self.service.call(instance, "CreateTable", create_table_request(TABLE, max_versions=VERSIONS))

    async def _write(self, until: float) -> None:
        """Write bursts of changes, mostly to a few keys."""
        self._writes_until = until
        load, chance, keys = self._load, self.chance, self._keys
        while self.loop.now < until:
            for _ in range(chance.randint(1, load.burst)):
                hot = chance.random() < 0.5
                self.history.write(keys[chance.randrange(min(3, len(keys)) if hot else len(keys))])
            await asyncio.sleep(load.pause * chance.random() ** 2)

    def different_keys(self) -> list[str]:
        """Keys whose rows differ between source and copy."""
        now_ms = int(self.service.clock.now() * 1000)
        rows = [
            dict(self.service.emulator.instances[name].tables[TABLE].scan(BOTTOM_KEY, TOP_KEY, now_ms))
            for name in (SOURCE, COPY)
        ]
        keys = sorted(rows[0].keys() | rows[1].keys())
        return [key[0].decode() for key in keys if rows[0].get(key) != rows[1].get(key)]
