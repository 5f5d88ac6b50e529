#!/bin/bash
# build_delta.sh: prints the folder of Delta's jars, fetched into the cache when need be; status as of `maven_jars`.
set -euo pipefail
HERE=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$HERE/../cluster/cache.sh"

maven_jars delta "Delta's jars" "$HERE/../../worker/image/delta"
printf '%s\n' "$JARS"
