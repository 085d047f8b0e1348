#!/usr/bin/env bash
# check-tarball.sh FILE.tar.gz: unpacks the release's tarball and does the main job with its program, which may need nothing of
# the system but the C library. Says what is wrong and exits with 1.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tarball=${1:?usage: scripts/check-tarball.sh FILE.tar.gz}
glyphs=$root/examples/glyphs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong() { echo "$tarball: $*" >&2; exit 1; }

tar -xzf "$tarball" -C "$work" --strip-components=1
tare=$work/bin/tare
[ -x "$tare" ] || wrong "lacks bin/tare"
outside=$(ldd "$tare" | awk '$2 == "=>" { print $1, $3 }' | grep -v " $work/" | grep -vE '^(libc|libm|libdl|libpthread)\.so' || true)
[ -z "$outside" ] || wrong "its program needs $outside of the system"
# Ubuntu 22.04 has glibc 2.35.
mapfile -t libraries < <(find "$work/lib" -name '*.so*' -type f)
newest=$(objdump -T "$tare" "${libraries[@]}" | grep -oE 'GLIBC_[0-9.]+' | cut -d_ -f2 | sort -V | tail -1)
[ "$(printf '%s\n2.35\n' "$newest" | sort -V | tail -1)" = 2.35 ] || wrong "needs glibc $newest (expected 2.35 or older)"
"$tare" quantize "$glyphs/saved_model" "$work/out" --data "$glyphs/calibration.tfrecord.gz" --quiet
"$tare" run "$work/out" --data "$glyphs/eval.tfrecord.gz" --limit 10 --output-dir "$work/answers" >/dev/null
[ -s "$work/answers/probabilities.npy" ] || wrong "the quantized model gave no answers"
[ -s "$work/share/man/man1/tare.1.gz" ] || wrong "lacks its manual page"
echo "$(basename "$tarball"): works (needs glibc $newest)"
