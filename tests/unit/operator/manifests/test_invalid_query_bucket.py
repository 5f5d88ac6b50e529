"""What is said of a query of Spark whose table is in a bucket, where the API server's rules cannot tell."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator.manifests.invalid_spec import find_invalid_spec
from ots_tunnel_operator.reasons import Reason
from tests.support.operator.query_worlds import BY_QUERY, mounting
from tests.support.operator.spec_blocks import BUCKET
from tests.support.operator.worlds import resource

CHECKPOINT: dict[str, Any] = {"checkpoint": {"claimName": "flights-checkpoint"}}


def changes(url: str = "s3://shop/orders", **spark: Any) -> dict[str, Any]:
    files = BUCKET | {"url": url, "format": "Delta", "mode": "Mirror"}
    return BY_QUERY | {"sink": {"files": files}, "spark": CHECKPOINT | spark}


def test_a_bucket_needs_no_volume() -> None:
    assert find_invalid_spec(resource(**changes()).object) is None


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (changes("s3://shop"), "sink.files.url: found 's3://shop', allowed is file:///path, or s3://bucket/prefix"),
        (changes("s3://My_shop/orders"), "sink.files.url: found 's3://My_shop/orders', allowed is"),
        (
            changes(driver={"podTemplate": mounting("spark-kubernetes-driver", path="/var/lib/ots")}),
            "spec.spark.driver.podTemplate: the folder /var/lib/ots of checkpoints: found 'persistentVolumeClaim/lake",
        ),
        (
            changes(conf={"spark.delta.logStore.s3a.impl": "io.delta.storage.HDFSLogStore"}),
            "spec.spark.conf: found spark.delta.logStore.s3a.impl, allowed is none or",
        ),
    ],
)
def test_what_no_query_could_carry_out_is_named(wrong: dict[str, Any], told: str) -> None:
    problem = find_invalid_spec(resource(**wrong).object)

    assert problem is not None
    assert problem.reason == Reason.INVALID_SPEC
    assert told in problem.message
