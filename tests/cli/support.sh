# Helpers of the command line tests: source it. TARE_PROGRAM and TARE_SOURCE_DIR come from CTest.
tare=$TARE_PROGRAM
PATH=$(dirname "$tare"):$PATH # as installed: suggestions name the program "tare"
source_dir=$TARE_SOURCE_DIR
glyphs=$source_dir/examples/glyphs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT # also in a child that gets a signal before it has become its program: kill what is ready
failures=0

# skip REASON: ends the test without a result; CTest prints the reason with --output-on-failure or -V.
skip() { echo "skipped: $*"; exit 77; }
# need_data PATH…: test data that is not in the repository, below $test_data; the test is skipped where one is absent.
test_data=${TARE_TEST_DATA:-${TARE_TEST_DATA_DEFAULT:-}}
need_data() {
    local path
    for path in "$@"; do
        [ -e "$test_data/$path" ] || skip "no $path in ${test_data:-the default folder of test data}; set TARE_TEST_DATA to a folder of test data (see CONTRIBUTING.md)"
    done
}

# Can this machine open a pseudo terminal? (A chroot without devpts cannot.)
have_pty() { command -v script >/dev/null && script -qec true /dev/null </dev/null >/dev/null 2>&1; }

fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

# expect STATUS TEXT COMMAND...: exit status, and one line on stderr that begins with "tare: " and holds TEXT.
expect() {
    local want_status=$1 want_text=$2 status=0
    shift 2
    "$@" >"$work/stdout" 2>"$work/stderr" || status=$?
    [ "$status" -eq "$want_status" ] || fail "$*: exit status $status (expected $want_status): $(cat "$work/stderr")"
    grep -qF -- "$want_text" "$work/stderr" || fail "$*: no '$want_text' in: $(cat "$work/stderr")"
    [ "$(wc -l <"$work/stderr")" -eq 1 ] || fail "$*: more than one line: $(cat "$work/stderr")"
    grep -q '^tare: ' "$work/stderr" || fail "$*: does not begin with 'tare: ': $(cat "$work/stderr")"
}

# Is the program built with AddressSanitizer, which keeps memory of its own? No pipe into grep -q: it leaves at the first match,
# and under pipefail the writer's SIGPIPE makes of that a "no" now and then.
sanitized() { grep -q libasan <<<"$(ldd "$tare")"; }

# same_output NAME COMMAND…: what the command prints, standard output before standard error, is that of tests/cli/outputs/NAME.txt,
# where folders of this machine are WORK and SOURCE. TARE_SET_OUTPUTS=1 writes the files anew: look at their difference then.
same_output() {
    local file=$source_dir/tests/cli/outputs/$1.txt status=0
    shift
    "$@" >"$work/stdout" 2>"$work/stderr" || status=$?
    { cat "$work/stdout" "$work/stderr"; [ "$status" -eq 0 ] || echo "exit status $status"; } |
        sed "s|$work|WORK|g; s|$source_dir|SOURCE|g; s|next: [^ ]*/tare |next: tare |; s|'[^ ']*/tare |'tare |g" >"$work/output"
    if [ -n "${TARE_SET_OUTPUTS:-}" ]; then cp "$work/output" "$file"; fi
    diff "$file" "$work/output" >"$work/difference" || fail "$*: $(cat "$work/difference")"
}

absent() { [ ! -e "$1" ] || fail "$1 was left behind"; }

# ready PID: waits until the process has become its program and has installed its signal handlers (it catches SIGTERM, as the shell
# does before), at most 60 s. False if it ended.
ready() {
    local mask
    for _ in $(seq 6000); do
        mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
        [ -n "$mask" ] || return 1
        [ $((0x$mask & 0x4000)) -eq 0 ] || [ "/proc/$1/exe" -ef "/proc/$$/exe" ] || return 0
        sleep 0.01
    done
    return 1
}

# processes_end TEXT: waits until no process has TEXT in its command line, at most 60 s. Processes that a killed one had started
# end a moment after it, and until then they finish the system call that they are in.
processes_end() {
    for _ in $(seq 6000); do
        grep -alF -- "$1" /proc/[0-9]*/cmdline >/dev/null 2>&1 || return 0
        sleep 0.01
    done
    fail "processes of '$1' go on"
}

# hash_of FOLDER: of its files, but for the one that depends on the place of the folder: the path of the model it was made from.
hash_of() { (cd "$1" && find . -type f ! -name tare_made_from -print0 | sort -z | xargs -0 sha256sum | sha256sum); }

finish() {
    if [ "$failures" -eq 0 ]; then echo "1 passed, 0 failed"; else echo "0 passed, $failures failed"; exit 1; fi
}
