#!/usr/bin/env bash
# The developers' scripts on small trees of their own: format.sh sees changed files only, coverage-sum.sh adds up by module,
# stages.sh lists times, cross-arm64.sh is skipped without packages, the mutants of mutate.sh are of lines that are there; the presets are read by cmake, and every file that CONTRIBUTING.md names is there.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
scripts=$TARE_SOURCE_DIR/scripts

if command -v git >/dev/null && command -v clang-format >/dev/null; then
    mkdir "$work/tree" && cd "$work/tree" || exit 1
    cp "$TARE_SOURCE_DIR/.clang-format" .
    printf 'int  old( void );\n' >old.c
    printf 'int first;  /* a */\nint second; /* b */\nint third;\n' >a.c
    git init -q -b main . && git add -A && git -c user.name=a -c user.email=a@b commit -qm first
    bash "$scripts/format.sh" >"$work/out" || fail "format.sh complains of nothing: $(cat "$work/out")"
    # The comment of the line before moves with the changed one.
    printf 'int first;  /* a */\nint   changed ; /* b */\nint third;\n' >a.c
    printf 'int  new;\n' >new.c
    bash "$scripts/format.sh" >"$work/out" && fail "format.sh passes a line with three blanks"
    grep -q '^+int changed; /\* b' "$work/out" || fail "format.sh does not show the line: $(cat "$work/out")"
    bash "$scripts/format.sh" --fix || fail "format.sh --fix: $?"
    [ "$(cat a.c)" = "$(printf 'int first;   /* a */\nint changed; /* b */\nint third;')" ] || fail "format.sh --fix made: $(cat a.c)"
    [ "$(cat new.c)" = 'int new;' ] || fail "format.sh --fix leaves a new file: $(cat new.c)"
    [ "$(cat old.c)" = 'int  old( void );' ] || fail "format.sh --fix made: $(cat old.c)"
    git add new.c
    bash "$scripts/format.sh" --all 2>"$work/out" && fail "format.sh --all passes an old file with two spaces"
    bash "$scripts/format.sh" --all --fix && bash "$scripts/format.sh" --all || fail "format.sh --all --fix: $(cat a.c)"
    [ "$(cat old.c)" = 'int old(void);' ] || fail "format.sh --all --fix made: $(cat old.c)"
else
    echo "no git or clang-format: format.sh is not tried"
fi

if command -v gcov >/dev/null && command -v gcc >/dev/null; then
    mkdir -p "$work/cover/base" "$work/cover/calib" "$work/cover/build/tare_all.dir" && cd "$work/cover" || exit 1
    printf 'int twice(int x);\nint twice(int x) {\n    if (x > 5)\n        return 0;\n    return 2 * x;\n}\n' >base/a.c
    printf 'int twice(int x);\nint main(void) {\n    return twice(3) != 6;\n}\n' >calib/b.c
    for name in base/a calib/b; do gcc --coverage -O0 -c "$PWD/$name.c" -o "build/tare_all.dir/${name#*/}.o" || fail "gcc: $?"; done
    gcc --coverage build/tare_all.dir/*.o -o program && ./program || fail "the program: $?"
    bash "$scripts/coverage-sum.sh" build . >"$work/out" || fail "coverage-sum.sh: $?"
    diff <(printf '%-10s %6s %% of %6d lines\n' base 75.0 4 calib 100.0 2 all 83.3 6) "$work/out" >"$work/diff" || fail "coverage: $(cat "$work/diff")"
    # The same compiled from the build folder, as Ninja does: names are relative to it.
    rm -r build/tare_all.dir program && mkdir build/tare_all.dir && cd build || exit 1
    for name in base/a calib/b; do gcc --coverage -O0 -c "../$name.c" -o "tare_all.dir/${name#*/}.o" || fail "gcc: $?"; done
    gcc --coverage tare_all.dir/*.o -o program && ./program || fail "the program: $?"
    cd .. || exit 1
    bash "$scripts/coverage-sum.sh" build . >"$work/out" || fail "coverage-sum.sh of relative names: $?"
    grep -qE '^all +83.3 % of +6 lines' "$work/out" || fail "relative names: $(cat "$work/out")"
    mkdir "$work/empty"
    bash "$scripts/coverage-sum.sh" "$work/empty" . >"$work/out" 2>&1 && fail "coverage of nothing passes"
fi

cd "$TARE_SOURCE_DIR" || exit 1
# Each row of tests/tiers.txt is a test; a nightly one has paths that exist.
ctest --test-dir "$TARE_BUILD_DIR" -N | sed -nE 's/^ +Test +#[0-9]+: //p' >"$work/tests"
while read -r seconds tier name paths; do
    grep -qxF "$name" "$work/tests" || fail "tests/tiers.txt: no test '$name'"
    [ "$tier" != nightly ] || [ -n "$paths" ] || fail "tests/tiers.txt: $name has no paths"
    set -f
    for path in $paths; do [ -n "$(git ls-files -- "$path" 2>/dev/null)" ] || [ ! -e .git ] || fail "tests/tiers.txt: $name: no file '$path'"; done
    set +f
done < <(grep '^[0-9]' tests/tiers.txt)
[ "$(bash scripts/nightly.sh --list | wc -l)" -ge 8 ] || fail "nightly.sh --list: $(bash scripts/nightly.sh --list)"
printf '<testsuite><testcase name="a/b"><skipped/><system-out>one\nskipped: no data\n</system-out></testcase><testcase name="c"/></testsuite>' >"$work/tests.xml"
[ "$(python3 scripts/list-skips.py "$work/tests.xml")" = 'a/b: skipped: no data' ] || fail "list-skips.py: $(python3 scripts/list-skips.py "$work/tests.xml")"

# Under pipefail a pipe into `grep -q` is sometimes false although the text is there: grep leaves, and SIGPIPE ends the writer.
grep -nE '[^|]\| *grep -[a-zA-Z]*q' $(grep -l pipefail tests/*/*.sh scripts/*.sh bench/*.sh) >"$work/piped"
[ ! -s "$work/piped" ] || fail "a pipe into grep -q under pipefail (write grep -q ... <<<\"\$(...)\"): $(cat "$work/piped")"
# The smoke test installs only what install-deps.sh installs (libc6-dev comes with the other -dev packages).
sed -n '/--dev \]/q;/packages+\?=(/,/^)/p' scripts/install-deps.sh | sed '/packages+\?=(/d;/^)/d;s/#.*//' | tr -s ' ' '\n' | grep . >"$work/packages"
sed -nE 's/.*apt-get install -y -qq --no-install-recommends ([a-z].*) >.*/\1/p' scripts/smoke-test.sh | tr ' ' '\n' | grep -vx libc6-dev >"$work/installed"
[ "$(wc -l <"$work/packages")" -ge 20 ] && [ "$(wc -l <"$work/installed")" -ge 4 ] || fail "packages: $(cat "$work/packages" "$work/installed")"
grep -vxFf "$work/packages" "$work/installed" >"$work/others" && fail "smoke-test.sh installs what install-deps.sh does not: $(cat "$work/others")"
# demo.sh prints every command whole, so that it can be pasted, and ends with the comparison of the converted model.
(eval "$(sed -n '/^show() {/,/^}/p; /^run() {/,/^}/p; /^run_to() {/,/^}/p' scripts/demo.sh)"
 run printf '%s|' "it's" 'a b' x=1 && echo && run_to "$work/to" echo kept) >"$work/out"
line=$(head -1 "$work/out")
[ "$(eval "${line#\$ }")" = "it's|a b|x=1|" ] || fail "the printed command is not the one that runs: $line"
[ "$(sed -n 3p "$work/out")" = "\$ echo kept > $work/to" ] && [ "$(cat "$work/to")" = kept ] || fail "run_to: $(cat "$work/out")"
grep -E '^ *(build/tare|\$tare) ' scripts/demo.sh | grep -v '^  \$tare' >"$work/silent" && fail "demo.sh runs commands without printing them: $(cat "$work/silent")"
grep -q ' compare .* --with ' <<<"$(grep '^run ' scripts/demo.sh | tail -1)" || fail "demo.sh does not end with a comparison of the converted model"
# stages.sh lists each stage with its time, passes variables and options on, and the first stage that fails ends the script; one that
# was skipped does not.
cat >"$work/staged.sh" <<'STAGED'
set -euo pipefail
. "$1/stages.sh"
A=x stage "first one" sh -c 'echo "$A $1"' sh "b c"
stage absent sh -c 'exit 77'
stage second sh -c 'sleep 1; exit 3'
stage third true
STAGED
bash "$work/staged.sh" "$scripts" >"$work/out" 2>"$work/listed" && fail "a failed stage passes"
status=$?
[ $status -eq 3 ] && [ "$(cat "$work/out")" = "x b c" ] || fail "stages: status $status, $(cat "$work/out")"
grep -qxE ' +[01] s  first one' "$work/listed" && grep -qxE ' +[01] s  absent: skipped' "$work/listed" && grep -qxE ' +[1-9] s  second: failed' "$work/listed" && [ "$(wc -l <"$work/listed")" -eq 3 ] || fail "stages: $(cat "$work/listed")"
# cross-arm64.sh is skipped where apt reaches no packages, and fails where a download breaks off.
mkdir -p "$work/cross/scripts" "$work/cross/build" "$work/tools"
cp "$scripts"/{cross-arm64,arm64-root,tests}.sh "$work/cross/scripts"
for tool in aarch64-linux-gnu-gcc qemu-aarch64-static; do ln -s /bin/true "$work/tools/$tool"; done
ln -s /bin/true "$work/cross/build/tare"
printf '#!/bin/sh\ncase " $* " in *" update "*) exit $UPDATE ;; *) exit 100 ;; esac\n' >"$work/tools/apt-get"
chmod +x "$work/tools/apt-get"
UPDATE=100 PATH=$work/tools:$PATH "$work/cross/scripts/cross-arm64.sh" >"$work/out" 2>&1
status=$?
if [ "$(uname -m)" = x86_64 ]; then
    [ $status -eq 77 ] && [ "$(cat "$work/out")" = "arm64: skipped, apt has no package lists of arm64" ] || fail "without packages: status $status, $(cat "$work/out")"
    UPDATE=0 PATH=$work/tools:$PATH "$work/cross/scripts/cross-arm64.sh" >"$work/out" 2>&1 && fail "a download that breaks off passes"
    [ ! -e "$work/cross/build-arm64/root/complete" ] || fail "a download that broke off counts as complete"
fi
# Each mutant of mutate.sh changes a line that is there.
bash "$scripts/mutate.sh" --check 2>"$work/out" || fail "mutate.sh --check: $(cat "$work/out")"
mkdir -p "$work/mutants/scripts" && ln -s "$TARE_SOURCE_DIR"/{base,calib,convert,datasets,eval,interpreter,quant,tpu} "$work/mutants"
sed 's/% 31 == 0 |/% 32 == 0 |/' "$scripts/mutate.sh" >"$work/mutants/scripts/mutate.sh"
bash "$work/mutants/scripts/mutate.sh" --check 2>"$work/out" && fail "mutate.sh --check passes a line that is not there"
grep -qxF "zlib-header: '&& (head[0] << 8 | head[1]) % 32 == 0' occurs not exactly once in datasets/stream.c" "$work/out" || fail "mutate.sh --check: $(cat "$work/out")"
for preset in release sanitize coverage threads fuzz; do
    grep -q "\"$preset\"" <<<"$(cmake --list-presets=configure 2>&1)" || fail "cmake does not list the preset $preset: $(cmake --list-presets 2>&1)"
done
grep -oE '`[a-z_.]+/[a-zA-Z_./-]*`' CONTRIBUTING.md | tr -d '`' | sort -u >"$work/paths"
[ "$(wc -l <"$work/paths")" -ge 15 ] || fail "CONTRIBUTING.md names $(wc -l <"$work/paths") paths (expected 15 or more)"
while read -r path; do [ -e "$path" ] || [ "$path" = module/file.h ] || fail "CONTRIBUTING.md names $path, which is not there"; done <"$work/paths"
finish
