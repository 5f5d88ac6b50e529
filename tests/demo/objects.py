"""Kubernetes objects of the demo, as a user would write them."""

from __future__ import annotations

from typing import Any

from tests.demo.scenario import ACCESS_KEY_ID, ACCESS_KEY_SECRET, ADMIN_PORT, DATA_PORT, Scenario

Manifest = dict[str, Any]


def namespace(name: str) -> Manifest:
    """Return a Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def secret(scenario: Scenario) -> Manifest:
    """Return the Secret with the AccessKey pair, under the keys that a TablestoreTunnel expects."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "ots-credentials", "namespace": scenario.namespace},
        "stringData": {"accessKeyId": ACCESS_KEY_ID, "accessKeySecret": ACCESS_KEY_SECRET},
    }


def emulator(scenario: Scenario, image: str) -> list[Manifest]:
    """Return the Deployment of the Tablestore emulator and its Service."""
    metadata = {"name": "ots-emulator", "namespace": scenario.namespace, "labels": {"app": "ots-emulator"}}
    ports = [{"name": "data", "containerPort": DATA_PORT}, {"name": "admin", "containerPort": ADMIN_PORT}]
    command = ["ots-emulator", "serve", "--host", "0.0.0.0", "--port", str(DATA_PORT)]
    command += ["--admin-host", "0.0.0.0", "--admin-port", str(ADMIN_PORT), "--instance", scenario.instance]
    for pair in (f"{ACCESS_KEY_ID}:{ACCESS_KEY_SECRET}", *scenario.further_keys):
        command += ["--access-key", pair]
    container = {
        "name": "emulator",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["tini", "--", *command],
        "ports": ports,
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": "admin"}, "periodSeconds": 1},
        # Every other process waits for the emulator: without a CPU request it runs last when both cores are busy.
        "resources": {"requests": {"cpu": "300m"}},
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"app": "ots-emulator"}},
            "template": {
                "metadata": {"labels": {"app": "ots-emulator"}},
                "spec": {"containers": [container], "automountServiceAccountToken": False},
            },
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "selector": {"app": "ots-emulator"},
            "ports": [
                {"name": "data", "port": DATA_PORT, "targetPort": "data"},
                {"name": "admin", "port": ADMIN_PORT, "targetPort": "admin"},
            ],
        },
    }
    return [deployment, service]


def tablestore_tunnel(scenario: Scenario) -> Manifest:
    """Return the TablestoreTunnel, the only object that a user of the operator writes."""
    credentials = {"secretRef": {"name": "ots-credentials"}}
    spec: Manifest = {
        "source": {
            "endpoint": scenario.endpoint,
            "instance": scenario.instance,
            "table": scenario.table,
            "credentials": credentials,
            "tunnel": {"name": f"{scenario.name}-copy", "type": "BaseAndStream"},
        },
        "sink": {
            "tablestore": {
                "endpoint": scenario.endpoint,
                "instance": scenario.instance,
                "table": scenario.destination,
                "credentials": credentials,
            }
        },
        "replicas": scenario.replicas,
        "workers": {
            "heartbeatIntervalSeconds": scenario.heartbeat_interval_seconds,
            "heartbeatTimeoutSeconds": scenario.heartbeat_timeout_seconds,
        },
    }
    if scenario.engine == "spark":
        spec["engine"] = {"baseData": "Spark", "stream": "Workers"}
        spec["spark"] = {
            "driver": {"cores": 1, "memory": "1g"},
            "executor": {"instances": 1, "cores": 1, "memory": "1g"},
            # Small requests: the machine may have only two cores, which the control plane shares.
            "conf": {
                "spark.kubernetes.driver.request.cores": "200m",
                "spark.kubernetes.executor.request.cores": "200m",
            },
        }
    return {
        "apiVersion": "ots-tunnel.dev/v1alpha1",
        "kind": "TablestoreTunnel",
        "metadata": {"name": scenario.name, "namespace": scenario.namespace},
        "spec": spec,
    }
