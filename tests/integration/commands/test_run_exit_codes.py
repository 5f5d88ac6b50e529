"""`ots-tunnel run` that fails: exit code, message, and what was touched before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from ots_emulator import Emulator
from ots_emulator.server.faults import FaultRule
from ots_tunnel.model import TunnelType
from tests.support.emulator.emulator_scene import TABLE, EmulatorScene
from tests.support.programs.processes import bare_environment, output_of
from tests.support.programs.run_process import TERMINATION_LOG, Left, command, document, ended, start
from tests.support.waiting import until


@pytest.fixture
async def scene() -> AsyncIterator[EmulatorScene]:
    async with Emulator() as emulator:
        scene = EmulatorScene(emulator)
        await scene.create_table()
        await scene.create_tunnel(TunnelType.BaseAndStream)
        yield scene


def a_table(directory: Path, table: str = "copy") -> str:
    return (
        f"tablestore: {{endpoint: http://127.0.0.1:1, instance: demo, table: {table}, "
        f"credentials: {{directory: {directory}}}}}"
    )


def names_in(directory: Path) -> set[str]:
    return {entry.name for entry in directory.iterdir()}


def without(library: str, directory: Path) -> dict[str, str]:
    """An environment in which a library is not installed."""
    shadow = directory / "shadow" / library
    shadow.mkdir(parents=True)
    text = f"raise ModuleNotFoundError('No module named {library}', name='{library}')"
    (shadow / "__init__.py").write_text(text)
    return bare_environment(shadow.parent)


#: Mistake: the sink, settings that are changed, and how the message begins; DIR is the document's folder.
MISTAKES: dict[str, tuple[str, dict[str, Any], str]] = {
    "unknown setting": (
        "count: {}",
        {"client__lanes": 4},
        "DIR/worker.yaml: client.lanes: unknown, allowed is checkpointI",
    ),
    "heartbeat": (
        "count: {}",
        {"client__heartbeatIntervalSeconds": 4},
        "DIR/worker.yaml: client.heartbeatIntervalSeconds: found 4, allowed is a whole number from 5 on (the service's",
    ),
    "timeout": (
        "count: {}",
        {"client__heartbeatTimeoutSeconds": 5, "client__heartbeatIntervalSeconds": 5},
        "DIR/worker.yaml: client.heartbeatTimeoutSeconds: found 5, allowed is a whole number from 6 on (it has to be m",
    ),
    "batch": (
        "count: {}",
        {"delivery__batchMaxRows": 201},
        "DIR/worker.yaml: delivery.batchMaxRows: found 201, allowed is a whole number from 1 to 200 (the service takes",
    ),
    "end time": (
        "count: {}",
        {"source__endTime": "2026-06-19T17:00:00"},
        "DIR/worker.yaml: source.endTime: found '2026-06-19T17:00:00', allowed is a time with a time zone, such as 20",
    ),
    "keys of the source": (
        "count: {}",
        {"source__credentials__directory": "/nowhere"},
        "source.credentials.directory: /nowhere/accessKeyId: missing or empty",
    ),
    "keys of the sink": (
        a_table(Path("/nowhere")),
        {},
        "sink.tablestore.credentials.directory: /nowhere/accessKeyId: missing or empty",
    ),
    "keys of the bucket": (
        "files: {url: 's3://bucket/out', credentials: {directory: /nowhere}}",
        {},
        "sink.files.credentials.directory: /nowhere/accessKeyId: missing or empty",
    ),
    "spool folder": (
        "files: {url: 's3://bucket/out', credentials: {directory: DIR}, spoolDirectory: /nowhere}",
        {},
        "sink.files.spoolDirectory: found /nowhere, allowed is a folder that exists",
    ),
    "keys of dead letters": (
        "http: {url: 'http://127.0.0.1:1'}",
        {
            "delivery__onPermanentError": "DeadLetter",
            "delivery__deadLetter": {"files": {"url": "s3://dead", "credentials": {"directory": "/nowhere"}}},
        },
        "delivery.deadLetter.files.credentials.directory: /nowhere/accessKeyId: missing or empty",
    ),
    "secret of the web service": (
        "http: {url: 'http://127.0.0.1:1', hmacSecretFile: /nowhere/secret}",
        {},
        "sink.http.hmacSecretFile: /nowhere/secret: No such file or directory",
    ),
    "login at the brokers": (
        "kafka: {bootstrapServers: ['127.0.0.1:1'], topic: changes, securityProtocol: SASL_PLAINTEXT, "
        "sasl: {mechanism: PLAIN, directory: /nowhere}}",
        {},
        "sink.kafka.sasl.directory: /nowhere/username: No such file or directory",
    ),
    "certificates of the brokers": (
        "kafka: {bootstrapServers: ['127.0.0.1:1'], topic: changes, securityProtocol: SSL, caFile: /nowhere/ca.pem}",
        {},
        "sink.kafka.caFile: /nowhere/ca.pem: No such file or directory",
    ),
    "factory": (
        "python: {factory: 'no_such_shop:factory'}",
        {},
        "sink.python.factory: 'no_such_shop' cannot be imported: ModuleNotFoundError: No module named 'no_such_shop'",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
async def test_a_mistake_ends_with_code_2_before_anything_is_touched(
    scene: EmulatorScene, tmp_path: Path, mistake: str
) -> None:
    sink, changes, words = MISTAKES[mistake]
    path = document(scene, tmp_path, sink.replace("DIR", str(tmp_path)), **changes)
    calls = scene.emulator.calls

    left = await ended(await start(path), path)
    check_code, check_output, check_errors = await output_of(await command("config", "check", str(path)))

    assert left.code == 2
    words = words.replace("DIR", str(tmp_path))
    assert left.error.startswith(f"ConfigError: {words}")
    assert left.termination_message == f"{left.error}\n"
    assert (check_code, check_output) == (2, "")
    assert check_errors == f"error: {left.error.removeprefix('ConfigError: ')}\n"
    assert scene.emulator.calls == calls
    assert names_in(tmp_path) == {"accessKeyId", "accessKeySecret", "worker.yaml", TERMINATION_LOG}
    assert "test-secret" not in str(left)


@pytest.mark.parametrize(
    ("library", "sink", "changes", "words"),
    [
        ("pyarrow", "files: {url: 'file://DIR/out'}", {}, "sink.files: pyarrow is not installed, it comes with the"),
        (
            "obstore",
            "files: {url: 's3://bucket/out', credentials: {directory: DIR}}",
            {},
            "sink.files: obstore is not installed, it comes with the extra files: pip install 'ots-tunnel[files]'",
        ),
        (
            "pyarrow",
            "http: {url: 'http://127.0.0.1:1'}",
            {"delivery__onPermanentError": "DeadLetter", "delivery__deadLetter": {"files": {"url": "file:///dead"}}},
            "delivery.deadLetter.files: pyarrow is not installed, it comes with the extra files",
        ),
        (
            "confluent_kafka",
            "kafka: {bootstrapServers: ['127.0.0.1:1'], topic: changes}",
            {},
            "sink.kafka: confluent_kafka is not installed, it comes with the extra kafka: pip install 'ots-tunnel[kafk",
        ),
    ],
)
async def test_a_library_that_is_not_installed_is_named_with_its_extra(
    scene: EmulatorScene, tmp_path: Path, library: str, sink: str, changes: dict[str, Any], words: str
) -> None:
    path = document(scene, tmp_path, sink.replace("DIR", str(tmp_path)), **changes)
    calls = scene.emulator.calls

    left = await ended(await start(path, environment=without(library, tmp_path)), path)

    assert left.code == 2
    assert left.error.startswith(f"ConfigError: {words}")
    assert scene.emulator.calls == calls


#: Stands for a thread of obstore that calls Python while the interpreter is taken down, which aborts the process.
ABORTS_AT_THE_END = """
import os, sys
class Thread:
    def __del__(self, abort=os.abort):
        abort()
sys.thread = Thread()
"""


@pytest.mark.parametrize("options", [(), ("--exit-when-complete",)])
async def test_the_code_is_that_of_the_error_whatever_threads_of_libraries_do(
    scene: EmulatorScene, tmp_path: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "shadow").mkdir()
    (tmp_path / "shadow" / "sitecustomize.py").write_text(ABORTS_AT_THE_END)
    path = document(scene, tmp_path, "files: {url: 'file:///dev/null/out'}")

    left = await ended(await start(path, *options, environment=bare_environment(tmp_path / "shadow")), path)

    assert left.code == 4
    assert left.error.startswith("SinkRejected: ")


async def test_skipping_needs_no_library(scene: EmulatorScene, tmp_path: Path) -> None:
    path = document(scene, tmp_path, "http: {url: 'http://127.0.0.1:1'}", delivery__onPermanentError="Skip")

    checked = await command("config", "check", str(path), environment=without("pyarrow", tmp_path))

    assert await output_of(checked) == (0, f"{path}: ok\n", "")


async def test_a_port_that_is_taken_is_a_mistake(scene: EmulatorScene, tmp_path: Path) -> None:
    port = int(scene.emulator.endpoint.rpartition(":")[2])
    path = document(scene, tmp_path, http__port=port)
    calls = scene.emulator.calls

    left = await ended(await start(path), path)

    assert left.code == 2
    assert left.error.startswith(f"ConfigError: http.port {port} on 127.0.0.1: ")
    assert scene.emulator.calls == calls


async def test_a_check_can_be_limited_to_the_document(scene: EmulatorScene, tmp_path: Path) -> None:
    path = document(scene, tmp_path, source__credentials__directory="/nowhere")

    assert await output_of(await command("config", "check", "--document-only", str(path))) == (0, f"{path}: ok\n", "")


async def run_with(scene: EmulatorScene, directory: Path, sink: str = "count: {}", **changes: Any) -> Left:
    path = document(scene, directory, sink, **changes)
    return await ended(await start(path), path)


def late_by_a_week(scene: EmulatorScene) -> None:
    """Nobody has consumed the tunnel within the retention, and the service goes on."""
    scene.emulator.change_settings(date_skew=None, after_retention="Latest")
    scene.emulator.advance_clock(170 * 3600)


#: Refusal of the service: what is done first, settings that are changed, exit code, message.
REFUSALS: dict[str, tuple[Callable[[EmulatorScene], Any], dict[str, Any], int, tuple[str, ...]]] = {
    "missing tunnel": (
        lambda scene: None,
        {"source__tunnelId": "no-such-tunnel"},
        10,
        (
            "TunnelNotFound: there is no tunnel 't' of table 'events' with the id 'no-such-tunnel' in instance 'demo' ",
            "OTSParameterInvalid: [tunnelservice] tunnel not exist, request ",
            "`ots-tunnel tunnel list events` lists those that exist, `ots-tunnel tunnel create` creates one",
        ),
    ),
    "another tunnel's id": (
        lambda scene: None,
        {"source__tunnelName": "other"},
        10,
        ("WrongTunnel: source.tunnelName: found 'other', but tunnel ", " has the name 't', in instance 'demo' at"),
    ),
    "another table's tunnel": (
        lambda scene: scene.create_table(table="other"),
        {"source__table": "other"},
        11,
        ("WrongTable: source.table: found 'other', but tunnel ", " belongs to table 'events', in instance 'demo' at "),
    ),
    "missing table": (
        lambda scene: None,
        {"source__table": "orders", "source__tunnelId": "no-such-tunnel"},
        11,
        ("TableNotFound: there is no table 'orders' in instance 'demo' at ", "correct the table or the instance"),
    ),
    "unknown instance": (
        lambda scene: None,
        {"source__instance": "nowhere"},
        12,
        ("AuthFailed: instance 'nowhere' at http://", " does not accept the AccessKey in ", "correct accessKeyId and "),
    ),
    "no permission": (
        lambda scene: scene.emulator.faults.add(FaultRule("*", code="OTSNoPermissionAccess", message="no")),
        {},
        12,
        (
            "PermissionDenied: the AccessKey in ",
            " may not use tunnel 't' of table 'events' with the id ",
            "(OTSNoPermissionAccess: no, request ",
            "let its owner grant the access, or correct source.instance",
        ),
    ),
    "expired tunnel": (
        lambda scene: scene.emulator.expire_tunnel("demo", scene.tunnel_id),
        {},
        13,
        (
            "TunnelExpired: tunnel 't' of table 'events' with the id ",
            " has expired (OTSTunnelExpired: ",
            "delete it and create it again as BaseAndStream",
        ),
    ),
    "possible gap": (
        late_by_a_week,
        {},
        14,
        (
            "PossibleGap: tunnel 't' of table 'events' with the id ",
            " may be missing, because they were not read while the stream kept them; ",
            "source.onPossibleGap Continue goes on behind the gap",
        ),
    ),
    "another refusal": (
        lambda scene: scene.emulator.faults.add(FaultRule("Connect", code="OTSParameterInvalid", message="too many")),
        {},
        3,
        ("ParameterInvalid: tunnel 't' of table 'events' ", "OTSParameterInvalid: too many, request "),
    ),
}


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_every_refusal_has_its_own_exit_code_and_message(
    scene: EmulatorScene, tmp_path: Path, refusal: str
) -> None:
    prepare, changes, code, words = REFUSALS[refusal]
    done = prepare(scene)
    if asyncio.iscoroutine(done):
        await done

    left = await run_with(scene, tmp_path, f"files: {{url: 'file://{tmp_path}/out'}}", **changes)

    assert left.code == code
    for part in words:
        assert part in left.error
    assert left.termination_message == f"{left.error}\n"
    assert "test-secret" not in str(left)


@pytest.mark.parametrize(("name", "value"), [("accessKeyId", "unknown"), ("accessKeySecret", "hush")])
async def test_a_key_that_is_wrong_is_denied(scene: EmulatorScene, tmp_path: Path, name: str, value: str) -> None:
    path = document(scene, tmp_path)
    (tmp_path / name).write_text(value)

    left = await ended(await start(path), path)

    assert left.code == 12
    assert f" does not accept the AccessKey in {tmp_path} (OTSAuthFailed: " in left.error
    assert "hush" not in str(left)
    assert left.termination_message == f"{left.error}\n"


async def test_a_missing_tunnel_is_reported_before_the_sink_is_opened(scene: EmulatorScene, tmp_path: Path) -> None:
    left = await run_with(scene, tmp_path, f"files: {{url: 'file://{tmp_path}/out'}}", source__tunnelId="nothing")

    assert left.code == 10
    assert "out" not in names_in(tmp_path)


async def test_a_key_that_may_not_describe_a_tunnel_can_consume_it(scene: EmulatorScene, tmp_path: Path) -> None:
    scene.emulator.faults.add(FaultRule("DescribeTunnel", code="OTSNoPermissionAccess"))
    await scene.put(["k"])
    path = document(scene, tmp_path)
    process = await start(path)

    await until(scene.owners, 30, "a client has a channel")
    process.terminate()

    assert (await ended(process, path)).code == 0


@pytest.mark.parametrize(
    ("table", "secret", "words"),
    [
        ("nowhere", "test-secret", ("OTSObjectNotExist: sink.tablestore.table 'nowhere' in instance 'demo' at ",)),
        (TABLE, "hush", ("OTSAuthFailed: ", "Signature mismatch", "correct the AccessKey in the folder")),
    ],
)
async def test_a_destination_that_cannot_be_written_ends_with_code_4(
    scene: EmulatorScene, tmp_path: Path, table: str, secret: str, words: tuple[str, ...]
) -> None:
    keys = tmp_path / "sink"
    keys.mkdir()
    (keys / "accessKeyId").write_text("test-id")
    (keys / "accessKeySecret").write_text(secret)
    await scene.create_table(table="copy")
    sink = (
        f"tablestore: {{endpoint: {scene.emulator.endpoint}, instance: demo, table: {table.replace(TABLE, 'copy')}, "
        f"credentials: {{directory: {keys}}}}}"
    )

    left = await run_with(scene, tmp_path, sink)

    assert left.code == 4
    for part in ("SinkRejected: ", *words):
        assert part in left.error
    assert "hush" not in str(left)
    assert left.termination_message == f"{left.error}\n"


COMMANDS = [("channels",), ("tunnel", "describe"), ("tunnel", "delete", "--yes")]


@pytest.mark.parametrize("asked", COMMANDS, ids=" ".join)
async def test_commands_name_what_is_missing(scene: EmulatorScene, tmp_path: Path, asked: tuple[str, ...]) -> None:
    document(scene, tmp_path)
    place = ["--endpoint", scene.emulator.endpoint, "--instance", "demo", "--credentials", str(tmp_path)]

    no_tunnel = await output_of(await command(*asked, TABLE, "nothing", *place))
    no_table = await output_of(await command(*asked, "nowhere", "t", *place))
    (tmp_path / "accessKeySecret").write_text("hush")
    denied = await output_of(await command(*asked, TABLE, "t", *place))

    assert (no_tunnel[0], no_table[0], denied[0]) == (10, 11, 12)
    assert no_tunnel[2].startswith(f"error: there is no tunnel 'nothing' of table '{TABLE}' in instance 'demo' at http")
    assert f"`ots-tunnel tunnel list {TABLE}` lists those that exist" in no_tunnel[2]
    assert no_table[2].startswith("error: there is no table 'nowhere' in instance 'demo' at http")
    assert denied[2].startswith("error: instance 'demo' at http")
    assert f"does not accept the AccessKey in {tmp_path}" in denied[2]
    for _, output, errors in (no_tunnel, no_table, denied):
        assert output == ""
        assert len(errors.splitlines()) == 1
        assert "hush" not in errors


async def test_a_tunnel_cannot_be_created_on_a_missing_table(scene: EmulatorScene, tmp_path: Path) -> None:
    document(scene, tmp_path)
    place = ["--endpoint", scene.emulator.endpoint, "--instance", "demo", "--credentials", str(tmp_path)]

    code, _, errors = await output_of(await command("tunnel", "create", "nowhere", "t", *place))

    assert code == 11
    assert errors.startswith("error: there is no table 'nowhere' in instance 'demo' at ")
