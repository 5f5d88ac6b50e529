"""The chart installed on a real API server: effective rights, and admission of its pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.manifests import (
    worker_account,
    worker_deployment,
    worker_document,
    worker_spread,
)
from ots_tunnel_operator.manifests.spark import rights as spark_rights
from tests.chart.conftest import CHART, Helm
from tests.support.kube.api_server import ApiServer
from tests.support.operator.objects import tunnel_object

pytestmark = [pytest.mark.api, pytest.mark.xdist_group("chart")]

ACCOUNT = "--as=system:serviceaccount:ots:ott-ots-tunnel-operator"
UID = "1c6f4d32-0b53-4a0e-9c7b-6f0f5f1f6a11"


@pytest.fixture(scope="module")
def installed(helm: Helm, empty_api_server: ApiServer) -> Iterator[ApiServer]:
    common = ("ott", "--namespace", "ots")
    done = helm.run("install", *common, str(CHART), "--create-namespace", kubeconfig=empty_api_server.kubeconfig)
    assert done.returncode == 0, done.stderr
    empty_api_server.must("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    yield empty_api_server
    done = helm.run("uninstall", *common, kubeconfig=empty_api_server.kubeconfig)
    assert done.returncode == 0, done.stderr
    assert "tablestoretunnels.ots-tunnel.dev" in empty_api_server.must("get", "crd")  # crds.keep is true


@pytest.fixture
def owner(installed: ApiServer) -> Iterator[str]:
    """The uid of an object that exists: what an absent one owns is removed at any moment."""
    stored = json.loads(installed.must("create", "-f", "-", "-o", "json", document=tunnel_object()))
    yield str(stored["metadata"]["uid"])
    installed.must("delete", "ott", stored["metadata"]["name"])


def tunnel(uid: str = UID, **changes: Any) -> TablestoreTunnel:
    document = tunnel_object(**changes)
    document["metadata"]["uid"] = uid
    return TablestoreTunnel.from_body(document)


def test_an_object_is_accepted(installed: ApiServer) -> None:
    installed.must("create", "--dry-run=server", "-f", "-", document=tunnel_object())


def test_the_operator_applies_what_it_renders(installed: ApiServer, owner: str) -> None:
    obj = tunnel(owner)
    config = worker_document.worker_config(obj, "tunnel-1")
    changed = worker_document.worker_config(obj, "tunnel-2")
    as_operator = ("apply", "--server-side", "--field-manager=ots-tunnel-operator", ACCOUNT, "-f", "-")

    for first, second in (
        (worker_document.config_map(obj, config), worker_document.config_map(obj, changed)),
        (worker_account.service_account(obj), worker_account.service_account(obj, ("pull",))),
        (worker_spread.disruption_budget(obj), worker_spread.disruption_budget(obj)),
        (
            worker_deployment.deployment(obj, config, "ots-tunnel:1", 2),
            worker_deployment.deployment(obj, changed, "ots-tunnel:2", 3),
        ),
    ):
        installed.must(*as_operator, document=first)
        installed.must(*as_operator, document=second)
        installed.must("delete", first["kind"], first["metadata"]["name"])


def test_the_operator_may_grant_the_drivers_role(installed: ApiServer, owner: str) -> None:
    obj = tunnel(owner, engine__baseData="Spark")

    granted = (
        spark_rights.service_account(obj),
        spark_rights.executors_account(obj),
        spark_rights.role(obj),
        spark_rights.role_binding(obj),
    )

    for document in granted:
        installed.must("apply", "--server-side", ACCOUNT, "-f", "-", document=document)
        again = document | {"metadata": document["metadata"] | {"annotations": {"a": "b"}}}
        installed.must("apply", "--server-side", ACCOUNT, "-f", "-", document=again)
    for document in granted:
        installed.must("delete", document["kind"], document["metadata"]["name"])


def test_the_operator_may_not_grant_more(installed: ApiServer) -> None:
    role = spark_rights.role(tunnel(engine__baseData="Spark"))
    role["rules"] = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}]

    done = installed.kubectl("apply", "--server-side", ACCOUNT, "-f", "-", document=role)

    assert done.returncode != 0
    assert "attempting to grant RBAC permissions not currently held" in done.stderr


@pytest.mark.parametrize(
    ("verb", "resource", "namespace", "allowed"),
    [
        ("watch", "tablestoretunnels.ots-tunnel.dev", "shop", "yes"),
        ("patch", "tablestoretunnels.ots-tunnel.dev#status", "shop", "yes"),
        ("get", "secrets", "shop", "yes"),
        ("create", "events", "shop", "yes"),
        ("update", "leases.coordination.k8s.io/ott-ots-tunnel-operator", "ots", "yes"),
        ("update", "leases.coordination.k8s.io/another", "ots", "no"),
        ("create", "poddisruptionbudgets.policy", "shop", "yes"),
        ("create", "serviceaccounts", "shop", "yes"),
        ("get", "leases.coordination.k8s.io", "shop", "yes"),
        ("watch", "secrets", "shop", "yes"),
        ("list", "secrets", "shop", "no"),
        ("delete", "tablestoretunnels.ots-tunnel.dev", "shop", "no"),
        ("update", "tablestoretunnels.ots-tunnel.dev", "shop", "no"),
        ("delete", "deployments.apps", "shop", "no"),
        ("delete", "roles.rbac.authorization.k8s.io", "shop", "no"),
        ("patch", "events", "shop", "no"),
        ("update", "leases.coordination.k8s.io", "shop", "no"),
        ("create", "clusterroles", "", "no"),
        ("create", "pods#exec", "shop", "no"),
    ],
)
def test_rights_of_the_operator(installed: ApiServer, verb: str, resource: str, namespace: str, allowed: str) -> None:
    where = ("-n", namespace) if namespace else ()
    name, _, subresource = resource.partition("#")
    part = ("--subresource", subresource) if subresource else ()

    done = installed.kubectl("auth", "can-i", verb, name, *part, *where, ACCOUNT)

    assert done.stdout.strip() == allowed


def test_pods_keep_to_the_restricted_profile(installed: ApiServer, helm: Helm) -> None:
    obj = tunnel()
    worker = worker_deployment.deployment(obj, worker_document.worker_config(obj, "tunnel-1"), "ots-tunnel:1", 1)
    operator = next(item for item in helm.template() if item["kind"] == "Deployment")
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "strict", "labels": {"pod-security.kubernetes.io/warn": "restricted"}},
    }
    installed.must("apply", "--server-side", "-f", "-", document=namespace)

    for deployment in (worker, operator):
        deployment["metadata"] = {"name": "strict", "namespace": "strict"}
        done = installed.kubectl("create", "--dry-run=server", "-f", "-", document=deployment)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_secret_is_watched_by_its_name_without_the_right_to_list(installed: ApiServer) -> None:
    installed.must("create", "secret", "generic", "watched", "--from-literal=accessKeyId=a")
    watch = "/api/v1/namespaces/default/secrets?watch=true&fieldSelector=metadata.name%3Dwatched&timeoutSeconds=2"

    assert '"ADDED"' in installed.must("get", "--raw", watch, ACCOUNT)


def test_rights_on_names_are_enough_for_a_watch_by_name(installed: ApiServer) -> None:
    named = ("--verb=get,watch", "--resource=secrets", "--resource-name=keys")
    installed.must("create", "role", "named", *named)
    installed.must("create", "rolebinding", "named", "--role=named", "--user=someone")
    path = "/api/v1/namespaces/default/secrets?watch=true&timeoutSeconds=2"

    installed.must("get", "--raw", f"{path}&fieldSelector=metadata.name%3Dkeys", "--as=someone")
    refused = installed.kubectl("get", "--raw", path, "--as=someone")

    assert refused.returncode != 0
    assert "forbidden" in refused.stderr


def notes(helm: Helm, server: ApiServer, *settings: str) -> str:
    options = [part for setting in settings for part in ("--set-json", setting)]
    upgrade = ("upgrade", "ott", str(CHART), "--namespace", "ots", "--dry-run=client", *options)
    done = helm.run(*upgrade, kubeconfig=server.kubeconfig)
    assert done.returncode == 0, done.stderr
    return done.stdout.partition("NOTES:")[2]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("crds.enabled=false", "WARNING: the chart did not install the CustomResourceDefinition"),
        ("crds.keep=false", "WARNING: crds.keep is false"),
        ("operator.replicas=0", "WARNING: operator.replicas is 0"),
        ("operator.leaderElection.enabled=false", "WARNING: operator.leaderElection.enabled is false"),
        ("rbac.create=false", "WARNING: rbac.create is false"),
        ("serviceAccount.create=false", "WARNING: the operator runs as the account `default`"),
        ("engines.spark.enabled=false", "they show ApiServerRefused"),
        ('rbac.secretNames=["keys"]', "Objects may use these Secrets alone: keys."),
        ('watch.namespaces=["shop"]', "The operator serves TablestoreTunnel objects in: shop."),
    ],
)
def test_the_notes_say_what_a_value_means(installed: ApiServer, helm: Helm, setting: str, said: str) -> None:
    assert said in notes(helm, installed, setting)
    assert said not in notes(helm, installed)
