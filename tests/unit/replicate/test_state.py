"""The file in which a replication job keeps the table that its tunnel delivers to."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ots_tunnel.errors import ConfigError
from ots_tunnel.job_file import JobFile
from ots_tunnel.model import TunnelId
from ots_tunnel.replicate.state import JobState, default_name, is_same, writer_place
from ots_tunnel.verify.state_document import TablePlace

SHOP = "https://shop.cn-hangzhou.ots.aliyuncs.com"
PLACE = TablePlace(endpoint=SHOP, instance="shop", table="orders")
FIRST, SECOND = TunnelId("first"), TunnelId("second")


def job(**changes: str) -> JobFile:
    common = {"endpoint": SHOP + "/", "instanceName": "shop", "tableName": "t"}
    reader = {**common, "tunnelName": "copy", "endTime": "2026-11-22T00:00:00Z"} | changes
    return JobFile.model_validate({"ots-reader": reader, "ots-writer": {**common, "tableName": "orders"}})


def test_a_kept_destination_belongs_to_its_tunnel(tmp_path: Path) -> None:
    state = JobState(tmp_path / "state.json")
    assert state.destination_of(FIRST) is None
    state.keep(FIRST, PLACE)
    assert state.destination_of(FIRST) == PLACE
    assert state.destination_of(SECOND) is None, "a deleted tunnel says nothing about a new one"


def test_the_first_run_decides_where_a_tunnel_delivers_to(tmp_path: Path) -> None:
    state, other = JobState(tmp_path / "state.json"), PLACE.model_copy(update={"table": "other"})
    assert state.keep(FIRST, PLACE) is None
    assert state.keep(FIRST, PLACE) is None, "it resumes"
    assert state.keep(FIRST, other) == PLACE
    assert state.destination_of(FIRST) == PLACE
    assert state.keep(SECOND, other) is None
    assert state.keep(SECOND, PLACE, replace=True) is None
    assert state.destination_of(SECOND) == PLACE


def test_runs_that_start_at_once_keep_one_destination(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    places = [PLACE.model_copy(update={"table": f"t{number}"}) for number in range(8)]
    with ThreadPoolExecutor(len(places)) as runs:
        # a state each, as processes have
        found = list(runs.map(lambda place: JobState(path).keep(FIRST, place), places))
    assert found.count(None) == 1
    assert JobState(path).destination_of(FIRST) == places[found.index(None)]


def test_without_a_file_nothing_is_kept() -> None:
    JobState(None).keep(FIRST, PLACE)
    assert JobState(None).destination_of(FIRST) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("precious", "document: found a text"),
        ('{"format": "ots-tunnel replicate 1"}', "tunnelId"),
        (
            json.dumps({"format": "ots-tunnel replicate 2", "tunnelId": "first", "destination": PLACE.model_dump()}),
            "format: found 'ots-tunnel replicate 2', allowed is",
        ),
    ],
)
def test_a_file_that_is_not_a_state_is_refused_and_left(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=f"state.json: not the state of a replication: .*{found}.*--state"):
        JobState(path).destination_of(FIRST)
    assert path.read_text() == text


def test_the_default_name_tells_jobs_apart() -> None:
    assert default_name(job()) == default_name(job(endpoint="https://shop.cn-hangzhou.vpc.tablestore.aliyuncs.com"))
    names = {default_name(job(**{name: "other"})) for name in ("instanceName", "tableName", "tunnelName")}
    assert len(names | {default_name(job())}) == 4
    assert default_name(job()).startswith("replicate-t-")


def test_the_place_of_the_writer() -> None:
    assert writer_place(job()) == PLACE


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"table": "other"}, False),
        ({"instance": "other"}, False),
        ({"endpoint": "https://shop.cn-hangzhou.vpc.tablestore.aliyuncs.com"}, True),
        ({"endpoint": "https://shop.cn-beijing.ots.aliyuncs.com"}, False),
        ({"endpoint": "http://proxy:8080"}, None),
    ],
)
def test_places_that_are_one_table(changes: dict[str, str], expected: bool | None) -> None:
    assert is_same(PLACE, PLACE.model_copy(update=changes)) is expected
