#!/usr/bin/env bash
# check-docker.sh [FOLDER]: tries the Dockerfile. With a Docker daemon it builds the image and runs the example in it. Without one
# it runs the commands of both stages, read from the Dockerfile, each on a bare Debian 12 that debootstrap makes below FOLDER
# (default: a temporary folder, removed at the end), and the example as the Dockerfile's user. Prints the size as registries have it,
# compressed, which must be at most 80 MB.
# Needs root for the second way, and a Debian mirror.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
step() { printf '== %s\n' "$*"; }
wrong() { echo "check-docker: $*" >&2; exit 1; }
limit=80000000
check_size() {
    echo "check-docker: the example runs; the image has $1 bytes, compressed"
    [ "$1" -le $limit ] || wrong "the image has $1 bytes, compressed (expected at most $limit)"
}
example='cp -r /examples/glyphs . && tare calibrate glyphs/saved_model --data glyphs/calibration.tfrecord.gz -o g.calib --quiet &&
tare convert glyphs/saved_model tpu --calibration g.calib --quiet >/dev/null && tare validate tpu && test "$(id -u)" != 0'

if docker info >/dev/null 2>&1; then
    docker build -t tare-check "$root"
    docker run --rm -v "$root/examples:/examples:ro" --entrypoint sh tare-check -ec "$example"
    size=$(docker image save tare-check | gzip | wc -c)
    docker image rm tare-check >/dev/null
    check_size "$size"
    exit
fi
[ "$(id -u)" -eq 0 ] || { echo "check-docker: no Docker daemon, and debootstrap needs root" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "check-docker: neither a Docker daemon nor debootstrap is there" >&2; exit 2; }
folder=${1:-}
ours=no
[ -n "$folder" ] || { folder=$(mktemp -d); ours=yes; }
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
clean() {
    for stage in build run; do
        for mount in packages examples dev proc; do
            ! mountpoint -q "$folder/$stage/$mount" || umount "$folder/$stage/$mount"
        done
    done
    [ $ours = no ] || rm -rf --one-file-system "$folder"
}
trap clean EXIT

# instructions NUMBER WORD: what follows the word in the stage of this number, lines joined.
instructions() {
    sed -e ':a' -e '/\\$/N; s/\\\n */ /; ta' "$root/Dockerfile" | awk -v stage="$1" -v word="$2" '
        $1 == "FROM" { n++ } n == stage && $1 == word { $1 = ""; sub(/^ /, ""); print }'
}
inside() {
    local stage=$1
    shift
    chroot "$folder/$stage" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}
# run STAGE NUMBER: the RUN instructions; mounts are those that this script makes.
run() {
    instructions "$2" RUN | sed -E 's/^(--mount=[^ ]+ +)+//' | while read -r command; do
        step "$command"
        inside "$1" sh -ec "$command" </dev/null >"$folder/log" 2>&1 || wrong "$(tail -5 "$folder/log")"
    done
}
for stage in build run; do
    [ -x "$folder/$stage/bin/sh" ] || { step "a bare Debian 12"; debootstrap --variant=minbase bookworm "$folder/$stage" >/dev/null; }
    mount -t proc proc "$folder/$stage/proc"
    mount --bind /dev "$folder/$stage/dev"
done
git -C "$root" archive --prefix=source/ HEAD | tar -x -C "$folder/build"
run build 1
# The slim image: without documents, and dpkg installs none.
printf 'path-exclude=/usr/share/%s/*\n' doc groff info linda lintian locale man >"$folder/run/etc/dpkg/dpkg.cfg.d/docker"
rm -rf "$folder"/run/usr/share/{doc,groff,info,linda,lintian,locale,man}/*
mkdir -p "$folder"/run/{packages,examples}
mount --bind "$folder/build/packages" "$folder/run/packages"
mount --bind "$root/examples" "$folder/run/examples"
run run 2
size=$(tar --one-file-system -c -C "$folder/run" --exclude=./packages --exclude=./var/cache/apt . | gzip | wc -c)
inside run su "$(instructions 2 USER)" -s /bin/sh -c "cd $(instructions 2 WORKDIR) && $example" || wrong "the example does not run"
check_size "$size"
