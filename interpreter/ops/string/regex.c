/* Regular expression ops of TensorFlow, which uses RE2 (regex_match.h). A replacement fails where backtracking gives up
 * and matches of several lengths begin at one place. */
#include "base/alloc.h"
#include "interpreter/ops/string/regex_match.h"
#include "interpreter/ops/string/text.h"
#include "interpreter/ops/support/operand.h"

#include <string.h>

/* "\0" is the match, "\1" … "\9" its groups, "\\" a backslash. False: the rewrite has something else after a
 * backslash, and what is before it was appended. */
static bool append_rewrite(struct tare_strbuf *out, const struct tare_regex *regex, const struct tare_subject *subject,
                           struct tare_str rewrite) {
    const size_t *places = tare_regex_places(regex);
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
            if (first != SIZE_MAX) tare_subject_copy(out, subject, first, last);
        } else {
            return false;
        }
    }
    return true;
}

struct replacement {
    struct tare_regex regex;
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
static tare_status replace_in(struct tare_strbuf *out, const struct tare_subject *subject,
                              const struct replacement *how) {
    const uint32_t groups = last_group(how->rewrite);
    const size_t size = subject->text.size;
    size_t at = 0, last_end = SIZE_MAX;
    while (at <= size && groups <= tare_regex_groups(&how->regex)) {
        const size_t *places = tare_regex_places(&how->regex), before = out->size, start = at;
        bool found;
        TARE_TRY(tare_regex_search(&found, &how->regex, subject, at, TARE_REGEX_ANYWHERE, groups > 0));
        if (!found) break;
        tare_subject_copy(out, subject, at, places[0]);
        at = places[0];
        if (at == last_end && places[1] == at) {
            const size_t next = at < size ? at + tare_subject_character(subject->text, at) : at + 1;
            if (at < size) tare_subject_copy(out, subject, at, next);
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
    if (at < size) tare_subject_copy(out, subject, at, size);
    return TARE_OK;
}

static tare_status replace(struct tare_strbuf *out, struct tare_str text, const void *arg) {
    struct tare_subject subject;
    TARE_TRY(tare_subject_make(&subject, text));
    const tare_status status = replace_in(out, &subject, arg);
    tare_subject_free(&subject);
    return status;
}

/* The pattern of the Static ops is compiled once per session. */
static tare_status prepare(struct tare_kernel *kernel) {
    const char *pattern = tare_node_string(kernel->node, "pattern", "");
    struct tare_regex *regex = tare_calloc(1, sizeof *regex);
    tare_status status;
    if (!regex) return TARE_NO_MEMORY;
    status = tare_regex_make(regex, pattern, strlen(pattern));
    if (status != TARE_OK) {
        tare_free(regex);
        return status;
    }
    kernel->state = regex;
    return TARE_OK;
}

static void release(void *state) {
    tare_regex_free(state);
    tare_free(state);
}

static tare_status run_static_replace(struct tare_kernel *kernel) {
    const char *rewrite = tare_node_string(kernel->node, "rewrite", "");
    struct replacement how = { *(const struct tare_regex *)kernel->state,
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
static tare_status regex_of_input(struct tare_regex *regex, const struct tare_kernel *kernel) {
    struct tare_str pattern;
    for (size_t i = 1; i < kernel->n_inputs; i++)
        if (kernel->inputs[i].shape.rank != 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s must be scalar, but received rank %d",
                             i == 1 ? "Pattern" : "Rewrite", kernel->inputs[i].shape.rank);
    pattern = tare_text_at(&kernel->inputs[1], 0);
    return tare_regex_make(regex, pattern.data, pattern.size);
}

static tare_status run_replace(struct tare_kernel *kernel) {
    struct replacement how = { .all = tare_node_bool(kernel->node, "replace_global", true) };
    tare_status status;
    TARE_TRY(regex_of_input(&how.regex, kernel));
    how.rewrite = tare_text_at(&kernel->inputs[2], 0);
    status = tare_text_map(kernel, replace, &how);
    tare_regex_free(&how.regex);
    return status;
}

static tare_status match_all(struct tare_kernel *kernel, const struct tare_regex *regex) {
    const struct tare_tensor *in = &kernel->inputs[0];
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_BOOL, &in->shape));
    for (int64_t i = 0; i < in->elements; i++) {
        struct tare_subject subject;
        bool found;
        TARE_TRY(tare_subject_make(&subject, tare_text_at(in, i)));
        const tare_status status = tare_regex_search(&found, regex, &subject, 0, TARE_REGEX_WHOLE, false);
        tare_subject_free(&subject);
        TARE_TRY(status);
        TARE_DATA(uint8_t, &kernel->outputs[0])[i] = found;
    }
    return TARE_OK;
}

static tare_status run_static_match(struct tare_kernel *kernel) {
    return match_all(kernel, kernel->state);
}

static tare_status run_match(struct tare_kernel *kernel) {
    struct tare_regex regex;
    tare_status status;
    TARE_TRY(regex_of_input(&regex, kernel));
    status = match_all(kernel, &regex);
    tare_regex_free(&regex);
    return status;
}

const struct tare_op tare_ops_regex[] = {
    { .name = "RegexFullMatch", .infer = infer_with_scalars, .run = run_match },
    { .name = "RegexReplace", .infer = infer_with_scalars, .run = run_replace },
    { .name = "StaticRegexFullMatch",
      .infer = tare_infer_same,
      .run = run_static_match,
      .prepare = prepare,
      .release = release },
    { .name = "StaticRegexReplace",
      .infer = tare_infer_same,
      .run = run_static_replace,
      .prepare = prepare,
      .release = release },
    { 0 },
};
