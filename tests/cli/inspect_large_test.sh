# What inspect, validate and copy hold of a model that is nearly all graph: at most 3 times saved_model.pb and 64 MiB, in every form.
. "$(dirname "$0")/support.sh"
make=$TARE_TEST_HELPERS/graph_model
peak=$TARE_TEST_HELPERS/peak

sanitized && skip "AddressSanitizer uses memory of its own"

# measure MODEL COMMAND...: tare COMMAND... succeeds and holds the bar.
measure() {
    local model=$1 size kib limit
    shift
    "$peak" "$work/peak" "$tare" "$@" >"$work/stdout" 2>"$work/stderr" || fail "$*: $(cat "$work/stderr")"
    size=$(stat -c %s "$model/saved_model.pb")
    read -r kib _ <"$work/peak"
    limit=$((3 * size / 1024 + 65536))
    [ "$kib" -le "$limit" ] || fail "$*: $kib KiB for $((size / 1024)) KiB (expected at most $limit)"
}

within() {
    local model=$1
    shift
    measure "$model" inspect "$model" "$@"
    [ -s "$work/stdout" ] || fail "inspect $(basename "$model") $*: nothing on stdout"
}

# model KIND NODES NAMES: 20 MB of it and more, or hundreds of thousands of nodes
model() {
    "$make" "$1" "$work/$1_$3" "$2" "$3" >/dev/null || fail "graph_model $*"
}
model main 110000 long
model main 320000 short
model function 110000 long
model function 320000 short
model functions 110000 long
model functions 320000 short
model captures 300000 long
model captures 300000 short
for name in main_long main_short function_long function_short functions_long functions_short captures_long captures_short; do
    [ "$(stat -c %s "$work/$name/saved_model.pb")" -gt 9000000 ] || fail "$name is too small to say anything"
    within "$work/$name"
    within "$work/$name" --functions --ops --variables
    within "$work/$name" --suggest
    within "$work/$name" --json --functions
    case $name in main*) within "$work/$name" --json --graph graph ;; *) within "$work/$name" --graph __inference_body_0 ;; esac
    measure "$work/$name" validate "$work/$name"
    measure "$work/$name" copy "$work/$name" "$work/copy"
    cmp -s "$work/$name/saved_model.pb" "$work/copy/saved_model.pb" || fail "copy $name: other bytes"
    rm -r "${work:?}/$name" "$work/copy"
done
finish
