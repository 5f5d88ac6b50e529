"""`ots` through Spark Connect: the client sends plans, and everything of the package runs beside the server.

What a Connect client needs (`pyspark[connect]`) has another protobuf than the vendor's SDK allows, so `make setup` does
not install it: `tests.spark.matrix` runs these tests with the lock's minor. Its environments of other minors have the
client as well: there they run by hand.
"""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
import pytest

from ots_tunnel.client.sync_tunnel import SyncTunnelClient
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import Stage, TunnelType
from ots_tunnel.spark import register
from ots_tunnel.spark.lake import ChangeLog, Mirror
from ots_tunnel.spark.versions import minor_of
from tests.support.programs.processes import inherited_environment
from tests.support.waiting import wait_until

from .conftest import CREDENTIALS, ROWS, Instance

# one process: one session
pytestmark = [pytest.mark.spark, pytest.mark.timeout(900), pytest.mark.xdist_group("spark"), pytest.mark.lasts(60)]

MINOR = minor_of(pyspark.__version__)
#: A class that the server can import, and the client cannot.
VAULT = """
import os
from ots_tunnel.model import Credentials

class Vault:
    def __call__(self):
        return Credentials(os.environ["VAULT_ID"], os.environ["VAULT_SECRET"])
"""


@dataclass(frozen=True)
class Connected:
    """A server and a session of its client."""

    spark: Any
    log: Path


@pytest.fixture(scope="module")
def connected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connected]:
    from pyspark.sql.connect.session import SparkSession

    folder = tmp_path_factory.mktemp("server")
    (folder / "only_on_the_server.py").write_text(VAULT)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    command = [
        str(submit),
        "--master",
        "local[2,2]",
        "--class",
        "org.apache.spark.sql.connect.service.SparkConnectServer",
    ]
    command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    environment = inherited_environment(
        folder,
        PYSPARK_PYTHON=sys.executable,
        OTS_ACCESS_KEY_ID="test-id",
        OTS_ACCESS_KEY_SECRET="test-secret",
        VAULT_ID="test-id",
        VAULT_SECRET="test-secret",
    )
    log = folder / "server.log"
    with log.open("w") as output:
        server = subprocess.Popen(
            [*command, "spark-internal"],
            env=environment,
            cwd=folder,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        wait_until(lambda: listening(port) or server.poll() is not None, 300, explain=log.read_text)
        session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
        yield Connected(session, log)
        session.stop()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


def listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def place(instance: Instance, **more: str) -> dict[str, str]:
    """Options of the table; without others the credentials are the server's environment."""
    options = {"endpoint": instance.endpoint, "instance": "demo", "table": "flights", **more}
    if not any(name.startswith("credentials") for name in options):
        options["credentialsProvider"] = "environment"
    return options


def read(connected: Connected, instance: Instance, **more: str) -> Any:
    register(connected.spark)
    return connected.spark.read.format("ots").options(**place(instance, **more)).load()


def line_of(error: BaseException) -> str:
    """The line of this package in an error, of which there is one."""
    # Connect adds the server's stack trace, unless spark.sql.connect.serverStacktrace.enabled is off
    lines = str(error).partition("\n\nJVM stacktrace:")[0].splitlines()
    [line] = [line for line in lines if line.startswith("ots_tunnel.errors.")]
    assert len(lines) <= 8
    return line


def test_rows_are_those_of_the_table(connected: Connected, instance: Instance) -> None:
    frame = read(connected, instance, columns="delay BIGINT, remark STRING", splitBytes="1048576")

    found = {(row.carrier, row.flight): (row.delay, row.remark) for row in frame.collect()}

    expected = {}
    for row in instance.rows("flights"):
        latest = {column.name: column.value for column in reversed(row.columns)}
        expected[tuple(value for _, value in row.primary_key)] = (latest.get("delay"), latest.get("remark"))
    assert found == expected
    assert len(found) == ROWS


def test_without_a_schema_the_columns_are_those_of_rows(connected: Connected, instance: Instance) -> None:
    frame = read(connected, instance, where="carrier = 'c01'")

    assert frame.schema.simpleString() == "struct<carrier:string,flight:bigint,delay:bigint,remark:string>"
    assert {row.carrier for row in frame.collect()} == {"c01"}


def test_rows_of_the_client_are_written(connected: Connected, instance: Instance) -> None:
    register(connected.spark)
    rows = [("a", number, number, "put") for number in range(50)] + [("a", 3, None, "delete")]
    frame = connected.spark.createDataFrame(rows, "carrier STRING, flight BIGINT, delay BIGINT, what STRING").coalesce(
        1
    )
    options = place(instance, table="flights_copy", actionColumn="what")

    frame.write.format("ots").mode("append").options(**options).save()

    stored = {dict(row.primary_key)["flight"]: row.columns[0].value for row in instance.rows("flights_copy")}
    assert stored == {number: number for number in range(50) if number != 3}


@pytest.mark.skipif(MINOR < (4, 1), reason="PySpark 4.0 gives a source no filters")
def test_filters_become_ranges_of_keys(connected: Connected, instance: Instance) -> None:
    register(connected.spark, push_filters=True)
    try:
        frame = read(connected, instance, columns="delay BIGINT", pushFilters="true")
        found = frame.where("carrier = 'c01' AND flight > 100 AND delay > 300").collect()
    finally:
        connected.spark.conf.unset("spark.sql.python.filterPushdown.enabled")

    assert sorted(row.flight for row in found) == [n for n in range(401, ROWS) if n % 13 == 1 and n % 500]


@pytest.mark.parametrize("where", ["files", "class"])
def test_credentials_are_those_that_the_server_reaches(connected: Connected, instance: Instance, where: str) -> None:
    options = {
        "files": {"credentialsDirectory": str(instance.secrets)},
        "class": {"credentialsProvider": "only_on_the_server.Vault"},
    }[where]

    assert read(connected, instance, columns="", **options).count() == ROWS


def test_a_class_that_the_client_alone_has_is_one_line(connected: Connected, instance: Instance) -> None:
    with pytest.raises(Exception, match="option 'credentialsProvider'") as caught:
        read(connected, instance, credentialsProvider="my_notebook.Vault").collect()

    assert "found 'my_notebook.Vault', which cannot be imported in this process" in line_of(caught.value)


def test_a_class_that_the_client_sends_is_used(connected: Connected, instance: Instance, tmp_path: Path) -> None:
    (tmp_path / "sent_by_the_client.py").write_text(VAULT)
    connected.spark.addArtifacts(str(tmp_path / "sent_by_the_client.py"), pyfile=True)

    frame = read(connected, instance, columns="", credentialsProvider="sent_by_the_client.Vault")

    assert frame.count() == ROWS


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "fast"}, "option 'mode': found 'fast', allowed are typed and raw"),
        ({"columns": "Flight BIGINT"}, "column 'Flight': the key is named 'flight'"),
        ({"table": "nowhere"}, "OTSObjectNotExist"),
    ],
)
def test_mistakes_are_one_line(connected: Connected, instance: Instance, options: dict[str, str], message: str) -> None:
    with pytest.raises(Exception, match=r"ots_tunnel\.errors") as caught:
        read(connected, instance, **options).collect()

    assert message in line_of(caught.value)


def test_no_secret_is_in_plans_and_in_the_log_of_the_server(connected: Connected, instance: Instance) -> None:
    frame = read(connected, instance, columns="delay BIGINT")
    frame.collect()

    plan = io.StringIO()
    with redirect_stdout(plan):
        frame.explain(extended=True)

    assert "ots" in plan.getvalue()
    assert "test-secret" not in plan.getvalue()
    assert "test-secret" not in connected.log.read_text()


def test_a_stream_is_followed_or_refused(connected: Connected, instance: Instance, tmp_path: Path) -> None:
    tunnels = SyncTunnelClient(instance.endpoint, "demo", CREDENTIALS)
    tunnels.create_tunnel("flights", "stream", TunnelType.BaseAndStream)
    wait_until(lambda: tunnels.describe_tunnel("flights", "stream").tunnel.stage != Stage.INIT)
    tunnels.close()
    register(connected.spark)
    options = place(instance, tunnel="stream", heartbeatIntervalSeconds="5")

    def run() -> Any:
        changes = connected.spark.readStream.format("ots").options(**options).load()
        writer = changes.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.option("path", str(tmp_path / "changes")).trigger(availableNow=True).start()
        assert query.awaitTermination(300), "not within 300 s"

    if MINOR < (4, 2):
        with pytest.raises(Exception, match="readStream: found PySpark") as caught:
            run()
        assert "allowed are 4.2 and newer" in line_of(caught.value)
        return
    run()
    assert connected.spark.read.parquet(str(tmp_path / "changes")).count() == ROWS


def start(connected: Connected, folder: Path, function: Any) -> Any:
    """A query that gives two rows of JSON files to a function, which runs beside the server."""
    schema = "carrier STRING, flight BIGINT, delay BIGINT"
    connected.spark.createDataFrame([("a", 1, 5), ("b", 2, 6)], schema).write.json(str(folder / "in"))
    writer = connected.spark.readStream.schema(schema).json(str(folder / "in")).writeStream.foreachBatch(function)
    return writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()


def test_each_micro_batch_of_a_stream_is_written(connected: Connected, instance: Instance, tmp_path: Path) -> None:
    options = place(instance, table="flights_copy")

    def write(frame: Any, _batch: int) -> None:
        register(frame.sparkSession)
        frame.write.format("ots").mode("append").options(**options).save()

    assert start(connected, tmp_path, write).awaitTermination(300), "not within 300 s"

    stored = {row.primary_key: row.columns[0].value for row in instance.rows("flights_copy")}
    assert stored == {(("carrier", "a"), ("flight", 1)): 5, (("carrier", "b"), ("flight", 2)): 6}


def test_delta_tables_are_refused(connected: Connected, instance: Instance, tmp_path: Path) -> None:
    refusal = "the session: found one of Spark Connect, allowed is a classic one"
    source = {**place(instance), "tunnel": "lake"}

    with pytest.raises(ConfigError, match=refusal):
        Mirror(connected.spark, source, str(tmp_path / "mirror")).prepare()
    with pytest.raises(Exception, match=refusal) as caught:
        start(connected, tmp_path, ChangeLog(str(tmp_path / "log"))).awaitTermination(300)

    lines = str(caught.value).splitlines()
    assert len({line for line in lines if line.startswith(f"ots_tunnel.errors.QueryRefused: {refusal}")}) == 1
