"""What the operator renders for a snapshot, compared with files and with the Spark operator's own schema.

The documented application of a query is compared with the schema as well.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from kubernetes_validate import validate

from ots_tunnel.errors import ConfigError
from ots_tunnel.snapshot.document import load_snapshot_config
from ots_tunnel.snapshot.record import PROGRESS_LABEL
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.manifests.spark import rights, snapshot_application, snapshot_document
from tests.golden.operator.spark_schema import Readable, crd_schema, pruned
from tests.support.operator.objects import tunnel_object

__all__ = ["crd_schema"]

FOLDER = Path(__file__).parent
DOCS = FOLDER.parents[2] / "docs"
IMAGE = "kubeone.local/ots-tunnel-spark:1"
SPARK: dict[str, Any] = {"engine": {"baseData": "Spark", "stream": "Workers"}}

DRIVER_TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"team": "shop", "ots-tunnel.dev/role": "worker"}, "annotations": {"a": "b"}},
    "spec": {"priorityClassName": "low"},
}
EXECUTOR_TEMPLATE: dict[str, Any] = {
    "spec": {
        "nodeSelector": {"pool": "spark"},
        "securityContext": {"runAsUser": 1234},
        "containers": [
            {
                "name": "spark-kubernetes-executor",
                "resources": {"limits": {"ephemeral-storage": "1Gi"}},
                "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
            }
        ],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
    }
}
CASES: dict[str, dict[str, Any]] = {
    "defaults": SPARK,
    "everything": {
        **SPARK,
        "deletionPolicy": "Delete",
        "source__tunnel__type": "BaseData",
        "sink__tablestore__endpoint": "https://shop-dr.cn-beijing.ots.aliyuncs.com",
        "sink__tablestore__credentials": {"secretRef": {"name": "dr-credentials"}},
        "delivery": {"batchMaxRows": 100, "retry": {"backoffSeconds": 2, "backoffMaxSeconds": 30}},
        "spark": {
            "image": "registry.example/own-spark:2",
            "driver": {"cores": 2, "memory": "1g", "podTemplate": DRIVER_TEMPLATE},
            "executor": {"instances": 1, "cores": 1, "memory": "512m", "podTemplate": EXECUTOR_TEMPLATE},
            "conf": {
                "spark.kubernetes.driver.request.cores": "200m",
                "spark.task.maxFailures": "2",
                "spark.speculation": "true",
                "spark.ui.enabled": "true",
            },
        },
    },
}


def parsed(**changes: Any) -> TablestoreTunnel:
    document = tunnel_object(**changes)
    document["metadata"]["uid"] = "1c6f4d32-0b53-4a0e-9c7b-6f0f5f1f6a11"
    return TablestoreTunnel.from_body(document)


def supporting(obj: TablestoreTunnel) -> list[dict[str, Any]]:
    return [
        rights.service_account(obj),
        rights.executors_account(obj),
        rights.role(obj),
        rights.role_binding(obj),
        snapshot_document.snapshot_config_map(obj, label="tunnel-1"),
        snapshot_document.snapshot_progress_map(obj, label="tunnel-1"),
    ]


def application(obj: TablestoreTunnel) -> dict[str, Any]:
    return snapshot_application.snapshot_application(obj, image=IMAGE)


@pytest.mark.parametrize("case", CASES)
def test_rendered_objects_are_those_of_the_file(case: str) -> None:
    path = FOLDER / f"snapshot-{case}.yaml"
    obj = parsed(**CASES[case])

    text = yaml.dump_all([*supporting(obj), application(obj)], Dumper=Readable, sort_keys=False, width=120)
    if os.environ.get("OTS_GOLDEN") == "write":
        path.write_text(text)

    assert text == path.read_text()


@pytest.mark.parametrize("case", CASES)
def test_rendered_objects_are_valid(case: str) -> None:
    obj = parsed(**CASES[case])
    for document in supporting(obj):
        validate(document, "1.34", strict=True)
    for role in ("driver", "executor"):
        template = application(obj)["spec"][role]["template"]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "x", **template["metadata"]},
            "spec": template["spec"],
        }
        validate(pod, "1.34", strict=True)


@pytest.mark.parametrize("case", CASES)
def test_the_application_fits_the_crd_and_nothing_of_it_is_pruned(case: str, crd_schema: Any) -> None:
    document = application(parsed(**CASES[case]))

    jsonschema.Draft202012Validator(crd_schema).validate(document)
    assert list(pruned(document["spec"], crd_schema["properties"]["spec"], "spec")) == []


def test_the_schema_check_finds_fields_that_would_be_pruned(crd_schema: Any) -> None:
    spec = {"driver": {"tempalte": {}}, "mode": "cluster"}

    assert list(pruned(spec, crd_schema["properties"]["spec"], "spec")) == ["spec.driver.tempalte"]


def test_the_documented_objects_of_a_query_are_valid(crd_schema: Any) -> None:
    *others, application = yaml.safe_load_all((DOCS / "examples" / "stream-to-files.yaml").read_text())

    for document in others:
        validate(document, "1.34", strict=True)
    for role in ("driver", "executor"):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, **application["spec"][role]["template"]}
        validate(pod, "1.34", strict=True)
    jsonschema.Draft202012Validator(crd_schema).validate(application)
    assert list(pruned(application["spec"], crd_schema["properties"]["spec"], "spec")) == []


@pytest.mark.parametrize("case", CASES)
def test_the_driver_reads_the_document_as_it_was_meant(case: str, tmp_path: Path) -> None:
    obj = parsed(**CASES[case])
    file = tmp_path / snapshot_document.SNAPSHOT_FILE
    file.write_text(
        snapshot_document.snapshot_config_map(obj, label="tunnel-1")["data"][snapshot_document.SNAPSHOT_FILE]
    )

    assert load_snapshot_config(file) == snapshot_document.snapshot_config(obj, label="tunnel-1")


def test_secrets_are_files_only() -> None:
    for document in (application(parsed(**CASES[case])) for case in CASES):
        for role in ("driver", "executor"):
            container = document["spec"][role]["template"]["spec"]["containers"][0]
            assert [item["name"] for item in container["env"]] == ["PYSPARK_PYTHON"]
            assert "envFrom" not in container
            mounts = {item["mountPath"]: item for item in container["volumeMounts"]}
            assert {"/etc/ots/secrets/source", "/etc/ots/secrets/sink"} <= set(mounts)
            assert not any("subPath" in item for item in mounts.values())


def test_settings_the_copy_depends_on_win() -> None:
    conf = application(parsed(**CASES["everything"]))["spec"]["sparkConf"]

    assert conf["spark.speculation"] == "false"
    assert conf["spark.ui.enabled"] == "false"
    assert conf["spark.task.maxFailures"] == "2"
    assert conf["spark.kubernetes.driver.request.cores"] == "200m"


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
def test_only_under_retain_the_record_outlives_the_object(policy: str) -> None:
    record = snapshot_document.snapshot_progress_map(parsed(**SPARK, deletionPolicy=policy), label="tunnel-1")

    assert ("ownerReferences" in record["metadata"]) == (policy == "Delete")
    assert record["metadata"]["labels"][PROGRESS_LABEL] == "tunnel-1"
    assert record.keys() == {"apiVersion", "kind", "metadata"}


@pytest.mark.parametrize(
    ("changes", "restarts"),
    [
        ({"replicas": 7}, False),
        ({"source__endpoint": "https://shop.vpc.example"}, False),
        ({"delivery": {"batchMaxRows": 1}}, False),
        ({"spark": {"executor": {"instances": 9}}}, True),
    ],
)
def test_a_running_snapshot_is_restarted_only_by_its_own_block(changes: dict[str, Any], restarts: bool) -> None:
    before, after = application(parsed(**SPARK)), application(parsed(**SPARK, **changes))

    assert (before["spec"] != after["spec"]) == restarts
    assert (before != after) == restarts


def test_a_sink_that_a_snapshot_cannot_write_is_refused() -> None:
    obj = parsed(sink__tablestore=None, sink__stdout={})

    with pytest.raises(ConfigError, match=r"spec\.sink"):
        snapshot_document.snapshot_config_map(obj, label="tunnel-1")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("role", ["driver", "executor"])
def test_pods_fit_into_a_restricted_namespace(case: str, role: str) -> None:
    spec = application(parsed(**CASES[case]))["spec"][role]["template"]["spec"]

    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in spec["containers"]:
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert {key for volume in spec["volumes"] for key in volume} <= {"name", "secret", "configMap", "emptyDir"}


@pytest.mark.parametrize("case", CASES)
def test_executors_have_an_account_without_rights_or_token(case: str) -> None:
    obj = parsed(**CASES[case])
    spec = application(obj)["spec"]

    account = rights.executors_account(obj)["metadata"]["name"]
    assert spec["executor"]["serviceAccount"] == account
    assert spec["executor"]["template"]["spec"]["automountServiceAccountToken"] is False
    assert spec["driver"]["serviceAccount"] != account
    assert account not in [subject["name"] for subject in rights.role_binding(obj)["subjects"]]


def test_a_user_s_part_never_takes_the_labels_away_by_which_pods_are_found() -> None:
    template = application(parsed(**CASES["everything"]))["spec"]["driver"]["template"]

    assert template["metadata"]["labels"]["ots-tunnel.dev/role"] == "snapshot"
    assert template["metadata"]["labels"]["team"] == "shop"
