"""Columns of typed files in the object are those of the worker's document."""

from __future__ import annotations

import typing

from ots_tunnel.config.files import MOST_COLUMNS, OWN_COLUMNS, FileColumnConfig, FilesSinkConfig
from ots_tunnel.sinks.files.rows.declared import PYTHON_TYPES, Declared
from ots_tunnel.sinks.files.rows.typed_rows import ARROW_TYPES, typed_schema
from ots_tunnel_operator.api import files
from ots_tunnel_operator.api.sink import Sink
from ots_tunnel_operator.manifests.sink_section import sink_section


def test_the_names_that_the_files_have_anyway() -> None:
    schema = typed_schema((("pk", 1),), Declared({"price": "double"}))

    assert files.OWN_COLUMNS == OWN_COLUMNS
    assert set(schema.names) == {*OWN_COLUMNS, "price"}


def test_the_types_of_columns() -> None:
    kinds = typing.get_args(FileColumnConfig.model_fields["type"].annotation)

    assert set(typing.get_args(files.FileColumn.model_fields["type"].annotation)) == set(kinds)
    assert set(PYTHON_TYPES) == set(ARROW_TYPES) == set(kinds)


def test_as_many_columns_as_a_document_can_have_are_rendered() -> None:
    columns = [{"name": f"c{number}", "type": "integer"} for number in range(MOST_COLUMNS)]
    given = {"url": "file:///data", "format": "Parquet", "columns": columns, "unknownColumns": "Error"}
    section = sink_section(Sink.model_validate({"files": given}))["files"]
    read = FilesSinkConfig.model_validate(section)

    assert [column.name for column in read.columns or ()] == [column["name"] for column in columns]
    assert read.unknown_columns == "Error"
