#!/usr/bin/env bash
# The structure of the source tree: includes point downward, no folder holds more files than a reader can survey, and
# the top level holds only the files that a reader expects there.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
command -v python3 >/dev/null && command -v git >/dev/null || skip "needs python3 and git"
git -C "$TARE_SOURCE_DIR" rev-parse --git-dir >/dev/null 2>&1 || skip "the source tree is not a git checkout"

python3 "$TARE_SOURCE_DIR/scripts/check-includes.py" "$TARE_SOURCE_DIR" >"$work/found" || fail "includes: $(cat "$work/found")"

# The check finds an include that points upward, between modules and between the folders of base/.
mkdir -p "$work/tree/low" "$work/tree/high" "$work/tree/base/tensor"
echo 'tare_module(low)' >"$work/tree/low/CMakeLists.txt"
echo 'tare_module(high DEPENDS low base)' >"$work/tree/high/CMakeLists.txt"
echo 'tare_module(base)' >"$work/tree/base/CMakeLists.txt"
echo '#include "low/a.h"' >"$work/tree/high/b.c"
echo '#include "high/b.h"' >"$work/tree/low/a.c"
echo '#include "base/tensor/t.h"' >"$work/tree/base/f.c"
git -C "$work/tree" init -q && git -C "$work/tree" add .
python3 "$TARE_SOURCE_DIR/scripts/check-includes.py" "$work/tree" >"$work/found" && fail "upward includes are accepted"
cat >"$work/expected" <<'EXPECTED'
base/f.c:1: includes base/tensor/t.h: base/ may not include base/tensor/
low/a.c:1: includes high/b.h: low does not depend on high
EXPECTED
diff "$work/expected" <(sort "$work/found") || fail "upward includes: the lines differ"

# No call has two arguments that add to a graph: their order is the compiler's.
python3 "$TARE_SOURCE_DIR/scripts/check-order.py" "$TARE_SOURCE_DIR" >"$work/found" || fail "open order of evaluation: $(cat "$work/found")"
mkdir -p "$work/order/quant"
cat >"$work/order/quant/a.c" <<'SOURCE'
/* one(g) two(g) */
static int one(void *g) {
    return tare_graph_add(g, "op, (", "name") != 0;
}
int two(void *g) {
    return one(g) + sizeof(one(g));
}
static int none(void *g) {
    return g != 0;
}
static void calls(void *g, int a, int b) {
    calls(g, one(g), none(g));
    calls(g, none(g), a ? one(g) : two(g));
    calls(g,
          1 + one(g), (int)two(g));
    a = one(g), b = two(g);
}
SOURCE
git -C "$work/order" init -q && git -C "$work/order" add .
python3 "$TARE_SOURCE_DIR/scripts/check-order.py" "$work/order" >"$work/found" && fail "an open order of evaluation is accepted"
echo 'quant/a.c:14: calls: the order of its arguments is open (one, two)' | diff - "$work/found" || fail "the line of an open order differs"

# What no other file uses is not declared in a header.
python3 "$TARE_SOURCE_DIR/scripts/check-declarations.py" "$TARE_SOURCE_DIR" >"$work/found" || fail "unused declarations: $(cat "$work/found")"
mkdir -p "$work/declared/low"
printf '%s\n' 'int used(int a);' 'const char *alone(int a);' 'int by_macro(int a);' '#define MACRO(a) by_macro(a)' >"$work/declared/low/a.h"
printf '%s\n' 'int used(int a) { return a; }' 'const char *alone(int a) { return a ? "a" : "b"; }' >"$work/declared/low/a.c"
echo 'int main(void) { return used(0); }' >"$work/declared/low/b.c"
git -C "$work/declared" init -q && git -C "$work/declared" add .
python3 "$TARE_SOURCE_DIR/scripts/check-declarations.py" "$work/declared" >"$work/found" && fail "an unused declaration is accepted"
echo 'low/a.h: no other file uses alone' | diff - "$work/found" || fail "the line of an unused declaration differs"

crowded=$(git -C "$TARE_SOURCE_DIR" ls-files '*.c' '*.h' | grep -v '^tests/' | sed 's|/[^/]*$||' | sort | uniq -c | awk '$1 > 60')
[ -z "$crowded" ] || fail "more than 60 files in a folder: $crowded"

strays=$(git -C "$TARE_SOURCE_DIR" ls-files | grep -v / | grep -vxE '\..*|(CHANGELOG|CONTRIBUTING|README)\.md|CMake(Lists\.txt|Presets\.json)|LICENSE|Dockerfile')
[ -z "$strays" ] || fail "unexpected files at the top level: $strays"

# A file begins with a comment on its purpose; so may its header instead.
silent=$(cd "$TARE_SOURCE_DIR" && git ls-files {base,proto,graph,interpreter,calib,quant,tpu,convert,eval,workflow,api,cli,datasets}/'*.[ch]' |
    xargs awk 'FNR == 1 { header = FILENAME; sub(/c$/, "h", header) }
               FNR == 1 && !/^\/\*/ && $0 != "#include \"" header "\"" { print FILENAME }')
[ -z "$silent" ] || fail "files that do not begin with a comment on their purpose: $silent"

# Every handle of the library says in the line before it whether threads may share it, and why (include/tare/tare.h).
unsaid=$(cd "$TARE_SOURCE_DIR" && awk '/^typedef struct tare_[a-z]*_handle / && before !~ /^\/\* Thread-(safe|compatible)( once [a-z ]*)?: .*\. \*\/$/ {
        print FILENAME ": " $0 } { before = $0 }' include/tare/*.h)
[ -z "$unsaid" ] || fail "handles without a line on threads: $unsaid"
[ "$(cd "$TARE_SOURCE_DIR" && cat include/tare/*.h | grep -c '^typedef struct tare_[a-z]*_handle ')" -ge 8 ] || fail "the handles of include/tare were not found"

# The files that a page names are there.
stale=$(cd "$TARE_SOURCE_DIR" && { git ls-files && git ls-files '*/README.md' docs/architecture.md |
    xargs grep -oE '`[a-z0-9_/]+\.[ch]`' | tr -d '`'; } | awk -F: '
    NF == 1 { path = $1; there[path]; while (sub(/^[^\/]*\//, "", path)) there[path]; next }
    $2 != "module/file.h" && !($2 in there) { print }')
[ -z "$stale" ] || fail "pages name files that do not exist: $stale"

# Numbers are read and printed with a point whatever the locale of the host: base/format.h.
local_numbers=$(cd "$TARE_SOURCE_DIR" && git ls-files '*.c' | grep -vE '^(tests|bench|examples|python)/|^base/format\.c$' |
    xargs grep -nE '\b(strtod|strtof|strtold|atof|vsnprintf|vsprintf)\(|[^n]scanf\(.*%[0-9]*l?[efgaEFGA]')
[ -z "$local_numbers" ] || fail "numbers that depend on the locale (tare_read_double, tare_format in base/format.h): $local_numbers"
printed=$(cd "$TARE_SOURCE_DIR" && git ls-files '*.c' | grep -vE '^(tests|bench|examples|python|cli)/|^base/progress\.c$' |
    xargs grep -nE '\b(snprintf|fprintf|printf)\(.*%[-+ #0-9.*]*[efgaEFGA]\b')
letters=$(cd "$TARE_SOURCE_DIR" && git ls-files '*.[ch]' | grep -vE '^(tests|bench|examples)/|^base/format\.c$' |
    xargs grep -nE '\b(strn?casecmp|strerror|dlerror|(is(alpha|alnum|space|print|upper|lower|punct|cntrl|graph|xdigit|digit)|to(upper|lower)))\(')
[ -z "$letters" ] || fail "letters and texts that depend on the host's locale (base/ascii.h, tare_system_error in base/format.h): $letters"
[ -z "$printed" ] || fail "numbers printed in the host's locale (tare_format in base/format.h): $printed"

json=$(cd "$TARE_SOURCE_DIR" && git ls-files '*.c' | grep -vE '^(tests|bench|examples|python|cli)/|^eval/report/json_text\.c$' |
    xargs grep -nE '\bjson_(dump|load)')
[ -z "$json" ] || fail "JSON in the host's locale (tare_json_dump, tare_json_parse in eval/report/json_text.h): $json"

# What users read goes through the log of the caller (base/log.h).
spoken=$(cd "$TARE_SOURCE_DIR" && git ls-files '*.c' | grep -vE '^(tests|bench|examples|python|cli)/|^base/(log|progress)\.c$' |
    xargs grep -nE '\b(fprintf|vfprintf|fputs|fputc|fwrite)\(.*\bstderr\b|\bperror\(')
[ -z "$spoken" ] || fail "modules below cli/ print on standard error: $spoken"
finish
