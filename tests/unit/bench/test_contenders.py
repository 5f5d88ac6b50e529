"""Command lines: equal settings for all contenders, and the fastest settings of the vendor's workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ots_tunnel.config import SinkConfig, load_config
from ots_tunnel.model import TunnelId
from tests.bench.bench_scene import Tunnel
from tests.bench.contenders import Beat, Contender, Job, Programs

PROGRAMS = Programs(Path("/go"), Path("/java"))
BEAT = Beat(heartbeat=7, timeout=22, checkpoint=3, longest_pause=5)


def command(contender: Contender, job: Job, folder: Path) -> list[str]:
    return PROGRAMS.command(contender, "http://127.0.0.1:1", Tunnel("source", "name", TunnelId("id")), job, folder)


@pytest.mark.parametrize("contender", [contender for contender in Contender if contender is not Contender.OURS])
def test_the_vendors_workers_have_our_settings(contender: Contender, tmp_path: Path) -> None:
    found = command(contender, Job("copy", BEAT, "there"), tmp_path)

    assert {"-heartbeat=7s", "-timeout=22s", "-checkpoint=3s", "-copy-to=there", "-tunnel=id"} <= {*found}


def test_our_document_has_them(tmp_path: Path) -> None:
    *_, path = command(Contender.OURS, Job("copy", BEAT, "there", request_rows=100, lanes=8), tmp_path)
    config = load_config(Path(path))

    assert (config.source.table, config.source.tunnel_name, config.source.tunnel_id) == ("source", "name", "id")
    assert config.client.heartbeat_interval_seconds == 7
    assert config.client.heartbeat_timeout_seconds == 22
    assert config.client.checkpoint_interval_seconds == 3
    assert config.client.lanes_per_channel == 8
    assert config.delivery.batch_max_rows == 100
    assert config.sink.tablestore is not None
    assert config.sink.tablestore.table == "there"


@pytest.mark.parametrize(
    ("contender", "part"),
    [
        (Contender.JAVA, "-pool=4"),
        (Contender.JAVA_DEFAULT, "JAVA_OPTIONS=-Xmx1g"),
        (Contender.JAVA, "-idle=5000ms"),
        (Contender.GO, "-idle=5000ms"),
        (Contender.GO, "GOGC=off"),
        (Contender.GO_UNDECODED, "GOGC=off"),
        (Contender.GO_UNDECODED, "-mode=undecoded"),
    ],
)
def test_the_command_line_of_each_contender(contender: Contender, part: str, tmp_path: Path) -> None:
    assert part in command(contender, Job("count", BEAT), tmp_path)


@pytest.mark.parametrize("contender", [contender for contender in Contender if contender is not Contender.OURS])
def test_the_vendors_workers_have_a_mark_where_ours_has_one(contender: Contender, tmp_path: Path) -> None:
    assert "-mark=5" in command(contender, Job("count", mark=5), tmp_path)
    assert command(Contender.OURS, Job("count", mark=5), tmp_path)[1:4] == [
        "-m",
        "tests.bench.programs.milestone_worker",
        "5",
    ]


PLACES = {
    "lines": "/there",
    "parquet": "/there",
    "typed": "/there",
    "kafka": "127.0.0.1:9/topic",
    "http": "http://127.0.0.1:9/in",
}


@pytest.mark.parametrize("mode", PLACES)
@pytest.mark.parametrize("contender", [Contender.JAVA, Contender.GO])
def test_a_peer_is_told_where_the_records_go_and_what_its_documents_name(
    contender: Contender, mode: str, tmp_path: Path
) -> None:
    place = {"lines": "/there/lines"}.get(mode, PLACES[mode])

    assert {f"-to={place}", "-table=source", "-tunnel=name"} <= {
        *command(contender, Job(mode, to=PLACES[mode]), tmp_path)
    }


def test_a_peer_gets_the_columns_of_typed_rows(tmp_path: Path) -> None:
    job = Job("typed", to="/there", columns=(("a", "string"), ("b", "double")))

    assert "-columns=a:string,b:double" in command(Contender.JAVA, job, tmp_path)


def test_a_peer_without_a_place_for_its_lines_prints_them(tmp_path: Path) -> None:
    assert not [flag for flag in command(Contender.GO, Job("lines"), tmp_path) if flag.startswith("-to")]


@pytest.mark.parametrize(
    ("job", "section"),
    [
        (Job("lines"), {"stdout": {}}),
        (Job("lines", to="/there"), {"files": {"url": "file:///there"}}),
        (Job("parquet", to="/there"), {"files": {"url": "file:///there", "format": "Parquet"}}),
        (
            Job("typed", to="/there", columns=(("a", "string"), ("b", "double"))),
            {
                "files": {
                    "url": "file:///there",
                    "format": "Parquet",
                    "columns": [{"name": "a", "type": "string"}, {"name": "b", "type": "double"}],
                }
            },
        ),
        (Job("kafka", to=PLACES["kafka"]), {"kafka": {"bootstrapServers": ["127.0.0.1:9"], "topic": "topic"}}),
        (Job("http", to=PLACES["http"]), {"http": {"url": PLACES["http"]}}),
    ],
)
def test_our_sinks_have_their_settings_by_default(job: Job, section: dict[str, Any], tmp_path: Path) -> None:
    *_, path = command(Contender.OURS, job, tmp_path)

    assert load_config(Path(path)).sink == SinkConfig.model_validate(section)


def test_go_by_default_is_run_as_it_is(tmp_path: Path) -> None:
    assert command(Contender.GO_DEFAULT, Job("count"), tmp_path)[0] == "/go"
