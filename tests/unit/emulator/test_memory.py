"""Memory of deleted tables is given back when it is worth a pause."""

from __future__ import annotations

from ots_emulator.memory import WORTH_BYTES, Freed
from tests.support.emulator.emulator_driver import Driver


def test_small_amounts_are_collected() -> None:
    kept: list[int] = []
    freed = Freed(kept.append)
    freed.add(WORTH_BYTES - 1)
    freed.give_back()
    assert kept == []

    freed.add(1)
    freed.give_back()
    freed.give_back()
    assert kept == [0]


def test_an_allocator_without_such_a_call_is_left_alone() -> None:
    freed = Freed(None)
    freed.add(WORTH_BYTES)
    freed.give_back()

    assert repr(freed) == "Freed(0 bytes)"


async def test_rows_and_log_of_a_deleted_table_are_counted_and_its_pages_dropped() -> None:
    driver = Driver(page_rows=10)
    await driver.create_table(hours=24)
    await driver.fill(100)
    instance = driver.emulator.instances["demo"]
    tunnel = await driver.create_tunnel("Stream", flag="EARLIEST")
    (channel,) = await driver.channels(tunnel, "Stream")
    await driver.read(tunnel, channel, (await driver.checkpoint_of(tunnel, channel)).checkpoint)
    table = instance.tables["t"]
    assert table.log is not None
    size = table.size_bytes + table.log.size_bytes
    assert len(instance.pages) == 1

    await driver.call("DeleteTable", table_name="t")

    assert repr(instance.freed) == f"Freed({size} bytes)"
    assert len(instance.pages) == 0
