#!/bin/bash
# spark-home.sh UV REQUIREMENTS...: install packages with PySpark into /opt/ots-tunnel, and make PySpark the folder
# /opt/spark, which Spark's own images have.
set -euo pipefail
uv=$1 lists=()
for list in "${@:2}"; do lists+=(-r "$list"); done
"$uv" venv --no-cache --quiet --python "$(command -v python3)" /opt/ots-tunnel
"$uv" pip install --no-cache --quiet --compile-bytecode --require-hashes --python /opt/ots-tunnel "${lists[@]}"
ln -s "$(/opt/ots-tunnel/bin/python -c 'import pyspark, os; print(os.path.dirname(pyspark.__file__))')" /opt/spark
# PySpark has itself in a zip file as well, which comes first for every interpreter that Spark starts, and is compiled
# each time: without it they take the compiled package.
rm /opt/spark/python/lib/*.zip
mkdir -p /opt/spark/work-dir /opt/spark/conf
chmod 775 /opt/spark/work-dir
