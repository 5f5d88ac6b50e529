"""Settings of Spark that would hide an application's pods from the operator."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator.manifests.invalid_spec import find_invalid_spec
from ots_tunnel_operator.reasons import Reason
from tests.support.operator.query_worlds import BY_QUERY
from tests.support.operator.worlds import resource

COPY: dict[str, Any] = {"engine__baseData": "Spark"}


def _with(changes: dict[str, Any], name: str) -> dict[str, Any]:
    return changes | {"spark": {**changes.get("spark", {}), "conf": {name: "x"}}}


@pytest.mark.parametrize("changes", [COPY, BY_QUERY], ids=["copy", "query"])
@pytest.mark.parametrize(
    "name",
    [
        "spark.kubernetes.driver.label.sparkoperator.k8s.io/app-name",
        "spark.kubernetes.executor.label.spark-role",
        "spark.kubernetes.namespace",
    ],
)
def test_a_setting_that_hides_pods_is_refused(changes: dict[str, Any], name: str) -> None:
    problem = find_invalid_spec(resource(**_with(changes, name)).object)

    assert problem is not None
    assert problem.reason is Reason.INVALID_SPEC
    assert problem.message.startswith(f"spec.spark.conf: found {name}, allowed is none: by it the operator finds")


@pytest.mark.parametrize("changes", [COPY, BY_QUERY], ids=["copy", "query"])
@pytest.mark.parametrize("name", ["spark.kubernetes.driver.label.team", "spark.kubernetes.node.selector.zone"])
def test_other_settings_of_pods_are_the_user_s(changes: dict[str, Any], name: str) -> None:
    assert find_invalid_spec(resource(**_with(changes, name)).object) is None
