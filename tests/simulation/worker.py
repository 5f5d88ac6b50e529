"""A worker of the region: its pod, whose container is started again whenever it ends."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.commands.preflight import check_tunnel
from ots_tunnel.config import WorkerConfig
from ots_tunnel.credentials import FileCredentials
from ots_tunnel.errors import TunnelError
from ots_tunnel.sinks.choice import open_sink
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.status.metrics import WorkerMetrics
from ots_tunnel.worker.worker import TunnelWorker
from tests.simulation.machine.loop import VirtualLoop
from tests.simulation.machine.process import Process, State
from tests.simulation.story import Story

#: Seconds until the kubelet starts a container again that has ended by itself: the first time, and at most.
RESTART = (2.0, 40.0)
#: Seconds between SIGTERM and SIGKILL.
GRACE = 60.0


class Pod:
    """One worker's pod.

    Args:
        program: what its container does until it ends; it makes the worker that gets the signals.
        document: the worker's first document.
        failed: called with a rule and a text when the worker ends on an error, or leaves something behind.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        story: Story,
        name: str,
        seed: str,
        document: dict[str, Any],
        failed: Callable[[str, str], None],
        program: Program | None = None,
    ) -> None:
        self._loop = loop
        self._story = story
        self.name = name
        self._seed = seed
        #: The worker's document, with which the next process is started.
        self.document = document
        #: Process to the document with which it was started.
        self.documents: dict[str, dict[str, Any]] = {}
        self._failed = failed
        self._program = program or consume_tunnel
        self._starts = 0
        self._crashes = 0
        #: When its last process ended, whose writes may still be under way.
        self.ended_at = float("-inf")
        self.process: Process | None = None
        self.worker: Any = None

        #: Whether it is started again when it ends.
        self.is_wanted = True

    @property
    def is_running(self) -> bool:
        """Whether it has a process that runs."""
        return self.process is not None and self.process.state is State.RUNNING

    def is_running_with(self, document: dict[str, Any]) -> bool:
        """Whether its process runs, and was started with this document."""
        return self.is_running and self.process is not None and self.documents[self.process.name] is document

    def tell(self, text: str) -> None:
        """Add an event of its process to the story."""
        assert self.process is not None
        self._story.tell(self.process.name, "%s", text)

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function as code of its process."""
        assert self.process is not None
        return self.process.run(function, *arguments)

    def start(self) -> None:
        """Start the container."""
        if self.process is not None or not self.is_wanted:
            return
        self._starts += 1
        name = f"{self.name}.{self._starts}"
        self.process = Process(self._loop, name, random.Random(f"{self._seed}:{name}"), machine=self.name)
        self.process.on_exit = self._exited
        self.documents[name] = self.document
        self._story.tell(name, "starts")
        self.process.start(self._run(self.process))

    def kill(self, away: float, *, power: bool = False) -> None:
        """Kill the process, or the machine; it is started again after `away` seconds."""
        process = self._let_go()
        if process is None:
            return
        process.kill()
        self._loop.network.process_died(process, power=power)
        self._loop.after(away, self.start)

    def terminate(self) -> None:
        """Send SIGTERM, and SIGKILL after the grace period."""
        process, worker = self.process, self.worker
        if process is None:
            return
        if worker is None:
            self.kill(RESTART[0])
            return
        self._loop.call_soon(worker.interrupt, context=process.context)
        self._loop.after(GRACE, self._overdue, process)

    def _overdue(self, process: Process) -> None:
        if self.process is process:
            self._story.tell(self.name, "is killed after the grace period")
            self.kill(RESTART[0])

    def _exited(self, status: int) -> None:
        self._story.tell(self.name, "has ended itself with status %d", status)
        self.kill(RESTART[0])

    def _let_go(self) -> Process | None:
        process, self.process, self.worker = self.process, None, None
        if process is not None:
            self.ended_at = self._loop.now
        return process

    async def _run(self, process: Process) -> None:
        error: Exception | None = None
        try:
            await self._program(self, process)
        except TunnelError as raised:
            # whatever befalls a worker here passes: none may take it for final
            error = raised
            self._failed("final", f"{process.name} ends with {type(raised).__name__}: {raised}")
        except Exception as raised:
            # any error that is not ours is a finding
            error = raised
            self._failed("bug", f"{process.name} ends with {type(raised).__name__}: {raised}")
        self._story.tell(process.name, "ends%s", f": {type(error).__name__}: {error}" if error else "")
        self._let_go()
        self._loop.after(0.1, self._tidy_up, process)
        self._crashes = self._crashes + 1 if error else 0
        self._loop.after(min(RESTART[0] * 2**self._crashes, RESTART[1]), self.start)

    def _tidy_up(self, process: Process) -> None:
        """The process has ended by itself: nothing of it may be left."""
        left = [task.get_name() for task in process.unfinished()]
        if left:
            self._failed("leak", f"{process.name} has ended and leaves tasks: {', '.join(left)}")
        if connections := self._loop.network.of(process):
            self._failed("leak", f"{process.name} has ended and leaves {len(connections)} connections")
        process.kill()


Program = Callable[[Pod, Process], Awaitable[None]]


async def consume_tunnel(pod: Pod, process: Process) -> None:
    """What `ots-tunnel run` does, without signals and the status server."""
    config = WorkerConfig.model_validate(pod.documents[process.name], by_alias=True, by_name=False)
    source = config.source
    credentials = FileCredentials(source.credentials.directory).checked("source.credentials.directory")
    settings = replace(WorkerSettings.of(config), client_tag=process.name)
    sink = open_sink(config)
    client = TunnelClient(source.endpoint, source.instance, credentials)
    metrics = WorkerMetrics(source.tunnel_name, config.sink.kind)
    pod.worker = TunnelWorker(client, sink, settings, metrics=metrics, preflight=lambda: check_tunnel(client, source))
    try:
        await pod.worker.run()
    finally:
        await client.close()
