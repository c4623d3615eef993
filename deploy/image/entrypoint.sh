#!/bin/sh
# The first program of every container: the command line with the container's arguments.
#
# Spark on Kubernetes starts the pods that it makes with the word `driver` or `executor`, and with variables.
set -eu
spark=$(echo /opt/group-coordinator/lib/python3*/site-packages/pyspark)
jars="$(echo "$GROUP_COORDINATOR_CACHE"/jars-*/connector)/*:$(echo "$GROUP_COORDINATOR_CACHE"/jars-*/s3a)/*"
jars="$jars:$(echo "$GROUP_COORDINATOR_CACHE"/store-files-*.jar)"

case ${1:-} in
    driver)
        shift
        set -- "$spark/bin/spark-submit" --deploy-mode client --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
            --conf "spark.driver.extraClassPath=$jars" "$@"
        ;;
    executor)
        set --
        while option=$(printenv "SPARK_JAVA_OPT_$#"); do set -- "$@" "$option"; done
        set -- java "$@" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
            -cp "${SPARK_CLASSPATH:-}:${SPARK_EXTRA_CLASSPATH:-}:$spark/jars/*:$jars" \
            org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
            --driver-url "$SPARK_DRIVER_URL" --app-id "$SPARK_APPLICATION_ID" --executor-id "$SPARK_EXECUTOR_ID" \
            --cores "$SPARK_EXECUTOR_CORES" --hostname "$SPARK_EXECUTOR_POD_IP" --podName "$SPARK_EXECUTOR_POD_NAME" \
            --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID"
        ;;
    *)
        set -- group-coordinator "$@"
        ;;
esac
# It passes SIGTERM on, and reaps the orphans of killed processes.
exec tini -s -- "$@"
