#!/usr/bin/env bash
# smoke-test.sh PACKAGE.deb [FOLDER]: installs the package on a bare Debian 12 (made in FOLDER by debootstrap, or one that is there
# already), does the main job, builds and runs the example as its documents say, purges it, and looks for what it left behind. A
# package python3-tare next to it is tried with its tutorial.
# Needs root and a Debian mirror. Removes the folder at the end unless it was there before.
set -euo pipefail
package=${1:?usage: scripts/smoke-test.sh PACKAGE.deb [FOLDER]}
folder=${2:-}
[ "$(id -u)" -eq 0 ] || { echo "smoke-test: needs root, for chroot" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "smoke-test: debootstrap is not installed (apt-get install debootstrap)" >&2; exit 2; }
ours=no
if [ -z "$folder" ]; then
    folder=$(mktemp -d)
    ours=yes
fi
folder=$(cd "$folder" && pwd)

clean() {
    for mount in dev/pts dev proc; do
        mountpoint -q "$folder/$mount" && umount "$folder/$mount"
    done
    [ $ours = no ] || { ! mountpoint -q "$folder/proc" && rm -rf --one-file-system "$folder"; }
}
trap clean EXIT
step() { printf '== %s\n' "$*"; }
wrong() { echo "smoke-test: $*" >&2; exit 1; }
inside() { chroot "$folder" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }

[ -x "$folder/bin/sh" ] || { step "a bare Debian 12"; debootstrap --variant=minbase bookworm "$folder" >/dev/null; }
mount -t proc proc "$folder/proc"
mount --bind /dev "$folder/dev"
mount -t devpts devpts "$folder/dev/pts"
inside apt-get update -qq

step "install"
cp "$package" "$folder/root/tare.deb"
inside apt-get install -y -qq --no-install-recommends /root/tare.deb >/dev/null 2>"$folder/root/apt.log" || wrong "$(cat "$folder/root/apt.log")"
inside dpkg -L tare >"$folder/root/files"
inside tare version

step "the main job"
glyphs=/usr/share/doc/tare/examples/glyphs
inside sh -ec "cd /root
    tare inspect $glyphs/saved_model | head -3
    tare calibrate $glyphs/saved_model --data $glyphs/calibration.tfrecord.gz -o glyphs.calib
    tare compare $glyphs/saved_model --calibration glyphs.calib --eval $glyphs/eval.tfrecord.gz --depthwise
    tare convert --input_model_dir=$glyphs/saved_model --output_model_dir=tpu --calibration glyphs.calib --quiet \
        --converter_options_string='tpu_functions { function_alias: \"tpu_func\" } external_feature_configs { quantization_options { } }' | head -5
    tare validate tpu
    tare run tpu --data $glyphs/eval.tfrecord.gz --limit 3 --output-dir answers"
[ -s "$folder/root/answers/probabilities.npy" ] || wrong "the converted model gave no answers"

step "the example"
inside apt-get install -y -qq --no-install-recommends gcc libc6-dev pkg-config cmake ninja-build python3-numpy >/dev/null 2>&1
inside sh -ec "cd /root && cp -r /usr/share/doc/tare/examples . && cd examples/c
    cc convert.c \$(pkg-config --cflags --libs tare) -o convert
    ./convert ../glyphs/saved_model ../glyphs/calibration.tfrecord.gz /root/by_c >/root/report.json
    cmake -G Ninja -S . -B build >/dev/null && cmake --build build >/dev/null && ./build/convert 2>&1 | grep usage
    tare validate /root/by_c"

step "docs/custom-ops.md, by copy and paste"
cp "$(dirname "${BASH_SOURCE[0]}")/run-page.py" "$folder/root/"
inside sh -ec "rm -rf /root/page && mkdir /root/page && cd /root/page && python3 ../run-page.py /usr/share/doc/tare/docs/custom-ops.md --skip my_model"

for python in "$(dirname "$package")"/python3-tare_*.deb; do
    [ -e "$python" ] || continue
    step "the Python package"
    cp "$python" "$folder/root/python3-tare.deb"
    inside apt-get install -y -qq --no-install-recommends /root/python3-tare.deb >/dev/null 2>"$folder/root/apt.log" || wrong "$(cat "$folder/root/apt.log")"
    inside dpkg -L python3-tare >>"$folder/root/files"
    inside sh -ec "mkdir /root/python && cd /root/python && ln -s /usr/share/doc/tare/examples examples
        python3 /usr/share/doc/python3-tare/examples/tutorial.py"
    inside apt-get purge -y -qq python3-tare >/dev/null 2>&1
    inside python3 -c 'import tare' 2>/dev/null && wrong "the Python package is still there"
done

step "purge"
inside apt-get purge -y -qq tare >/dev/null 2>&1
while read -r file; do
    [ ! -d "$folder/$file" ] && [ ! -e "$folder/$file" ] && [ ! -L "$folder/$file" ] && continue
    [ -d "$folder/$file" ] && case $file in *tare*) ;; *) continue ;; esac # folders of others
    wrong "purging leaves $file"
done <"$folder/root/files"
left=$(find "$folder/usr" "$folder/etc" "$folder/var/lib" -path "$folder/var/lib/apt" -prune -o -name '*tare*' -newer "$folder/root/tare.deb" -print)
[ -z "$left" ] || wrong "purging leaves $left"
inside sh -c 'command -v tare' && wrong "tare is still there"
echo "$(basename "$package"): installs, works and goes on a bare Debian $(cat "$folder/etc/debian_version")"
