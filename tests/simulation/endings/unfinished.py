"""A user gives the workers code that returns before its work is done, and corrects it.

In every story with a user's code and without an end time:

told        each channel with new changes says what its code returned, and that no record counts as processed
kept        meanwhile no checkpoint passes a record that nobody has processed (`oracles.delivery`)
corrected   with the correction every change is processed
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.simulation.worker import GRACE

if TYPE_CHECKING:
    from tests.simulation.region import Region

#: What `processors` returns too early, by the seed.
MISTAKES = ("lazy", "handed_on")
#: Seconds between two changes of every key, and how many there are.
PAUSE_SECONDS, ROUNDS = 2.0, 8
#: Seconds, beside the heartbeat timeout, in which new workers have opened the channels and read the first changes.
TOLD_SECONDS = 60.0


class UnfinishedWork:
    """Changes the code of a story's workers twice."""

    def __init__(self, region: Region) -> None:
        self._region = region

    async def happen(self) -> bool:
        """Whether it has happened: then everything has to become right again."""
        region, scenario = self._region, self._region.scenario
        if scenario.sink != "python" or scenario.end:
            return False
        mistake = MISTAKES[scenario.seed // 2 % len(MISTAKES)]
        wrong = region.document()
        wrong["sink"] = {"python": {"factory": f"tests.simulation.processors:{mistake}"}}
        await self._roll_out(wrong)
        for _ in range(ROUNDS):
            region.write_all()
            await asyncio.sleep(PAUSE_SECONDS)
        await self._expect_told()
        await self._roll_out(region.document())
        return True

    async def _roll_out(self, document: dict[str, Any]) -> None:
        """Restart every pod with a document; wait until all of them run with it."""
        region = self._region
        for pod in region.pods:
            pod.document = document
            pod.terminate()
        until = region.loop.now + 2 * GRACE
        while not all(pod.is_running_with(document) for pod in region.pods):
            if region.loop.now > until:
                region.violate("unfinished", "a worker with a new document does not run")
                return
            await asyncio.sleep(0.5)

    async def _expect_told(self) -> None:
        region, scenario = self._region, self._region.scenario
        until = region.loop.now + scenario.timeout + TOLD_SECONDS
        while untold := self._untold():
            if region.loop.now > until:
                region.violate("unfinished", f"nobody says why channels are not processed: {', '.join(untold)}")
                return
            await asyncio.sleep(1)

    def _untold(self) -> list[str]:
        """Channels with changes that nobody has processed, whose worker does not say why."""
        region = self._region
        waiting = {
            name
            for name, places in region.history.entries.items()
            if any(region.delivery.applied.get(place.key, 0) < place.number for place in places)
        }
        said = {
            name
            for pod in region.pods
            if pod.worker is not None
            for name, view in pod.worker.status.channels.items()
            if "work is not done" in (view.progress.error or "")
        }
        return sorted(name[:8] for name in waiting - said)
