#!/bin/bash
# apionly.sh up|down DIR: etcd, API server and controller manager on 127.0.0.1; no root, no node, so pods stay Pending.
# Validation, CEL, server-side apply, garbage collection and RBAC are real; Deployments create Pods. Ready in 3-4 s.
# It chooses free ports at start, so that any number can run, each with a separate DIR, which `down` removes.
# API_SERVER_FLAGS and CONTROLLER_FLAGS are further flags of API server and controller manager; the last one of a name
# counts.
# `up` prints one line for eval: PATH and KUBECONFIG (DIR/kubeconfig). Writes are in DIR/audit.log, logs in DIR/*.log.
set -euo pipefail
HERE=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$HERE/cache.sh"
[[ $# -eq 2 ]] || { say "usage: apionly.sh up|down DIR"; exit 2; }
DIR=$(realpath -m "$2")

start() { # NAME ARGS...
  local name=$1
  setsid "$BIN/kubeone" "$@" </dev/null >>"$DIR/$name.log" 2>&1 &
  remember $! "$DIR/$name.pid"
}

answers() { # PATH
  local name
  for name in etcd kube-apiserver; do # an ended process (such as for a port taken meanwhile) never answers: stop waiting
    alive "$DIR/$name.pid" || { say "apionly.sh: $name ended:"; tail -n 5 "$DIR/$name.log" >&2; exit 1; }
  done
  curl -sfk --max-time 5 -H "Authorization: Bearer $TOKEN" "https://127.0.0.1:$API_PORT$1"
}

await() { # SECONDS WHAT PATH: like wait_for, but fails at once when a process has ended
  local end=$((SECONDS + $1))
  until answers "$3" >/dev/null; do
    ((SECONDS < end)) || fail "timed out after $1 s waiting for $2; logs in $DIR"
    sleep 0.05
  done
}

up() {
  [[ -x $BIN/kubeone ]] || fail "$BIN/kubeone is not built; run $HERE/build.sh"
  mkdir -p "$DIR"/{etcd,pki}
  chmod 700 "$DIR" "$DIR/etcd"
  # below the ports that the kernel gives to connections and to servers without a wish: one of them could be taken again
  # before the program listens; above those of a cluster's components
  read -r API_PORT CLIENT_PORT PEER_PORT < <(python3 -c '
import random, socket
taken = []
while len(taken) < 3:
    try:
        taken.append(socket.create_server(("127.0.0.1", random.randrange(12_000, 30_000))))
    except OSError:
        pass
print(*(s.getsockname()[1] for s in taken))')
  openssl ecparam -name prime256v1 -genkey -noout -out "$DIR/service-accounts.key"
  TOKEN=$(openssl rand -hex 16)
  echo "$TOKEN,admin,admin,system:masters" >"$DIR/tokens.csv"
  start etcd --data-dir "$DIR/etcd" --unsafe-no-fsync --log-level warn \
    --listen-client-urls "http://127.0.0.1:$CLIENT_PORT" --advertise-client-urls "http://127.0.0.1:$CLIENT_PORT" \
    --listen-peer-urls "http://127.0.0.1:$PEER_PORT" --initial-advertise-peer-urls "http://127.0.0.1:$PEER_PORT" \
    --initial-cluster "default=http://127.0.0.1:$PEER_PORT"
  # The API server refuses a loopback address here; no client connects to this one.
  start kube-apiserver --etcd-servers "http://127.0.0.1:$CLIENT_PORT" --cert-dir "$DIR/pki" \
    --bind-address 127.0.0.1 --secure-port "$API_PORT" --advertise-address 10.255.255.1 \
    --service-cluster-ip-range 10.240.0.0/20 --token-auth-file "$DIR/tokens.csv" --authorization-mode RBAC \
    --service-account-issuer https://kubernetes.default.svc \
    --service-account-key-file "$DIR/service-accounts.key" --service-account-signing-key-file "$DIR/service-accounts.key" \
    --audit-policy-file "$HERE/audit-policy.yaml" --audit-log-path "$DIR/audit.log" --audit-log-maxsize 1000 \
    ${API_SERVER_FLAGS:-}
  cat >"$DIR/kubeconfig" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: api, cluster: {server: "https://127.0.0.1:$API_PORT", certificate-authority: $DIR/pki/apiserver.crt}}]
users: [{name: admin, user: {token: $TOKEN}}]
contexts: [{name: api, context: {cluster: api, user: admin}}]
current-context: api
YAML
  await 60 "the API server" /readyz
  start kube-controller-manager --kubeconfig "$DIR/kubeconfig" --root-ca-file "$DIR/pki/apiserver.crt" \
    --service-account-private-key-file "$DIR/service-accounts.key" --use-service-account-credentials \
    --kube-api-qps 500 --kube-api-burst 500 --leader-elect=false --secure-port 0 --flex-volume-plugin-dir "$DIR/flex" \
    ${CONTROLLER_FLAGS:-}
  await 60 "the controller manager" /api/v1/namespaces/default/serviceaccounts/default
  say "API server is ready on port $API_PORT after $SECONDS s"
  echo "export PATH=$BIN:\$PATH KUBECONFIG=$DIR/kubeconfig"
}

down() {
  [[ -d $DIR ]] || return 0
  [[ -f $DIR/tokens.csv ]] || fail "$DIR was not made by apionly.sh up; it stays"
  stop KILL "$DIR"/{kube-controller-manager,kube-apiserver,etcd}.pid
  rm -rf "$DIR"
}

# Two servers that start at once may choose the same port: the second one starts again with others.
again() {
  local attempt
  [[ ! -e $DIR/kubeconfig ]] || fail "$DIR is in use already; apionly.sh down $DIR"
  for attempt in 1 2 3 4; do
    if "$HERE/apionly.sh" try "$DIR"; then return; fi
    grep -qs "address already in use" "$DIR"/*.log || exit 1
    say "a port was taken meanwhile: choosing others (attempt $attempt)"
    down
  done
  "$HERE/apionly.sh" try "$DIR"
}

case $1 in
  up) again ;;
  try) # one attempt of `up`
    trap 'stop KILL "$DIR"/{kube-controller-manager,kube-apiserver,etcd}.pid' EXIT # after a failed start; logs stay
    up
    trap - EXIT ;;
  down) down ;;
  *) say "usage: apionly.sh up|down DIR"; exit 2 ;;
esac
