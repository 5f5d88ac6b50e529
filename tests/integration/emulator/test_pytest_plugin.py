"""The pytest plugin in a user's project."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

PROJECT = """
import time

import pytest
from ots_emulator import Settings
from ots_tunnel import Credentials, SyncTunnelClient, TunnelType
from ots_tunnel.errors import ServerUnavailable
from ots_tunnel.model import KeyType
from ots_tunnel.tables import KeyColumn, TableAdmin, TableSchema


def client_of(emulated):
    return SyncTunnelClient(
        emulated.endpoint, emulated.instance, Credentials(emulated.access_key_id, emulated.access_key_secret)
    )


@pytest.mark.parametrize("run", range(2))
def test_every_test_has_an_empty_instance(ots_emulator, run):
    keys = Credentials(ots_emulator.access_key_id, ots_emulator.access_key_secret)
    admin = TableAdmin(ots_emulator.endpoint, ots_emulator.instance, lambda: keys)
    assert admin.list() == ()
    admin.create(TableSchema("orders", (KeyColumn("id", KeyType.INTEGER),)))
    client = client_of(ots_emulator)
    client.create_tunnel("orders", "copy", TunnelType.Stream)
    client.close()
    ots_emulator.call("set_partitions", "orders", 2)


def test_faults(ots_emulator):
    ots_emulator.add_fault(operation="ListTunnel", code="OTSServerBusy", status=503)
    assert len(ots_emulator.server.faults) == 1


def test_faults_of_other_tests_are_gone(ots_emulator):
    assert len(ots_emulator.server.faults) == 0
    client = client_of(ots_emulator)
    assert client.list_tunnels("") == ()
    client.close()


def test_clock_and_settings(ots_emulator):
    ots_emulator.server.call("advance_clock", 86_400)
    ots_emulator.server.call("advance_clock", -0.1)
    ots_emulator.server.call("change_settings", page_rows=1, after_retention="Oldest", date_skew=None)
    assert ots_emulator.server.settings.page_rows == 1


def test_clock_and_settings_of_other_tests_are_gone(ots_emulator):
    assert abs(ots_emulator.server.clock.now() - time.time()) < 60
    assert ots_emulator.server.service.advanced == 0
    assert ots_emulator.server.settings == Settings()
"""


@pytest.mark.lasts(9)
def test_a_user_s_project(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["ots_emulator.pytest_plugin"]')
    pytester.makepyfile(PROJECT)

    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", "-p", "no:looptime")

    result.assert_outcomes(passed=6)
