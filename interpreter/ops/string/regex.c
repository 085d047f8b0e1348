/* Regular expression ops. TensorFlow uses RE2; these use PCRE2 with the closest options: UTF-8 text, "$" matches
 * only at the end of the text, \d \w \s and \b are ASCII-only, and \s has no vertical tab. Where backtracking exceeds
 * PCRE2's limits, its matcher without backtracking decides. Remaining differences: backreferences and look-around are
 * accepted, and a replacement fails where backtracking gives up and matches of several lengths begin at one place. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/alloc.h"
#include "interpreter/ops/string/codepoint.h"
#include "interpreter/ops/string/text.h"
#include "interpreter/ops/support/operand.h"

#include <pcre2.h>
#include <string.h>

struct regex {
    pcre2_code *code;    /* for UTF-8 text */
    pcre2_code *lenient; /* for text with invalid bytes, which match nothing; not compiled to machine code, where PCRE2
                            10.42 misses letters outside ASCII for \D, \W and \S */
    pcre2_match_data *match;
};

static void regex_free(struct regex *regex) {
    pcre2_match_data_free(regex->match);
    pcre2_code_free(regex->code);
    pcre2_code_free(regex->lenient);
    *regex = (struct regex){ 0 };
}

/* ---- RE2's \s and \S, which do not include the vertical tab in the spaces ---- */

static const char *space_class(char letter, bool in_class) {
    if (letter == 's') return in_class ? "\\t\\n\\f\\r " : "[\\t\\n\\f\\r ]";
    return in_class ? "\\x00-\\x08\\x0b\\x0e-\\x1f!-\\x{10ffff}" : "[^\\t\\n\\f\\r ]";
}

/* Appends what begins with a backslash at text[i] and returns what follows it; \Q … \E is copied as it is. */
static size_t translate_escape(struct tare_strbuf *out, struct tare_str text, size_t i, bool in_class) {
    const char letter = i + 1 < text.size ? text.data[i + 1] : '\0';
    if (letter == 's' || letter == 'S') {
        tare_strbuf_puts(out, space_class(letter, in_class));
        return i + 2;
    }
    size_t end = i + 2 < text.size ? i + 2 : text.size;
    if (letter == 'Q') {
        const char *quoted = memmem(text.data + end, text.size - end, "\\E", 2);
        end = quoted ? (size_t)(quoted - text.data) + 2 : text.size;
    }
    tare_strbuf_append(out, text.data + i, end - i);
    return end;
}

/* The end of the brackets that open at text[i], as far as they close a class: "[]a]", "[^]a]" and "[[:alpha:]]". */
static size_t translate_class(struct tare_strbuf *out, struct tare_str text, size_t i) {
    const size_t first = i + 1 < text.size && text.data[i + 1] == '^' ? i + 2 : i + 1;
    tare_strbuf_append(out, text.data + i, first - i);
    for (i = first; i < text.size;) {
        const char c = text.data[i];
        const char *named = c == '[' && i + 1 < text.size && text.data[i + 1] == ':'
                                ? memmem(text.data + i + 2, text.size - i - 2, ":]", 2)
                                : NULL;
        const size_t end = named ? (size_t)(named - text.data) + 2 : i + 1;
        if (c == '\\') {
            i = translate_escape(out, text, i, true);
            continue;
        }
        if (c == '[' && !named) tare_strbuf_putc(out, '\\'); /* a letter of the class */
        tare_strbuf_append(out, text.data + i, end - i);
        if (c == ']' && i > first) return end;
        i = end;
    }
    return i;
}

static void translate(struct tare_strbuf *out, struct tare_str text) {
    for (size_t i = 0; i < text.size;) {
        if (text.data[i] == '\\')
            i = translate_escape(out, text, i, false);
        else if (text.data[i] == '[')
            i = translate_class(out, text, i);
        else
            tare_strbuf_putc(out, text.data[i++]);
    }
}

/* ---- compiling, matching ---- */

static tare_status compile(struct regex *regex, struct tare_str translated, struct tare_str pattern) {
    const uint32_t options = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C;
    const PCRE2_SPTR text = (PCRE2_SPTR)translated.data;
    int error;
    size_t at;
    regex->code = pcre2_compile(text, translated.size, options, &error, &at, NULL);
    if (!regex->code) {
        PCRE2_UCHAR reason[128] = "";
        pcre2_get_error_message(error, reason, sizeof reason);
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid pattern: %.*s, error: %s at character %zu", (int)pattern.size,
                         pattern.data, (const char *)reason, at + 1);
    }
    regex->lenient = pcre2_compile(text, translated.size, options | PCRE2_MATCH_INVALID_UTF, &error, &at, NULL);
    regex->match = pcre2_match_data_create_from_pattern(regex->code, NULL);
    if (!regex->match || !regex->lenient)
        return TARE_FAIL(TARE_NO_MEMORY, "out of memory for a pattern of %zu bytes", pattern.size);
    pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE); /* on failure matching is slower but works */
    return TARE_OK;
}

static tare_status regex_make(struct regex *regex, const char *pattern, size_t size) {
    struct tare_strbuf translated = { 0 };
    *regex = (struct regex){ 0 };
    translate(&translated, (struct tare_str){ pattern, size });
    tare_status status = translated.failed
                             ? TARE_NO_MEMORY
                             : compile(regex, (struct tare_str){ tare_strbuf_text(&translated), translated.size },
                                       (struct tare_str){ pattern, size });
    tare_strbuf_free(&translated);
    if (status != TARE_OK) regex_free(regex);
    return status;
}

struct subject {
    struct tare_str text;
    bool valid; /* as UTF-8 */
};

static bool is_utf8(struct tare_str text) {
    for (size_t at = 0; at < text.size;) {
        uint32_t code;
        bool bad;
        if (!((unsigned char)text.data[at] & 0x80)) {
            at++;
            continue;
        }
        at +=
            tare_codepoint_read(&code, &bad, TARE_ENCODING_UTF8, (const unsigned char *)text.data + at, text.size - at);
        if (bad) return false;
    }
    return true;
}

static bool gave_up(int count) {
    return count == PCRE2_ERROR_MATCHLIMIT || count == PCRE2_ERROR_DEPTHLIMIT || count == PCRE2_ERROR_HEAPLIMIT ||
           count == PCRE2_ERROR_JIT_STACKLIMIT;
}

/* Follows all alternatives at once: the longest match, if only its existence counts (the options have ENDANCHORED) or
 * it is the only one at its place. Otherwise PCRE2_ERROR_MATCHLIMIT. */
static int match_breadth_first(const struct regex *regex, struct tare_str text, size_t start, uint32_t options) {
    enum { STATES = 20000 };
    int *states = tare_calloc(STATES, sizeof *states);
    pcre2_match_data *found = pcre2_match_data_create(2, NULL);
    int count = PCRE2_ERROR_NOMEMORY;
    if (states && found)
        count =
            pcre2_dfa_match(regex->code, (PCRE2_SPTR)text.data, text.size, start, options, found, NULL, states, STATES);
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

static struct subject subject_of(struct tare_str text) {
    return (struct subject){ text, is_utf8(text) };
}

/* found: whether there is a match at or after `start`; regex->match contains its offsets, of groups if they are asked
 * for. */
static tare_status regex_search(bool *found, const struct regex *regex, const struct subject *subject, size_t start,
                                uint32_t options, bool groups) {
    const pcre2_code *code = subject->valid ? regex->code : regex->lenient;
    const PCRE2_SPTR text = (PCRE2_SPTR)subject->text.data;
    const size_t size = subject->text.size;
    if (subject->valid) options |= PCRE2_NO_UTF_CHECK;
    int count = pcre2_match(code, text, size, start, options, regex->match, NULL);
    if (count == PCRE2_ERROR_JIT_STACKLIMIT)
        count = pcre2_match(code, text, size, start, options | PCRE2_NO_JIT, regex->match, NULL);
    if (gave_up(count) && subject->valid) {
        const int decided = match_breadth_first(regex, subject->text, start, options);
        if (decided < 0 || !groups) count = decided;
    }
    *found = count >= 0;
    if (count >= 0 || count == PCRE2_ERROR_NOMATCH) return TARE_OK;
    if (count == PCRE2_ERROR_NOMEMORY) return TARE_FAIL(TARE_NO_MEMORY, "out of memory for a text of %zu bytes", size);
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "the pattern cannot be matched (PCRE2 error %d)", count);
}

/* "\0" is the match, "\1" … "\9" its groups, "\\" a backslash. */
static tare_status append_rewrite(struct tare_strbuf *out, const struct regex *regex, struct tare_str text,
                                  struct tare_str rewrite) {
    const size_t *places = pcre2_get_ovector_pointer(regex->match);
    uint32_t groups = pcre2_get_ovector_count(regex->match);
    for (size_t i = 0; i < rewrite.size; i++) {
        char c = rewrite.data[i];
        if (c != '\\') {
            tare_strbuf_putc(out, c);
            continue;
        }
        c = ++i < rewrite.size ? rewrite.data[i] : '\0';
        if (c == '\\') {
            tare_strbuf_putc(out, c);
        } else if (c >= '0' && c <= '9' && (uint32_t)(c - '0') < groups) {
            size_t first = places[2 * (c - '0')], last = places[2 * (c - '0') + 1];
            if (first != PCRE2_UNSET) tare_strbuf_append(out, text.data + first, last - first);
        } else {
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid rewrite pattern: %.*s", (int)rewrite.size, rewrite.data);
        }
    }
    return TARE_OK;
}

struct replacement {
    struct regex regex;
    struct tare_str rewrite;
    bool all;
};

/* Whether the rewrite uses groups of the match. */
static bool uses_groups(struct tare_str rewrite) {
    for (size_t i = 0; i + 1 < rewrite.size; i++)
        if (rewrite.data[i] == '\\' && rewrite.data[++i] >= '1' && rewrite.data[i] <= '9') return true;
    return false;
}

/* An empty match directly after the previous match is ignored: one character is copied instead. */
static tare_status replace(struct tare_strbuf *out, struct tare_str text, const void *arg) {
    const struct replacement *how = arg;
    const struct subject subject = subject_of(text);
    const bool groups = uses_groups(how->rewrite);
    size_t at = 0, last_end = SIZE_MAX;
    while (at <= text.size) {
        const size_t *places;
        bool found;
        TARE_TRY(regex_search(&found, &how->regex, &subject, at, 0, groups));
        if (!found) break;
        places = pcre2_get_ovector_pointer(how->regex.match);
        if (places[0] < at || places[1] < places[0]) break; /* \K in a lookbehind assertion */
        tare_strbuf_append(out, text.data + at, places[0] - at);
        at = places[0];
        if (places[0] == last_end && places[1] == places[0]) {
            do {
                if (at < text.size) tare_strbuf_putc(out, text.data[at]);
                at++;
            } while (at < text.size && ((unsigned char)text.data[at] & 0xC0) == 0x80);
            continue;
        }
        TARE_TRY(append_rewrite(out, &how->regex, text, how->rewrite));
        at = last_end = places[1];
        if (!how->all) break;
    }
    if (at < text.size) tare_strbuf_append(out, text.data + at, text.size - at);
    return TARE_OK;
}

/* The pattern of the Static ops is compiled once per session. */
static tare_status prepare(struct tare_kernel *kernel) {
    const char *pattern = tare_node_string(kernel->node, "pattern", "");
    struct regex *regex = tare_calloc(1, sizeof *regex);
    tare_status status;
    if (!regex) return TARE_NO_MEMORY;
    status = regex_make(regex, pattern, strlen(pattern));
    if (status != TARE_OK) {
        tare_free(regex);
        return status;
    }
    kernel->state = regex;
    return TARE_OK;
}

static void release(void *state) {
    regex_free(state);
    tare_free(state);
}

static tare_status run_static_replace(struct tare_kernel *kernel) {
    const char *rewrite = tare_node_string(kernel->node, "rewrite", "");
    struct replacement how = { *(const struct regex *)kernel->state,
                               { rewrite, strlen(rewrite) },
                               tare_node_bool(kernel->node, "replace_global", true) };
    return tare_text_map(kernel, replace, &how);
}

static tare_status infer_with_scalars(struct tare_infer *infer) {
    for (size_t i = 1; i < infer->n_inputs; i++)
        TARE_TRY(tare_operand_rank(infer, i, i == 1 ? "pattern" : "rewrite", 0));
    infer->outputs[0] = infer->inputs[0];
    return TARE_OK;
}

/* Compiles the pattern operand of the ops that take it as a tensor. */
static tare_status regex_of_input(struct regex *regex, const struct tare_kernel *kernel) {
    struct tare_str pattern;
    for (size_t i = 1; i < kernel->n_inputs; i++)
        if (kernel->inputs[i].shape.rank != 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s must be scalar, but received rank %d",
                             i == 1 ? "Pattern" : "Rewrite", kernel->inputs[i].shape.rank);
    pattern = tare_text_at(&kernel->inputs[1], 0);
    return regex_make(regex, pattern.data, pattern.size);
}

static tare_status run_replace(struct tare_kernel *kernel) {
    struct replacement how = { .all = tare_node_bool(kernel->node, "replace_global", true) };
    tare_status status;
    TARE_TRY(regex_of_input(&how.regex, kernel));
    how.rewrite = tare_text_at(&kernel->inputs[2], 0);
    status = tare_text_map(kernel, replace, &how);
    regex_free(&how.regex);
    return status;
}

static tare_status match_all(struct tare_kernel *kernel, const struct regex *regex) {
    const struct tare_tensor *in = &kernel->inputs[0];
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_BOOL, &in->shape));
    for (int64_t i = 0; i < in->elements; i++) {
        const struct subject subject = subject_of(tare_text_at(in, i));
        bool found = false; /* nothing matches an invalid byte */
        if (subject.valid)
            TARE_TRY(regex_search(&found, regex, &subject, 0, PCRE2_ANCHORED | PCRE2_ENDANCHORED, false));
        TARE_DATA(uint8_t, &kernel->outputs[0])[i] = found;
    }
    return TARE_OK;
}

static tare_status run_static_match(struct tare_kernel *kernel) {
    return match_all(kernel, kernel->state);
}

static tare_status run_match(struct tare_kernel *kernel) {
    struct regex regex;
    tare_status status;
    TARE_TRY(regex_of_input(&regex, kernel));
    status = match_all(kernel, &regex);
    regex_free(&regex);
    return status;
}

const struct tare_op tare_ops_regex[] = {
    { .name = "RegexFullMatch",
      .inputs = "input: string, pattern: string",
      .outputs = "output: bool",
      .infer = infer_with_scalars,
      .run = run_match },
    { .name = "RegexReplace",
      .inputs = "input: string, pattern: string, rewrite: string",
      .outputs = "output: string",
      .attrs = "replace_global: bool = true",
      .infer = infer_with_scalars,
      .run = run_replace },
    { .name = "StaticRegexFullMatch",
      .inputs = "input: string",
      .outputs = "output: bool",
      .attrs = "pattern: string",
      .infer = tare_infer_same,
      .run = run_static_match,
      .prepare = prepare,
      .release = release },
    { .name = "StaticRegexReplace",
      .inputs = "input: string",
      .outputs = "output: string",
      .attrs = "pattern: string; rewrite: string; replace_global: bool = true",
      .infer = tare_infer_same,
      .run = run_static_replace,
      .prepare = prepare,
      .release = release },
    { 0 },
};
