"""The job file of the vendor's sample: what is read, and what is refused."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from ots_tunnel.errors import ConfigError
from ots_tunnel.job_file import credentials_of, end_of, is_job_file, load_job, zone_of

JOB: dict[str, Any] = {
    "ots-reader": {
        "endpoint": "https://zhuoran-high.cn-hangzhou.ots.aliyuncs.com",
        "instanceName": "zhuoran-high",
        "tableName": "testSrcTable",
        "accessId": "id",
        "accessKey": "very secret",
        "tunnelName": "testTunnel",
        "endTime": "2019-06-19 17:00:00",
    },
    "ots-writer": {
        "endpoint": "https://zhuoran-search.cn-hangzhou.ots.aliyuncs.com",
        "instanceName": "zhuoran-search",
        "tableName": "testDstTable",
        "accessId": "id",
        "accessKey": "very secret",
        "batchWriteCount": 100,
    },
}


def written(folder: Path, **changes: Any) -> Path:
    """The job with fields changed, such as reader_endTime; None removes one."""
    document = json.loads(json.dumps(JOB))
    for path, value in changes.items():
        section, _, name = path.partition("_")
        if value is None:
            del document[f"ots-{section}"][name]
        else:
            document[f"ots-{section}"][name] = value
    file = folder / "job.json"
    file.write_text(json.dumps(document))
    return file


def test_the_samples_file_is_read(tmp_path: Path) -> None:
    job = load_job(written(tmp_path))

    assert (job.reader.instance_name, job.reader.tunnel_name) == ("zhuoran-high", "testTunnel")
    assert (job.writer.table_name, job.writer.batch_write_count) == ("testDstTable", 100)
    assert credentials_of(job.reader, "ots-reader", None)().access_key_secret == "very secret"
    assert "very secret" not in repr(job)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"reader_endTime": None}, "ots-reader.endTime"),
        ({"reader_endtime": "x"}, "ots-reader.endtime"),
        ({"writer_batchWriteCount": 201}, "ots-writer.batchWriteCount"),
        ({"writer_batchWriteCount": 0}, "ots-writer.batchWriteCount"),
        ({"reader_endpoint": "zhuoran-high"}, "ots-reader.endpoint"),
        ({"reader_tunnelName": ""}, "ots-reader.tunnelName"),
        ({"reader_instanceName": "zhuoran high"}, r"ots-reader.instanceName: found 'zhuoran high', allowed is letters"),
        ({"writer_tableName": "9lives"}, "ots-writer.tableName: found '9lives', allowed is up to 255 letters"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named) as raised:
        load_job(written(tmp_path, **changes))
    assert "very secret" not in str(raised.value)


def test_a_wrong_secret_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ots-reader\.accessKey") as raised:
        load_job(written(tmp_path, reader_accessKey=["very secret"]))
    assert "very secret" not in str(raised.value)


@pytest.mark.parametrize("internal", [False, True])
def test_a_destination_that_is_the_source_is_refused(tmp_path: Path, internal: bool) -> None:
    host = "zhuoran-high.cn-hangzhou.vpc.ots.aliyuncs.com" if internal else "zhuoran-high.cn-hangzhou.ots.aliyuncs.com"
    file = written(
        tmp_path,
        writer_endpoint=f"https://{host}/",
        writer_instanceName="zhuoran-high",
        writer_tableName="testSrcTable",
    )
    with pytest.raises(ConfigError, match=r"json: ots-writer\.tableName: found 'testSrcTable', the source itself"):
        load_job(file)


def test_a_section_without_keys_needs_a_folder(tmp_path: Path) -> None:
    job = load_job(written(tmp_path, reader_accessId="", writer_accessKey=""))
    with pytest.raises(ConfigError, match=r"ots-reader\.accessId and accessKey: empty.*--reader-credentials"):
        credentials_of(job.reader, "ots-reader", None)
    with pytest.raises(ConfigError, match="--writer-credentials"):
        credentials_of(job.writer, "ots-writer", None)
    with pytest.raises(ConfigError, match="accessKeyId: missing or empty"):
        credentials_of(job.reader, "ots-reader", tmp_path)


@pytest.mark.parametrize(("text", "means"), [("{", False), ("[]", False), ('{"source": 1}', False)])
def test_other_files_are_no_jobs(tmp_path: Path, text: str, means: bool) -> None:
    (tmp_path / "x").write_text(text)
    assert is_job_file(tmp_path / "x") is means
    assert is_job_file(written(tmp_path))


def test_a_broken_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "x").write_text('{"ots-reader": ')
    with pytest.raises(ConfigError, match="not JSON"):
        load_job(tmp_path / "x")
    (tmp_path / "x").write_text('{"ots-reader": {"tableName": "a", "tableName": "b"}}')
    with pytest.raises(ConfigError, match="x: not JSON: tableName is given twice"):
        load_job(tmp_path / "x")
    with pytest.raises(ConfigError, match="No such file"):
        load_job(tmp_path / "none")
    (tmp_path / "x").write_text("[" * 100_000)
    with pytest.raises(ConfigError, match="x: not JSON of a job: too deep"):
        load_job(tmp_path / "x")
    assert not is_job_file(tmp_path / "x")


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2019-06-19 17:00:00", "Asia/Shanghai", "2019-06-19T09:00:00+00:00"),
        ("2019-06-19 17:00:00", "UTC", "2019-06-19T17:00:00+00:00"),
        ("2026-06-19T17:00:00+08:00", "UTC", "2026-06-19T09:00:00+00:00"),
        ("2026-06-19T17:00:00Z", "Asia/Shanghai", "2026-06-19T17:00:00+00:00"),
    ],
)
def test_an_end_time_is_a_moment(text: str, zone: str, expected: str) -> None:
    assert end_of(text, zone_of(zone)) == datetime.fromisoformat(expected)


def test_an_end_time_without_a_zone_is_in_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        assert end_of("2019-06-19 17:00:00", None) == datetime(2019, 6, 19, 9, tzinfo=UTC)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("text", ["", "tomorrow", "2019-06-19", "2019-06-19T17:00:00", "2019-13-19 17:00:00"])
def test_an_invalid_end_time_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"ots-reader\.endTime: found"):
        end_of(text, ZoneInfo("UTC"))


@pytest.mark.parametrize("text", ["9999-12-31 23:59:59", "0001-01-01T00:00:00+08:00"])
def test_an_end_time_that_no_year_has_in_utc_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=rf"ots-reader\.endTime: found {re.escape(repr(text))}, allowed are"):
        end_of(text, ZoneInfo("America/New_York"))


@pytest.mark.parametrize("text", ["2026-10-25 02:30:00", "2026-03-29 02:30:00"])
def test_an_hour_that_comes_twice_or_never_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="clocks are changed"):
        end_of(text, ZoneInfo("Europe/Berlin"))


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(ConfigError, match="--time-zone: found 'Mars/Olympus'"):
        zone_of("Mars/Olympus")
