#!/bin/bash
# build_go_worker.sh: prints the path of the program around the vendor's Go SDK (tests/oracle/go), built into the cache
# when need be.
#
# The program is named by a hash of its recipe, as those of tests/cluster/build.sh. Status 1 means that this machine has
# no Go or does not reach the module proxy, 2 that the program does not compile. About a minute the first time.
set -euo pipefail
HERE=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$HERE/../cluster/cache.sh"
. "$HERE/../cluster/go.sh"
export CGO_ENABLED=0 GOFLAGS=

cd "$HERE/go"
RECIPE=$({ go version; cat ./*.go ./*.s go.mod go.sum; } | sha256sum | cut -c1-16)
TARGET=$CACHE/programs/goworker-$RECIPE
LOG=$LOGS/build-goworker.log
exec 9>"$CACHE/goworker.lock"
flock 9 # several runs at once build it once
if [[ ! -x $TARGET ]]; then
  say "building the vendor's Go worker (about a minute; log $LOG)"
  go mod download >"$LOG" 2>&1 || { tail -n 3 "$LOG" >&2; fail "the modules of the Go worker cannot be downloaded: $LOG"; }
  GOCACHE=$(mktemp -d "$CACHE/go-build.XXXXXX")
  export GOCACHE
  trap 'rm -rf "$GOCACHE"' EXIT
  go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$TARGET.new" . >>"$LOG" 2>&1 ||
    { tail -n 15 "$LOG" >&2; say "the Go worker does not compile: $LOG"; exit 2; }
  mv "$TARGET.new" "$TARGET"
fi
printf '%s\n' "$TARGET"
