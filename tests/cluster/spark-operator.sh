#!/bin/bash
# spark-operator.sh CLUSTER NAMESPACE SPARK_IMAGE: the real kubeflow chart 2.5.0, controller and webhook, watching NAMESPACE.
# The program and spark-submit come from SPARK_IMAGE (images.sh spark), which must be loaded before: the Spark version
# that submits must be the one that runs. Installs into the namespace spark-operator; it may run again, also with another
# namespace. Driver pods use the service account spark-operator-spark of NAMESPACE.
set -euo pipefail
HERE=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$HERE/cache.sh"
[[ $# -eq 3 && $3 == */*:* ]] || { say "usage: spark-operator.sh CLUSTER NAMESPACE SPARK_IMAGE"; exit 2; }
CLUSTER=$1 NAMESPACE=$2 IMAGE=$3
export KUBECONFIG=$CACHE/clusters/$CLUSTER/admin.kubeconfig
[[ -f $KUBECONFIG ]] || fail "the cluster $CLUSTER is down; run $HERE/cluster.sh up $CLUSTER"
"$BIN/kubectl" create namespace "$NAMESPACE" --dry-run=client -o yaml | "$BIN/kubectl" apply -f - >/dev/null 2>&1

# Spark 4.2 creates a NetworkPolicy at submission; this chart does not grant the controller the right to do so.
"$BIN/kubectl" apply -f - >/dev/null <<YAML
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: spark-networkpolicies, namespace: $NAMESPACE}
rules:
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [create, get, list, patch, update, delete, deletecollection, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: spark-networkpolicies, namespace: $NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: spark-networkpolicies}
subjects: [{kind: ServiceAccount, name: spark-operator-controller, namespace: spark-operator}]
YAML
repository=${IMAGE#*/}
# The CPU request: spark-submit, a JVM, runs in the controller and takes a minute without one while the cores are busy.
"$BIN/helm" upgrade --install spark-operator "$CACHE/spark-operator-chart" --namespace spark-operator --create-namespace \
  --set "image.registry=${IMAGE%%/*},image.repository=${repository%:*},image.tag=${IMAGE##*:},image.pullPolicy=IfNotPresent" \
  --set "spark.jobNamespaces={$NAMESPACE}" --set controller.resources.requests.cpu=300m --wait --timeout 180s >"$LOGS/spark-operator-$CLUSTER.log" 2>&1 ||
  { tail -n 5 "$LOGS/spark-operator-$CLUSTER.log" >&2; fail "installing the spark-operator chart failed: $LOGS/spark-operator-$CLUSTER.log"; }
say "the spark-operator watches $NAMESPACE in $CLUSTER after $SECONDS s"
