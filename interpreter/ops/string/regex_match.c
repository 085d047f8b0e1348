/* Matching regular expressions with PCRE2 (regex_match.h). Where backtracking exceeds PCRE2's limits, its matcher
 * without backtracking decides. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "interpreter/ops/string/regex_match.h"
#include "base/alloc.h"
#include "interpreter/ops/string/codepoint.h"
#include "interpreter/ops/string/re2_pattern.h"

#include <pcre2.h>
#include <string.h>

void tare_regex_free(struct tare_regex *regex) {
    pcre2_match_data_free(regex->match);
    pcre2_code_free(regex->codes[0]);
    pcre2_code_free(regex->codes[1]);
    *regex = (struct tare_regex){ 0 };
}

/* ---- compiling ---- */

static tare_status compile(pcre2_code **out, struct tare_str pattern, bool with_bytes) {
    struct tare_strbuf translated = { 0 };
    int error;
    size_t at;
    tare_status status = tare_re2_translate(&translated, pattern, with_bytes);
    if (status == TARE_OK) {
        *out = pcre2_compile((PCRE2_SPTR)tare_strbuf_text(&translated), translated.size, PCRE2_UTF, &error, &at, NULL);
        if (!*out) {
            PCRE2_UCHAR reason[128] = "";
            pcre2_get_error_message(error, reason, sizeof reason);
            status = TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid pattern: %.*s, error: %s", (int)pattern.size,
                               pattern.data, (const char *)reason);
        } else {
            pcre2_jit_compile(*out, PCRE2_JIT_COMPLETE); /* on failure matching is slower but works */
        }
    }
    tare_strbuf_free(&translated);
    return status;
}

tare_status tare_regex_make(struct tare_regex *regex, const char *pattern, size_t size) {
    const struct tare_str text = { pattern, size };
    *regex = (struct tare_regex){ 0 };
    tare_status status = compile(&regex->codes[0], text, false);
    if (status == TARE_OK) status = compile(&regex->codes[1], text, true);
    if (status == TARE_OK) {
        regex->match = pcre2_match_data_create_from_pattern(regex->codes[0], NULL);
        if (!regex->match) status = TARE_FAIL(TARE_NO_MEMORY, "out of memory for a pattern of %zu bytes", size);
    }
    if (status != TARE_OK) tare_regex_free(regex);
    return status;
}

/* ---- texts ---- */

size_t tare_subject_character(struct tare_str text, size_t at) {
    uint32_t code;
    bool bad;
    if (!((unsigned char)text.data[at] & 0x80)) return 1;
    const size_t size =
        tare_codepoint_read(&code, &bad, TARE_ENCODING_UTF8, (const unsigned char *)text.data + at, text.size - at);
    return bad ? 0 : size;
}

static bool is_utf8(struct tare_str text) {
    for (size_t at = 0, size; at < text.size; at += size)
        if ((size = tare_subject_character(text, at)) == 0) return false;
    return true;
}

void tare_subject_free(struct tare_subject *subject) {
    tare_strbuf_free(&subject->buffer);
    tare_free(subject->origin);
}

tare_status tare_subject_make(struct tare_subject *out, struct tare_str text) {
    static const char byte[] = "\xf4\x8f\xbf\xbf"; /* TARE_RE2_BYTE */
    const size_t width = sizeof byte - 1;
    *out = (struct tare_subject){ .text = text, .original = text };
    if (is_utf8(text)) return TARE_OK;
    out->origin = tare_calloc(width * text.size + 1, sizeof *out->origin);
    if (!out->origin) return TARE_NO_MEMORY;
    for (size_t at = 0; at < text.size;) {
        const size_t size = tare_subject_character(text, at), first = out->buffer.size;
        tare_strbuf_append(&out->buffer, size ? text.data + at : byte, size ? size : width);
        for (size_t i = first; i < first + (size ? size : width); i++)
            out->origin[i] = size ? at + i - first : at;
        at += size ? size : 1;
        out->origin[first + (size ? size : width)] = at;
    }
    out->text = (struct tare_str){ tare_strbuf_text(&out->buffer), out->buffer.size };
    const tare_status status = tare_strbuf_status(&out->buffer);
    if (status != TARE_OK) tare_subject_free(out);
    return status;
}

void tare_subject_copy(struct tare_strbuf *out, const struct tare_subject *subject, size_t first, size_t last) {
    if (subject->origin) first = subject->origin[first], last = subject->origin[last];
    tare_strbuf_append(out, subject->original.data + first, last - first);
}

/* ---- matching ---- */

static bool gave_up(int count) {
    return count == PCRE2_ERROR_MATCHLIMIT || count == PCRE2_ERROR_DEPTHLIMIT || count == PCRE2_ERROR_HEAPLIMIT ||
           count == PCRE2_ERROR_JIT_STACKLIMIT;
}

/* Follows all alternatives at once: the longest match, if only its existence counts (the options have ENDANCHORED) or
 * it is the only one at its place. Otherwise PCRE2_ERROR_MATCHLIMIT. */
static int match_breadth_first(const struct tare_regex *regex, const pcre2_code *code, struct tare_str text,
                               size_t start, uint32_t options) {
    enum { STATES = 20000 };
    int *states = tare_calloc(STATES, sizeof *states);
    pcre2_match_data *found = pcre2_match_data_create(2, NULL);
    int count = PCRE2_ERROR_NOMEMORY;
    if (states && found)
        count = pcre2_dfa_match(code, (PCRE2_SPTR)text.data, text.size, start, options, found, NULL, states, STATES);
    if (count >= 0 && count != 1 && !(options & PCRE2_ENDANCHORED)) count = PCRE2_ERROR_MATCHLIMIT;
    if (count >= 0) {
        size_t *places = pcre2_get_ovector_pointer(regex->match);
        for (uint32_t i = 0; i < 2 * pcre2_get_ovector_count(regex->match); i++)
            places[i] = i < 2 ? pcre2_get_ovector_pointer(found)[i] : PCRE2_UNSET;
        count = 1;
    }
    pcre2_match_data_free(found);
    tare_free(states);
    return count;
}

tare_status tare_regex_search(bool *found, const struct tare_regex *regex, const struct tare_subject *subject,
                              size_t start, enum tare_regex_anchor anchor, bool groups) {
    const uint32_t options =
        PCRE2_NO_UTF_CHECK | (anchor == TARE_REGEX_WHOLE ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : 0u);
    const pcre2_code *code = regex->codes[subject->origin != NULL];
    const PCRE2_SPTR text = (PCRE2_SPTR)subject->text.data;
    const size_t size = subject->text.size;
    int count = pcre2_match(code, text, size, start, options, regex->match, NULL);
    if (count == PCRE2_ERROR_JIT_STACKLIMIT)
        count = pcre2_match(code, text, size, start, options | PCRE2_NO_JIT, regex->match, NULL);
    if (gave_up(count)) {
        const int decided = match_breadth_first(regex, code, subject->text, start, options);
        if (decided < 0 || !groups) count = decided;
    }
    *found = count >= 0;
    if (count >= 0 || count == PCRE2_ERROR_NOMATCH) return TARE_OK;
    if (count == PCRE2_ERROR_NOMEMORY) return TARE_FAIL(TARE_NO_MEMORY, "out of memory for a text of %zu bytes", size);
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "the pattern cannot be matched (PCRE2 error %d)", count);
}

size_t tare_regex_groups(const struct tare_regex *regex) {
    return pcre2_get_ovector_count(regex->match) - 1;
}

const size_t *tare_regex_places(const struct tare_regex *regex) {
    return pcre2_get_ovector_pointer(regex->match);
}
