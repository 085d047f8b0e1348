#!/usr/bin/env bash
# docs/custom-ops.md does what it says: its C listings become files, its console commands are run and must print what the
# page shows, and "<!-- test: … -->" lines make the arrays that a reader brings along.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
document=$source_dir/docs/custom-ops.md
command -v cc >/dev/null && command -v pkg-config >/dev/null || skip "no cc or pkg-config"
cmake --install "$TARE_BUILD_DIR" --prefix "$work/prefix" >/dev/null || fail "cmake --install"
export PATH=$work/prefix/bin:$TARE_TEST_HELPERS:$PATH
PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name tare.pc)")
export PKG_CONFIG_PATH
mkdir "$work/walk" && cd "$work/walk" || exit 1

commands=0 listings=0
run() { # COMMAND EXPECTED: output, both streams together
    local got
    got=$(eval "$1" 2>&1)
    commands=$((commands + 1))
    [ "$got" = "$2" ] || fail "line $line: $1"$'\n'"  printed: $got"$'\n'"  expected:  $2"
}
block='' line=0 command='' expected='' file=''
flush() { [ -n "$command" ] && run "$command" "${expected%$'\n'}"; command='' expected=''; }
while IFS= read -r text; do
    line=$((line + 1))
    case $block in
    '')
        case $text in
        '```c') block=c file='' ;;
        '```console') block=console ;;
        '```'?*) block=other ;;
        '```') block=other ;;
        '<!-- test: '*' -->')
            text=${text#<!-- test: }
            eval "${text% -->}" || fail "line $line: $text"
            ;;
        esac
        ;;
    *)
        if [ "$text" = '```' ]; then
            flush
            block=''
        elif [ "$block" = c ]; then
            if [ -z "$file" ]; then
                file=${text#/\* }
                file=${file%% *}
                : >"$file"
                listings=$((listings + 1))
            fi
            printf '%s\n' "$text" >>"$file"
        elif [ "$block" = console ]; then
            case $text in
            '$ '*) flush; command=${text#\$ } ;;
            *) expected+=$text$'\n' ;;
            esac
        fi
        ;;
    esac
done <"$document"
[ $commands -ge 25 ] || fail "$commands commands were run (expected 25 at least: is the page read?)"
[ $listings -ge 7 ] || fail "$listings listings were read (expected 7 at least)"

# What the page does not show: the listings have no warnings, in C and as C++ where they are both.
for file in *.c; do
    cc -std=c11 -Wall -Wextra -Werror -shared -fPIC "$file" -o checked.so $(pkg-config --cflags tare) || fail "$file has warnings"
done
if command -v c++ >/dev/null; then
    for file in zero_out.c vector_only.c polymorphic.c real.c lists.c; do
        c++ -x c++ -std=c++11 -Wall -Wextra -Werror -shared -fPIC "$file" -o checked.so $(pkg-config --cflags tare) || fail "$file as C++"
    done
    cp checked.so lists_cc.so
    run 'tare run sums --plugin ./lists_cc.so --input in_0=x.npy --input in_1=x.npy --input in_2=x.npy' 'out int32[2,2] 15 12 9 6'
fi

# Other commands take the library too.
"$tare" inspect model --plugin ./threads.so >out 2>&1 || fail "inspect: $(cat out)"
grep -q "interpreter lacks" out && fail "inspect does not see the library's op: $(cat out)"
"$tare" validate model --plugin ./threads.so >out 2>&1 || fail "validate: $(cat out)"
for model in model undefined; do
    if [ $model = undefined ]; then # without the definition that the model brings: its first mention is the op list's
        mkdir undefined && perl -0777 -pe 's/ZeroOut/ZeroAll/' model/saved_model.pb >undefined/saved_model.pb
        cp -r model/variables undefined/
    fi
    expect 1 "$model: 1 violation (expected none)" "$tare" validate $model
    [ "$(cat "$work/stdout")" = "graph/ZeroOut (ZeroOut): unknown op" ] || fail "validate $model: $(cat "$work/stdout")"
    expect 1 "$model: 1 op cannot be run; load it with --plugin LIB.so: ZeroOut: used by ZeroOut" \
        "$tare" run $model --input to_zero=x.npy
    run "tare run $model --plugin ./threads.so --input to_zero=x.npy" 'zeroed int32[2,2] 5 0 0 0'
done
cd "$work" || exit 1
finish
