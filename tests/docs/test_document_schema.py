"""The JSON schema of the document beside the model that reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from ots_tunnel.cli import cli
from ots_tunnel.config.messages.json_schema import document_schema
from tests.docs.pages import page

SCHEMA = document_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
DOCUMENT = page("docs/worker.md").block("How do I start one?", "yaml")


def problems(document: Any) -> list[str]:
    # numbers and texts as an editor's YAML reader has them
    return [error.message for error in VALIDATOR.iter_errors(json.loads(json.dumps(document, default=str)))]


def sections() -> Iterator[dict[str, Any]]:
    """The documents and parts of documents on the page of the sinks."""
    whole = yaml.safe_load(DOCUMENT)
    for block in page("docs/sinks.md").blocks:
        if block.language == "yaml":
            part = yaml.safe_load(block.text)
            if "sink" in part or "delivery" in part:
                yield {**whole, **part}


def test_the_command_prints_a_valid_schema() -> None:
    printed = CliRunner().invoke(cli, ["config", "schema"]).stdout

    assert json.loads(printed) == SCHEMA
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_documents_of_the_pages_are_accepted() -> None:
    documents = [yaml.safe_load(DOCUMENT), *sections()]

    assert len(documents) > 5
    assert [problems(document) for document in documents] == [[]] * len(documents)


@pytest.mark.parametrize(
    ("section", "value"),
    [
        ("sinks", {}),
        ("source", {"table": "orders"}),
        ("source", {**yaml.safe_load(DOCUMENT)["source"], "tabel": "orders"}),
        ("source", {**yaml.safe_load(DOCUMENT)["source"], "table": "no table"}),
        ("client", {"heartbeatIntervalSeconds": 4}),
        ("client", {"heartbeatIntervalSeconds": "5"}),
        ("delivery", {"onPermanentError": "Ignore"}),
        ("sink", {}),
        ("sink", {"stdout": {}, "count": {}}),
    ],
)
def test_what_is_wrong_is_refused(section: str, value: dict[str, Any]) -> None:
    document = yaml.safe_load(DOCUMENT)
    document[section] = value

    assert problems(document) != []


def test_every_setting_is_described() -> None:
    nodes = [SCHEMA, *SCHEMA["$defs"].values()]
    described = {"source", "sink", "client", "delivery", "http"}  # the sections have the description of their model

    missing = [
        name
        for node in nodes
        for name, setting in node["properties"].items()
        if "description" not in setting and "$ref" not in str(setting) and name not in described
    ]

    assert missing == []
    assert "title" not in SCHEMA["$defs"]["ClientConfig"]
    interval = SCHEMA["$defs"]["ClientConfig"]["properties"]["heartbeatIntervalSeconds"]
    assert interval["description"].endswith("Allowed: a whole number from 5 on.")
