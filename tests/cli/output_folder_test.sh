#!/usr/bin/env bash
# Output folders: what may be replaced, what is refused, mount points, leftovers of killed runs, links and devices in models.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
model=$glyphs/saved_model
quantize() { "$tare" quantize "$1" "$2" --method weight_only --quiet "${@:3}"; }
entries() { find "$1" -mindepth 1 -maxdepth 1 | wc -l; }

# the output is the input, contains it or is inside it: refused, with --overwrite too, through links too
cp -r "$model" "$work/m"
mkdir -p "$work/d"
cp -r "$model" "$work/d/m"
ln -s "$work/d" "$work/link_to_d"
ln -s "$work/m" "$work/link_to_m"
before=$(hash_of "$work/d") before_m=$(hash_of "$work/m")
expect 1 "contains the input" quantize "$work/d/m" "$work/d" --overwrite
expect 1 "contains the input" quantize "$work/d/m" "$work/link_to_d" --overwrite
expect 1 "is the input" quantize "$work/m" "$work/m" --overwrite
expect 1 "is the input" quantize "$work/m" "$work/link_to_m" --overwrite
expect 1 "is the input" quantize "$work/link_to_m" "$work/m" --overwrite
expect 1 "is inside the input" quantize "$work/m" "$work/m/variables/out"
expect 1 "is inside the input" "$tare" copy "$work/m" "$work/m/copy"
expect 1 "contains the input" "$tare" convert --input_model_dir "$work/d/m" --output_model_dir "$work/d" --overwrite --quiet
[ "$(hash_of "$work/d")" = "$before" ] || fail "a refused output changed the folder around the input"
[ "$(hash_of "$work/m")" = "$before_m" ] || fail "a refused output changed the input"

# a folder with anything else in it is not overwritten
mkdir "$work/mine"
echo keep >"$work/mine/notes.txt"
expect 1 "contains 'notes.txt', which is not part of a SavedModel" quantize "$model" "$work/mine" --overwrite
expect 1 "Output directory already exists" quantize "$model" "$work/mine"
[ "$(cat "$work/mine/notes.txt")" = keep ] || fail "a file of the user was removed"

# nor one with a hidden file, although its name is like those of a lock or of a temporary file
for name in .secret.lock .mine.tmp-1-0 .mine.old-1-0 .tare.lock.mine; do
    mkdir "$work/hidden"
    echo keep >"$work/hidden/$name"
    expect 1 "Output directory already exists" quantize "$model" "$work/hidden"
    expect 1 "contains '$name', which is not part of a SavedModel" quantize "$model" "$work/hidden" --overwrite
    [ "$(cat "$work/hidden/$name")" = keep ] || fail "$name was removed"
    rm -r "$work/hidden"
done

# an empty folder is accepted and keeps its mode; a model is replaced with --overwrite only
mkdir -m 750 "$work/empty"
quantize "$model" "$work/empty" || fail "an empty folder was refused"
[ "$(stat -c %a "$work/empty")" = 750 ] || fail "the mode of the empty folder changed: $(stat -c %a "$work/empty")"
"$tare" validate "$work/empty" >/dev/null || fail "the model in the empty folder is not valid"
want=$(hash_of "$work/empty")
expect 1 "Output directory already exists" quantize "$model" "$work/empty"
cp -r "$model" "$work/old"
quantize "$model" "$work/old" --overwrite || fail "a model was not overwritten"
[ "$(hash_of "$work/old")" = "$want" ] || fail "overwriting gives other bytes"

# a link to a folder stays a link, its target is replaced
mkdir "$work/target"
ln -s "$work/target" "$work/link"
quantize "$model" "$work/link" || fail "a link to an empty folder was refused"
[ -L "$work/link" ] && [ "$(hash_of "$work/target")" = "$want" ] || fail "the target of the link was not written"

# a mount point: empty, then with a model in it
cat >"$work/mounted.sh" <<'EOF'
set -e
mkdir -p "$2/mnt" "$2/behind"
mount --bind "$2/behind" "$2/mnt"
"$1" quantize "$3" "$2/mnt" --method weight_only --quiet
"$1" quantize "$3" "$2/mnt" --method weight_only --quiet --overwrite
EOF
if unshare -m true 2>/dev/null; then
    unshare -m bash "$work/mounted.sh" "$tare" "$work" "$model" || fail "a mount point was refused"
    [ "$(hash_of "$work/behind")" = "$want" ] || fail "the model in the mount point differs"
    [ "$(find "$work/behind" -name '.*' -mindepth 1 | wc -l)" = 0 ] || fail "something hidden is left in the mount point"
    # as a container has them: the input is mounted read-only, and the output is a mount point
    cat >"$work/container.sh" <<'EOF'
set -e
mkdir -p "$2/container/input" "$2/container/output" "$2/converted"
mount --bind "$3" "$2/container/input"
mount -o remount,ro,bind "$2/container/input"
mount --bind "$2/converted" "$2/container/output"
"$1" convert \
    --input_model_dir="$2/container/input" \
    --output_model_dir="$2/container/output" \
    --converter_options_string='
    tpu_functions {
      function_alias: "tpu_func"
    }
    batch_options {
      num_batch_threads: 2
      max_batch_size: 8
      batch_timeout_micros: 5000
      allowed_batch_sizes: 2
      allowed_batch_sizes: 4
      allowed_batch_sizes: 8
      max_enqueued_batches: 10
    }
'
EOF
    unshare -m bash "$work/container.sh" "$tare" "$work" "$glyphs/saved_model" >"$work/text" 2>&1 ||
        fail "a container's mounts: $(tail -1 "$work/text")"
    "$tare" validate "$work/converted" >"$work/text" 2>&1 || fail "a container's output: $(head -1 "$work/text")"
else
    echo "note: no mount namespaces here; the mount point was not tried"
fi

# leftovers of dead processes are removed, those of a live one and what merely has such a name are not
mkdir -p "$work/l/.out.tmp-4194300-0/variables" "$work/l/.out.tmp-$$-0" "$work/l/.out.tmp-x-0" "$work/l/.other.tmp-4194300-0"
quantize "$model" "$work/l/out" || fail "quantize beside leftovers"
absent "$work/l/.out.tmp-4194300-0"
for kept in ".out.tmp-$$-0" .out.tmp-x-0 .other.tmp-4194300-0; do
    [ -d "$work/l/$kept" ] || fail "$kept was removed"
done

# killed at any time: the old model or the new one, and nothing left after the next run
mkdir "$work/k"
cp -r "$model" "$work/k/out"
old=$(hash_of "$work/k/out")
for wait in 0 0.005 0.01 0.02 0.03 0.05 0.08; do
    "$tare" quantize "$model" "$work/k/out" --method weight_only --quiet --overwrite &
    sleep "$wait"
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
    now=$(hash_of "$work/k/out")
    [ "$now" = "$old" ] || [ "$now" = "$want" ] || fail "killed after $wait s: neither the old model nor the new one"
done
quantize "$model" "$work/k/out" --overwrite || fail "quantize after kills"
[ "$(entries "$work/k")" = 1 ] || fail "left after kills: $(ls -A "$work/k")"

# a quantized model that is larger than its input, and MetaGraphs that were not written, are reported
cp -r "$model" "$work/two"
sed 's/\x05serve/\x05other/' "$model/saved_model.pb" >>"$work/two/saved_model.pb"
quantize "$work/two" "$work/one" 2>"$work/warnings" || fail "a model of two MetaGraphs: $(cat "$work/warnings")"
grep -q 'warning: .*two has the MetaGraphs {serve}, {other}; only {serve} was written' "$work/warnings" || fail "no warning of the second MetaGraph: $(cat "$work/warnings")"
grep -q 'more than its input' "$work/warnings" && fail "a smaller model is called larger: $(cat "$work/warnings")"

# only regular files and folders inside the model are read
hostile() { rm -rf "$work/h" "$work/hout"; cp -r "$model" "$work/h"; mkdir -p "$work/h/assets.extra" "$work/h/assets"; }
refuse() {
    expect 1 "$1" timeout 60 "$tare" "$2" "$work/h" "$work/hout" "${@:3}"
    absent "$work/hout"
}
hostile
ln -s /etc/passwd "$work/h/assets.extra/pw"
refuse "assets.extra/pw' is a link that leaves the folder" copy
refuse "assets.extra/pw' is a link that leaves the folder" quantize --method weight_only --quiet
hostile
mkfifo "$work/h/assets.extra/pipe"
refuse "assets.extra/pipe' is neither a regular file nor a folder" copy
hostile
rm "$work/h/saved_model.pb"
mkfifo "$work/h/saved_model.pb"
refuse "saved_model.pb' is neither a regular file nor a folder" quantize --method weight_only
hostile
ln -sf /dev/zero "$work/h/variables/variables.data-00000-of-00001"
refuse "is a link that leaves the folder" quantize --method weight_only
hostile
mkdir -p "$work/h/assets.extra/a"
for i in $(seq 28); do ln -s .. "$work/h/assets.extra/a/$i"; done
refuse "is a link to a folder, inside a folder reached by a link" copy
hostile
echo words >"$work/h/assets.extra/vocabulary"
ln -s vocabulary "$work/h/assets.extra/same"
"$tare" copy "$work/h" "$work/hout" || fail "a link inside the model was refused"
[ -f "$work/hout/assets.extra/same" ] && [ ! -L "$work/hout/assets.extra/same" ] || fail "a link was not resolved"
finish
