/* Patterns of TensorFlow's string ops: translated, compiled and matched. */
#include "fuzz/target.h"
#include "interpreter/ops/string/re2_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stdlib.h>

enum { MOST_STEPS = 20000 };

/* What the translation accepts is a pattern, unless it is too large for PCRE2. */
static bool match(const struct tare_strbuf *pattern, const struct fuzz_part *text) {
    int error = 0;
    PCRE2_SIZE at;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)tare_strbuf_text(pattern), pattern->size, PCRE2_UTF, &error, &at, NULL);
    if (!code) {
        if (error != PCRE2_ERROR_PATTERN_TOO_LARGE && error != PCRE2_ERROR_PARENTHESES_NEST_TOO_DEEP &&
            error != PCRE2_ERROR_PATTERN_TOO_COMPLICATED && error != PCRE2_ERROR_QUANTIFIER_TOO_BIG)
            abort();
        return false;
    }
    pcre2_match_data *found = pcre2_match_data_create_from_pattern(code, NULL);
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    if (!found || !limits) abort();
    pcre2_set_match_limit(limits, MOST_STEPS);
    (void)pcre2_match(code, (PCRE2_SPTR)text->data, text->size, 0, 0, found, limits);
    pcre2_match_context_free(limits);
    pcre2_match_data_free(found);
    pcre2_code_free(code);
    return true;
}

enum fuzz_depth fuzz_pattern(const uint8_t *data, size_t size) {
    const struct fuzz_part pattern = fuzz_part(data, size, 1), text = fuzz_part(data, size, 2);
    enum fuzz_depth depth = FUZZ_REFUSED;
    for (int with_bytes = 0; with_bytes < 2; with_bytes++) {
        struct tare_strbuf translated = { 0 };
        const struct tare_str given = { .data = (const char *)pattern.data, .size = pattern.size };
        if (tare_re2_translate(&translated, given, with_bytes) == TARE_OK)
            depth = match(&translated, &text) ? FUZZ_USED : FUZZ_READ;
        tare_error_clear();
        tare_strbuf_free(&translated);
    }
    return depth;
}
