"""What the documents repeat from the code is what the code has."""

from __future__ import annotations

import pytest

from ots_tunnel.console.exit_codes import EXIT_CODES
from ots_tunnel.log_actions import LogAction
from ots_tunnel.protocol.channel import State
from ots_tunnel.protocol.lifecycle import ClientState
from ots_tunnel_operator.log_actions import LogAction as OperatorAction
from tests.docs.fill import PARTS, filled, outdated
from tests.docs.machines import client_picture, picture
from tests.docs.object_fields import fields_of, refusals
from tests.docs.pages import page
from tests.docs.tables import codes, go_edges, java_edges, operator_actions, settings, worker_actions, worker_metrics


def test_the_pages_have_the_parts_of_now() -> None:
    assert list(outdated()) == [], "run: make generate"


@pytest.mark.parametrize("name", PARTS)
def test_a_page_without_a_place_for_a_part_is_refused(name: str) -> None:
    part = next(iter(PARTS[name]))

    with pytest.raises(ValueError, match=f"{part}: begin"):
        filled(name, page(name).text.replace(f"<!-- {part}: begin -->", ""))


def test_every_state_is_drawn() -> None:
    for state in State:
        assert f"--> {state.name}" in picture()


def test_every_state_of_the_client_is_drawn() -> None:
    for state in ClientState:
        assert f"--> {state.name}" in client_picture()


def test_every_exit_code_is_listed() -> None:
    for row in EXIT_CODES:
        assert f"\n| {row.code} | {row.meaning} |\n" in codes()


def test_every_log_action_is_listed() -> None:
    for action in LogAction:
        assert f"\n| `{action}` | {', '.join(action.levels)} | {action.description} |" in worker_actions()
    for each in OperatorAction:
        assert f"\n| `{each}` | {', '.join(each.levels)} | {each.description} |" in operator_actions()


def test_settings_have_their_defaults_and_meanings() -> None:
    assert "| `client.heartbeatIntervalSeconds` | `10` | Seconds between heartbeats;" in settings()
    assert "| `delivery.onPermanentError` | `Fail` |" in settings()
    assert '| `client.tagPrefix` | `""` |' in settings()


def test_counters_have_the_names_that_are_scraped() -> None:
    assert "| `ots_tunnel_records_total` | counter |" in worker_metrics()
    assert "| `ots_tunnel_channel_lag_seconds` | gauge |" in worker_metrics()


def test_every_known_defect_is_listed() -> None:
    for number in range(1, 25):
        assert f"| **G{number}** |" in go_edges()
    for number in range(1, 21):
        assert f"| **J{number}** |" in java_edges()


def test_fields_have_type_default_and_allowed_values() -> None:
    spec = fields_of("spec")

    assert "| `replicas` | integer | `1` | 0 to 1000 | Number of worker pods" in spec
    assert "| `source.endpoint` | string | required |" in spec
    assert "| `deletionPolicy` | string | `Retain` | `Retain`, `Delete` |" in spec
    assert "### `spec.workers`" in spec


def test_the_status_has_its_lists() -> None:
    assert "| `lag.slowest[].worker` | string |" in fields_of("status")


def test_refusals_are_those_of_the_definition() -> None:
    assert "- source.table is immutable, create another object instead\n" in refusals()
