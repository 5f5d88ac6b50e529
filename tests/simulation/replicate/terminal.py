"""A user at a terminal, who runs `replicate` and runs it again until it says that everything is copied."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from datetime import datetime
from typing import Any

from ots_tunnel.credentials import static_credentials
from ots_tunnel.errors import ConfigError, TunnelError
from ots_tunnel.job_file import JobFile
from ots_tunnel.replicate.job import ReplicationJob
from ots_tunnel.replicate.preparation import StartOptions
from ots_tunnel.worker.worker import TunnelWorker
from tests.simulation.machine.loop import VirtualLoop
from tests.simulation.machine.process import Process
from tests.simulation.service import KEY
from tests.simulation.story import Story
from tests.simulation.worker import Pod

#: Seconds after which a user repeats the command.
REPEAT = 5.0


class Command(ReplicationJob):
    """A run whose worker is seen.

    Args:
        copying: whether it copies, so that no passing error may end it.
    """

    is_copying = False

    @property
    def worker(self) -> TunnelWorker | None:
        """Its worker; None before it copies."""
        return self._worker

    async def _copy(self, tunnel: Any) -> tuple[int, bool]:
        self.is_copying = True
        done = await super()._copy(tunnel)
        self.is_copying = False
        return done


def command(job: JobFile, end: datetime, say: Callable[[str], None], *, merge: bool = False) -> Command:
    """One run of the command."""
    keys = (static_credentials(KEY), static_credentials(KEY))
    return Command(job, end, keys, start=StartOptions(merge), say=say, stream=io.StringIO())


class Terminal(Pod):
    """A terminal; for faults it is what a pod is.

    Args:
        complete: called with the run's process when it says that everything is copied.
        is_shared: whether a run of another user is under way, which copies the rest.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        story: Story,
        name: str,
        seed: str,
        job: tuple[JobFile, datetime],
        failed: Callable[[str, str], None],
        complete: Callable[[Process], None],
        is_shared: Callable[[], bool],
    ) -> None:
        super().__init__(loop, story, name, seed, {}, failed)
        self._job = job
        self._complete = complete
        self._is_shared = is_shared
        self._run_of: Command | None = None
        self._task: asyncio.Task[Any] | None = None

    @property
    def worker(self) -> TunnelWorker | None:
        """The worker of its run; None before it copies."""
        return None if self._run_of is None or self.process is None else self._run_of.worker

    @worker.setter
    def worker(self, worker: TunnelWorker | None) -> None:
        """It comes from the run alone."""

    def start(self) -> None:
        self._run_of = self._task = None
        super().start()

    def terminate(self) -> None:
        """Ctrl-C, and at once the end of a run that has not begun to copy."""
        process, run = self.process, self._run_of
        if process is None or run is None or self._task is None:
            return
        if not process.run(run.interrupt):
            self._loop.call_soon(self._task.cancel, context=process.context)

    async def _run(self, process: Process) -> None:
        """What `ots-tunnel replicate` does, without files and signals."""
        run = self._run_of = command(*self._job, lambda text: self._story.tell(process.name, "%s", text.strip()))
        self._task = asyncio.create_task(run.run(), name="replicate")
        text, waits = "stopped before anything was copied", False
        try:
            copied = await self._task
            text, waits = f"{copied}", copied.others
            if copied.complete:
                self._complete(process)
        except asyncio.CancelledError:
            pass
        except TunnelError as error:
            text = f"{type(error).__name__}: {error}"
            if isinstance(error, ConfigError):
                self._failed("refusal", f"{process.name} is refused: {error}")
            elif run.is_copying:
                # whatever befalls it here passes
                self._failed("final", f"{process.name} ends with {text}")
        except Exception as error:
            # any error that is not ours is a finding
            text = f"{type(error).__name__}: {error}"
            self._failed("bug", f"{process.name} ends with {text}")
        self._story.tell(process.name, "ends: %s", text)
        self._let_go()
        self._loop.after(0.1, self._tidy_up, process)
        self._loop.after(REPEAT, self._repeat, waits)

    def _repeat(self, waits: bool) -> None:
        """Run the command again, unless another run is to copy the rest."""
        if waits and self._is_shared():
            self._loop.after(REPEAT, self._repeat, waits)
        else:
            self.start()
