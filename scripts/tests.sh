# Sourced by scripts that run tests.

# run_tests BUILD OPTION…: tests of a build folder, the longest first, then those that were skipped, with the reasons.
run_tests() {
    local build=$1 status=0
    shift
    ctest --test-dir "$build" --output-on-failure -j "$(nproc)" --output-junit tests.xml "$@" || status=$?
    python3 "$root/scripts/list-skips.py" "$build/tests.xml" || status=1
    return $status
}

# configure FOLDER OPTION…: a build folder in the tree, with ccache where it is installed.
configure() {
    local build=$root/$1 launcher=()
    shift
    ! command -v ccache >/dev/null || launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
    cmake -S "$root" -B "$build" -G Ninja "${launcher[@]}" "$@" >/dev/null
}

sanitized=(-DTARE_SANITIZE=ON -DTARE_ARENA_DEBUG=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo)
export UBSAN_OPTIONS=print_stacktrace=1
