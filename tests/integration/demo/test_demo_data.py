"""The demo's loader and writer against the emulator, through the vendor's SDK."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from itertools import islice

import pytest

from ots_emulator import Emulator
from ots_emulator.server.faults import FaultRule
from ots_tunnel.demo.changes import ChangeKind
from ots_tunnel.demo.flights import FLIGHTS, find_flights, flights_schema, read_flights, read_keys
from ots_tunnel.demo.load import Target, load_flights, write_all
from ots_tunnel.demo.writer import ChangeWriter, flight_changes
from ots_tunnel.errors import ObjectNotExist, SinkError, TunnelError
from ots_tunnel.model import Action, Credentials
from ots_tunnel.tables import TableAdmin
from tests.support.programs.processes import bare_environment, module
from tests.support.waiting import wait_until

ROWS = 1_000


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    with Emulator() as emulator:
        yield emulator


@pytest.fixture
def target(emulator: Emulator) -> Target:
    return Target(emulator.endpoint, "demo", Credentials("test-id", "test-secret"), "flights")


@pytest.fixture
def admin(target: Target) -> Iterator[TableAdmin]:
    admin = target.admin()
    admin.create(flights_schema())
    yield admin
    admin.close()


def test_the_keys_of_the_data_set_are_unique() -> None:
    keys = list(read_keys(find_flights()))

    assert len(keys) == FLIGHTS
    assert len(set(keys)) == FLIGHTS


def test_rows_are_typed_and_missing_values_left_out() -> None:
    rows = list(islice(read_flights(find_flights(), 5), 1000))
    first = rows[0]

    assert first.action is Action.PUT
    assert first.primary_key == (("carrier", "UA"), ("flight", 1545), ("time_hour", "2013-01-01T10:00:00Z"))
    cells = {column.name: column.value for column in first.columns}
    assert cells["dep_delay"] == 2
    assert cells["tailnum"] == "N14228"
    assert len(cells) == 16
    assert {column.timestamp_ms for column in first.columns} == {5}
    cancelled = [row for row in rows if "dep_time" not in {column.name for column in row.columns}]
    assert cancelled


def test_shares_cover_every_row_once() -> None:
    path = find_flights()
    whole = {row.primary_key for row in read_flights(path, 5, rows=1950)}
    parts = [[row.primary_key for row in read_flights(path, 5, rows=1950, share=share, shares=3)] for share in range(3)]

    assert sum(map(len, parts)) == len(whole) == 1950
    assert set().union(*parts) == whole


@pytest.mark.timeout(120)
def test_loading_and_changing(target: Target, admin: TableAdmin) -> None:
    seen: list[int] = []
    version = int(time.time() * 1000)

    assert load_flights(target, version_ms=version, rows=ROWS, progress=seen.append) == ROWS
    assert seen[-1] == ROWS
    assert admin.first_version("flights", flights_schema()) == version

    writer = ChangeWriter(target.admin(), "flights", flight_changes(admin, "flights", seed=1, rows=ROWS), rate=2000)
    writer.start()
    wait_until(lambda: writer.total >= 1500 or not writer.running, 60, "1,500 changes")
    counts = writer.stop()

    assert sum(counts.values()) == writer.total >= 1500
    assert all(counts[kind] > 0 for kind in ChangeKind)


def test_a_table_that_is_missing_fails_the_load(target: Target) -> None:
    with pytest.raises(SinkError, match="loading 'flights' failed: OTSObjectNotExist"):
        load_flights(target, version_ms=int(time.time() * 1000), rows=100, processes=1)


def test_rows_with_temporary_errors_are_written_again(emulator: Emulator, admin: TableAdmin) -> None:
    emulator.call("add_fault", FaultRule("BatchWriteRow", count=1, row_code="OTSServerBusy"))
    # the SDK itself retries a refused call, but not a refused row
    row = next(read_flights(find_flights(), int(time.time() * 1000)))

    write_all(admin, "flights", [row], tries=2)

    assert not admin.is_empty("flights", flights_schema())


@pytest.mark.parametrize(("code", "seconds"), [("OTSServerBusy", 1.0), ("OTSInvalidPK", 0.0)])
def test_rows_that_cannot_be_written_fail(emulator: Emulator, admin: TableAdmin, code: str, seconds: float) -> None:
    emulator.call("add_fault", FaultRule("BatchWriteRow", row_code=code))
    row = next(read_flights(find_flights(), int(time.time() * 1000)))
    began = time.monotonic()

    with pytest.raises(TunnelError, match=code):
        write_all(admin, "flights", [row], tries=2)

    assert seconds <= time.monotonic() - began
    assert admin.is_empty("flights", flights_schema())


def test_changes_of_a_missing_table_are_refused(target: Target) -> None:
    admin = target.admin()
    with pytest.raises(ObjectNotExist, match="table 'flights' does not exist"):
        flight_changes(admin, "flights", seed=1)
    admin.close()


@pytest.mark.parametrize(
    ("credentials", "error"),
    [("test-id", "standard input: one line accessKeyId:accessKeySecret is needed"), ("test-id:wrong", "OTSAuthFailed")],
)
def test_the_writers_process_ends_with_the_error(target: Target, credentials: str, error: str) -> None:
    options = ["--endpoint", target.endpoint, "--instance", "demo", "--table", "flights"]
    done = subprocess.run(
        module("ots_tunnel.demo.writer", *options),
        input=f"{credentials}\n",
        capture_output=True,
        text=True,
        env=bare_environment(),
        timeout=60,
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert error in done.stderr


def test_a_writer_without_its_table_fails(target: Target, admin: TableAdmin) -> None:
    changes = flight_changes(admin, "flights", seed=1, rows=ROWS)
    writer = ChangeWriter(target.admin(), "nothing", changes)
    writer.start()
    wait_until(lambda: not writer.running, 30, "the end of the writer")

    with pytest.raises(TunnelError, match="OTSObjectNotExist"):
        writer.stop()


@pytest.mark.timeout(120)
def test_the_writers_process_counts_until_a_signal_stops_it(target: Target, admin: TableAdmin) -> None:
    command = module("ots_tunnel.demo.writer", "--endpoint", target.endpoint, "--instance", "demo")
    command += ["--table", "flights", "--rows", "500", "--rate", "300"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=bare_environment()
    )
    try:
        assert process.stdin is not None
        process.stdin.write("test-id:test-secret\n")
        process.stdin.flush()
        wait_until(
            lambda: process.poll() is not None or not admin.is_empty("flights", flights_schema()), 60, "a first change"
        )
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait(10)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    assert process.returncode == 0
    counts = json.loads(output.splitlines()[-1])
    assert set(counts) == {kind.value for kind in ChangeKind}
    assert sum(counts.values()) > 0
