#!/usr/bin/env bash
# Outputs and log files apart from what a command reads, and from each other: refused before anything is opened, by whatever path.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
cd "$work" || exit 1
data=$glyphs/calibration.tfrecord.gz
cp -r "$glyphs/saved_model" m
"$tare" dataset make "$data" -o d.tfrecord --limit 4 --quiet || fail "dataset make"
"$tare" run m --data d.tfrecord --output-dir arrays --quiet || fail "run"
array=$(ls arrays/*.npy | head -1)
"$tare" calibrate m --data d.tfrecord -o k.calib --quiet 2>/dev/null || fail "calibrate"
"$tare" quantize m q --method weight_only --quiet || fail "quantize"
"$tare" compare m --data d.tfrecord --methods weight_only --write-recipe w.recipe --quiet >/dev/null || fail "compare"
"$tare" dataset info d.tfrecord --draft-spec sp.spec --quiet >/dev/null 2>&1 || fail "dataset info"
ln -s m/variables inner
before=$(hash_of .)

# refused FILE STATUS TEXT COMMAND…: with this text, and no file is made, changed or appended to
refused() {
    expect "$1" "$2" "$tare" "${@:3}"
    rm -f stdout stderr
    [ "$(hash_of .)" = "$before" ] || fail "${*:3}: changed: $(find . -newer inner -type f | head -5)"
}
weights=variables/variables.data-00000-of-00001
inside() { refused 1 "the output '$1' is inside the input '$2' (choose another folder)" "${@:3}"; }
same() { refused 1 "the output '$1' is the input '$1' (choose another file)" "${@:2}"; }

inside q/$weights q inspect q --log-file q/$weights
inside q/new.log q inspect q --log-file q/new.log
inside inner/variables.index m inspect m --log-file inner/variables.index
inside q/$weights q validate q --log-file q/$weights
inside q/$weights q diff m q --log-file q/$weights
inside m/saved_model.pb m run m --data d.tfrecord --log-file m/saved_model.pb
inside q/saved_model.pb q compare m --with q --data d.tfrecord --log-file q/saved_model.pb
inside "$array" arrays diff arrays arrays --log-file "$array"
for file in saved_model.pb variables/variables.index; do
    inside m/$file m calibrate m --data d.tfrecord -o m/$file
done
inside m/saved_model.pb m dataset info d.tfrecord --model m --draft-spec m/saved_model.pb
inside m/saved_model.pb m export m m/saved_model.pb
inside m/saved_model.pb m export m e.mlirbc --weights m/saved_model.pb
inside m/saved_model.pb m compare m --data d.tfrecord --write-recipe m/saved_model.pb
inside m/saved_model.pb m compare m --data d.tfrecord --node-data m/saved_model.pb
inside arrays/a.log arrays diff arrays arrays --log-file arrays/a.log
inside "$array" arrays diff arrays arrays --report "$array"
refused 1 "the output '$array' is the input '$array' (choose another file)" run m --input image="$array" --output-dir arrays
inside "$array" arrays run m --data arrays --output-dir arrays
same sp.spec calibrate m --data d.tfrecord --spec sp.spec -o sp.spec
same sp.spec dataset make d.tfrecord --spec sp.spec -o sp.spec
same w.recipe compare m --data d.tfrecord --recipe w.recipe --write-recipe w.recipe
same w.recipe quantize m new --method weight_only --recipe w.recipe --write-recipe w.recipe
same k.calib merge k.calib -o k.calib
same d.tfrecord show k.calib d.tfrecord --report d.tfrecord
# of a model that the command does not read
for file in m/saved_model.pb inner/variables.index; do
    model=$PWD/m
    part() { refused 1 "the output '$file' is a part of the SavedModel '$model' (choose another file)" "$@"; }
    part dataset make d.tfrecord -o $file
    part dataset info d.tfrecord --draft-spec $file
    part dataset info d.tfrecord --log-file $file
    part merge k.calib -o $file
done

# ---- files that no option names ----

pair() { refused 2 "$1 (expected a file of its own)" "${@:2}"; }
pair "--log-file l.calib.state is also a file of --output" calibrate m --data d.tfrecord -o l.calib --log-file l.calib.state
pair "--log-file ./l.calib.state is also a file of --output" calibrate m --data d.tfrecord -o "$PWD/l.calib" --log-file ./l.calib.state
pair "--log-file arrays/test_out.npy is inside --output-dir" run m --data d.tfrecord --output-dir arrays --log-file arrays/test_out.npy
pair "--log-file sp-00000-of-00002.tfrecord is also a file of --output" dataset split d.tfrecord --parts 2 -o sp --log-file sp-00000-of-00002.tfrecord
for name in au au/; do
    for file in au.html au.recipe au.spec; do
        pair "--log-file $file is also a file of OUT" auto m $name --data d.tfrecord --log-file $file
    done
done
echo mine >au.html
ln -s k2.calib link
ln -s rep.html page.html
before=$(hash_of .)
pair "--log-file au.html is also a file of OUT" auto m au --data d.tfrecord --log-file au.html
pair "--log-file link is also --output" calibrate m --data d.tfrecord -o k2.calib --log-file link
pair "--node-data page.html is also --report" compare m --data d.tfrecord --report rep.html --node-data page.html

# a name that only begins like an output is not one of its files
"$tare" calibrate m --data d.tfrecord -o l.calib --quiet --log-file l.calib.log 2>/dev/null || fail "a log next to the output"
[ -s l.calib ] && [ -s l.calib.log ] || fail "a log next to the output: $(ls)"

# a new file in a folder of data or models
mkdir photos models
cp d.tfrecord photos/
cp -r m models/m
(cd photos && "$tare" calibrate ../m --data . -o new.calib --quiet 2>/dev/null) || fail "a calibration next to the data"
(cd models && "$tare" batch . --output-dir ../out --methods weight_only --report new.html --quiet >/dev/null 2>&1) || fail "a report next to the models"
[ -s photos/new.calib ] && [ -s models/new.html ] || fail "new files: $(ls photos models)"
finish
