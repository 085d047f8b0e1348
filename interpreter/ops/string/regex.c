/* Regular expression ops. TensorFlow uses RE2; its patterns are translated to PCRE2 (re2_pattern.h). Where backtracking
 * exceeds PCRE2's limits, its matcher without backtracking decides; a replacement fails where backtracking gives up and
 * matches of several lengths begin at one place. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/alloc.h"
#include "interpreter/ops/string/codepoint.h"
#include "interpreter/ops/string/re2_pattern.h"
#include "interpreter/ops/string/text.h"
#include "interpreter/ops/support/operand.h"

#include <pcre2.h>
#include <string.h>

struct regex {
    pcre2_code *codes[2]; /* for UTF-8 text; for text in which TARE_RE2_BYTE stands for other bytes */
    pcre2_match_data *match;
};

static void regex_free(struct regex *regex) {
    pcre2_match_data_free(regex->match);
    pcre2_code_free(regex->codes[0]);
    pcre2_code_free(regex->codes[1]);
    *regex = (struct regex){ 0 };
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

static tare_status regex_make(struct regex *regex, const char *pattern, size_t size) {
    const struct tare_str text = { pattern, size };
    *regex = (struct regex){ 0 };
    tare_status status = compile(&regex->codes[0], text, false);
    if (status == TARE_OK) status = compile(&regex->codes[1], text, true);
    if (status == TARE_OK) {
        regex->match = pcre2_match_data_create_from_pattern(regex->codes[0], NULL);
        if (!regex->match) status = TARE_FAIL(TARE_NO_MEMORY, "out of memory for a pattern of %zu bytes", size);
    }
    if (status != TARE_OK) regex_free(regex);
    return status;
}

/* ---- texts ---- */

struct subject {
    struct tare_str text;      /* UTF-8 */
    struct tare_str original;  /* the same, or with bytes that `text` has TARE_RE2_BYTE for */
    size_t *origin;            /* place in `original` of each place in `text`; NULL: they are the same */
    struct tare_strbuf buffer; /* of `text` */
};

/* The size of the character at `at`; 0: it is not UTF-8. */
static size_t character_size(struct tare_str text, size_t at) {
    uint32_t code;
    bool bad;
    if (!((unsigned char)text.data[at] & 0x80)) return 1;
    const size_t size =
        tare_codepoint_read(&code, &bad, TARE_ENCODING_UTF8, (const unsigned char *)text.data + at, text.size - at);
    return bad ? 0 : size;
}

static bool is_utf8(struct tare_str text) {
    for (size_t at = 0, size; at < text.size; at += size)
        if ((size = character_size(text, at)) == 0) return false;
    return true;
}

static void subject_free(struct subject *subject) {
    tare_strbuf_free(&subject->buffer);
    tare_free(subject->origin);
}

static tare_status subject_make(struct subject *out, struct tare_str text) {
    static const char byte[] = "\xf4\x8f\xbf\xbf"; /* TARE_RE2_BYTE */
    const size_t width = sizeof byte - 1;
    *out = (struct subject){ .text = text, .original = text };
    if (is_utf8(text)) return TARE_OK;
    out->origin = tare_calloc(width * text.size + 1, sizeof *out->origin);
    if (!out->origin) return TARE_NO_MEMORY;
    for (size_t at = 0; at < text.size;) {
        const size_t size = character_size(text, at), first = out->buffer.size;
        tare_strbuf_append(&out->buffer, size ? text.data + at : byte, size ? size : width);
        for (size_t i = first; i < first + (size ? size : width); i++)
            out->origin[i] = size ? at + i - first : at;
        at += size ? size : 1;
        out->origin[first + (size ? size : width)] = at;
    }
    out->text = (struct tare_str){ tare_strbuf_text(&out->buffer), out->buffer.size };
    const tare_status status = tare_strbuf_status(&out->buffer);
    if (status != TARE_OK) subject_free(out);
    return status;
}

/* Appends what is from `first` to `last` in the text. */
static void copy(struct tare_strbuf *out, const struct subject *subject, size_t first, size_t last) {
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
static int match_breadth_first(const struct regex *regex, const pcre2_code *code, struct tare_str text, size_t start,
                               uint32_t options) {
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

/* found: whether there is a match at or after `start`; regex->match contains its offsets, of groups if they are asked
 * for. */
static tare_status regex_search(bool *found, const struct regex *regex, const struct subject *subject, size_t start,
                                uint32_t options, bool groups) {
    const pcre2_code *code = regex->codes[subject->origin != NULL];
    const PCRE2_SPTR text = (PCRE2_SPTR)subject->text.data;
    const size_t size = subject->text.size;
    options |= PCRE2_NO_UTF_CHECK;
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

/* "\0" is the match, "\1" … "\9" its groups, "\\" a backslash. False: the rewrite has something else after a
 * backslash, and what is before it was appended. */
static bool append_rewrite(struct tare_strbuf *out, const struct regex *regex, const struct subject *subject,
                           struct tare_str rewrite) {
    const size_t *places = pcre2_get_ovector_pointer(regex->match);
    for (size_t i = 0; i < rewrite.size; i++) {
        char c = rewrite.data[i];
        if (c != '\\') {
            tare_strbuf_putc(out, c);
            continue;
        }
        c = ++i < rewrite.size ? rewrite.data[i] : '\0';
        if (c == '\\') {
            tare_strbuf_putc(out, c);
        } else if (c >= '0' && c <= '9') {
            size_t first = places[2 * (c - '0')], last = places[2 * (c - '0') + 1];
            if (first != PCRE2_UNSET) copy(out, subject, first, last);
        } else {
            return false;
        }
    }
    return true;
}

struct replacement {
    struct regex regex;
    struct tare_str rewrite;
    bool all;
};

/* The last group that the rewrite uses; 0: none. */
static uint32_t last_group(struct tare_str rewrite) {
    uint32_t last = 0;
    for (size_t i = 0; i + 1 < rewrite.size; i++)
        if (rewrite.data[i] == '\\' && rewrite.data[++i] >= '1' && rewrite.data[i] <= '9' &&
            (uint32_t)(rewrite.data[i] - '0') > last)
            last = (uint32_t)(rewrite.data[i] - '0');
    return last;
}

/* As RE2: a rewrite with groups that the pattern does not have changes nothing, and one with another mistake ends where
 * it has it; with a single match it changes nothing, either. An empty match directly after the previous match is
 * ignored: one character is copied instead. */
static tare_status replace_in(struct tare_strbuf *out, const struct subject *subject, const struct replacement *how) {
    const uint32_t groups = last_group(how->rewrite);
    const size_t size = subject->text.size;
    size_t at = 0, last_end = SIZE_MAX;
    while (at <= size && groups < pcre2_get_ovector_count(how->regex.match)) {
        const size_t *places = pcre2_get_ovector_pointer(how->regex.match), before = out->size, start = at;
        bool found;
        TARE_TRY(regex_search(&found, &how->regex, subject, at, 0, groups > 0));
        if (!found) break;
        copy(out, subject, at, places[0]);
        at = places[0];
        if (at == last_end && places[1] == at) {
            const size_t next = at < size ? at + character_size(subject->text, at) : at + 1;
            if (at < size) copy(out, subject, at, next);
            at = next;
            continue;
        }
        if (!append_rewrite(out, &how->regex, subject, how->rewrite) && !how->all) {
            out->size = before;
            at = start;
            break;
        }
        at = last_end = places[1];
        if (!how->all) break;
    }
    if (at < size) copy(out, subject, at, size);
    return TARE_OK;
}

static tare_status replace(struct tare_strbuf *out, struct tare_str text, const void *arg) {
    struct subject subject;
    TARE_TRY(subject_make(&subject, text));
    const tare_status status = replace_in(out, &subject, arg);
    subject_free(&subject);
    return status;
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
        struct subject subject;
        bool found;
        TARE_TRY(subject_make(&subject, tare_text_at(in, i)));
        const tare_status status = regex_search(&found, regex, &subject, 0, PCRE2_ANCHORED | PCRE2_ENDANCHORED, false);
        subject_free(&subject);
        TARE_TRY(status);
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
