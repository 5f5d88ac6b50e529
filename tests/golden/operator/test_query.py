"""What the operator renders for a query of Spark, compared with files and with the Spark operator's own schema."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from kubernetes_validate import validate

from ots_tunnel.query.bucket import PROFILE_FILE
from ots_tunnel.query.document import load_query_config
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.manifests.spark.query_document import QUERY_FILE, query_config
from ots_tunnel_operator.plan.query import query_objects
from ots_tunnel_operator.settings import Settings
from tests.golden.operator.spark_schema import Readable, crd_schema, pruned
from tests.support.operator.objects import tunnel_object
from tests.support.operator.query_worlds import BY_QUERY, DRIVER_PART, EXECUTOR_PART

__all__ = ["crd_schema"]

FOLDER = Path(__file__).parent
SETTINGS = Settings(
    spark_image="kubeone.local/ots-tunnel-spark:1", spark_iceberg_image="kubeone.local/ots-tunnel-spark-iceberg:1"
)
CASES: dict[str, dict[str, Any]] = {
    "defaults": BY_QUERY,
    "everything": {
        **BY_QUERY,
        "deletionPolicy": "Delete",
        "source__tunnel__onPossibleGap": "Continue",
        "sink": {
            "files": {
                "url": "file:///lake/flights",
                "format": "Parquet",
                "compression": "zstd",
                "columns": [{"name": "price", "type": "double"}],
            }
        },
        "spark": {
            "image": "registry.example/own-spark:2",
            "checkpoint": {"claimName": "flights-checkpoint"},
            "triggerIntervalSeconds": 60,
            "driver": {"cores": 2, "memory": "1g", "podTemplate": DRIVER_PART},
            "executor": {"instances": 1, "cores": 1, "memory": "512m", "podTemplate": EXECUTOR_PART},
            "conf": {"spark.driver.memoryOverhead": "2g", "spark.speculation": "true"},
        },
    },
    "mirror": {
        **BY_QUERY,
        "sink": {
            "files": {
                "url": "file:///lake/flights",
                "format": "Delta",
                "mode": "Mirror",
                "columns": [{"name": "price", "type": "double"}],
                "unknownColumns": "Map",
            }
        },
    },
    "iceberg": {
        **BY_QUERY,
        "sink": {
            "files": {
                "url": "file:///lake/flights",
                "format": "Iceberg",
                "mode": "Mirror",
                "columns": [{"name": "price", "type": "double"}],
                "unknownColumns": "Error",
                "compression": "zstd",
            }
        },
    },
    "bucket": {
        **BY_QUERY,
        "sink": {
            "files": {
                "url": "s3://lake/flights",
                "endpoint": "https://oss-cn-hangzhou.aliyuncs.com",
                "region": "oss-cn-hangzhou",
                "bucketInHost": True,
                "credentials": {"secretRef": {"name": "lake-keys"}},
                "format": "Delta",
            }
        },
        "spark": {"checkpoint": {"claimName": "flights-checkpoint"}},
    },
}


def rendered(case: str) -> list[dict[str, Any]]:
    return list(query_objects(parsed(case), "tunnel-1", SETTINGS))


def parsed(case: str) -> TablestoreTunnel:
    document = tunnel_object(**CASES[case])
    document["metadata"]["uid"] = "1c6f4d32-0b53-4a0e-9c7b-6f0f5f1f6a11"
    return TablestoreTunnel.from_body(document)


@pytest.mark.parametrize("case", CASES)
def test_rendered_objects_are_those_of_the_file(case: str) -> None:
    path = FOLDER / f"query-{case}.yaml"

    text = yaml.dump_all(rendered(case), Dumper=Readable, sort_keys=False, width=120)
    if os.environ.get("OTS_GOLDEN") == "write":
        path.write_text(text)

    assert text == path.read_text()


@pytest.mark.parametrize("case", CASES)
def test_rendered_objects_are_valid(case: str) -> None:
    *others, application = rendered(case)
    for document in others:
        validate(document, "1.34", strict=True)
    for role in ("driver", "executor"):
        template = application["spec"][role]["template"]
        metadata = {"name": "x", **template["metadata"]}
        validate(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}, "1.34", strict=True
        )


@pytest.mark.parametrize("case", CASES)
def test_the_application_fits_the_crd_and_nothing_of_it_is_pruned(case: str, crd_schema: Any) -> None:
    document = rendered(case)[-1]

    jsonschema.Draft202012Validator(crd_schema).validate(document)
    assert list(pruned(document["spec"], crd_schema["properties"]["spec"], "spec")) == []


@pytest.mark.parametrize("case", CASES)
def test_the_driver_reads_the_document_as_it_was_meant(case: str, tmp_path: Path) -> None:
    file = tmp_path / QUERY_FILE
    file.write_text(next(item["data"][QUERY_FILE] for item in rendered(case) if item.get("data")))

    assert load_query_config(file) == query_config(parsed(case), tunnel_id="tunnel-1")


@pytest.mark.parametrize("case", CASES)
def test_checkpoints_are_the_drivers_alone_and_keys_where_the_service_is_called(case: str) -> None:
    spec = rendered(case)[-1]["spec"]
    volumes = {
        role: {volume["name"] for volume in spec[role]["template"]["spec"]["volumes"]}
        for role in ("driver", "executor")
    }

    # executors read the rows with which a mirror begins, and write into a bucket by its profile
    mirror = {"source-secret"}
    keys = {"mirror": mirror, "iceberg": mirror, "bucket": {"config", "sink-secret"}}.get(case, set())
    of_driver = {"config", "source-secret", "checkpoint"}
    if case == "bucket":
        assert volumes == {"driver": of_driver | {"sink-secret"}, "executor": keys}
    else:
        assert volumes == {"driver": of_driver | {"files"}, "executor": {"files"} | keys}


def test_executors_have_the_profile_of_a_bucket_without_the_document() -> None:
    documents = rendered("bucket")
    (data,) = (item["data"] for item in documents if item.get("data"))
    volumes = documents[-1]["spec"]["executor"]["template"]["spec"]["volumes"]

    (config,) = (volume["configMap"] for volume in volumes if volume["name"] == "config")
    assert [item["key"] for item in config["items"]] == [PROFILE_FILE]
    assert "/etc/ots/secrets/sink/accessKeyId" in data[PROFILE_FILE]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("role", ["driver", "executor"])
def test_pods_fit_into_a_restricted_namespace(case: str, role: str) -> None:
    spec = rendered(case)[-1]["spec"][role]["template"]["spec"]

    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in spec["containers"]:
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def test_a_stream_has_no_last_attempt_and_settings_it_depends_on_win() -> None:
    spec = rendered("everything")[-1]["spec"]

    assert spec["restartPolicy"]["onFailureRetries"] == spec["restartPolicy"]["onSubmissionFailureRetries"] == 2**31 - 1
    assert spec["sparkConf"]["spark.speculation"] == "false"
    assert spec["sparkConf"]["spark.driver.memoryOverhead"] == "2g"
