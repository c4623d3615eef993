#!/bin/sh
# Makes the image's base with debootstrap, from Debian's packages, where no registry of images can be reached: base.sh NAME
# Needs root. DEBIAN_MIRROR is the address of another mirror than debootstrap's own.
set -eu
cd "$(dirname "$0")"
. ./engine.sh

name=$1
suite=bookworm
for program in debootstrap tar; do
    command -v "$program" >/dev/null || fail "$name cannot be pulled, and is not made here without $program: install $program"
done
[ "$(id -u)" = 0 ] || fail "$name cannot be pulled, and only root can make it with debootstrap"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
say "$name cannot be pulled: making it from Debian's packages with debootstrap, which takes a minute or two"
debootstrap --variant=minbase "$suite" "$folder/root" ${DEBIAN_MIRROR:-} >"$folder/log" 2>&1 || {
    tail -n 5 "$folder/log" >&2
    fail "debootstrap has failed"
}
# As in the image of this name: security updates, and no caches, manuals and translations.
sed -n "s|^deb \(.*\)/debian $suite main.*|&\ndeb \1/debian $suite-updates main\ndeb \1/debian-security $suite-security main|p" \
    "$folder/root/etc/apt/sources.list" >"$folder/sources"
cp "$folder/sources" "$folder/root/etc/apt/sources.list"
rm -rf "$folder/root/var/cache/apt/archives" "$folder/root/var/lib/apt/lists" "$folder/root/var/log"/*.log
rm -rf "$folder/root/usr/share/doc" "$folder/root/usr/share/man" "$folder/root/usr/share/locale"
mkdir -p "$folder/root/var/cache/apt/archives/partial" "$folder/root/var/lib/apt/lists/partial"
tar -C "$folder/root" -cf "$folder/base.tar" .
import_base "$folder/base.tar" "$name"
