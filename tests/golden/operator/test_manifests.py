"""What the operator renders, compared with files; OTS_GOLDEN=write writes new ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_validate import validate

from ots_tunnel.config import WorkerConfig, load_config, load_stream_document
from ots_tunnel.errors import ConfigError
from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.manifests import worker_deployment, worker_document
from tests.support.operator.objects import tunnel_object

FOLDER = Path(__file__).parent
UID = "1c6f4d32-0b53-4a0e-9c7b-6f0f5f1f6a11"
IMAGE = "kubeone.local/ots-tunnel:1"

CASES: dict[str, dict[str, Any]] = {
    "table": {},
    "everything": {
        "replicas": 6,
        "source__tunnel__type": "Stream",
        "source__tunnel__stream": {"startFrom": "Earliest", "endTime": "2026-12-01T00:00:00Z"},
        "sink__tablestore__credentials": {"secretRef": {"name": "dr-credentials"}},
        "delivery": {
            "batchMaxRows": 100,
            "batchMaxBytes": 1_000_000,
            "retry": {"backoffSeconds": 2, "backoffMaxSeconds": 30},
        },
        "workers": {
            "image": "registry.example/own:2",
            "heartbeatIntervalSeconds": 5,
            "heartbeatTimeoutSeconds": 15,
            "checkpointIntervalSeconds": 1,
            "maxParallelChannels": 4,
            "lanesPerChannel": 2,
            "memoryBudgetBytes": 67_108_864,
            "terminationGracePeriodSeconds": 20,
            "podTemplate": {
                "metadata": {"labels": {"team": "shop", names.LABEL_NAME: "stolen"}, "annotations": {"a": "b"}},
                "spec": {
                    "nodeSelector": {"kubernetes.io/arch": "amd64"},
                    "containers": [{"name": "worker", "resources": {"requests": {"cpu": "500m"}}}],
                },
            },
        },
    },
    "stdout": {"sink__tablestore": None, "sink__stdout": {}},
    "files": {
        "sink": {
            "files": {
                "url": "s3://shop-changes/orders",
                "endpoint": "https://oss-cn-hangzhou.aliyuncs.com",
                "region": "cn-hangzhou",
                "bucketInHost": True,
                "credentials": {"secretRef": {"name": "store-keys"}},
                "format": "Parquet",
                "compression": "zstd",
                "maxFileBytes": 1_048_576,
                "maxFileSeconds": 30,
            }
        }
    },
    "typed-files": {
        "sink": {
            "files": {
                "url": "s3://shop-changes/orders",
                "credentials": {"secretRef": {"name": "store-keys"}},
                "format": "Parquet",
                "columns": [{"name": "price", "type": "double"}, {"name": "customer", "type": "string"}],
                "unknownColumns": "Error",
            }
        },
        "delivery__onPermanentError": "Skip",
    },
    "kafka": {
        "sink": {
            "kafka": {
                "bootstrapServers": ["broker-1.shop:9093", "broker-2.shop:9093"],
                "topic": "orders",
                "securityProtocol": "SASL_SSL",
                "sasl": {"mechanism": "SCRAM-SHA-256", "secretRef": {"name": "kafka-login"}},
                "caRef": {"name": "kafka-authorities"},
                "compression": "zstd",
                "timeoutSeconds": 10,
            }
        },
    },
    "http": {
        "sink": {
            "http": {
                "url": "https://hooks.shop.example/orders",
                "hmacSecretRef": {"name": "hook", "key": "signing"},
                "timeoutSeconds": 5,
            }
        },
        "source__rateLimit": {"rowsPerSecondPerWorker": 5000},
        "delivery": {
            "columns": {"exclude": ["note"], "rename": {"amount": "total"}},
            "filter": {
                "actions": ["PUT", "UPDATE"],
                "keyPrefix": {"pk": "shop-"},
                "keyRange": {"begin": [{"string": "a"}, {"integer": 5}], "end": [{"string": "b"}, {"integer": 0}]},
            },
            "rateLimit": {"rowsPerSecondPerWorker": 1000},
            "onPermanentError": "DeadLetter",
            "deadLetter": {
                "files": {"url": "s3://shop-dead/orders", "credentials": {"secretRef": {"name": "store-keys"}}}
            },
        },
    },
    "python": {"sink": {"python": {"factory": "shop.orders:make_processor"}}, "workers__image": "shop/orders:1"},
    "stream": {
        "source__tunnel": None,
        "source__stream": {"leaseTable": "flights_leases", "startFrom": "Latest", "onPossibleGap": "Continue"},
        "workers": {"heartbeatIntervalSeconds": 6, "heartbeatTimeoutSeconds": 20},
    },
    "volume": {
        "sink": {"files": {"url": "file:///data/orders"}},
        "workers": {
            "podTemplate": {
                "spec": {
                    "containers": [{"name": "worker", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
                    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "shared"}}],
                }
            }
        },
    },
}


class Readable(yaml.SafeDumper):
    """Writes texts of several lines as block literals."""


def write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


Readable.add_representer(str, write_text)


def parsed(**changes: Any) -> TablestoreTunnel:
    document = tunnel_object(**changes)
    document["metadata"]["uid"] = UID
    return TablestoreTunnel.from_body(document)


def rendered(obj: TablestoreTunnel) -> tuple[dict[str, Any], dict[str, Any]]:
    config = worker_document.worker_document(obj, "tunnel-1")
    return worker_document.config_map(obj, config), worker_deployment.deployment(obj, config, IMAGE, obj.spec.replicas)


@pytest.mark.parametrize("case", CASES)
def test_rendered_objects_are_those_of_the_file(case: str) -> None:
    path = FOLDER / f"workers-{case}.yaml"

    text = yaml.dump_all(rendered(parsed(**CASES[case])), Dumper=Readable, sort_keys=False, width=120)
    if os.environ.get("OTS_GOLDEN") == "write":
        path.write_text(text)

    assert text == path.read_text()


@pytest.mark.parametrize("case", CASES)
def test_rendered_objects_are_valid(case: str) -> None:
    for document in rendered(parsed(**CASES[case])):
        validate(document, "1.34", strict=True)


@pytest.mark.parametrize("case", CASES)
def test_the_worker_reads_the_document_as_it_was_meant(case: str, tmp_path: Path) -> None:
    obj = parsed(**CASES[case])
    config_map, _ = rendered(obj)
    file = tmp_path / names.WORKER_FILE
    file.write_text(config_map["data"][names.WORKER_FILE])

    load = load_config if obj.spec.source.stream is None else load_stream_document
    assert load(file) == worker_document.worker_document(obj, "tunnel-1")


def config_hash(deployment: dict[str, Any]) -> str:
    return str(deployment["spec"]["template"]["metadata"]["annotations"][names.ANNOTATION_CONFIG_HASH])


@pytest.mark.parametrize(
    ("changes", "rolls"),
    [
        ({}, False),
        ({"replicas": 7}, False),
        ({"monitoring": {"lagDegradedSeconds": 5}}, False),
        ({"source__endpoint": "https://shop.vpc.example"}, True),
        ({"delivery": {"batchMaxRows": 1}}, True),
    ],
)
def test_pods_roll_when_their_document_changes(changes: dict[str, Any], rolls: bool) -> None:
    _, before = rendered(parsed())
    _, after = rendered(parsed(**changes))

    assert (config_hash(before) != config_hash(after)) == rolls
    assert (before["spec"]["template"] != after["spec"]["template"]) == rolls


def test_no_overlay_takes_a_pod_from_its_deployment() -> None:
    _, deployment = rendered(parsed(**CASES["everything"]))
    labels = deployment["spec"]["template"]["metadata"]["labels"]

    assert labels.items() >= deployment["spec"]["selector"]["matchLabels"].items()
    assert labels["team"] == "shop"


def test_a_progress_deadline_exceeds_the_time_a_pod_takes_to_settle() -> None:
    _, deployment = rendered(parsed(workers={"heartbeatIntervalSeconds": 300, "heartbeatTimeoutSeconds": 900}))

    assert deployment["spec"]["minReadySeconds"] == 900
    assert deployment["spec"]["progressDeadlineSeconds"] > 900


def test_an_image_in_the_object_replaces_the_default() -> None:
    _, default = rendered(parsed())
    _, own = rendered(parsed(**CASES["everything"]))
    images = [item["spec"]["template"]["spec"]["containers"][0]["image"] for item in (default, own)]

    assert images == [IMAGE, "registry.example/own:2"]


def test_a_document_that_no_worker_accepts_is_refused_by_name() -> None:
    # the same endpoint in another spelling, which the API server's rules do not recognise
    changes = {"sink__tablestore__table": "flights", "sink__tablestore__endpoint": "http://ots-emulator:8080/"}

    with pytest.raises(ConfigError, match=r"flights-copy: sink\.tablestore\.table: found .flights., the source"):
        worker_document.worker_config(parsed(**changes), "tunnel-1")


def test_workers_drain_before_the_kubelet_kills_them() -> None:
    obj = parsed()
    config: WorkerConfig = worker_document.worker_config(obj, "tunnel-1")

    assert config.client.drain_seconds < obj.spec.worker_settings.termination_grace_period_seconds
