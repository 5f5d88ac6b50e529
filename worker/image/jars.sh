#!/bin/bash
# jars.sh FOLDER: fetch the jars of the folder's pom.xml beside it, and compare them with its jars.sha256. Maven is
# installed where jars are not in the folder yet. What is not a jar is removed.
set -euo pipefail
cd "$1"
if ! ls ./*.jar >/dev/null 2>&1; then
  apt-get update
  apt-get install -y --no-install-recommends maven
  rm -rf /var/lib/apt/lists/*
  mvn -B -q org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies -DoutputDirectory="$PWD"
fi
sha256sum --check --quiet jars.sha256
find . -type f ! -name '*.jar' -delete
