"""`ots-tunnel verify` against the emulator: differences, exit codes, resumed runs."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ots_emulator import Settings
from ots_emulator.server.faults import FaultRule
from ots_tunnel.errors import ConfigError, ServiceError
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.tables import TableAdmin
from tests.support.verify_scene import BASE, COPY, INSTANCE, KEYS, SCHEMA, SOURCE, VerifyScene, row, verify_scene
from tests.support.waiting import wait_until


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[VerifyScene]:
    with verify_scene(tmp_path, Settings(range_rows=7)) as made:
        made.create()
        yield made


def wide(number: int) -> Column:
    return Column("blob", bytes([number % 251]) * 50_000, BASE)


def wait_while_running(process: subprocess.Popen[str], reached: Callable[[], bool]) -> None:
    """Wait for a condition while the process runs."""

    def is_reached() -> bool:
        assert process.poll() is None, process.communicate()
        return reached()

    wait_until(is_reached, 30)


def slices_done(tables: VerifyScene) -> int:
    return len(json.loads(tables.state.read_text())["done"]) if tables.state.exists() else 0


def test_equal_tables(tables: VerifyScene) -> None:
    tables.fill(row(number) for number in range(100))

    done = tables.verify()

    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"equal: demo/{SOURCE} at ")
    assert "100 rows, 100 cells, 100 versions compared" in done.stdout
    assert "0 missing, 0 extra, 0 different" in done.stdout
    assert not tables.state.exists()


def test_every_kind_of_difference_is_shown(tables: VerifyScene) -> None:
    tables.fill(row(number) for number in range(30))
    tables.put(SOURCE, [row(100)])
    tables.put(COPY, [row(200)])
    tables.put(COPY, [row(3, Column("x", "3", BASE), Column("y", True, BASE + 1))])

    report = tables.report()

    assert (report["rows"], report["missing"], report["extra"], report["different"]) == (31, 1, 1, 1)
    assert [(found["kind"], found["key"]["n"]) for found in report["first"]] == [
        ("different", 3),
        ("missing", 100),
        ("extra", 200),
    ]
    assert report["first"][0]["cells"] == [
        {
            "column": "x",
            "version": BASE,
            "source": {"type": "INTEGER", "value": "3"},
            "destination": {"type": "STRING", "value": "'3'"},
        },
        {
            "column": "y",
            "version": BASE + 1,
            "source": None,
            "destination": {"type": "BOOLEAN", "value": "true"},
        },
    ]
    text = tables.verify().stdout
    kinds = text.splitlines()[1]
    assert kinds == (
        "the destination lacks 1 row, and has 1 row that the source lacks, and differs in 1 row (1 in values)"
    )
    assert "different: pk='k00003', n=3\n" in text
    assert f"    x @ {BASE}: INTEGER 3 | STRING '3'\n" in text
    assert "missing: pk='k00100', n=100\n" in text
    assert "extra: pk='k00200', n=200\n" in text


def test_different_versions_alone_are_a_difference(tables: VerifyScene) -> None:
    tables.put(SOURCE, [row(1, Column("x", 1, BASE), Column("x", 2, BASE + 5))])
    tables.put(COPY, [row(1, Column("x", 2, BASE + 5), Column("x", 1, BASE + 1))])

    report = tables.report()

    assert (report["rows"], report["cells"], report["versions"], report["different"]) == (1, 1, 2, 1)
    assert [cell["version"] for cell in report["first"][0]["cells"]] == [BASE + 1, BASE]
    assert report["differentIn"] == {"values": 0, "columns": 0, "versions": 1}
    assert "the destination differs in 1 row (1 in versions alone)\n" in tables.verify().stdout


def test_doubles_are_compared_by_their_bits(tables: VerifyScene) -> None:
    tables.put(SOURCE, [row(1, Column("x", 0.0, BASE)), row(2, Column("x", -0.0, BASE))])
    tables.put(COPY, [row(1, Column("x", -0.0, BASE)), row(2, Column("x", -0.0, BASE))])

    report = tables.report()

    assert report["different"] == 1
    assert report["first"][0]["cells"][0]["source"] == {"type": "DOUBLE", "value": "0.0"}
    assert report["first"][0]["cells"][0]["destination"] == {"type": "DOUBLE", "value": "-0.0"}


def test_a_busy_service_is_retried_with_a_note(tables: VerifyScene) -> None:
    tables.fill(row(number) for number in range(30))
    tables.emulator.call("add_fault", FaultRule("GetRange", count=4, code="OTSServerBusy"))

    done = tables.verify()

    assert done.exit_code == 0, done.output
    assert "GetRange is retried: OTSServerBusy" in done.stderr


def test_a_limited_number_of_differences_is_shown_and_all_are_counted(tables: VerifyScene) -> None:
    tables.put(SOURCE, (row(number) for number in range(60)))

    done = tables.verify("--show", "2")

    assert done.exit_code == 1
    assert done.stdout.count("missing: ") == 2
    assert "60 missing" in done.stdout
    assert done.stdout.endswith("and 58 more\n")


def test_a_killed_run_resumes_and_counts_the_same(tables: VerifyScene) -> None:
    rows = [row(number, wide(number)) for number in range(200)]
    tables.fill(rows)
    tables.put(SOURCE, [row(number, wide(number)) for number in (1000, 2000)])
    tables.put(COPY, [row(3, wide(4)), row(150, wide(4))])
    whole = tables.report("--sample", "100", "--seed", "1")
    assert whole["slices"]["total"] >= 8
    tables.emulator.call("add_fault", FaultRule("GetRange", latency=0.1))

    process = tables.start("--sample", "100", "--seed", "1", "--parallel", "1")
    wait_while_running(process, lambda: slices_done(tables) >= 2)
    process.kill()
    process.communicate(timeout=60)
    done = slices_done(tables)
    assert 2 <= done < whole["slices"]["total"]
    tables.emulator.call("clear_faults")
    tables.emulator.call("add_fault", FaultRule("ComputeSplitPointsBySize", code="OTSParameterInvalid"))

    result = tables.verify("-o", "json", "--sample", "100")

    assert result.exit_code == 1, result.output
    assert f"{done} of {whole['slices']['total']} slices are compared" in result.stderr
    again = json.loads(result.stdout)
    for name in ("rows", "cells", "versions", "missing", "extra", "different", "slices", "sample", "first"):
        assert again[name] == whole[name], name
    assert not tables.state.exists()


def test_an_interrupted_run_stores_its_state_and_prints_how_to_resume(tables: VerifyScene) -> None:
    tables.fill(row(number, wide(number)) for number in range(100))
    tables.emulator.call("add_fault", FaultRule("GetRange", latency=0.1))
    process = tables.start("--sample", "100", "--parallel", "1")
    wait_while_running(process, lambda: slices_done(tables) >= 1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)

    assert process.returncode == 130, err
    assert out == ""
    assert f"{slices_done(tables)} of " in err.splitlines()[-1], "finished slices are stored"
    assert f"the same command resumes from {tables.state}" in err
    assert "Traceback" not in err
    tables.emulator.call("clear_faults")
    assert tables.report("--sample", "100")["rows"] == 100


def test_a_sample_is_a_repeatable_part(tables: VerifyScene) -> None:
    tables.fill(row(number, wide(number)) for number in range(200))

    first = tables.report("--sample", "30")
    seed = first["sample"]["seed"]
    again = tables.report("--sample", "30", "--seed", str(seed))
    done = tables.verify("--sample", "30", "--seed", str(seed))

    assert first["slices"]["compared"] == -(-first["slices"]["total"] * 30 // 100)
    assert 0 < first["rows"] < 200
    assert again["rows"] == first["rows"]
    assert f"equal in a sample of {first['slices']['compared']} of " in done.stdout
    assert f"seed {seed}" in done.stdout
    assert done.stderr == f"sample: {first['slices']['compared']} of {first['slices']['total']} slices, seed {seed}\n"


def test_the_state_of_another_comparison_is_refused(tables: VerifyScene) -> None:
    tables.fill([row(1)])
    tables.emulator.call("add_fault", FaultRule("GetRange", code="OTSParameterInvalid"))
    stopped = tables.verify()
    assert isinstance(stopped.exception, ServiceError)
    assert "0 of 1 slices are compared: the same command resumes from" in stopped.stderr
    tables.emulator.call("clear_faults")

    refused = tables.verify("--sample", "50")
    other = tables.verify("--to-table", "elsewhere")

    assert isinstance(refused.exception, ConfigError)
    assert f"{tables.state}: the state of another comparison" in str(refused.exception)
    assert "samplePercent: found None, wanted is 50" in str(refused.exception)
    assert "there is no table 'elsewhere'" in str(other.exception)
    assert tables.state.exists()
    assert tables.report("--sample", "50", "--restart")["rows"] == 1


def test_the_state_of_other_tables_names_both(tables: VerifyScene) -> None:
    tables.fill([row(1)])
    tables.emulator.call("add_fault", FaultRule("GetRange", code="OTSParameterInvalid"))
    tables.verify()
    tables.emulator.call("clear_faults")
    document = json.loads(tables.state.read_text())
    document["task"]["destination"]["table"] = "older_copy"
    tables.state.write_text(json.dumps(document))

    refused = tables.verify()

    assert isinstance(refused.exception, ConfigError)
    assert "destination: found demo/older_copy at" in str(refused.exception)
    assert f"wanted is demo/{COPY} at" in str(refused.exception)


@pytest.mark.parametrize(("table", "side"), [(SOURCE, "source"), (COPY, "destination")])
def test_slices_of_a_table_that_was_replaced_do_not_count(tables: VerifyScene, table: str, side: str) -> None:
    tables.fill(row(number, wide(number)) for number in range(100))
    tables.emulator.call("add_fault", FaultRule("GetRange", latency=0.1))
    process = tables.start("--sample", "100", "--parallel", "1")
    wait_while_running(process, lambda: slices_done(tables) >= 1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    tables.emulator.call("clear_faults")
    admin = TableAdmin(tables.emulator.endpoint, INSTANCE, KEYS)
    admin.delete(table)
    admin.create(replace(SCHEMA, name=table, deviation_seconds=9_223_372_036_854))
    admin.close()

    refused = tables.verify("--sample", "100")

    assert isinstance(refused.exception, ConfigError), refused.output
    assert f"{side}Created: found 20" in str(refused.exception)
    assert tables.report("--sample", "100", "--restart")["missing" if table == COPY else "extra"] == 100


def test_a_file_that_is_not_a_state_is_refused_and_kept(tables: VerifyScene) -> None:
    tables.state.write_text("precious")

    refused = tables.verify()

    assert isinstance(refused.exception, ConfigError)
    assert f"{tables.state}: not the state of a comparison" in str(refused.exception)
    assert tables.state.read_text() == "precious"


def test_a_state_file_that_cannot_be_written_is_refused(tables: VerifyScene) -> None:
    refused = tables.verify("--state", str(tables.folder / "nowhere" / "state.json"))

    assert isinstance(refused.exception, ConfigError)
    assert "the state cannot be written" in str(refused.exception)


def test_fewer_versions_in_the_destination_are_noted_and_differ(tmp_path: Path) -> None:
    with verify_scene(tmp_path) as tables:
        tables.create(replace(SCHEMA, name=COPY, max_versions=1))
        tables.fill([row(1, Column("x", 1, BASE), Column("x", 2, BASE + 1))])

        report = tables.report()

    assert report["notes"] == [
        "max versions: 1 in the destination, 3 in the source: missing versions count as differences"
    ]
    assert report["different"] == 1


def test_more_versions_in_the_destination_are_no_difference(tmp_path: Path) -> None:
    with verify_scene(tmp_path) as tables:
        tables.create(replace(SCHEMA, name=COPY), source=replace(SCHEMA, max_versions=1))
        tables.put(SOURCE, [row(1, Column("x", 2, BASE + 1))])
        tables.put(COPY, [row(1, Column("x", 1, BASE), Column("x", 2, BASE + 1))])

        report = tables.report()

    assert report["notes"] == [
        "max versions: 3 in the destination, 1 in the source: only the newest 1 of each column are compared"
    ]
    assert report["equal"]


def test_cells_near_their_expiry_are_left_out(tmp_path: Path) -> None:
    day = 86_400
    now = int(time.time() * 1000)
    old, young = now - day * 1000 + 60_000, now
    schema = replace(SCHEMA, ttl_seconds=day)
    with verify_scene(tmp_path) as tables:
        tables.create(replace(schema, name=COPY), source=schema)
        tables.fill([row(number, Column("x", number, young)) for number in range(10)])
        tables.put(SOURCE, [row(3, Column("x", 3, young), Column("y", 1, old)), row(20, Column("x", 1, old))])
        tables.put(COPY, [row(30, Column("x", 1, old))])

        equal = tables.report()
        tables.put(COPY, [row(3, Column("x", 4, young))])
        different = tables.report()

    assert equal["equal"]
    assert equal["nearExpiry"] == 3
    assert (different["different"], different["nearExpiry"]) == (1, 3)
    assert [cell["column"] for cell in different["first"][0]["cells"]] == ["x"]


def test_what_a_destination_hides_that_should_keep_it_as_long_is_missing(tmp_path: Path) -> None:
    with verify_scene(tmp_path) as tables:
        tables.create(replace(SCHEMA, name=COPY, ttl_seconds=86_400))
        tables.put(SOURCE, [row(number) for number in range(5)])
        report = tables.report()

    assert (report["equal"], report["missing"], report["nearExpiry"]) == (False, 5, 0)


def test_cells_that_the_service_hides_already_by_its_own_clock_are_left_out(tmp_path: Path) -> None:
    day = 86_400
    now = int(time.time() * 1000)
    source = replace(SCHEMA, ttl_seconds=day)
    with verify_scene(tmp_path) as tables:
        tables.create(replace(SCHEMA, name=COPY), source=source)
        # the source's service hides them within the fifteen minutes by which its clock may be ahead
        tables.fill(row(number, Column("x", 1, now - day * 1000 + number * 60_000)) for number in range(2, 14))
        tables.emulator.advance_clock(880)
        report = tables.report()

    assert report["extra"] == 0
    assert report["nearExpiry"] == 12


def test_rows_that_become_equal_are_not_reported(tables: VerifyScene) -> None:
    tables.fill(row(number) for number in range(60))
    tables.put(SOURCE, [row(number) for number in range(100, 140)])
    tables.put(SOURCE, [row(200)])
    before = tables.emulator.calls
    process = tables.start("--recheck", "8", "-o", "json")
    # Two descriptions, four times split points, 15 pages of one table and 9 of the other: the first look is over.
    wait_while_running(process, lambda: tables.emulator.calls >= before + 30)
    tables.put(COPY, [row(number) for number in range(100, 140)])
    out, err = process.communicate(timeout=60)

    assert process.returncode == 1, err
    report = json.loads(out)
    assert (report["missing"], report["settled"]) == (1, 40)
    assert [found["key"]["n"] for found in report["first"]] == [200]
