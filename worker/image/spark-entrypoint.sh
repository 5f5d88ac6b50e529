#!/bin/bash
# Entry point that Spark on Kubernetes expects in an image and that the PySpark package does not contain. Spark starts
# the container with "driver ARGS" or "executor" and passes further settings in SPARK_* variables. The local image of
# tests/cluster also contains the spark-operator program, whose chart starts it with "controller ARGS" or
# "webhook ARGS". Any other command runs unchanged.
set -euo pipefail
case ${1:-} in
  driver)
    shift
    # client mode: the driver runs in this container
    exec tini -s -- "$0" submit --deploy-mode client \
      --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
      --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=$SPARK_DRIVER_BIND_ADDRESS" "$@" ;;
  submit)
    # SIGTERM goes to the program, a child of the JVM, which stops its query and then ends the JVM. The JVM would end at
    # once and take the query with it, so it gets the signal only while there is no program yet.
    shift
    "$SPARK_HOME/bin/spark-submit" "$@" &
    jvm=$!
    end() {
      asked=yes
      for process in /proc/[0-9]*; do
        if grep -qs "^PPid:[[:space:]]*$jvm\$" "$process/status" && grep -qsaF /opt/ots/ "$process/cmdline"; then
          kill -TERM "${process#/proc/}"
          return 0 # without a number it would be that of `wait`
        fi
      done
      kill -TERM "$jvm"
    }
    trap end TERM
    asked=yes
    while [[ -n $asked ]]; do
      # a signal ends `wait`, and not the JVM
      asked='' code=0
      wait "$jvm" || code=$?
    done
    exit "$code" ;;
  executor)
    options=()
    for ((i = 0; ; i++)); do
      name=SPARK_JAVA_OPT_$i
      [[ -v $name ]] || break
      options+=("${!name}")
    done
    exec tini -s -- java "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
      -cp "${SPARK_CONF_DIR:-$SPARK_HOME/conf}:$SPARK_HOME/jars/*" \
      org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
      --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
      --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
      --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME" ;;
  controller | webhook | version) exec tini -s -- spark-operator "$@" ;;
  *) exec tini -s -- "$@" ;;
esac
