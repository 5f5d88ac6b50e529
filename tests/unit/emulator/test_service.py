"""The service without ports: instances and settings; other controls are tested through the admin port."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from ots_emulator import Emulator, ManualClock, Settings
from ots_emulator.refusal import Refusal
from ots_emulator.service import Service
from ots_emulator.settings import RANGES
from tests.support.emulator.emulator_driver import Driver

KEYS = {"id": "secret"}


@pytest.fixture
def service() -> Service:
    return Service({"one": KEYS}, Settings(), ManualClock())


def test_instances_come_and_go(service: Service) -> None:
    service.add_instance("two", KEYS)
    assert sorted(service.instances) == ["one", "two"]

    service.remove_instance("one")
    assert sorted(service.instances) == ["two"]


def test_an_instance_has_one_name(service: Service) -> None:
    with pytest.raises(Refusal, match="instance 'one' exists"):
        service.add_instance("one", KEYS)
    with pytest.raises(Refusal, match="no instance 'three', there are: one"):
        service.remove_instance("three")


def test_changed_settings_reach_every_instance(service: Service) -> None:
    changed = service.change_settings(page_rows=7)

    assert changed.page_rows == 7
    assert service.instances["one"].settings is service.application.settings is service.settings is changed


@pytest.mark.parametrize("name", sorted(RANGES))
def test_settings_have_ranges(service: Service, name: str) -> None:
    least, most = RANGES[name]

    for value in (least, most):
        assert getattr(service.change_settings(**{name: value}), name) == value
    for value in (least - 1, most + 1):
        with pytest.raises(Refusal, match=rf"{name}: found {value}(\.0)?, allowed is a number from {least} to {most}"):
            service.change_settings(**{name: value})
        with pytest.raises(ValueError, match=f"{name}: found {value}, allowed is a number"):
            Settings(**{name: value})


def test_every_number_has_a_range() -> None:
    numbers = {
        field.name
        for field in fields(Settings)
        if isinstance(field.default, int | float) and not isinstance(field.default, bool)
    }

    assert set(RANGES) == numbers | {"table_operations_per_second"}


def test_a_manual_clock_is_moved_itself(service: Service) -> None:
    before = service.clock.now()

    assert service.advance_clock(-3600) == service.clock.now() == before - 3600


def test_unknown_tunnels_are_named(service: Service) -> None:
    with pytest.raises(Refusal, match="no tunnel 'copy' in instance 'one'"):
        service.expire_tunnel("one", "copy")


async def test_a_name_that_two_tunnels_have_names_none_of_them() -> None:
    driver = Driver()
    await driver.create_table("t")
    await driver.create_table("u")
    first, second = [await driver.create_tunnel("Stream", name="copy", table=table) for table in ("t", "u")]

    with pytest.raises(Refusal, match=f"tunnel: found 'copy', .* an id: {first} of table 't', {second} of table 'u'"):
        driver.emulator.expire_tunnel("demo", "copy")
    driver.emulator.expire_tunnel("demo", second)

    assert [(await driver.describe(tunnel)).tunnel.expired for tunnel in (first, second)] == [False, True]


def test_a_closed_directory_refuses_calls_and_is_free(tmp_path: Path) -> None:
    first = Service({"one": KEYS}, Settings(), ManualClock(), tmp_path)
    first.set_partitions("one", "t", 5)
    first.close()

    with pytest.raises(Refusal, match="Internal server error"):
        first.instances["one"].journal.check_writable()
    second = Service({"one": KEYS}, Settings(), ManualClock(), tmp_path)
    assert second.instances["one"].partition_aims == {"t": 5}
    second.close()


def test_the_emulator_offers_the_controls_of_its_service() -> None:
    emulator = Emulator(clock=ManualClock())

    emulator.set_partitions("demo", "t", 3)
    emulator.change_settings(page_rows=9)

    assert emulator.instances["demo"].partition_aims == {"t": 3}
    assert emulator.settings.page_rows == 9


def test_the_emulator_offers_every_control_of_its_service() -> None:
    emulator = Emulator()
    controls = {name for name, value in vars(Service).items() if callable(value) and not name.startswith("_")}

    assert "split" in controls
    # `instance` finds the parts that a control changes; it changes nothing.
    missing = {
        name for name in controls - {"instance"} if getattr(emulator, name, None) != getattr(emulator.service, name)
    }
    assert missing == set()
