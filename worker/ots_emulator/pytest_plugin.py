"""Fixtures for tests of your programs: `pytest_plugins = ["ots_emulator.pytest_plugin"]` in a conftest.py.

    def test_my_program(ots_emulator):
        client = tablestore.OTSClient(
            ots_emulator.endpoint, ots_emulator.access_key_id, ots_emulator.access_key_secret, ots_emulator.instance
        )

One emulator serves the whole run. Every test gets an empty instance with its own name. After it its fault rules are
removed, and clock and settings are as they were before.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import pytest

from ots_emulator.emulator import Emulator
from ots_emulator.server.faults import FaultRule

ACCESS_KEY = ("test-id", "test-secret")
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class EmulatedInstance:
    """Addresses and key pair for the clients of a test, and the controls of its instance."""

    server: Emulator
    instance: str
    access_key_id: str
    access_key_secret: str

    @property
    def endpoint(self) -> str:
        """URL clients connect to."""
        return self.server.endpoint

    @property
    def admin_url(self) -> str:
        """URL of the admin page."""
        return self.server.admin_url

    def add_fault(self, **rule: Any) -> None:
        """Add a fault rule until the test ends; fields as in `ots_emulator.server.faults.FaultRule`."""
        self.server.call("add_fault", FaultRule(**rule))

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the emulator for this instance, such as ``call("split", "my_table")``.

        Raises:
            Refusal: raised by the method.
        """
        return self.server.call(method, self.instance, *arguments, **options)


@pytest.fixture(scope="session")
def ots_emulator_server() -> Iterator[Emulator]:
    """One emulator for the whole run, in a thread."""
    with Emulator() as server:
        yield server


@pytest.fixture
def ots_emulator(ots_emulator_server: Emulator) -> Iterator[EmulatedInstance]:
    """An empty instance for every test; faults, clock and settings do not outlast it."""
    server = ots_emulator_server
    key_id, secret = ACCESS_KEY
    name = f"test-{next(_numbers)}"
    settings, advanced = server.settings, server.service.advanced
    server.call("add_instance", name, {key_id: secret})
    yield EmulatedInstance(server, name, key_id, secret)
    server.call("remove_instance", name)
    server.call("clear_faults")
    if server.service.advanced != advanced:
        server.call("advance_clock", advanced - server.service.advanced)
    if server.settings != settings:
        server.call("change_settings", **asdict(settings))
