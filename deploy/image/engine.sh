# What the scripts of this folder share: words, and the program that builds and runs images.

say() { printf '%s\n' "$*"; }

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# Prints the engine: that of the variable ENGINE, or the first one that is here and works.
find_engine() {
    if [ -n "${ENGINE:-}" ]; then
        command -v "$ENGINE" >/dev/null || fail "$ENGINE was not found"
        say "$ENGINE"
        return
    fi
    for candidate in docker podman buildah; do
        # Docker's client may be here without its server.
        if command -v "$candidate" >/dev/null && "$candidate" info >/dev/null 2>&1; then
            say "$candidate"
            return
        fi
    done
    fail "no docker, podman or buildah works here: install one of them, or start Docker's server"
}

has_image() {
    case $ENGINE in
        buildah) buildah inspect --type image "$1" >/dev/null 2>&1 ;;
        *) "$ENGINE" image inspect "$1" >/dev/null 2>&1 ;;
    esac
}

# import_base TAR NAME
import_base() {
    case $ENGINE in
        buildah)
            container=$(buildah from scratch)
            buildah add --quiet "$container" "$1" / >/dev/null
            buildah config --cmd bash "$container"
            buildah commit --quiet --rm "$container" "$2" >/dev/null
            ;;
        *) "$ENGINE" import --change 'CMD ["bash"]' "$1" "$2" >/dev/null ;;
    esac
}

# Prints the size of an image in megabytes.
size_of() {
    case $ENGINE in
        buildah) buildah images --format '{{.Size}}' "$1" | head -n 1 ;;
        *) say "$(($("$ENGINE" image inspect --format '{{.Size}}' "$1") / 1000000)) MB" ;;
    esac
}

# prepare_containers NAME: sees to it that podman can start a container of this image. On a kernel with both versions of
# cgroups, its usual runtime starts none, but runc does; and where limits may not be raised, podman's defaults are too high.
prepare_containers() {
    if [ "$ENGINE" != podman ] || podman run --rm --no-healthcheck --network none --entrypoint true "$1" >/dev/null 2>&1; then return; fi
    mkdir -p build
    {
        say '[containers]'
        say "default_ulimits = [\"nofile=$(ulimit -n):$(ulimit -n)\", \"nproc=8192:8192\"]"
        if command -v runc >/dev/null; then say '[engine]' && say 'runtime = "runc"'; fi
    } >build/containers.conf
    export CONTAINERS_CONF="$PWD/build/containers.conf"
    podman run --rm --no-healthcheck --network none --entrypoint true "$1" >/dev/null || fail "podman starts no containers here"
}
