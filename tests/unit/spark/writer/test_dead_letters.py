"""Dead letters of a write: their form, their files, and mistakes in their options."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ots_tunnel.client.table_calls import RowChange, RowOutcome
from ots_tunnel.errors import ConfigError, Explained
from ots_tunnel.protocol.plainbuffer.codec import decode_row
from ots_tunnel.spark.columns import COLUMN_TYPES, build_batch
from ots_tunnel.spark.place import Place
from ots_tunnel.spark.writer.layout import Layout
from ots_tunnel.spark.writer.options import WriteOptions
from ots_tunnel.spark.writer.writers import TablestoreWriter, Written
from tests.support.sinks.s3_store import s3_store

PLACE = {"endpoint": "http://a.example", "instance": "shop", "table": "t", "onRefused": "deadLetter"}
LAYOUT = Layout(("k",), ("c", "x"), "what", "at")


class Table:
    """Takes writes like SyncTableClient; refuses the rows with these keys."""

    def __init__(self, *refused: int) -> None:
        self.refused = refused

    def batch_write(self, table: str, rows: Sequence[RowChange], **_: Any) -> list[RowOutcome]:
        keys = [decode_row(change.body).primary_key[0][1] for change in rows]
        return [
            RowOutcome("OTSParameterInvalid", "too long") if key in self.refused else RowOutcome(None) for key in keys
        ]

    def close(self) -> None:
        pass


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Table:
    found = Table(2)
    monkeypatch.setattr(Place, "client", lambda self: found)
    return found


def writer_to(folder: Path) -> TablestoreWriter:
    options = WriteOptions.parse({**PLACE, "deadLetterUrl": folder.as_uri()})
    writer: TablestoreWriter = pickle.loads(pickle.dumps(TablestoreWriter(options, LAYOUT)))
    return writer


def batch(*rows: tuple[int | None, str | None, float | None, str, int | None]) -> Any:
    kinds = {"k": "bigint", "c": "string", "x": "double", "what": "string", "at": "bigint"}
    columns = list(zip(*rows, strict=True))
    return build_batch([(name, COLUMN_TYPES[kind], columns[at]) for at, (name, kind) in enumerate(kinds.items())])


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_refused_rows_are_in_a_file_with_their_errors(
    table: Table, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer = writer_to(tmp_path)
    rows = [
        (1, "a", None, "put", 7),
        (2, "b", float("nan"), "update", 8),
        (None, "c", None, "put", 9),
        (4, None, 1.5, "drop", 10),
        (5, "e", None, "put", -1),
    ]

    found = writer.write(iter([batch(*rows)]))
    writer.commit([found])

    assert (found.changes, found.refused, found.error) == (1, 4, "")
    [path] = files_in(tmp_path)
    assert path.name == found.letters
    assert path.parent.parent == tmp_path / "t"
    letters = [json.loads(line) for line in path.read_text().splitlines()]
    assert [set(letter) for letter in letters] == [{"action", "channel", "sequence", "key", "columns", "error"}] * 4
    assert {letter["channel"] for letter in letters} == {"partition 0"}
    by_code = {letter["error"]["code"]: letter for letter in letters}
    refused = by_code["OTSParameterInvalid"]
    assert (refused["action"], refused["key"], refused["error"]["message"]) == ("UPDATE", {"k": 2}, "too long")
    assert refused["columns"] == [
        {"name": "c", "op": "PUT", "value": "b", "version": 8},
        {"name": "x", "op": "PUT", "value": {"double": "nan"}, "version": 8},
    ]
    assert by_code["NullKey"]["key"] == {"k": None}
    assert by_code["WrongAction"]["action"] == "drop"
    assert by_code["WrongAction"]["columns"] == [{"name": "x", "op": "PUT", "value": 1.5, "version": 10}]
    assert by_code["WrongVersion"]["columns"][0]["version"] == -1
    [line] = caplog.messages
    assert line.startswith(f"table 't': 4 rows are refused and dead letters in {path.parent.as_uri()}, such as ")


def test_without_refused_rows_there_is_no_file(table: Table, tmp_path: Path) -> None:
    writer = writer_to(tmp_path)

    found = writer.write(iter([batch((1, "a", None, "put", None))]))
    writer.commit([found])

    assert found == Written(1, 0, (), "")
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("fails", [False, True])
def test_the_files_of_attempts_that_were_given_up_are_removed(table: Table, tmp_path: Path, fails: bool) -> None:
    writer, other = writer_to(tmp_path), writer_to(tmp_path)
    row = batch((2, "b", None, "put", None))
    lost, kept, beside = (each.write(iter([row])) for each in (writer, writer, other))
    [folder] = {path.parent for path in files_in(tmp_path) if path.name == kept.letters}
    (folder / ".filling-0").write_text("of a task that was killed")

    (writer.abort if fails else writer.commit)([kept, None])

    assert lost.letters != kept.letters
    assert {path.name for path in files_in(tmp_path)} == {kept.letters, beside.letters}


def test_a_task_that_fails_leaves_nothing(table: Table, tmp_path: Path) -> None:
    def batches() -> Any:
        yield batch(*[(2, "b", None, "put", None)] * 200)
        yield batch(*[(2, "b", None, "put", None)] * 200)
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        writer_to(tmp_path).write(batches())

    assert files_in(tmp_path) == []


def test_a_place_that_refuses_files_fails_the_write_once(table: Table, tmp_path: Path) -> None:
    writer = writer_to(tmp_path)
    (tmp_path / "t").write_text("no folder")

    found = writer.write(iter([batch((2, "b", None, "put", None))]))

    assert "t" in found.error
    assert "\n" not in found.error
    with pytest.raises(Explained, match="table 't': "):
        writer.commit([found])


def test_a_place_where_no_file_can_be_stored_is_named_before_a_task_starts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match=r"option 'deadLetterUrl': found 'file:///.*/file/x', where no file can be"):
        writer_to(tmp_path / "file" / "x").check()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "option 'deadLetterUrl' is missing: onRefused deadLetter needs it"),
        ({"deadLetterUrl": "/data"}, "options deadLetter...: url: found '/data', allowed is file:///path or s3://"),
        ({"deadLetterUrl": "s3://bucket/x"}, "options deadLetter...: credentials: missing"),
        ({"deadLetterUrl": "file:///x", "deadLetterRegion": "r"}, "options deadLetter...: region: found"),
        ({"onRefused": "skip", "deadLetterUrl": "file:///x"}, "option 'deadLetterUrl': found with onRefused skip"),
        (
            {"deadLetterUrl": "s3://b", "deadLetterCredentialsDirectory": "/x", "deadLetterBucketInHost": "yes"},
            "option 'deadLetterBucketInHost': found 'yes', allowed are false and true",
        ),
    ],
)
def test_mistakes_are_named_in_one_line(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        WriteOptions.parse({**PLACE, **options})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_bucket_has_its_options() -> None:
    options = {
        "deadLetterUrl": "s3://shop-dead/orders",
        "deadLetterEndpoint": "https://oss-cn-hangzhou.aliyuncs.com",
        "deadLetterBucketInHost": "true",
        "deadLetterCredentialsDirectory": "/etc/ots/secrets/dead",
    }

    found = WriteOptions.parse({**PLACE, **options}).letters

    assert found is not None
    assert (found.url, found.bucket_in_host) == ("s3://shop-dead/orders", True)
    assert found.credentials is not None
    assert str(found.credentials.directory) == "/etc/ots/secrets/dead"


def test_dead_letters_in_a_bucket(table: Table, tmp_path: Path) -> None:
    (tmp_path / "accessKeyId").write_text("id")
    (tmp_path / "accessKeySecret").write_text("secret")
    with s3_store() as store:
        place = {"deadLetterUrl": "s3://shop/dead", "deadLetterEndpoint": store.url}
        options = WriteOptions.parse({**PLACE, **place, "deadLetterCredentialsDirectory": str(tmp_path)})
        writer = TablestoreWriter(options, LAYOUT)
        writer.check()
        lost, kept = (writer.write(iter([batch((2, "b", None, "put", None))])) for _ in range(2))
        writer.commit([kept])

        assert lost.letters != kept.letters
        assert [name.rpartition("/")[2] for name in store.names()] == [kept.letters]
        [text] = store.texts("dead/t/")
    assert json.loads(text)["key"] == {"k": 2}
