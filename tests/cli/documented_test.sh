#!/usr/bin/env bash
# Everything that others can name is documented: public functions with their types and fields in the headers and on
# docs/library.md, what a library of ops calls. (Options: tests/unit/cli/options_test.c.)
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
cd "$TARE_SOURCE_DIR" || exit 1

# A declaration is documented by a comment right above it, above the declarations that it stands with, or behind it.
undocumented() { # HEADER…: prints "FILE: NAME"
    awk '
        FNR == 1 { comment = 0; inside = 0; body = 0; type = 0 }
        /^\/\*/ { comment = 1; inside = !/\*\// ; next }
        inside { if (/\*\//) inside = 0; next }
        /^$/ { if (!type) comment = 0; next }
        /^#|^extern "C"|^}$/ { next }
        /^TARE_API / { name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name); if (!comment) print FILENAME ": " name; next }
        /^typedef struct [a-z_]+ [a-z_]+;/ { next } # an opaque handle: the functions tell of it
        /^typedef .*\(\*/ { name = $0; sub(/.*\(\*/, "", name); sub(/\).*/, "", name); if (!comment) print FILENAME ": " name; next }
        /^(typedef )?(struct|enum).*\{$/ { type = 1; field_comment = 0; next }
        type && /^}/ { type = 0; comment = 0; next }
        type && /^ +\/\*/ { field_comment = 1; field_inside = !/\*\//; next }
        type && field_inside { if (/\*\//) field_inside = 0; next }
        type && /^ *$/ { next }
        type { if (!/\/\*/ && !field_comment && !continued) { name = $0; sub(/ *[;,=\[].*/, "", name); sub(/.*[ *]/, "", name); print FILENAME ": " name }
               continued = /\/\*/ && !/\*\//; field_comment = 0 }' "$@"
}
mkdir "$work/include"
cat >"$work/include/wrong.h" <<'WRONG'
/* Text. */
TARE_API int tare_good(void);
TARE_API int tare_with_it(void);

TARE_API int tare_bare(void);

typedef struct tare_thing {
    int told; /* so */
    int untold;
} tare_thing;
WRONG
[ "$(undocumented "$work/include/wrong.h" | sed 's/.*: //' | tr '\n' ' ')" = "tare_bare untold " ] ||
    fail "the check finds: $(undocumented "$work/include/wrong.h")"
undocumented $(ls include/tare/*.h | grep -vE '/(op|dtype|api)\.h$') >"$work/found"
[ ! -s "$work/found" ] || fail "not documented: $(cat "$work/found")"

functions=$(sed -nE 's/^TARE_API .*[ *](tare_[a-z_0-9]+)\(.*/\1/p' include/tare/*.h)
[ "$(wc -w <<<"$functions")" -ge 45 ] || fail "only $(wc -w <<<"$functions") public functions were found"
for name in $functions; do
    grep -q "\`$name\`" docs/library.md || fail "docs/library.md does not name $name"
done
# Every function with a handle is called by the program that tries threads; those with an array of handles have it as well.
cat $(ls include/tare/*.h | grep -v /op.h) | tr '\n' ' ' | sed 's/;/;\n/g' |
    grep -E 'TARE_API .*\(.*tare_(context|model|calibration|calibrator|comparison|runner|outputs|reader|writer) (const )?\*' |
    sed -E 's/.*TARE_API [^(]*[ *](tare_[a-z_0-9]+)\(.*/\1/' | sort -u >"$work/with_handle"
[ "$(wc -l <"$work/with_handle")" -ge 50 ] || fail "only $(wc -l <"$work/with_handle") functions with a handle were found"
while read -r name; do
    case $name in tare_context_add_plugin | tare_writer_discard) continue ;; esac # before there is a second thread; as close
    grep -q "\b$name(" tests/unit/api/thread_pairs_test.c || fail "tests/unit/api/thread_pairs_test.c does not call $name"
done <"$work/with_handle"
for header in include/tare/*.h; do
    case $(basename "$header") in api.h | tare.h) continue ;; esac
    grep -q "\`$(basename "$header")\`" docs/library.md || fail "docs/library.md does not name $(basename "$header")"
done

# What a library of ops calls: above it, or behind the line.
awk '/^$/ { told = 0 } /^\/\*/ { told = 1 }
     /^(__attribute__.*)?static inline [^(]*tare_op_[a-z_0-9]+\(/ { all++; if (!told && !section) print FILENAME ": " $0 }
     /^\/\* ----/ { section = 1 }' include/tare/op.h >"$work/found"
[ ! -s "$work/found" ] || fail "not documented: $(cat "$work/found")"


# Fields of the options messages: a comment each in the .proto files, and docs/options.md is what is written of them.
if command -v python3 >/dev/null; then
    python3 scripts/make-options.py >"$work/options.md" 2>"$work/found" || fail "fields without a comment: $(cat "$work/found")"
    cmp -s "$work/options.md" docs/options.md ||
        fail "docs/options.md is not of these .proto files: scripts/make-options.py > docs/options.md ($(diff docs/options.md "$work/options.md" | head -3))"
    [ "$(grep -c '^| `' docs/options.md)" -ge 150 ] || fail "docs/options.md has $(grep -c '^| `' docs/options.md) rows"
    mkdir -p "$work/copy" && cp -r scripts proto "$work/copy/"
    sed -i '/Worker\|The most rows of a batch/d' "$work/copy/proto/tare/converter_options.proto"
    python3 "$work/copy/scripts/make-options.py" >/dev/null 2>"$work/found" && fail "a field without a comment passes"
    grep -q 'BatchOptions.max_batch_size has no comment' "$work/found" || fail "does not say which field: $(cat "$work/found")"
fi
finish
