"""Code blocks of the pages are right: objects, documents, job files, programs."""

from __future__ import annotations

import ast
import importlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ots_tunnel.config import DeliveryConfig, StreamDocument, WorkerConfig
from ots_tunnel.job_file import load_job
from ots_tunnel.query.document import QueryConfig
from ots_tunnel_operator.api.object import TablestoreTunnel
from tests.docs.pages import Block, page, pages

SOURCE = {
    "endpoint": "https://shop.cn-hangzhou.ots.aliyuncs.com",
    "instance": "shop",
    "table": "orders",
    "tunnelName": "orders-copy",
    "tunnelId": "6e11d632",
    "credentials": {"directory": "/etc/ots/source"},
}


def blocks(language: str) -> list[Any]:
    return [
        pytest.param(block, id=f"{each}:{block.line}")
        for each in pages()
        for block in each.blocks
        if block.language == language
    ]


def without_defaults(given: Any, read: Any) -> Any:
    """The part of what was read that was given: unknown fields are dropped in reading and are missing then."""
    if isinstance(given, dict) and isinstance(read, dict):
        return {name: without_defaults(value, read[name]) for name, value in given.items() if name in read}
    return given


def check_object(document: dict[str, Any]) -> None:
    read = TablestoreTunnel.from_body({**document, "metadata": {"uid": "uid", **document["metadata"]}})
    spec = read.spec.model_dump(by_alias=True, mode="json", exclude_none=True)

    assert without_defaults(document["spec"], spec) == document["spec"]


@pytest.mark.parametrize("block", blocks("yaml"))
def test_objects_and_documents_are_valid(block: Block) -> None:
    for document in yaml.safe_load_all(block.text):
        if "apiVersion" in document:
            check_object(document)
            continue
        if "leaseTable" in document.get("source", {}):
            StreamDocument.model_validate(document, by_alias=True, by_name=False)
            continue
        if "checkpointDirectory" in document:
            QueryConfig.model_validate(document, by_alias=True, by_name=False)
            continue
        given = {"source": SOURCE, "sink": {"stdout": {}}} | document
        if "deadLetter" in given.get("delivery", {}):
            given["sink"] = {"http": {"url": "https://hooks.shop.example"}}
            DeliveryConfig.model_validate(given["delivery"], by_alias=True, by_name=False)
        WorkerConfig.model_validate(given, by_alias=True, by_name=False)


@pytest.mark.parametrize("block", blocks("json"))
def test_json_parses(block: Block) -> None:
    json.loads(block.text)


@pytest.mark.parametrize("block", blocks("python"))
def test_programs_compile_and_their_imports_exist(block: Block) -> None:
    tree = ast.parse(block.text)

    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("ots_"):
            module = importlib.import_module(node.module)
            for name in node.names:
                assert hasattr(module, name.name), f"{node.module} has no {name.name}"


@pytest.mark.parametrize("block", blocks("mermaid"))
def test_pictures_have_a_kind_and_close_what_they_open(block: Block) -> None:
    lines = block.text.splitlines()

    assert lines[0].split()[0] in ("flowchart", "stateDiagram-v2", "sequenceDiagram")
    assert sum(line.strip().startswith("subgraph") for line in lines) == sum(line.strip() == "end" for line in lines)
    for opening, closing in ("[]", "()"):
        assert block.text.count(opening) == block.text.count(closing)


def test_the_job_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_text(page("docs/replicate-and-verify.md").block("How do I copy a table?", "json"))

    assert load_job(path).writer.batch_write_count == 100
