#!/bin/bash
# build_kafka.sh: prints the class path of Apache Kafka's broker, fetched into the cache when need be; status as of
# `maven_jars`.
set -euo pipefail
HERE=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$HERE/../cluster/cache.sh"

"$HERE/../cluster/packages.sh" java || exit 1 # to run it; javac is needed to fetch it alone
maven_jars kafka "Apache Kafka's broker" "$HERE"
printf '%s\n' "$JARS/*"
