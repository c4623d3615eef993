#!/bin/sh
# Builds the image with docker, podman or buildah, and prints its size: build.sh [NAME]
# ENGINE is the program to build with; by default the first that works. SOURCE is the address of the source code in a label.
set -eu
cd "$(dirname "$0")/../.."
. deploy/image/engine.sh

name=${1:-group-coordinator}
ENGINE=$(find_engine)
export ENGINE
base=$(sed -n 's/^FROM \([^ ]*\) AS runtime$/\1/p' deploy/Dockerfile)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
revision=$(git rev-parse HEAD 2>/dev/null) || revision=unknown
[ -z "$(git status --porcelain 2>/dev/null)" ] || revision="$revision-dirty"
begin=$(date +%s)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Settings of pip in variables, as a file: a secret, unlike a build argument, does not stay in the image's history.
pip_settings() {
    if env | grep -q '^PIP_\(INDEX_URL\|EXTRA_INDEX_URL\|TRUSTED_HOST\)='; then
        say '[global]'
        env | sed -n 's/^PIP_\(INDEX_URL\|EXTRA_INDEX_URL\|TRUSTED_HOST\)=/\1 = /p' | sed 's/^INDEX_URL/index-url/; s/^EXTRA_INDEX_URL/extra-index-url/; s/^TRUSTED_HOST/trusted-host/'
    else
        for file in "${PIP_CONFIG_FILE:-}" "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf" /etc/pip.conf; do
            if [ -f "$file" ]; then cat "$file"; return; fi
        done
    fi
}

# secret ID FILE...: the first of these files, if there is one, is that secret of the build.
secret() {
    id=$1
    shift
    for file in "$@"; do
        if [ -s "$file" ]; then options="$options --secret id=$id,src=$file"; return; fi
    done
}

options=
pip_settings >"$scratch/pip.conf"
secret pip.conf "$scratch/pip.conf"
secret ivysettings.xml "${GROUP_COORDINATOR_IVY_SETTINGS:-}"
secret ca-certificates "${SSL_CERT_FILE:-}" /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt
secret java-certificates /etc/ssl/certs/java/cacerts /etc/pki/java/cacerts
for proxy in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    if env | grep -q "^$proxy="; then options="$options --build-arg $proxy"; fi
done
# Without a runtime for containers, and inside of one, only chroot works. Only Docker's format has a health check.
[ "$ENGINE" = docker ] || options="$options --isolation chroot --format docker --layers"

has_image "$base" || "$ENGINE" pull --quiet "$base" >/dev/null 2>&1 || deploy/image/base.sh "$base"
# shellcheck disable=SC2086
DOCKER_BUILDKIT=1 "$ENGINE" build $options --file deploy/Dockerfile --tag "$name" --tag "$name:$version" \
    --build-arg VERSION="$version" --build-arg REVISION="$revision" --build-arg SOURCE="${SOURCE:-unknown}" .
say "$name:$version: $(size_of "$name"), built with $ENGINE in $(($(date +%s) - begin)) s"
