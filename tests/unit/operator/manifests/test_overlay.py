"""Merging a user's pod template."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ots_tunnel_operator.manifests.overlay import overlay

WORKER = {"name": "worker", "image": "a", "env": [{"name": "A", "value": "1"}]}
BASE: dict[str, Any] = {"spec": {"containers": [WORKER], "volumes": [{"name": "config"}], "hostname": "x"}}


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({}, BASE["spec"]),
        ({"hostname": "y"}, BASE["spec"] | {"hostname": "y"}),
        ({"hostname": None}, {key: value for key, value in BASE["spec"].items() if key != "hostname"}),
        ({"nodeSelector": {"a": "b"}}, BASE["spec"] | {"nodeSelector": {"a": "b"}}),
        (
            {"containers": [{"name": "worker", "image": "b"}]},
            BASE["spec"] | {"containers": [WORKER | {"image": "b"}]},
        ),
        (
            {"containers": [{"name": "worker", "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "3"}]}]},
            BASE["spec"]
            | {"containers": [WORKER | {"env": [{"name": "A", "value": "3"}, {"name": "B", "value": "2"}]}]},
        ),
        ({"containers": [{"name": "proxy"}]}, BASE["spec"] | {"containers": [WORKER, {"name": "proxy"}]}),
        ({"volumes": [{"name": "tmp"}]}, BASE["spec"] | {"volumes": [{"name": "config"}, {"name": "tmp"}]}),
        ({"tolerations": [{"key": "k"}]}, BASE["spec"] | {"tolerations": [{"key": "k"}]}),
    ],
)
def test_overlay_merges(patch: dict[str, Any], expected: dict[str, Any]) -> None:
    assert overlay(BASE, {"spec": patch}) == {"spec": expected}


def test_lists_without_a_merge_key_are_replaced() -> None:
    assert overlay({"command": ["a", "b"]}, {"command": ["c"]}) == {"command": ["c"]}


SPOOL = {"name": "spool", "emptyDir": {}}
CLAIM = {"name": "spool", "persistentVolumeClaim": {"claimName": "c"}}


@pytest.mark.parametrize(
    ("volume", "merged"),
    [
        # the API server refuses a volume with two sources
        (CLAIM, CLAIM),
        ({**CLAIM, "emptyDir": None}, CLAIM),
        ({"name": "spool", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "spool", "emptyDir": {"sizeLimit": "1Gi"}}),
        ({"name": "other", "emptyDir": {}}, SPOOL),
    ],
)
def test_the_source_of_a_volume_is_replaced(volume: dict[str, Any], merged: dict[str, Any]) -> None:
    assert overlay({"volumes": [SPOOL]}, {"volumes": [volume]})["volumes"][0] == merged


def test_nothing_is_changed_in_place() -> None:
    before = copy.deepcopy(BASE)

    overlay(BASE, {"spec": {"containers": [{"name": "worker", "image": "b"}], "hostname": None}})

    assert before == BASE


def test_an_item_that_is_no_map_reaches_the_api_server_as_it_is() -> None:
    assert overlay(BASE, {"spec": {"containers": ["wrong"]}})["spec"]["containers"] == [WORKER, "wrong"]
