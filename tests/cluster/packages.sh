#!/bin/bash
# packages.sh node|images|java|browser|network...: install the Debian packages for the local cluster (node), the image
# build (images), Spark outside of containers (java), the test of the emulator's page (browser) and lost packets (network).
# As root it installs missing packages with apt; otherwise it prints them in one line and exits with 2.
# It checks for the program, not the package: an existing containerd (such as Docker's) is never replaced.
set -euo pipefail
HERE=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$HERE/cache.sh"
PATH=$PATH:/usr/sbin:/sbin

missing=()
need() { # PACKAGE PATH-OR-PROGRAM
  case $2 in
    /*) [[ -e $2 ]] || missing+=("$1") ;;
    *) command -v "$2" >/dev/null || missing+=("$1") ;;
  esac
}
for group in "${@:-node}"; do
  case $group in
    node)
      need containerd containerd; need containerd ctr; need runc runc
      need containernetworking-plugins /usr/lib/cni/bridge
      need nftables nft; need iptables iptables; need conntrack conntrack; need iproute2 ip
      need util-linux nsenter; need openssl openssl; need curl curl; need procps sysctl ;;
    images)
      need mmdebstrap mmdebstrap; need buildah buildah; need runc runc
      need debian-archive-keyring /usr/share/keyrings/debian-archive-keyring.gpg ;;
    java) need openjdk-17-jre-headless "${JAVA_HOME:+$JAVA_HOME/bin/}java" ;;
    javac) need openjdk-17-jdk-headless javac; need maven mvn ;;
    network) need iptables iptables; need iproute2 ip; need util-linux unshare ;;
    browser) need chromium chromium ;;
    *) fail "usage: packages.sh node|images|java|javac|browser|network..." ;;
  esac
done
[[ ${#missing[@]} -gt 0 ]] || exit 0
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)

if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
  say "packages.sh: missing ${missing[*]}; install them (Debian's names) or run as root where apt is"
  exit 2
fi
say "installing ${missing[*]} with apt (about 20 s; log $LOGS/packages.log)"
export DEBIAN_FRONTEND=noninteractive
# --no-remove: fail rather than remove other container software of the machine
{ apt-get update -q && apt-get install -qy --no-install-recommends --no-remove "${missing[@]}"; } >"$LOGS/packages.log" 2>&1 ||
  { tail -n 5 "$LOGS/packages.log" >&2; fail "apt could not install ${missing[*]}: $LOGS/packages.log"; }
