#!/bin/sh
# Runs the image without a network and with a read-only root: a broker, the job and the gateway in one container; commits an
# offset, shuts down, and prints how long the start has taken: try.sh [NAME]
set -eu
cd "$(dirname "$0")/../.."
. deploy/image/engine.sh

name=${1:-group-coordinator}
limit=300
ENGINE=$(find_engine)
if [ "$ENGINE" = buildah ]; then
    say "not tried: buildah runs no containers in the background; install podman or docker"
    exit 0
fi
prepare_containers "$name"

begin=$(date +%s)
container=$("$ENGINE" run --detach --no-healthcheck --network none --read-only --tmpfs /tmp:exec,mode=1777 "$name" \
    run --embedded --embedded-port 9092 --gateway --checkpoint /checkpoint/coordinator)
trap '"$ENGINE" rm --force --volumes "$container" >/dev/null' EXIT

until "$ENGINE" logs "$container" 2>&1 | grep -q '^ready'; do
    if [ $(($(date +%s) - begin)) -gt $limit ] || [ "$("$ENGINE" inspect --format '{{.State.Running}}' "$container")" != true ]; then
        "$ENGINE" logs "$container" >&2
        fail "the container is not ready after $limit s, or has ended"
    fi
    sleep 0.5
done
say "ready after $(($(date +%s) - begin)) s, without a network"
"$ENGINE" exec "$container" group-coordinator offsets commit tried group-directory:0=0 --execute -b 127.0.0.1:9092
"$ENGINE" stop --time 60 "$container" >/dev/null
[ "$("$ENGINE" inspect --format '{{.State.ExitCode}}' "$container")" = 0 ] || fail "the container did not end in order"
