#!/bin/bash
# build_jars.sh lake|iceberg: prints the folder of the jars of Delta and for buckets, or of Iceberg's, fetched into the
# cache when need be; status as of `maven_jars`.
set -euo pipefail
HERE=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$HERE/../../cluster/cache.sh"

case ${1:-} in
  lake) what="the jars of Delta and for buckets" ;;
  iceberg) what="the jar of Iceberg" ;;
  *) fail "found '${1:-}', allowed are lake and iceberg" ;;
esac
maven_jars "$1" "$what" "$HERE/../../../worker/image/$1"
printf '%s\n' "$JARS"
