/* Regular expression ops. TensorFlow uses RE2; these use PCRE2 with the closest options: UTF-8 text, "$" matches
 * only at the end of the text, and \d \w \s and \b are ASCII-only. Remaining differences: \s also matches the
 * vertical tab, backreferences and look-around are accepted, and a pattern that exceeds PCRE2's match limit fails. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/alloc.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/string/text.h"

#include <pcre2.h>
#include <string.h>

struct regex {
    pcre2_code *code;
    pcre2_match_data *match;
};

static void regex_free(struct regex *regex) {
    pcre2_match_data_free(regex->match);
    pcre2_code_free(regex->code);
    *regex = (struct regex){ 0 };
}

static tare_status regex_make(struct regex *regex, const char *pattern, size_t size) {
    uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C;
    int error;
    size_t at;
    *regex = (struct regex){ 0 };
    regex->code = pcre2_compile((PCRE2_SPTR)pattern, size, options, &error, &at, NULL);
    if (!regex->code) {
        PCRE2_UCHAR text[128] = "";
        pcre2_get_error_message(error, text, sizeof text);
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid pattern: %.*s, error: %s at character %zu", (int)size, pattern,
                         (const char *)text, at + 1);
    }
    regex->match = pcre2_match_data_create_from_pattern(regex->code, NULL);
    if (!regex->match) {
        regex_free(regex);
        return TARE_FAIL(TARE_NO_MEMORY, "out of memory");
    }
    pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE); /* on failure matching is slower but works */
    return TARE_OK;
}

/* found: whether there is a match at or after `start`; regex->match contains its offsets. */
static tare_status regex_search(bool *found, const struct regex *regex, struct tare_str text, size_t start,
                                uint32_t options) {
    int count = pcre2_match(regex->code, (PCRE2_SPTR)text.data, text.size, start, options, regex->match, NULL);
    *found = count >= 0;
    if (count >= 0 || count == PCRE2_ERROR_NOMATCH) return TARE_OK;
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

/* An empty match directly after the previous match is ignored: one character is copied instead. */
static tare_status replace(struct tare_strbuf *out, struct tare_str text, const void *arg) {
    const struct replacement *how = arg;
    size_t at = 0, last_end = SIZE_MAX;
    while (at <= text.size) {
        const size_t *places;
        bool found;
        TARE_TRY(regex_search(&found, &how->regex, text, at, 0));
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
        bool found;
        TARE_TRY(regex_search(&found, regex, tare_text_at(in, i), 0, PCRE2_ANCHORED | PCRE2_ENDANCHORED));
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
