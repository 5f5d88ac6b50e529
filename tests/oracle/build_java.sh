#!/bin/bash
# build_java.sh [java|javasinks|streamclient]: prints the path of the program around the vendor's Java SDK
# (tests/oracle/java), of its worker with the libraries of other places (tests/oracle/javasinks beside the former), or of
# the one around the vendor's Stream Client library, which needs an older SDK (tests/oracle/streamclient), built into the
# cache when need be.
#
# The program is a folder named by a hash of its recipe, with a script that runs it; JAVA_OPTIONS replaces the script's
# options of the virtual machine. Status 1 means that this machine has no Java to build with or does not reach the
# artifact repository, 2 that the program does not compile. About a minute the first time.
set -euo pipefail
HERE=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$HERE/../cluster/cache.sh"
FOLDER=${1:-java}
case $FOLDER in
  java) NAME=javaworker MAIN=oracle.Main WHAT="Java SDK" ;;
  javasinks) NAME=javasinks MAIN=oracle.SinkWorker WHAT="Java SDK, with Jackson, Kafka's client and parquet-avro" ;;
  streamclient) NAME=streamclient MAIN=oracle.StreamClient WHAT="Stream Client library" ;;
  *) fail "usage: build_java.sh [java|javasinks|streamclient]" ;;
esac
COPY=org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies

javac=${JAVA_HOME:+$JAVA_HOME/bin/}javac
if ! command -v "$javac" >/dev/null || ! command -v mvn >/dev/null; then
  "$HERE/../cluster/packages.sh" javac || exit 1
  command -v "$javac" >/dev/null || javac=javac # JAVA_HOME is one that only runs programs
fi
javac=$(realpath "$(command -v "$javac")") # through Debian's alternatives
export JAVA_HOME=${javac%/bin/javac}       # for Maven, too

cd "$HERE/$FOLDER"
SOURCES=(./*.java)
[[ $FOLDER != javasinks ]] || SOURCES+=(../java/*.java)
RECIPE=$({ "$javac" -version; cat "${SOURCES[@]}" pom.xml jars.sha256 "$HERE/build_java.sh"; } | sha256sum | cut -c1-16)
TARGET=$CACHE/programs/$NAME-$RECIPE
JARS=$CACHE/programs/javajars-$(sha256sum <jars.sha256 | cut -c1-16)
LOG=$LOGS/build-$NAME.log
exec 9>"$CACHE/$NAME.lock"
flock 9 # several runs at once build it once
if [[ ! -d $JARS ]]; then
  say "fetching the vendor's $WHAT (about half a minute; log $LOG)"
  rm -rf "$JARS.new"
  mvn -B -q -Dmaven.repo.local="$CACHE/maven" -DoutputDirectory="$JARS.new" -DincludeScope=runtime $COPY >"$LOG" 2>&1 ||
    { grep -m 3 ERROR "$LOG" >&2 || true; fail "the $WHAT cannot be downloaded: $LOG"; }
  (cd "$JARS.new" && sha256sum ./*.jar | sed 's| \./| |' | diff - "$HERE/$FOLDER/jars.sha256") >>"$LOG" ||
    { tail -n 5 "$LOG" >&2; say "other jars arrived than $FOLDER/jars.sha256 lists: $LOG"; exit 2; }
  mv "$JARS.new" "$JARS"
fi
if [[ ! -d $TARGET ]]; then
  say "building the program around the vendor's $WHAT (a few seconds; log $LOG)"
  rm -rf "$TARGET.new"
  mkdir "$TARGET.new"
  "$javac" -encoding UTF-8 -Xlint:unchecked,deprecation -cp "$JARS/*" -d "$TARGET.new/classes" "${SOURCES[@]}" >"$LOG" 2>&1 ||
    { grep -m 5 -A 3 -E 'error|warning' "$LOG" >&2 || true; say "the program does not compile: $LOG"; exit 2; }
  # the library's own configuration writes into a folder "logs" of the working directory
  cat >"$TARGET.new/log4j2.xml" <<END
<Configuration status="error"><Loggers><Root level="off"/></Loggers></Configuration>
END
  cat >"$TARGET.new/$NAME" <<END
#!/bin/sh
exec '$JAVA_HOME/bin/java' \${JAVA_OPTIONS--XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx256m} \\
  -Dlog4j.configurationFile='$TARGET/log4j2.xml' -cp '$TARGET/classes:$JARS/*' $MAIN "\$@"
END
  chmod +x "$TARGET.new/$NAME"
  mv "$TARGET.new" "$TARGET"
fi
printf '%s\n' "$TARGET/$NAME"
