#!/bin/bash
# build_kafka.sh: prints the class path of Apache Kafka's broker, fetched into the cache when need be.
#
# The folder is named by a hash of its list of jars. Status 1 means that this machine has no Java, or does not reach
# the artifact repository, 2 that other jars arrived than are listed. Half a minute the first time.
set -euo pipefail
HERE=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$HERE/../cluster/cache.sh"
COPY=org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies

JARS=$CACHE/programs/kafka-$(sha256sum <"$HERE/jars.sha256" | cut -c1-16)
LOG=$LOGS/build-kafka.log
"$HERE/../cluster/packages.sh" java || exit 1
exec 9>"$CACHE/kafka.lock"
flock 9 # several runs at once fetch it once
if [[ ! -d $JARS ]]; then
  "$HERE/../cluster/packages.sh" javac || exit 1
  say "fetching Apache Kafka's broker (about half a minute; log $LOG)"
  rm -rf "$JARS.new"
  mvn -B -q -f "$HERE/pom.xml" -Dmaven.repo.local="$CACHE/maven" -DoutputDirectory="$JARS.new" -DincludeScope=runtime \
    $COPY >"$LOG" 2>&1 || { grep -m 3 ERROR "$LOG" >&2 || true; fail "the broker cannot be downloaded: $LOG"; }
  (cd "$JARS.new" && sha256sum ./*.jar | sed 's| \./| |' | diff - "$HERE/jars.sha256") >>"$LOG" ||
    { tail -n 5 "$LOG" >&2; say "other jars arrived than jars.sha256 lists: $LOG"; exit 2; }
  mv "$JARS.new" "$JARS"
fi
printf '%s\n' "$JARS/*"
