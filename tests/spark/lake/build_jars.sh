#!/bin/bash
# build_jars.sh: prints the folder of the jars of Delta and for buckets, fetched into the cache when need be; status as
# of `maven_jars`.
set -euo pipefail
HERE=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$HERE/../../cluster/cache.sh"

maven_jars lake "the jars of Delta and for buckets" "$HERE/../../../worker/image/lake"
printf '%s\n' "$JARS"
