"""The vendor's examples in Python (`TunnelDaemon`, `SimpleProcessFactory`, one configuration for several workers)."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel import (
    ChannelContext,
    Credentials,
    Record,
    SimpleProcessorFactory,
    SyncTunnelClient,
    TunnelDaemon,
    TunnelWorkerConfig,
)
from ots_tunnel.client.sync_table import SyncTableClient
from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.errors import ConfigError, InvalidTransition, ParameterInvalid
from ots_tunnel.model import Action, KeyColumn, KeyType, TunnelType
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.tables import TableAdmin, TableSchema
from tests.support.waiting import wait_until

KEYS = Credentials("test-id", "test-secret")


@pytest.fixture
def emulator() -> Any:
    with Emulator(settings=Settings(partitions=2, init_delay=0.0)) as running:
        yield running


def fill(endpoint: str, rows: int, first: int = 0) -> None:
    table = SyncTableClient(endpoint, "demo", lambda: KEYS)
    changes = [
        RowChange(Action.PUT, encode_row((("id", number),), [Column("n", number)]))
        for number in range(first, first + rows)
    ]
    table.batch_write("orders", changes)
    table.close()


def create_table(endpoint: str) -> None:
    admin = TableAdmin(endpoint, "demo", lambda: KEYS)
    admin.create(TableSchema("orders", (KeyColumn("id", KeyType.INTEGER),)))


def test_the_vendors_example(emulator: Emulator) -> None:
    create_table(emulator.endpoint)
    fill(emulator.endpoint, 100)
    seen: list[int] = []

    # Customize the data consumption callback function.
    def consume(context: ChannelContext, records: Sequence[Record]) -> None:
        assert context.custom_value == "user custom value"
        for record in records:
            seen.append(int(record.primary_key[0][1]))

    client = SyncTunnelClient(emulator.endpoint, "demo", KEYS)
    tunnel_id = client.create_tunnel("orders", "example", TunnelType.BaseAndStream)
    config = TunnelWorkerConfig(SimpleProcessorFactory(consume, custom_value="user custom value"), heartbeat_interval=5)
    daemon = TunnelDaemon(client, tunnel_id, config)
    running = threading.Thread(target=daemon.run)
    running.start()
    try:
        wait_until(lambda: len(seen) >= 100)
        fill(emulator.endpoint, 50, first=100)
        wait_until(lambda: len(seen) >= 150)
    finally:
        daemon.shutdown()
        running.join(20)
        client.close()

    assert not running.is_alive()
    assert sorted(seen) == list(range(150))
    with pytest.raises(InvalidTransition, match="a daemon that has run"):
        daemon.run()


def test_two_workers_share_one_configuration(emulator: Emulator) -> None:
    create_table(emulator.endpoint)
    fill(emulator.endpoint, 200)
    seen: list[int] = []
    lock = threading.Lock()

    def consume(context: ChannelContext, records: Sequence[Record]) -> None:
        with lock:
            seen.extend(int(record.primary_key[0][1]) for record in records)

    client = SyncTunnelClient(emulator.endpoint, "demo", KEYS)
    tunnel_id = client.create_tunnel("orders", "example", TunnelType.BaseAndStream)
    config = TunnelWorkerConfig(SimpleProcessorFactory(consume), heartbeat_interval=5, max_parallel_channels=1)
    daemons = [TunnelDaemon(client, tunnel_id, config) for _ in range(2)]
    threads = [threading.Thread(target=daemon.run) for daemon in daemons]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: len(set(seen)) >= 200)
        description = client.describe_tunnel("orders", "example")
    finally:
        for daemon in daemons:
            daemon.shutdown()
        for thread in threads:
            thread.join(20)
        client.close()

    assert not any(thread.is_alive() for thread in threads)
    assert sorted(set(seen)) == list(range(200))
    assert description.channels


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_of_the_users_code_ends_by_sigterm_and_the_daemon_goes_on(emulator: Emulator) -> None:
    create_table(emulator.endpoint)
    fill(emulator.endpoint, 10)
    seen: list[int] = []
    ends: list[int] = []
    lock = threading.Lock()

    def consume(context: ChannelContext, records: Sequence[Record]) -> None:
        child = os.fork()
        if not child:
            signal.alarm(20)
            signal.pause()
        os.kill(child, signal.SIGTERM)
        ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        with lock:
            if not seen:
                fill(emulator.endpoint, 10, first=10)
            seen.extend(int(record.primary_key[0][1]) for record in records)
            if len(seen) >= 20:
                daemon.shutdown()

    client = SyncTunnelClient(emulator.endpoint, "demo", KEYS)
    tunnel_id = client.create_tunnel("orders", "example", TunnelType.BaseAndStream)
    config = TunnelWorkerConfig(SimpleProcessorFactory(consume), heartbeat_interval=5)
    daemon = TunnelDaemon(client, tunnel_id, config)
    daemon.run()
    client.close()

    assert sorted(seen) == list(range(20))
    assert set(ends) == {-signal.SIGTERM}


def test_a_tunnel_that_does_not_exist_ends_the_daemon(emulator: Emulator) -> None:
    client = SyncTunnelClient(emulator.endpoint, "demo", KEYS)
    config = TunnelWorkerConfig(SimpleProcessorFactory(lambda context, records: None))

    with pytest.raises(ParameterInvalid, match="tunnel not exist"):
        TunnelDaemon(client, "11111111-2222-3333-4444-555555555555", config).run()
    client.close()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"heartbeat_interval": 4}, "heartbeat_interval: found 4, allowed is 5 or more"),
        ({"heartbeat_interval": 30, "heartbeat_timeout": 30}, "heartbeat_timeout: found 30, it must be more than"),
        ({"on_possible_gap": "Skip"}, "on_possible_gap: found 'Skip', allowed are 'Stop' and 'Continue'"),
        ({"heartbeat_timeout": 60.5}, "heartbeat_timeout: found 60.5, allowed are whole seconds"),
        ({"checkpoint_interval": 0}, "checkpoint_interval: found 0"),
        ({"max_parallel_channels": -1}, "max_parallel_channels: found -1"),
        ({"reconnect": (3, 1)}, "reconnect: found"),
    ],
)
def test_wrong_settings_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        TunnelWorkerConfig(SimpleProcessorFactory(lambda context, records: None), **wrong)
