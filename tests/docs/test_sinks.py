"""The page of the sinks names every sink with all of its settings."""

from __future__ import annotations

import re
import typing

import pytest

from ots_tunnel.config.base import ConfigModel
from ots_tunnel.config.sinks import REFUSING_SINKS, SinkConfig
from ots_tunnel.sinks.kafka.settings import QUEUE_MESSAGES
from tests.docs.object_fields import schema
from tests.docs.pages import page

SINKS = page("docs/sinks.md")
ROWS = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", SINKS.text, re.MULTILINE))


def section(name: str) -> type[ConfigModel]:
    """The model of one sink."""
    found: type[ConfigModel] = typing.get_args(SinkConfig.model_fields[name].annotation)[0]
    return found


@pytest.mark.parametrize("name", SinkConfig.model_fields)
def test_every_sink_has_a_row_with_its_settings(name: str) -> None:
    settings = {field.alias for field in section(name).model_fields.values()}

    assert set(re.findall(r"`(\w+)`", ROWS[name])) == settings


@pytest.mark.parametrize("name", ["docs/sinks.md", "docs/guarantees.md"])
def test_how_many_messages_the_client_of_kafka_holds(name: str) -> None:
    assert f"at most {QUEUE_MESSAGES:,}" in " ".join(page(name).text.split())


def test_the_sinks_of_the_object_are_named() -> None:
    *names, last = (f"`{name}`" for name in schema("spec")["properties"]["sink"]["properties"])
    text = " ".join(SINKS.text.split())

    assert f"(`spec.sink`), {', '.join(names)} and {last} are available" in text


def test_the_sinks_that_refuse_single_records_are_named() -> None:
    names = [f"`{name}`" for name in REFUSING_SINKS]

    assert f"are for {', '.join(names[:-1])} and {names[-1]}" in SINKS.text
