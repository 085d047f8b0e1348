#!/usr/bin/env bash
# libtare as it is installed: exported names, each header on its own, and the example built against the installed library.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
prefix=$work/prefix

cmake --build "$TARE_BUILD_DIR" --target tare_shared tare_static pages >"$work/log" 2>&1 || fail "build: $(tail -3 "$work/log")"
cmake --install "$TARE_BUILD_DIR" --prefix "$prefix" --component tare >/dev/null || fail "install: $?"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig:$prefix/lib/$(gcc -print-multiarch)/pkgconfig
libdir=$(pkg-config --variable=libdir tare) || fail "pkg-config does not find tare"
export LD_LIBRARY_PATH=$libdir

# ---- names: both libraries export what the headers declare and nothing else ----
headers=$(ls "$prefix"/include/tare/*.h | grep -v '/op\.h$')
sed -nE 's/^TARE_API .*[ *](tare_[a-z_0-9]+)\(.*/\1/p' $headers | sort >"$work/declared"
[ "$(wc -l <"$work/declared")" -ge 45 ] || fail "only $(wc -l <"$work/declared") functions are declared"
nm -D --defined-only "$libdir/libtare.so" | awk '{ print $3 }' | grep -vE '^(__asan|__odr_asan|__ubsan|_init$|_fini$)' | sort >"$work/exported"
diff "$work/declared" "$work/exported" >"$work/diff" || fail "libtare.so exports other names than the headers declare: $(cat "$work/diff")"
nm -g --defined-only "$libdir/libtare.a" | awk 'NF == 3 { print $3 }' | grep -vE '^__(asan|odr_asan|ubsan)' | sort >"$work/static"
diff "$work/declared" "$work/static" >"$work/diff" || fail "libtare.a defines other names than the headers declare: $(cat "$work/diff")"
version=$("$tare" version | sed 's/tare //')
grep -q "SONAME.*\[libtare\.so\.${version%.*}\]" <<<"$(readelf -d "$libdir/libtare.so")" || fail "soname: $(readelf -d "$libdir/libtare.so" | grep SONAME)"
[ "$(pkg-config --modversion tare)" = "$version" ] || fail "tare.pc is of $(pkg-config --modversion tare), the program of $version"

# ---- every header on its own, strictly, in C and where there is a compiler in C++ ----
for header in "$prefix"/include/tare/*.h; do
    printf '#include <tare/%s>\nint main(void) { return 0; }\n' "$(basename "$header")" >"$work/header.c"
    cc -std=c11 -pedantic -Wall -Wextra -Werror -fsyntax-only $(pkg-config --cflags tare) "$work/header.c" 2>"$work/log" ||
        fail "$header: $(cat "$work/log")"
    command -v g++ >/dev/null || continue
    cp "$work/header.c" "$work/header.cc"
    g++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only $(pkg-config --cflags tare) "$work/header.cc" 2>"$work/log" ||
        fail "$header in C++: $(cat "$work/log")"
done
printf '#include <tare/tare.h>\n#include <tare/op.h>\n' >"$work/both.c"
cc -std=c11 -fsyntax-only $(pkg-config --cflags tare) "$work/both.c" || fail "tare.h and op.h cannot be included together"

# ---- the C example: by pkg-config, with the static library, by CMake ----
check_c() { # NAME
    "$work/$1" "$glyphs/saved_model" "$glyphs/calibration.tfrecord.gz" "$work/$1.out" >"$work/$1.json" 2>"$work/$1.err" ||
        fail "$1: $(cat "$work/$1.err")"
    grep -q '300 records; first output' "$work/$1.err" || fail "$1: unexpected output: $(cat "$work/$1.err")"
    grep -q '"tpu_cost"' "$work/$1.json" || fail "$1: no report"
    grep -q TPUPartitionedCall "$work/$1.out/saved_model.pb" || fail "$1: no function is on the TPU"
    "$tare" validate "$work/$1.out" >/dev/null || fail "$1: the model is not valid"
}
if ! sanitized; then
    cc -std=c11 -Wall -Wextra -Werror "$source_dir/examples/c/convert.c" $(pkg-config --cflags --libs tare) -o "$work/shared" &&
        check_c shared || fail "the example does not build by pkg-config"
    grep -qE 'NEEDED.*(protobuf|jansson)' <<<"$(readelf -d "$work/shared")" && fail "the example is linked with libraries that it does not use"
    cc -std=c11 "$source_dir/examples/c/convert.c" $(pkg-config --cflags tare) "$libdir/libtare.a" \
        $(pkg-config --static --libs tare | sed 's/-ltare\b//') -o "$work/static_example" && check_c static_example ||
        fail "the example does not build with libtare.a"
    grep -q 'NEEDED.*libtare' <<<"$(readelf -d "$work/static_example")" && fail "the static example needs libtare.so"
    cmake -G Ninja -S "$source_dir/examples/c" -B "$work/by_cmake" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 &&
        cmake --build "$work/by_cmake" >>"$work/log" 2>&1 || fail "find_package: $(tail -5 "$work/log")"
    cp "$work/by_cmake/convert" "$work/cmake_example"
    check_c cmake_example
    cmp -s "$work/shared.out/saved_model.pb" "$work/static_example.out/saved_model.pb" || fail "the static library writes a different model"
    "$work/shared" /nowhere x "$work/none" >/dev/null 2>"$work/err" && fail "a missing model is accepted"
    grep -q '^convert: /nowhere' "$work/err" || fail "a missing model: $(cat "$work/err")"

    # ---- docs/library.md: its commands, both packages of CMake, and its example ----
    block() { awk -v n="$1" '/^```/ { open = !open; if (open) k++; next } open && k == n' "$source_dir/docs/library.md"; }
    mkdir -p "$work/page" && cd "$work/page" || exit 1
    cp "$source_dir/examples/c/convert.c" .
    block 1 >commands
    [ "$(grep -c '^cc convert.c' commands)" = 2 ] || fail "docs/library.md has other commands: $(cat commands)"
    awk '/^cc / && NR > 1 { exit } { print }' commands >shared_command
    awk '/^cc / && NR > 1 { second = 1 } second { print }' commands >static_command
    for form in shared static; do
        rm -f convert
        . "./${form}_command" 2>log && cp convert "$work/page_$form" && check_c "page_$form" || fail "the command of docs/library.md ($form): $(cat log)"
    done
    grep -q 'NEEDED.*libtare' <<<"$(readelf -d convert)" && fail "the static command of docs/library.md links libtare.so"
    cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(page C)
find_package(tare 0.1 REQUIRED)
add_executable(by_static convert.c)
target_link_libraries(by_static PRIVATE tare::static)
CMAKE
    cmake -G Ninja -S . -B by_cmake -DCMAKE_PREFIX_PATH="$prefix" >log 2>&1 && cmake --build by_cmake >>log 2>&1 || fail "tare::static: $(tail -5 log)"
    cp by_cmake/by_static "$work/cmake_static" && check_c cmake_static
    {
        printf '#include <stdio.h>\n#include <tare/tare.h>\nint main(void) {\nconst char *options = "tpu_functions { function_alias: \\"tpu_func\\" }";\n'
        block 2
        printf 'return 0;\n}\n'
    } >example.c
    cc -std=c11 -Wall -Wextra -Werror example.c $(pkg-config --cflags --libs tare) -o example 2>log || fail "the example of docs/library.md: $(cat log)"
    cp -r "$glyphs/saved_model" my_model && cp "$glyphs/calibration.tfrecord.gz" samples.tfrecord.gz
    ./example >out && [ ! -s out ] || fail "the example of docs/library.md: $(cat out)"
    cmp -s my_tpu_model/saved_model.pb "$work/shared.out/saved_model.pb" || fail "the example of docs/library.md writes a different model"
fi

finish
