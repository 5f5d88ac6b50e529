"""`ots-tunnel replicate`: a copy up to an end time, stopped and resumed; mistakes that are refused before it starts."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ots_emulator import Emulator, Settings
from ots_tunnel.cli import cli
from ots_tunnel.client.sync_table import SyncTableClient
from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.console.exit_codes import exit_code
from ots_tunnel.errors import ConfigError, Explained, TunnelNotFound
from ots_tunnel.model import Action, TunnelType
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.replicate.job import Copied
from ots_tunnel.replicate.preparation import StartOptions
from ots_tunnel.replicate.state import JobState
from ots_tunnel.tables import TableAdmin
from ots_tunnel.verify.state_document import TablePlace
from tests.support.commands.replicate_scene import compared, create_source, in_seconds, job, job_file
from tests.support.verify_scene import BASE, COPY, INSTANCE, KEYS, SCHEMA, SOURCE, VerifyScene, row
from tests.support.waiting import until


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[VerifyScene]:
    with Emulator(settings=Settings(init_delay=0.01, page_rows=100)) as emulator:
        made = VerifyScene(emulator, tmp_path)
        yield made


@pytest.mark.lasts(22)
async def test_a_table_is_copied_up_to_the_end_time(scene: VerifyScene) -> None:
    await asyncio.to_thread(create_source, scene, 1000)
    end = in_seconds(12)
    said: list[str] = []
    running = asyncio.create_task(job(scene, end, said).run())
    # from here on changes come by the stream; a busy machine needs seconds until then
    await until(lambda: any(line.startswith("4/4") for line in said), 60, "the copy begins")
    await asyncio.to_thread(scene.put, SOURCE, [row(5, Column("x", 55, BASE + 1)), row(1001)])

    copied = await asyncio.wait_for(running, 60)

    assert copied == Copied(True, copied.rows, copied.seconds)
    assert copied.rows >= 1002
    assert datetime.now(UTC) > end
    assert (await compared(scene)).equal
    assert [line[:3] for line in said] == ["1/4", "2/4", "3/4", "4/4"]


@pytest.mark.lasts(14)
async def test_changes_after_the_end_time_are_not_copied(scene: VerifyScene) -> None:
    await asyncio.to_thread(create_source, scene, 10)
    end = in_seconds(3)
    running = asyncio.create_task(job(scene, end).run())
    await until(lambda: consumed(scene, 0), 60, "existing rows are copied, and the stream is followed")
    await asyncio.sleep((end - datetime.now(UTC)).total_seconds() + 0.02)
    await asyncio.to_thread(scene.put, SOURCE, [row(1, Column("x", 99, BASE + 1))])

    assert (await asyncio.wait_for(running, 60)).complete
    comparison = await compared(scene)
    assert (comparison.different, comparison.differences) == (1, 1)

    # The page with the boundary was not checkpointed: a later end delivers the changes after the former one.
    assert (await asyncio.wait_for(job(scene, in_seconds(1)).run(), 60)).complete
    assert (await compared(scene)).equal


@pytest.mark.lasts(9)
async def test_a_stopped_job_resumes(scene: VerifyScene) -> None:
    await asyncio.to_thread(create_source, scene, 3000)
    start = StartOptions(state=scene.folder / "state.json")
    first = job(scene, in_seconds(3600), start=start)
    running = asyncio.create_task(first.run())
    await until(first.interrupt, 30, "the job can be interrupted")
    stopped = await asyncio.wait_for(running, 60)
    assert not stopped.complete

    said: list[str] = []
    copied = await asyncio.wait_for(job(scene, in_seconds(1), said, start).run(), 60)

    assert copied.complete
    assert "resumes" in said[1]
    assert (await compared(scene)).equal


async def consumed(scene: VerifyScene, rows: int) -> bool:
    """Whether a checkpoint of the stream is stored behind a number of changes."""
    client = TunnelClient(scene.emulator.endpoint, INSTANCE, KEYS)
    try:
        tunnel = await client.describe_tunnel(SOURCE, "copy")
    except TunnelNotFound:
        return False
    finally:
        await client.close()
    return any(channel.consume_point_ns > 0 and channel.rows == rows for channel in tunnel.channels)


def delete_row(scene: VerifyScene, number: int) -> None:
    client = SyncTableClient(scene.emulator.endpoint, INSTANCE, KEYS)
    key, _ = row(number)
    outcomes = client.batch_write(SOURCE, [RowChange(Action.DELETE, encode_row(key, (), delete=True))])
    assert outcomes[0].code is None
    client.close()


@pytest.mark.parametrize("later", ["no row", "rows", "a row that comes and goes"])
@pytest.mark.lasts(10)
async def test_a_stopped_job_of_an_empty_table_resumes(scene: VerifyScene, later: str) -> None:
    await asyncio.to_thread(create_source, scene, 0)
    first = job(scene, in_seconds(3600))
    running = asyncio.create_task(first.run())
    await until(lambda: consumed(scene, 0), 30, "the stream is followed")
    if later == "a row that comes and goes":
        await asyncio.to_thread(scene.put, SOURCE, [row(1)])
        await asyncio.to_thread(delete_row, scene, 1)
        await until(lambda: consumed(scene, 2), 30, "both changes are consumed")
    first.interrupt()
    await asyncio.wait_for(running, 60)
    if later == "rows":
        await asyncio.to_thread(scene.put, SOURCE, [row(number) for number in range(20)])

    said: list[str] = []
    copied = await asyncio.wait_for(job(scene, in_seconds(1), said).run(), 60)

    assert copied.complete
    assert "resumes" in said[1]
    comparison = await compared(scene)
    assert comparison.equal
    assert comparison.rows == (20 if later == "rows" else 0)


@pytest.mark.lasts(17)
async def test_two_runs_of_one_job_share_the_work(scene: VerifyScene) -> None:
    await asyncio.to_thread(create_source, scene, 1000)
    end, start = in_seconds(3), StartOptions(state=scene.folder / "state.json")
    runs = [job(scene, end, start=start) for _ in range(2)]
    both = await asyncio.wait_for(asyncio.gather(*(run.run() for run in runs)), 60)

    assert [copied.complete for copied in both] == [True, True]
    assert (await compared(scene)).equal


@pytest.mark.lasts(10)
async def test_two_runs_with_channels_each_end(scene: VerifyScene) -> None:
    scene.emulator.call("set_partitions", INSTANCE, SOURCE, 2)
    await asyncio.to_thread(create_source, scene, 200)
    end, start = in_seconds(3), StartOptions(state=scene.folder / "state.json")
    runs = [job(scene, end, start=start) for _ in range(2)]
    both = await asyncio.wait_for(asyncio.gather(*(run.run() for run in runs)), 60)

    assert all(copied.complete or copied.others for copied in both)
    assert any(copied.complete for copied in both), "the last one sees that everything is done"
    assert (await compared(scene)).equal


@pytest.mark.lasts(9)
def test_the_command_itself(scene: VerifyScene) -> None:
    create_source(scene, 300)
    end = in_seconds(3)
    file = job_file(scene, end, reader_endTime=end.strftime("%Y-%m-%d %H:%M:%S"))
    command = [sys.executable, "-m", "ots_tunnel", "replicate", str(file), "--time-zone", "UTC", "-o", "json"]
    command += ["--state", str(scene.folder / "replicate.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["complete"], document["rows"]) == (True, 300)
    assert asyncio.run(compared(scene)).equal
    assert "test-secret" not in done.stdout + done.stderr
    again = CliRunner().invoke(cli, ["verify", str(file), "--state", str(scene.folder / "state")])
    assert again.exit_code == 0, again.output


def test_ctrl_c_drains_the_worker(scene: VerifyScene) -> None:
    create_source(scene, 300)
    command = [sys.executable, "-m", "ots_tunnel", "replicate", str(job_file(scene, in_seconds(3600)))]
    command += ["--state", str(scene.folder / "replicate.json")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        give_up = time.monotonic() + 30
        while "4/4" not in process.stderr.readline():
            assert time.monotonic() < give_up
        process.send_signal(2)
        out, _ = process.communicate(timeout=40)
    finally:
        process.kill()
        process.wait()

    assert process.returncode == 130
    assert "the same command resumes" in out


@pytest.mark.parametrize("silent", ["reader", "writer"])
@pytest.mark.lasts(5)
def test_ctrl_c_does_not_wait_for_a_side_that_never_answers(scene: VerifyScene, silent: str) -> None:
    create_source(scene, 1)
    with socket.create_server(("127.0.0.1", 0)) as silence:
        silence.settimeout(30)
        endpoint = f"http://127.0.0.1:{silence.getsockname()[1]}"
        file = job_file(scene, in_seconds(3600), **{f"{silent}_endpoint": endpoint})
        command = [sys.executable, "-m", "ots_tunnel", "replicate", str(file), "--state", str(file.with_name("state"))]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            connection, _ = silence.accept()
            with connection:
                process.send_signal(2)
                _, told = process.communicate(timeout=8)
        finally:
            process.kill()
            process.wait()

    assert process.returncode == 130
    assert told == "stopped before anything was copied\n"


def invoke(file: Path, *more: str) -> Result:
    return CliRunner().invoke(cli, ["replicate", str(file), "--state", str(file.with_name("state.json")), *more])


def exception_of(result: Result) -> BaseException:
    assert result.exception is not None, result.output
    return result.exception


def test_a_missing_source_is_named(scene: VerifyScene) -> None:
    result = invoke(job_file(scene, in_seconds(5)))
    assert "there is no table 'orders' in instance 'demo' at http" in str(result.exception)
    assert exit_code(exception_of(result)) == 11


@pytest.mark.parametrize(("section", "code"), [("reader", 12), ("writer", 4)])
def test_the_side_of_denied_keys_is_named(scene: VerifyScene, section: str, code: int) -> None:
    create_source(scene, 1)
    refused = exception_of(invoke(job_file(scene, in_seconds(5), **{f"{section}_accessKey": "hush"})))

    assert f"does not accept the AccessKey in ots-{section} (OTSAuthFailed: " in str(refused)
    assert "correct accessId and accessKey there" in str(refused)
    assert "hush" not in str(refused)
    assert exit_code(refused) == code


@pytest.mark.parametrize("section", ["reader", "writer"])
def test_the_side_that_does_not_answer_is_named(scene: VerifyScene, section: str) -> None:
    create_source(scene, 1)
    refused = exception_of(invoke(job_file(scene, in_seconds(5), **{f"{section}_endpoint": "http://127.0.0.1:9"})))

    assert str(refused).startswith("instance 'demo' at http://127.0.0.1:9 does not answer: ")
    assert exit_code(refused) == 5


async def test_a_tunnel_deleted_during_the_copy_is_named(scene: VerifyScene) -> None:
    await asyncio.to_thread(create_source, scene, 1)
    running = asyncio.create_task(job(scene, in_seconds(3600)).run())
    client = TunnelClient(scene.emulator.endpoint, INSTANCE, KEYS)
    try:
        async with asyncio.timeout(60):
            await until(lambda: client.list_tunnels(SOURCE), 30, "the job has its tunnel")
            await client.delete_tunnel(SOURCE, "copy")
            with pytest.raises(
                Explained, match="there is no tunnel 'copy' of table 'orders' in instance 'demo' at"
            ) as no:
                await running
    finally:
        await client.close()
    assert exit_code(no.value) == 10


def test_a_destination_with_rows_is_left_alone(scene: VerifyScene) -> None:
    create_source(scene, 5)
    scene_copy = replace(SCHEMA, name=COPY, deviation_seconds=9_223_372_036_854)
    admin = TableAdmin(scene.emulator.endpoint, INSTANCE, KEYS)
    admin.create(scene_copy)
    admin.close()
    scene.put(COPY, [row(77)])

    result = invoke(job_file(scene, in_seconds(5)))
    assert "holds rows" in str(result.exception)


@pytest.mark.lasts(6)
async def test_a_destination_with_rows_is_left_alone_behind_a_tunnel_made_by_hand(scene: VerifyScene) -> None:
    await asyncio.to_thread(create_source, scene, 5)
    admin = TableAdmin(scene.emulator.endpoint, INSTANCE, KEYS)
    await asyncio.to_thread(admin.create, replace(SCHEMA, name=COPY, deviation_seconds=9_223_372_036_854))
    admin.close()
    await asyncio.to_thread(scene.put, COPY, [row(77)])
    client = TunnelClient(scene.emulator.endpoint, INSTANCE, KEYS)
    tunnel_id = await client.create_tunnel(SOURCE, "copy", TunnelType.BaseAndStream)
    await client.close()
    start = StartOptions(state=scene.folder / "state.json")

    with pytest.raises(ConfigError, match=r"holds rows, and tunnel 'copy' has delivered none.*--merge"):
        await job(scene, in_seconds(1), start=start).run()

    # one that an earlier run has noted behind another host may be another table
    elsewhere = TablePlace(endpoint="http://proxy.example", instance=INSTANCE, table=COPY)
    JobState(start.state).keep(tunnel_id, elsewhere)
    with pytest.raises(ConfigError, match=r"has delivered none.*--merge"):
        await job(scene, in_seconds(1), start=start).run()

    # a run that was killed behind its first rows has noted its table, and is resumed
    place = TablePlace(endpoint=scene.emulator.endpoint, instance=INSTANCE, table=COPY)
    JobState(start.state).keep(tunnel_id, place)
    assert (await asyncio.wait_for(job(scene, in_seconds(1), start=start).run(), 60)).complete


def test_a_wrong_end_time_is_found_before_any_call(scene: VerifyScene) -> None:
    absent = "http://127.0.0.1:9"
    file = job_file(scene, in_seconds(5), reader_endTime="soon", reader_endpoint=absent, writer_endpoint=absent)
    assert "ots-reader.endTime: found 'soon'" in str(invoke(file).exception)
