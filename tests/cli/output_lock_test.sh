#!/usr/bin/env bash
# One writer per output: each command that writes a file or a folder refuses one that another process writes, two runs at
# the same time leave the result of one of them, and what killed runs left is removed or moved back.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
rename_fault=$TARE_BUILD_DIR/tests/faults/rename.so
model=$glyphs/saved_model
data=$glyphs/calibration.tfrecord.gz
cd "$work" || exit 1
hidden() { find "$1" -mindepth 1 -name '.*'; }
"$tare" calibrate "$model" --data "$data" -o shared.calib --quiet --limit 8 || fail "calibrate"
for i in 0 1; do "$tare" calibrate "$model" --data "$data" -o part$i.calib --shard $i/2 --quiet || fail "shard $i"; done

# ---- refused while another process writes there ----

# holding LOCKFILE COMMAND…: runs the command while this shell holds the lock.
holding() {
    local lock=$1
    shift
    exec 9>"$lock"
    flock 9
    echo $$ >&9
    "$@"
    exec 9>&-
    rm -f "$lock"
}
busy() {
    holding "$2" expect 1 "output '$1' is being written by process $$ (wait for it, or choose another output)" "${@:3}"
    [ -e "$1" ] && [ "$1" != kept ] && fail "${*:4:2}: $1 was written although it was locked"
}
mkdir kept
busy q .q.lock "$tare" quantize "$model" q --method weight_only --quiet
busy t .t.lock "$tare" convert "$model" t --quiet
busy c .c.lock "$tare" copy "$model" c
busy s.calib .s.calib.lock "$tare" calibrate "$model" --data "$data" -o s.calib --quiet
busy m.calib .m.calib.lock "$tare" merge part0.calib part1.calib -o m.calib
busy kept kept/.tare.lock "$tare" run "$model" --data "$data" --output-dir kept --limit 2 --quiet
busy r.html .r.html.lock "$tare" compare "$model" --data "$data" --methods weight_only --report r.html --quiet
busy h.html .h.html.lock "$tare" show shared.calib --html h.html
busy d.tfrecord .d.tfrecord.lock "$tare" dataset make "$data" -o d.tfrecord --limit 2 --quiet
module=$source_dir/tests/golden/stablehlo/mlp.mlirbc
busy u .u.lock "$tare" unwrap "$module" u --quiet
busy p-00001-of-00002.tfrecord .p-00001-of-00002.tfrecord.lock "$tare" dataset split "$data" --parts 2 -o p --quiet
busy p-test.tfrecord.gz .p-test.tfrecord.gz.lock "$tare" dataset split "$data" --fraction 0.5 --names train,test -o p --gzip --quiet
[ -z "$(ls p-* 2>/dev/null)" ] || fail "dataset split: a part was locked, but others were written: $(ls p-*)"
mkdir models && cp -r "$model" models/glyphs
holding .jobs.state.lock expect 1 "output 'jobs.state' is being written by process $$" \
    "$tare" batch models --methods weight_only --output-dir done --state jobs.state --quiet
absent done/glyphs-weight_only
[ -z "$(ls -A jobs.state 2>/dev/null)" ] || fail "batch: the state was locked, but it was written: $(ls -A jobs.state)"
[ -z "$(hidden .)" ] || fail "left: $(hidden .)"
[ -z "$(ls -A kept)" ] || fail "a refused run left $(ls -A kept)"

# ---- long names ----

long=$(printf 'c%.0s' {1..210})
"$tare" calibrate "$model" --data "$data" -o "$long.calib" --limit 8 --quiet 2>e1 || fail "a long name: $(cat e1)"
"$tare" calibrate "$model" --data "$data" -o short.calib --limit 8 --quiet 2>e1 && cmp short.calib "$long.calib" || fail "a long name: $(cat e1)"
"$tare" dataset split "$data" --parts 2 -o "$long" --quiet 2>e1 && [ "$(ls "$long"-* | wc -l)" = 2 ] || fail "parts of a long name: $(cat e1)"
[ -z "$(hidden .)" ] || fail "left of long names: $(hidden .)"
rm -f "$long"* short.calib

# ---- two at the same time ----

"$tare" quantize "$model" one --method weight_only --quiet || fail "weight_only"
"$tare" quantize "$model" two --method static --calibration shared.calib --quiet || fail "static"
one=$(hash_of one) two=$(hash_of two)
for round in 1 2 3 4 5 6 7 8; do
    "$tare" quantize "$model" both --method weight_only --quiet --overwrite 2>e1 & first=$!
    "$tare" quantize "$model" both --method static --calibration shared.calib --quiet --overwrite 2>e2 & second=$!
    good=0
    wait $first && good=$((good + 1)) || grep -q "is being written by process $second" e1 || fail "the first failed: $(cat e1)"
    wait $second && good=$((good + 1)) || grep -q "is being written by process $first" e2 || fail "the second failed: $(cat e2)"
    [ $good -ge 1 ] || fail "round $round: neither run succeeded"
    now=$(hash_of both)
    [ "$now" = "$one" ] || [ "$now" = "$two" ] || fail "round $round: the output is neither model"
done
# the same for parts of a data set, an unwrapped module and the state of a batch: each is of one run, and a run that
# fails names the other one
race() { # NAME COMMAND_A COMMAND_B
    local name=$1 good=0 first second
    bash -c "$2" 2>e1 & first=$!
    bash -c "$3" 2>e2 & second=$!
    wait $first && good=$((good + 1)) || grep -qE "is being written by process [0-9]+ " e1 || fail "$name: the first failed: $(cat e1)"
    wait $second && good=$((good + 1)) || grep -qE "is being written by process [0-9]+ " e2 || fail "$name: the second failed: $(cat e2)"
    [ $good -ge 1 ] || fail "$name: neither run succeeded"
    [ -z "$(hidden .)" ] || fail "$name: left: $(hidden .)"
}
split() { echo "'$tare' dataset split '$data' --parts 2 --seed $1 -o $2 --quiet"; }
parts() { cat "$1"-0000?-of-00002.tfrecord | sha256sum; }
bash -c "$(split 1 s1)" && bash -c "$(split 2 s2)" || fail "dataset split"
s1=$(parts s1) s2=$(parts s2)
[ "$s1" != "$s2" ] || fail "both seeds give the same parts"
other=$source_dir/tests/golden/stablehlo/checks.mlirbc
"$tare" unwrap "$module" u1 --quiet && "$tare" unwrap "$other" u2 --quiet || fail "unwrap"
u1=$(hash_of u1) u2=$(hash_of u2)
for round in 1 2 3 4 5; do
    rm -rf both-* done jobs.state
    race "split, round $round" "$(split 1 both)" "$(split 2 both)"
    now=$(parts both)
    [ "$now" = "$s1" ] || [ "$now" = "$s2" ] || fail "split, round $round: the parts are of neither run"
    race "unwrap, round $round" "'$tare' unwrap '$module' ub --quiet --overwrite" "'$tare' unwrap '$other' ub --quiet --overwrite"
    now=$(hash_of ub)
    [ "$now" = "$u1" ] || [ "$now" = "$u2" ] || fail "unwrap, round $round: the output is neither model"
    batch="'$tare' batch models --methods weight_only --output-dir done --state jobs.state --resume --quiet >/dev/null"
    race "batch, round $round" "$batch" "$batch"
    [ "$(hash_of done/glyphs-weight_only)" = "$one" ] || fail "batch, round $round: the output is not whole"
done
# a calibration is locked from its beginning, with its state
for _ in 1 2 3 4 5; do # until it is stopped before its end
    "$tare" calibrate "$model" --data "$data" -o long.calib --quiet --threads 1 2>e1 & first=$!
    for _ in $(seq 2000); do
        [ ! -s .long.calib.lock ] && kill -0 $first 2>/dev/null || break
        sleep 0.01
    done
    kill -STOP $first 2>/dev/null && [ -s .long.calib.lock ] && break
    wait $first
done
if [ -s .long.calib.lock ]; then
    expect 1 "output 'long.calib' is being written by process $first" "$tare" calibrate "$model" --data "$data" -o long.calib --quiet
else
    fail "the calibration was too fast to be seen"
fi
kill -CONT $first
wait $first || fail "the first calibration failed: $(cat e1)"
[ -z "$(hidden .)" ] || fail "left: $(hidden .)"

# ---- without RENAME_EXCHANGE ----

without_exchange() { LD_PRELOAD="$rename_fault" "$tare" quantize "$model" "$1" --method weight_only --quiet --overwrite; }
if sanitized; then
    echo "note: the sanitizer's runtime does not allow another preloaded library"
else
    cp -r two moved
    without_exchange moved || fail "no exchange in steps"
    [ "$(hash_of moved)" = "$one" ] || fail "the exchange in steps wrote another model"
    [ -z "$(hidden .)" ] || fail "left: $(hidden .)"
    # killed before each of its renames: the next run finds the old model or the new one
    seen=
    for n in 1 2 3; do
        rm -rf moved && cp -r two moved
        (TARE_KILL_BEFORE_RENAME=$n without_exchange moved) 2>/dev/null
        [ $? -eq 137 ] || fail "rename $n: the process was not killed"
        [ -d moved ] || seen=$seen$n
        "$tare" copy "$model" moved 2>e1 && fail "rename $n: the old model is not there any more"
        grep -q "Output directory already exists" e1 || fail "rename $n: $(cat e1)"
        now=$(hash_of moved)
        [ "$now" = "$two" ] || { [ $n = 3 ] && [ "$now" = "$one" ]; } || fail "rename $n: neither the old model nor the new one"
        without_exchange moved || fail "after rename $n"
        [ "$(hash_of moved)" = "$one" ] || fail "after rename $n: not the new model"
        [ -z "$(hidden .)" ] || fail "rename $n left: $(hidden .)"
    done
    [ "$seen" = 2 ] || fail "the second rename was not the one with nothing in place: '$seen'"
fi

# ---- run: all files or none, and what killed runs left ----

run() { "$tare" run "$model" --data "$data" --output-dir "$@" --quiet; }
mkdir -p files/.x.npy.tmp-4194300-0 && echo keep >files/notes.txt && echo cut >files/.probabilities.rec7.npy.tmp-4194300-0
run files --limit 3 --per-record || fail "run --per-record"
[ -z "$(hidden files)" ] || fail "left of killed runs: $(hidden files)"
[ -f files/notes.txt ] || fail "a file of the user was removed"
count=$(ls files | grep -c 'rec[012].npy')
[ "$count" -ge 3 ] || fail "files of 3 records: $(ls files)"
"$tare" dataset make "$data" -o good.tfrecord --limit 5 --quiet || fail "dataset make"
head -c $(($(stat -c %s good.tfrecord) - 9)) good.tfrecord >cut.tfrecord
before=$(hash_of files)
expect 1 "cut.tfrecord" "$tare" run "$model" --data cut.tfrecord --output-dir files --per-record --quiet
[ "$(hash_of files)" = "$before" ] && [ -z "$(hidden files)" ] || fail "a failed run changed its folder: $(ls -A files)"
expect 1 "cut.tfrecord" "$tare" run "$model" --data cut.tfrecord --output-dir new/folder --quiet
absent new
name=probabilities.rec1.npy
mkdir -p blocked/"$name"
expect 1 "it is a folder" "$tare" run "$model" --data "$data" --limit 3 --output-dir blocked --per-record --quiet
[ "$(ls -A blocked)" = "$name" ] || fail "a failed run left files: $(ls -A blocked)"
finish
