"""The emulator as an object: its state, how it runs, and its two ports."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from ots_emulator.admin.application import admin_application
from ots_emulator.admin.state import state_of
from ots_emulator.clock import Clock, ManualClock, ShiftedClock, SystemClock
from ots_emulator.durable.database import Storage
from ots_emulator.durable.restore import restore
from ots_emulator.instance import Instance
from ots_emulator.refusal import parameter_invalid
from ots_emulator.server.application import Application
from ots_emulator.server.faults import FaultRule, Faults
from ots_emulator.server.history import CallHistory
from ots_emulator.server.ports import Listener, listen, serve_data
from ots_emulator.service import Levers
from ots_emulator.settings import Settings, changed_settings
from ots_emulator.thread import EmulatorThread
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse

DEFAULT_INSTANCES: Mapping[str, Mapping[str, str]] = {"demo": {"test-id": "test-secret"}}


class Emulator(Levers):
    """Tablestore and its Tunnel Service in this process.

    Args:
        instances: AccessKey id to secret, per instance.
        host: address of both ports.
        port: data port, 0 chooses a free one.
        admin_port: admin port, 0 chooses a free one.
        admin_host: address of the admin port if it differs.
        settings: behaviour.
        clock: the service's time.
        data: directory that everything acknowledged is kept in; without it the state lives and dies with the object.

    Raises:
        DataError: the data directory cannot be used.
    """

    def __init__(
        self,
        instances: Mapping[str, Mapping[str, str]] = DEFAULT_INSTANCES,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        admin_port: int = 0,
        admin_host: str | None = None,
        settings: Settings | None = None,
        clock: Clock | None = None,
        data: str | PathLike[str] | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self._shifted = ShiftedClock(clock or SystemClock())
        served = {name: Instance(name, dict(keys), self.settings) for name, keys in instances.items()}
        super().__init__(served, clock if isinstance(clock, ManualClock) else self._shifted)
        self.faults = Faults()
        self._storage = self._restored(Path(data)) if data is not None else None
        self._application = Application(self.instances, self.clock, self.settings, self.faults)
        self._address = (host, port)
        self._admin_address = (admin_host or host, admin_port)
        self._data: Listener | None = None
        self._admin: Listener | None = None
        self._thread: EmulatorThread | None = None

    def __repr__(self) -> str:
        return f"Emulator({', '.join(self.instances)}, {self.calls} calls)"

    def _restored(self, directory: Path) -> Storage:
        storage = Storage(directory, fsync=self.settings.fsync)
        try:
            restore(storage, self.instances.values(), self._now_us())
        except BaseException:
            storage.close()
            raise
        return storage

    # Running

    async def start(self) -> None:
        """Open both ports; without this, `handle` still answers in process.

        Raises:
            OSError: an address cannot be used.
        """
        try:
            self._data = await serve_data(self._application, *self._address, self.settings.body_limit)
            self._admin = await listen(web.AppRunner(admin_application(self)), *self._admin_address)
        except OSError:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Finish calls under way and close both ports; the state stays, but a data directory is closed, too."""
        listeners = [listener for listener in (self._data, self._admin) if listener is not None]
        self._data = self._admin = None
        for listener in listeners:
            await listener.stop()
        self.close()

    def close(self) -> None:
        """Close the data directory, which stops calls from being taken; `stop` does it, too.

        Raises:
            Refusal: what levers have changed could not be kept.
        """
        if self._storage is None:
            return
        try:
            if self._storage.failure is None:
                self.commit()
        finally:
            self._storage.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def __enter__(self) -> Self:
        """Run in a thread of its own, for code without an event loop; levers are pulled with `call` then."""
        self._thread = EmulatorThread(emulator=self)
        self._thread.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.__exit__(kind, error, trace)

    def call(self, lever: str, *arguments: Any, **options: Any) -> Any:
        """Call a lever from another thread than the one the emulator runs in.

        Raises:
            RuntimeError: it was not started by ``with``. Refusal: what the lever raises.
        """
        if self._thread is None:
            raise RuntimeError("the emulator runs in no thread of its own; call its methods")
        return self._thread.call(lever, *arguments, **options)

    @property
    def endpoint(self) -> str:
        """URL clients connect to."""
        return _started(self._data).url

    @property
    def admin_url(self) -> str:
        """URL of the admin port."""
        return _started(self._admin).url

    @property
    def calls(self) -> int:
        """Requests answered so far."""
        return self._application.calls

    @property
    def history(self) -> CallHistory:
        """The last calls."""
        return self._application.history

    async def handle(self, request: HttpRequest) -> HttpResponse:
        """Answer a request in process, exactly as over HTTP.

        Raises:
            ConnectionLost: a fault rule lost the answer.
        """
        return await self._application.handle(request)

    # Levers

    def add_instance(self, name: str, keys: Mapping[str, str]) -> None:
        """Serve one more instance, with what a data directory holds of it; `keys` maps AccessKey ids to secrets.

        Raises:
            Refusal: there is one of this name.
            DataError: the data directory is damaged, or takes no more.
        """
        if name in self.instances:
            raise parameter_invalid(f"instance {name!r} exists")
        instance = Instance(name, dict(keys), self.settings)
        if self._storage is not None:
            restore(self._storage, [instance], self._now_us())
        self.instances[name] = instance

    def remove_instance(self, name: str) -> None:
        """Forget an instance with its tables.

        Raises:
            Refusal: there is none of this name.
        """
        instance = self._instance(name)
        for table in list(instance.tables):
            instance.delete_table(table)
        instance.partition_aims.clear()
        instance.journal.commit()
        del self.instances[name]

    def add_fault(self, rule: FaultRule) -> None:
        """Put a fault rule into force."""
        self.faults.add(rule)

    def clear_faults(self) -> None:
        """Forget all fault rules."""
        self.faults.clear()

    def commit(self) -> None:
        """Keep what levers have changed; calls of clients do that themselves.

        Raises:
            Refusal: OTSInternalServerError, it could not be kept.
        """
        for instance in self.instances.values():
            instance.journal.everything()
            instance.journal.commit()

    def state(self) -> dict[str, object]:
        """Return everything there is to see, as JSON values."""
        return state_of(self)

    def advance_clock(self, seconds: float) -> float:
        """Move the service's clock ahead of (or behind) the one it runs by; return its time."""
        if isinstance(self.clock, ManualClock):
            self.clock.advance(seconds)
        else:
            self._shifted.shift += seconds
        return self.clock.now()

    def change_settings(self, **changes: Any) -> Settings:
        """Change behaviour while it runs; return all settings.

        Raises:
            Refusal: there is no such setting, or the value is of another type.
        """
        self.settings = changed_settings(self.settings, changes)
        self._application.settings = self.settings
        for instance in self.instances.values():
            instance.settings = self.settings
        return self.settings


def _started(listener: Listener | None) -> Listener:
    if listener is None:
        raise RuntimeError("the emulator has not been started")
    return listener
