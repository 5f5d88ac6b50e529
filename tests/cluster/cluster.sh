#!/bin/bash
# cluster.sh: a real one-node Kubernetes in its own network namespace; no registry, no container engine, no kind.
#
#   cluster.sh up NAME                    start it, or its missing processes; no-op when it runs (5 s)
#   cluster.sh down NAME [--keep-images]  stop it and remove its state; --keep-images makes the next up quick
#   cluster.sh status NAME                print the processes and the node; exits with 1 when it is down
#   cluster.sh load NAME ARCHIVE...       import image archives of images.sh; images already there take no time
#   cluster.sh env NAME                   print lines for eval: PATH and KUBECONFIG
#
# Two names are known and may run at the same time: ott-demo on 10.230.0.0/16 and ott-test on 10.231.0.0/16. Any other
# name needs PREFIX=10.n. Inside a prefix:
#   .0.1 the host, for pods (also host.kubeone.local)   .0.2 the node: API server :6443, DNS :53
#   .128.0/24 pods   .64.0/20 Services
# The host reaches pod addresses and ClusterIPs directly. Pods reach only the host, so that tests are hermetic.
# The host's firewall, ports and sysctls stay unchanged.
#
# State is in CACHE/clusters/NAME: admin.kubeconfig, log/*.log, audit.log (every write, JSON lines), pods/ (pod logs).
# Needs CAP_NET_ADMIN and CAP_SYS_ADMIN: without them `up` prints this and exits with 2.
set -euo pipefail
HERE=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$HERE/cache.sh"
PATH=$PATH:/usr/sbin:/sbin # Debian keeps runc, nft and ip there, which is not on every PATH
usage() { sed -n '4,8s/^# *//p' "$0" >&2; exit 2; }
[[ $# -ge 2 ]] || usage
COMMAND=$1 NAME=$2; shift 2
[[ $NAME =~ ^[a-z][a-z0-9-]{0,12}[a-z0-9]$ ]] || fail "a cluster's name is 2 to 14 small letters, digits and dashes, not '$NAME'"
case $NAME in
  ott-demo) PREFIX=${PREFIX:-10.230} ;;
  ott-test) PREFIX=${PREFIX:-10.231} ;;
  *) [[ -n ${PREFIX:-} ]] || fail "set PREFIX=10.n for the cluster '$NAME'; known names are ott-demo and ott-test" ;;
esac
STATE=$CACHE/clusters/$NAME
HOST_IP=$PREFIX.0.1 NODE_IP=$PREFIX.0.2 POD_CIDR=$PREFIX.128.0/24 SERVICE_CIDR=$PREFIX.64.0/20
KUBECONFIG_FILE=$STATE/admin.kubeconfig
SOCKET=$STATE/run/containerd.sock

kubectl() { "$BIN/kubectl" --kubeconfig "$KUBECONFIG_FILE" "$@"; }
images() { ctr -a "$SOCKET" -n k8s.io "$@"; }
pidfile() { echo "$STATE/run/$1.pid"; }

start() { # NAME PROGRAM ARGS...: in the node's network namespace, detached, with a pid file and a log
  local name=$1; shift
  ! alive "$(pidfile "$name")" || return 0
  # nsenter, because `ip netns exec` creates a mount namespace, which would hide the kubelet's mounts from containerd
  setsid nsenter --net="/run/netns/$NAME" "$@" </dev/null >>"$STATE/log/$name.log" 2>&1 9>&- &
  remember $! "$(pidfile "$name")"
}

require_privileges() {
  local caps
  caps=$((16#$(awk '/^CapEff/ {print $2}' /proc/self/status)))
  if ((!(caps >> 12 & 1) || !(caps >> 21 & 1))); then
    say "cluster.sh: the local cluster needs root (CAP_NET_ADMIN and CAP_SYS_ADMIN)"
    exit 2
  fi
}

network_down() {
  if [[ -e /run/netns/$NAME ]]; then
    ip netns pids "$NAME" | xargs -r kill -KILL 2>/dev/null || true # it contains only processes of this cluster
    ip netns del "$NAME" 2>/dev/null || true
  fi
  ip link del "${NAME}0" 2>/dev/null || true
  [[ ! -f $STATE/run/blackhole ]] || ip route del blackhole "$PREFIX.0.0/16" 2>/dev/null || true # ours, not of another cluster
  rm -f "$STATE"/run/{blackhole,network}
}

network_up() {
  [[ ! -e /run/netns/$NAME || ! -f $STATE/run/network ]] || return 0
  network_down # remove the partial network of an interrupted run
  ! ip -4 route show root "$PREFIX.0.0/16" | grep -q . || fail "this machine already has routes within $PREFIX.0.0/16; set PREFIX=10.n"
  ip netns add "$NAME"
  ip link add "${NAME}0" type veth peer name eth0 netns "$NAME"
  ip addr add "$HOST_IP/24" dev "${NAME}0"
  ip link set "${NAME}0" up
  ip -n "$NAME" link set lo up
  ip -n "$NAME" addr add "$NODE_IP/24" dev eth0
  ip -n "$NAME" link set eth0 up
  ip -n "$NAME" route add default via "$HOST_IP"
  nsenter --net="/run/netns/$NAME" sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.route_localnet=0
  nsenter --net="/run/netns/$NAME" sysctl -qw net.bridge.bridge-nf-call-iptables=1 2>/dev/null || true # absent on some kernels
  # Without the blackhole route, packets to pods would leave by the default route while the link is down.
  touch "$STATE/run/blackhole"
  ip route add blackhole "$PREFIX.0.0/16"
  ip route add "$POD_CIDR" via "$NODE_IP"
  ip route add "$SERVICE_CIDR" via "$NODE_IP"
  touch "$STATE/run/network"
}

kubeconfig() { # USER TOKEN FILE
  (umask 077; cat >"$3") <<YAML
apiVersion: v1
kind: Config
clusters: [{name: $NAME, cluster: {server: "https://$NODE_IP:6443", certificate-authority: $STATE/pki/apiserver.crt}}]
users: [{name: $1, user: {token: $2}}]
contexts: [{name: $NAME, context: {cluster: $NAME, user: $1}}]
current-context: $NAME
YAML
}

identities() { # a key and a table of tokens; RBAC and NodeRestriction apply to the tokens as in production
  [[ ! -f $STATE/pki/tokens.csv ]] || return 0
  openssl ecparam -name prime256v1 -genkey -noout -out "$STATE/pki/service-accounts.key"
  local row user groups token
  for row in 'admin|system:masters' 'system:kube-controller-manager|' 'system:kube-scheduler|' \
    'system:node:node|system:nodes' 'system:kube-proxy|' 'system:coredns|'; do
    IFS='|' read -r user groups <<<"$row"
    token=$(openssl rand -hex 16)
    echo "$token,$user,$user,\"$groups\""
    kubeconfig "$user" "$token" "$STATE/${user##*:}.kubeconfig"
  done >"$STATE/pki/tokens.csv.new"
  mv "$STATE/pki/tokens.csv.new" "$STATE/pki/tokens.csv"
}

api_ready() { # curl: kubectl costs 0.2 s of CPU each time
  curl -sfk --max-time 5 -H "Authorization: Bearer $(head -1 "$STATE/pki/tokens.csv" | cut -d, -f1)" "https://$NODE_IP:6443${1:-/readyz}"
}

control_plane() {
  # no fsync: the data survives a killed process but not a power failure, which is enough for tests
  start etcd "$BIN/kubeone" etcd --data-dir "$STATE/etcd" --unsafe-no-fsync --log-level warn \
    --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
    --initial-cluster default=http://127.0.0.1:2380
  # kubelet addresses: otherwise logs and exec would resolve the node's name
  start kube-apiserver "$BIN/kubeone" kube-apiserver --etcd-servers http://127.0.0.1:2379 \
    --cert-dir "$STATE/pki" --bind-address "$NODE_IP" --advertise-address "$NODE_IP" --secure-port 6443 \
    --service-cluster-ip-range "$SERVICE_CIDR" --token-auth-file "$STATE/pki/tokens.csv" \
    --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction --allow-privileged \
    --kubelet-preferred-address-types InternalIP \
    --service-account-issuer https://kubernetes.default.svc \
    --service-account-key-file "$STATE/pki/service-accounts.key" \
    --service-account-signing-key-file "$STATE/pki/service-accounts.key" \
    --audit-policy-file "$HERE/audit-policy.yaml" --audit-log-path "$STATE/audit.log" --audit-log-maxsize 1000
  wait_for 240 "the API server (log $STATE/log/kube-apiserver.log)" api_ready
  # the default of 20 calls/s makes the default service account, which every pod needs, appear 4 s later
  start kube-controller-manager "$BIN/kubeone" kube-controller-manager \
    --kubeconfig "$STATE/kube-controller-manager.kubeconfig" \
    --service-account-private-key-file "$STATE/pki/service-accounts.key" --root-ca-file "$STATE/pki/apiserver.crt" \
    --use-service-account-credentials --kube-api-qps 500 --kube-api-burst 500 --leader-elect=false \
    --bind-address 127.0.0.1 --cert-dir "$STATE/pki/controller-manager" \
    --flex-volume-plugin-dir "$STATE/flex" --controllers '*,-node-ipam-controller,-cloud-node-lifecycle-controller'
  start kube-scheduler "$BIN/kubeone" kube-scheduler --kubeconfig "$STATE/kube-scheduler.kubeconfig" \
    --leader-elect=false --bind-address 127.0.0.1 --cert-dir "$STATE/pki/scheduler"
  kubectl apply -f - >/dev/null <<YAML
# the built-in role system:kube-dns lacks endpointslices
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: kubeone-coredns}
rules:
- {apiGroups: [""], resources: [services, pods, namespaces], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kubeone-coredns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kubeone-coredns}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: system:coredns}]
YAML
}

container_runtime() {
  local snapshotter=overlayfs
  # an overlay cannot be the upper side of another one: inside most containers, plain copies it is
  [[ $(stat -f -c %T "$STATE") != overlayfs ]] || snapshotter=native
  # restrict_oom_score_adj: without CAP_SYS_RESOURCE every pod fails with an unhelpful message of runc
  # netns_mounts_under_state_dir: so that `down` finds them all
  cat >"$STATE/containerd.toml" <<TOML
version = 2
root = "$STATE/containerd"
state = "$STATE/run/containerd"
[grpc]
  address = "$SOCKET"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "kubeone.local/pause:1"
  max_container_log_line_size = 262144
  netns_mounts_under_state_dir = true
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "$snapshotter"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "$STATE/cni"
TOML
  cat >"$STATE/cni/10-bridge.conflist" <<JSON
{"cniVersion": "1.0.0", "name": "$NAME", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$STATE/ipam", "ranges": [[{"subnet": "$POD_CIDR"}]],
            "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "loopback"}]}
JSON
  start containerd containerd --config "$STATE/containerd.toml"
  wait_for 120 "containerd (log $STATE/log/containerd.log)" images version
  local archive=$STATE/run/pause.tar # 1.4 MB, so it is simply made anew each time
  if ! images images ls -q | grep -qx kubeone.local/pause:1; then
    "$HERE/oci.py" pack kubeone.local/pause:1 "$archive" "$BIN/pause"
    images images import "$archive" >>"$STATE/log/images.log" 2>&1
    rm "$archive"
  fi
}

node() {
  cat >"$STATE/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
# private namespace: saves a set of client certificates
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
address: $NODE_IP
cgroupDriver: cgroupfs
cgroupRoot: /$NAME
cgroupsPerQOS: true
enforceNodeAllocatable: []
clusterDNS: [$NODE_IP]
clusterDomain: cluster.local
resolvConf: $STATE/resolv.conf
containerRuntimeEndpoint: unix://$SOCKET
failSwapOn: false
failCgroupV1: false
imageGCHighThresholdPercent: 100
# small thresholds: otherwise a nearly full disk taints the node
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, nodefs.inodesFree: 1%, imagefs.available: 1%}
nodeStatusUpdateFrequency: 4s
syncFrequency: 10s
registerNode: true
podLogsDir: $STATE/pods
volumePluginDir: $STATE/flex
YAML
  echo "nameserver $NODE_IP" >"$STATE/resolv.conf"
  local group # a cgroup root of its own (v1: one per controller), so that two clusters do not reap each other's pods
  while read -r group; do
    mkdir -p "$group/$NAME"
    if [[ -f $group/cpuset.cpus && -f $group/cpuset.mems ]]; then # v1 cpusets start empty
      cat "$group/cpuset.cpus" >"$group/$NAME/cpuset.cpus"
      cat "$group/cpuset.mems" >"$group/$NAME/cpuset.mems"
    fi
    # else all pods together get as much as one process of those that have no group, such as the tests beside them
    [[ ! -f $group/$NAME/cpu.shares ]] || echo 8192 >"$group/$NAME/cpu.shares"
    [[ ! -f $group/$NAME/cpu.weight ]] || echo 800 >"$group/$NAME/cpu.weight"
  done < <(cgroup_mounts)
  start kubelet "$BIN/kubeone" kubelet --config "$STATE/kubelet.yaml" --kubeconfig "$STATE/node.kubeconfig" \
    --hostname-override node --node-ip "$NODE_IP" --root-dir "$STATE/kubelet" --cert-dir "$STATE/kubelet/pki"
  # zeros: leave the machine's conntrack sysctls alone
  start kube-proxy "$BIN/kubeone" kube-proxy --kubeconfig "$STATE/kube-proxy.kubeconfig" --proxy-mode nftables \
    --cluster-cidr "$POD_CIDR" --hostname-override node --conntrack-max-per-core 0 \
    --conntrack-tcp-timeout-established 0 --conntrack-tcp-timeout-close-wait 0 \
    --healthz-bind-address 127.0.0.1 --metrics-bind-address 127.0.0.1
}

cgroup_mounts() {
  awk '{for (i = 7; i <= NF; i++) if ($i == "-") {if ($(i + 1) ~ /^cgroup2?$/) print $5; next}}' /proc/self/mountinfo
}

dns() { # three blocks: in one, CoreDNS's fixed order lets template and hosts swallow the cluster's names
  echo "$HOST_IP host.kubeone.local" >"$STATE/hosts"
  cat >"$STATE/Corefile" <<CORE
cluster.local in-addr.arpa {
  bind $NODE_IP
  errors
  ready 127.0.0.1:8181
  kubernetes {
    kubeconfig $STATE/coredns.kubeconfig $NAME
    pods insecure
    ttl 1
  }
}
kubeone.local {
  bind $NODE_IP
  hosts $STATE/hosts
}
. {
  bind $NODE_IP
  template ANY ANY {
    rcode NXDOMAIN
  }
}
CORE
  start coredns "$BIN/coredns" -conf "$STATE/Corefile"
}

node_ready() {
  kubectl get node node -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' | grep -q True
}

up() {
  require_privileges
  [[ ${#SOCKET} -le 90 ]] || fail "the cache path is too long for a Unix socket ($SOCKET); set OTS_TUNNEL_CACHE to a shorter one"
  "$HERE/packages.sh" node
  local program
  for program in kubeone kubectl coredns pause; do
    [[ -x $BIN/$program ]] || fail "$BIN/$program is not built; run $HERE/build.sh"
  done
  mkdir -p "$STATE"/{run,log,pki,cni,etcd}
  chmod 700 "$STATE/etcd" "$STATE/pki"
  network_up
  identities
  control_plane
  container_runtime
  node
  dns
  wait_for 300 "the node to be Ready (log $STATE/log/kubelet.log)" node_ready
  wait_for 180 "the default service account" api_ready /api/v1/namespaces/default/serviceaccounts/default
  say "cluster $NAME is ready after $SECONDS s; logs in $STATE/log"
  environment
}

environment() {
  echo "export PATH=$BIN:\$PATH KUBECONFIG=$KUBECONFIG_FILE"
}

load() {
  [[ $# -gt 0 ]] || usage
  alive "$(pidfile containerd)" || fail "the cluster $NAME is down; run $HERE/cluster.sh up $NAME"
  local archive name present start=$SECONDS
  present=$(images images ls -q)
  for archive; do
    [[ -f $archive ]] || fail "no image archive $archive"
    name=$("$HERE/oci.py" name "$archive")
    ! grep -qxF "$name" <<<"$present" || continue
    # Without layers that the store has: after a change of our code it has nearly all of them.
    images content ls -q | "$HERE/oci.py" thin "$archive" | images images import - >>"$STATE/log/images.log" 2>&1 ||
      { tail -n 3 "$STATE/log/images.log" >&2; fail "importing $archive failed: $STATE/log/images.log"; }
    say "imported $name in $((SECONDS - start)) s"
  done
}

down() {
  local keep=0 mount group file
  if [[ ${1:-} == --keep-images ]]; then keep=1; elif [[ -n ${1:-} ]]; then usage; fi
  # KILL: on TERM they wait up to 17 s for open watches, and their state is removed anyway
  stop KILL "$STATE"/run/{kubelet,kube-proxy,coredns,kube-scheduler,kube-controller-manager,kube-apiserver,etcd}.pid
  if alive "$(pidfile containerd)"; then # while containerd runs, because its shims would stay otherwise
    images tasks ls -q | xargs -r -P4 -I{} ctr -a "$SOCKET" -n k8s.io tasks rm -f {} >/dev/null 2>&1 || true
    images containers ls -q | xargs -r ctr -a "$SOCKET" -n k8s.io containers rm >/dev/null 2>&1 || true
  fi
  stop TERM "$(pidfile containerd)" # cleanly, its image store may stay
  network_down
  awk -v s="$STATE/" 'index($5, s) == 1 {print $5}' /proc/self/mountinfo | sort -r |
    while read -r mount; do umount -l "$mount" || true; done
  while read -r group; do
    [[ ! -d $group/$NAME ]] || find "$group/$NAME" -depth -type d -exec rmdir {} \; 2>/dev/null || true
  done < <(cgroup_mounts)
  # Paths that are hard-coded in kubelet and CNI: remove only our files, and folders that are then empty.
  find /var/log/containers -lname "$STATE/*" -delete 2>/dev/null || true
  for file in "/var/lib/cni/results/$NAME-"*; do rm -f "$file"; done
  rmdir /var/log/containers /var/lib/cni/{results,} /var/lib/kubelet/{device-plugins,} \
    /run/containerd/{s,runc/k8s.io,runc,} 2>/dev/null || true
  [[ -d $STATE ]] || return 0
  if [[ $keep == 1 ]]; then
    find "$STATE" -mindepth 1 -maxdepth 1 ! -name containerd -exec rm -rf {} +
  else
    rm -rf "$STATE"
  fi
  say "cluster $NAME is down after $SECONDS s"
}

status() {
  local file pid result=0
  for file in "$STATE"/run/*.pid; do
    [[ -e $file ]] || { echo "$NAME down"; return 1; }
    pid=$(cut -d' ' -f1 "$file")
    if alive "$file"; then
      printf '%-26s pid %-7s RSS %6d MiB\n' "$(basename "$file" .pid)" "$pid" "$(($(awk '/VmRSS/{print $2}' "/proc/$pid/status") / 1024))"
    else
      printf '%-26s dead\n' "$(basename "$file" .pid)"
      result=1
    fi
  done
  kubectl get node 2>/dev/null || result=1
  return $result
}

case $COMMAND in
  up | down | load) # one at a time per name, because several pytest workers may start the same cluster
    mkdir -p "$CACHE/clusters"
    exec 9>"$CACHE/clusters/$NAME.lock"
    flock -w 300 9 || fail "another cluster.sh works on $NAME for 5 minutes already"
    "$COMMAND" "$@" ;;
  status) status ;;
  env) environment ;;
  *) usage ;;
esac
