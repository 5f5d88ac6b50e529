"""A worker's container: what `ots-tunnel run` does, as a simulated process that the kubelet starts and ends."""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.commands.preflight import check_tunnel
from ots_tunnel.config import WorkerConfig
from ots_tunnel.console.exit_codes import exit_code
from ots_tunnel.console.explanations import Place, explanation
from ots_tunnel.credentials import FileCredentials
from ots_tunnel.errors import TunnelError
from ots_tunnel.sinks.choice import open_sink
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.status.metrics import WorkerMetrics
from ots_tunnel.worker.worker import TunnelWorker
from ots_tunnel_operator import names
from tests.simulation.apiserver.store import Manifest, Store
from tests.simulation.machine.loop import VirtualLoop
from tests.simulation.machine.process import Process, State
from tests.simulation.story import Story

KILLED = 137
#: Seconds between two looks of the kubelet for a volume that is missing.
MOUNT_SECONDS = 1.0
#: Seconds that an interpreter takes to start.
START_SECONDS = (0.5, 2.0)


class WorkerProgram:
    """One run of a worker's container; it starts when it is made.

    Args:
        pod: the pod's manifest; its document and its Secrets are read from the store, as the kubelet mounts them.
        folder: for the files of its Secrets.
        failed: called with a rule and a text when the worker ends on an error that is no `TunnelError`.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        story: Story,
        store: Store,
        pod: Manifest,
        name: str,
        folder: Path,
        failed: Callable[[str, str], None],
    ) -> None:
        self._loop = loop
        self._story = story
        self._store = store
        self._pod = pod
        self._folder = folder
        self._failed = failed
        machine = pod["metadata"]["name"]
        self.labels: dict[str, str] = pod["metadata"].get("labels") or {}
        self.process = Process(loop, name, random.Random(f"{name}"), machine=machine)
        self.worker: TunnelWorker | None = None
        self.message = ""
        #: Until when nobody reaches its status pages.
        self.hidden_until = 0.0
        self._code: asyncio.Future[int] = loop.create_future()
        self._is_told_to_end = False
        story.tell(name, "starts")
        self.process.start(self._run())

    async def wait(self) -> int:
        """See `Process.wait`."""
        return await asyncio.shield(self._code)

    def terminate(self) -> None:
        """SIGTERM; before the worker has its handlers, it ends the process."""
        self._is_told_to_end = True
        if self.worker is not None:
            self._loop.call_soon(self.worker.interrupt, context=self.process.context)

    def kill(self) -> None:
        """SIGKILL."""
        if not self.process.is_dead:
            self.process.kill()
            self._loop.network.process_died(self.process, power=False)
            self._end(KILLED)

    @property
    def is_ready(self) -> bool:
        """Whether /readyz answers with 200."""
        return self.is_live and self.worker is not None and self.worker.status.is_ready

    @property
    def is_live(self) -> bool:
        """Whether /healthz answers."""
        return self.process.state is State.RUNNING

    def page(self, path: str) -> dict[str, Any]:
        """The document at a path of its status server.

        Raises:
            OSError: nobody answers.
        """
        if not self.is_live or self.worker is None:
            raise ConnectionRefusedError(111, "Connection refused")
        worker = self.worker
        document: dict[str, Any] = self.process.run(worker.status.document)
        return document

    async def _run(self) -> None:
        text = await self._mounted()
        await asyncio.sleep(self.process.chance.uniform(*START_SECONDS))
        code, place = 0, None
        try:
            config = self._config(text)
            place = Place.of_source(config.source)
            await self._consume(config)
        except TunnelError as error:
            self.message = f"{type(error).__name__}: {error if place is None else explanation(error, place)}"
            code = exit_code(error)
        except Exception as error:
            # as `ots-tunnel run`; any error that is not ours is a finding
            self.message, code = f"{type(error).__name__}: {error}", exit_code(error)
            self._failed("bug", f"{self.process.name} ends with {self.message}")
        self._story.tell(self.process.name, "ends with %s %s", code, self.message)
        self.worker = None
        self._loop.after(0.1, self._tidy_up, code)

    async def _consume(self, config: WorkerConfig) -> None:
        source = config.source
        credentials = FileCredentials(source.credentials.directory).checked("source.credentials.directory")
        settings = WorkerSettings.of(config)
        settings = replace(settings, client_tag=f"{config.client.tag_prefix}-{self._pod['metadata']['name']}")
        sink = open_sink(config)
        client = TunnelClient(source.endpoint, source.instance, credentials)
        metrics = WorkerMetrics(source.tunnel_name, config.sink.kind)
        worker = TunnelWorker(client, sink, settings, metrics=metrics, preflight=lambda: check_tunnel(client, source))
        self.worker = worker
        if self._is_told_to_end:
            worker.interrupt()
        try:
            await worker.run()
        finally:
            await client.close()

    async def _mounted(self) -> str:
        """The mounted document; no container starts before its volumes are there, and a deleted one stays mounted."""
        while True:
            if (text := self._mounted_document()) is not None:
                return text
            await asyncio.sleep(MOUNT_SECONDS)

    def _mounted_document(self) -> str | None:
        """The text of the mounted document; None while its ConfigMap does not exist."""
        for volume in self._pod["spec"].get("volumes") or ():
            if "configMap" in volume:
                key = ("ConfigMap", self._pod["metadata"]["namespace"], volume["configMap"]["name"])
                found = self._store.peek(key)
                return None if found is None else str(found["data"][names.WORKER_FILE])
        raise ValueError(f"{self.process.name} mounts no ConfigMap")

    def _config(self, text: str) -> WorkerConfig:
        """The document, with folders of this machine in place of the mounts."""
        namespace, spec = self._pod["metadata"]["namespace"], self._pod["spec"]
        document: dict[str, Any] = yaml.safe_load(text)
        folders: dict[str, str] = {}
        mounts = {mount["name"]: mount["mountPath"] for mount in spec["containers"][0].get("volumeMounts") or ()}
        for volume in spec.get("volumes") or ():
            if "secret" in volume:
                folders[mounts[volume["name"]]] = str(self._mount(namespace, volume["secret"]["secretName"]))
        _replace_texts(document, folders)
        return WorkerConfig.model_validate(document, by_alias=True, by_name=False)

    def _mount(self, namespace: str, secret: str) -> Path:
        """A folder with the files of a Secret; all pods share it, and a changed Secret changes the files."""
        folder = self._folder / namespace / secret
        folder.mkdir(parents=True, exist_ok=True)
        found = self._store.peek(("Secret", namespace, secret)) or {"data": {}}
        for name, value in found["data"].items():
            (folder / name).write_bytes(base64.b64decode(value))
        return folder

    def _tidy_up(self, code: int) -> None:
        """The process has ended by itself: nothing of it may be left."""
        if left := [task.get_name() for task in self.process.unfinished()]:
            self._failed("leak", f"{self.process.name} has ended and leaves tasks: {', '.join(left)}")
        self.process.kill()
        self._loop.network.process_died(self.process, power=False)
        self._end(code)

    def _end(self, code: int) -> None:
        if not self._code.done():
            self._code.set_result(code)


def _replace_texts(document: Any, replacements: dict[str, str]) -> None:
    """Replace values of a document that are keys of the mapping."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in list(items):
        if isinstance(value, dict | list):
            _replace_texts(value, replacements)
        elif isinstance(value, str) and value in replacements:
            document[key] = replacements[value]
