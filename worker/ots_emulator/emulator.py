"""The emulator as an object: a service behind two ports."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from ots_emulator.admin.application import admin_application
from ots_emulator.admin.state import state_of
from ots_emulator.clock import Clock, SystemClock
from ots_emulator.server.descriptors import LastDescriptor
from ots_emulator.server.ports import AddressUnusable, Listener, listen, serve_data
from ots_emulator.service import Service
from ots_emulator.settings import Settings
from ots_emulator.thread import EmulatorThread
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse

DEFAULT_INSTANCES: Mapping[str, Mapping[str, str]] = {"demo": {"test-id": "test-secret"}}


class Emulator:
    """Tablestore and its Tunnel Service in this process.

    The controls of `ots_emulator.service.Service` (`split`, `expire_tunnel`, `add_fault`, ...) are methods of it.

    Args:
        instances: AccessKey id to secret, per instance.
        host: address of both ports.
        port: data port, 0 chooses a free one.
        admin_port: admin port, 0 chooses a free one.
        admin_host: address of the admin port if it differs.
        settings: behaviour.
        clock: the service's time.
        data: directory that stores everything acknowledged; without it the state lives in this object only.

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
        directory = None if data is None else Path(data)
        service = self.service = Service(instances, settings or Settings(), clock or SystemClock(), directory)
        self.instances, self.clock, self.faults = service.instances, service.clock, service.faults
        self.history = service.application.history
        self.commit, self.close = service.commit, service.close
        self.add_instance, self.remove_instance = service.add_instance, service.remove_instance
        self.add_fault, self.clear_faults = service.add_fault, service.clear_faults
        self.advance_clock, self.change_settings = service.advance_clock, service.change_settings
        self.set_partitions, self.split, self.merge = service.set_partitions, service.split, service.merge
        self.trim, self.tunnel, self.expire_tunnel = service.trim, service.tunnel, service.expire_tunnel
        self.expire_clients, self.suspend, self.resume = service.expire_clients, service.suspend, service.resume
        self.rebalance, self.conflict = service.rebalance, service.conflict
        self._address = (host, port)
        self._admin_address = (admin_host or host, admin_port)
        self._data: Listener | None = None
        self._admin: Listener | None = None
        self._thread: EmulatorThread | None = None

    def __repr__(self) -> str:
        return f"Emulator({', '.join(self.instances)}, {self.calls} calls)"

    async def start(self) -> None:
        """Open both ports; without this, `handle` still answers in process.

        Raises:
            AddressUnusable: an address cannot be used.
        """
        descriptors = LastDescriptor()
        application = self.service.application
        prefix, address = "", self._address
        try:
            self._data = await serve_data(application, *address, descriptors)
            prefix, address = "admin_", self._admin_address
            admin = web.AppRunner(admin_application(self.service, descriptors, address[0]))
            self._admin = await listen(admin, *address)
        except OSError as error:
            await self.stop()
            raise AddressUnusable(prefix, *address, error) from error

    async def stop(self) -> None:
        """Finish calls under way, close both ports and the data directory; the state in memory stays."""
        listeners = [listener for listener in (self._data, self._admin) if listener is not None]
        self._data = self._admin = None
        for listener in listeners:
            await listener.stop()
        self.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def __enter__(self) -> Self:
        """Run in a thread of its own, for code without an event loop; controls are reached through `call` then."""
        self._thread = EmulatorThread(self)
        self._thread.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.__exit__(kind, error, trace)

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method in the emulator's thread and store its changes.

        Raises:
            RuntimeError: it was not started by ``with``. Refusal: raised by the method.
        """
        if self._thread is None:
            raise RuntimeError("the emulator runs in no thread of its own; call its methods")
        return self._thread.call(method, *arguments, **options)

    async def handle(self, request: HttpRequest) -> HttpResponse:
        """Answer a request in process, exactly as over HTTP.

        Raises:
            ConnectionLost: a fault rule dropped the answer.
        """
        return await self.service.application.handle(request)

    def state(self) -> dict[str, object]:
        """Return the whole state as JSON values."""
        return state_of(self.service)

    @property
    def endpoint(self) -> str:
        """URL clients connect to."""
        return _started(self._data).url

    @property
    def admin_url(self) -> str:
        """URL of the admin port."""
        return _started(self._admin).url

    @property
    def data_listener(self) -> Listener:
        """The data port."""
        return _started(self._data)

    @property
    def settings(self) -> Settings:
        """Behaviour; changed by `change_settings`."""
        return self.service.settings

    @property
    def calls(self) -> int:
        """Requests answered so far."""
        return self.service.application.calls


def _started(listener: Listener | None) -> Listener:
    if listener is None:
        raise RuntimeError("the emulator has not been started")
    return listener
