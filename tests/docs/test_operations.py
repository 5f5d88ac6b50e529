"""The operations page explains everything that an operator can meet."""

from __future__ import annotations

import re

import pytest

from ots_tunnel_operator.plugin.why.remedies import REMEDIES
from ots_tunnel_operator.reasons import STALLED, Reason
from tests.docs.object_fields import columns, schema
from tests.docs.pages import page
from tests.docs.tables import operator_metrics, worker_metrics

OPERATIONS = page("docs/operations.md")
FIRST_CELLS = {name.strip() for line in re.findall(r"^\| ([^|]+)\|", OPERATIONS.text, re.M) for name in line.split(",")}


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_explained(reason: Reason) -> None:
    assert reason in OPERATIONS.headings or reason in FIRST_CELLS


@pytest.mark.parametrize("reason", sorted(STALLED))
def test_what_waits_for_a_person_is_listed_as_such(reason: Reason) -> None:
    assert f"#### {reason}\n" in OPERATIONS.section("Problems that wait for you")


def test_no_other_reason_is_said_to_wait_for_a_person() -> None:
    listed = re.findall(r"^#### (\w+)$", OPERATIONS.section("Problems that wait for you"), re.MULTILINE)

    assert set(listed) == STALLED


def test_every_reason_on_the_page_exists() -> None:
    listed = set(re.findall(r"^#### (\w+)$", OPERATIONS.text, re.MULTILINE))

    assert listed <= set(Reason)


def test_every_paragraph_about_a_problem_has_commands_in_the_plugin() -> None:
    listed = re.findall(r"^#### (\w+)$", OPERATIONS.text, re.MULTILINE)

    assert set(listed) == set(REMEDIES)


@pytest.mark.parametrize("column", columns())
def test_every_column_is_explained(column: str) -> None:
    assert column in FIRST_CELLS


def test_every_condition_is_explained() -> None:
    types = schema("status")["properties"]["conditions"]["items"]["properties"]["type"]["enum"]

    assert set(types) <= FIRST_CELLS


def test_every_phase_is_named() -> None:
    for phase in schema("status")["properties"]["phase"]["enum"]:
        assert phase in OPERATIONS.section("How do I read `kubectl get ott`?")


def test_metrics_of_alerts_exist() -> None:
    known = worker_metrics() + operator_metrics()
    for name in re.findall(r"ots_tunnel_\w+", OPERATIONS.prose + page("docs/performance.md").prose):
        base = re.sub(r"_(total|count|sum|bucket)$", "", name)
        assert f"`{name}`" in known or f"`{base}`" in known, name
