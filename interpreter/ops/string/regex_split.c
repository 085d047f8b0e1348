/* RegexSplitWithOffsets of the TensorFlow Text library: splits at the matches of a pattern, of which group 1 is the
 * delimiter. */
#include "interpreter/ops/string/regex_match.h"
#include "interpreter/ops/string/text.h"
#include "interpreter/ops/string/tokens.h"
#include "interpreter/ops/support/operand.h"

struct splitter {
    struct tare_regex delimiter, kept;
    bool keeps; /* delimiters that `kept` matches are tokens */
    struct tare_tokens tokens;
};

static int64_t original_place(const struct tare_subject *subject, size_t at) {
    return (int64_t)(subject->origin ? subject->origin[at] : at);
}

static tare_status add(struct splitter *s, const struct tare_subject *subject, size_t first, size_t last) {
    const int64_t start = original_place(subject, first), limit = original_place(subject, last);
    TARE_TRY(tare_tokens_begin(&s->tokens, start, limit));
    tare_tokens_append(&s->tokens, subject->original.data + start, (size_t)(limit - start));
    return TARE_OK;
}

/* The text from `first` on, or to `last`, as a text of its own: patterns match its begin and end. */
static struct tare_subject part_of(const struct tare_subject *subject, size_t first, size_t last) {
    struct tare_subject part = *subject;
    part.text = (struct tare_str){ subject->text.data + first, last - first };
    if (part.origin) part.origin += first;
    return part;
}

static tare_status add_delimiter(struct splitter *s, const struct tare_subject *subject, size_t first, size_t last) {
    const struct tare_subject delimiter = part_of(subject, first, last);
    bool kept = false;
    if (s->keeps) TARE_TRY(tare_regex_search(&kept, &s->kept, &delimiter, 0, TARE_REGEX_WHOLE, false));
    return kept ? add(s, subject, first, last) : TARE_OK;
}

static tare_status split(struct splitter *s, const struct tare_subject *subject) {
    const size_t size = subject->text.size;
    size_t at = 0;
    while (at < size && tare_regex_groups(&s->delimiter) > 0) {
        const struct tare_subject rest = part_of(subject, at, size);
        bool found;
        TARE_TRY(tare_regex_search(&found, &s->delimiter, &rest, 0, TARE_REGEX_ANYWHERE, true));
        if (!found) break;
        const size_t *places = tare_regex_places(&s->delimiter);
        if (places[1] == 0 || places[2] == SIZE_MAX)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "delim_regex_pattern matches without a delimiter");
        const size_t first = at + places[2], last = at + places[3], end = at + places[1];
        if (first > at) TARE_TRY(add(s, subject, at, first));
        TARE_TRY(add_delimiter(s, subject, first, last));
        at = end;
    }
    return at < size ? add(s, subject, at, size) : TARE_OK;
}

static tare_status split_text(struct splitter *s, struct tare_str text) {
    struct tare_subject subject;
    TARE_TRY(tare_subject_make(&subject, text));
    const tare_status status = split(s, &subject);
    tare_subject_free(&subject);
    return status;
}

static tare_status infer_split(struct tare_infer *infer) {
    int64_t rows;
    TARE_TRY(tare_operand_vector(infer, 0, "input", &rows));
    TARE_TRY(tare_operand_rank(infer, 1, "delim_regex_pattern", 0));
    TARE_TRY(tare_operand_rank(infer, 2, "keep_delim_regex_pattern", 0));
    for (int i = 0; i < 3; i++)
        infer->outputs[i] = tare_operand_vector_shape(-1);
    infer->outputs[3] = tare_operand_vector_shape(rows >= 0 ? rows + 1 : -1);
    return TARE_OK;
}

static tare_status run(struct tare_kernel *kernel, struct splitter *s) {
    const struct tare_tensor *in = &kernel->inputs[0];
    const struct tare_str delimiter = tare_text_at(&kernel->inputs[1], 0), kept = tare_text_at(&kernel->inputs[2], 0);
    const struct tare_shape splits = tare_operand_vector_shape(in->elements + 1);
    s->keeps = kept.size > 0;
    TARE_TRY(tare_regex_make(&s->delimiter, delimiter.data, delimiter.size));
    TARE_TRY(tare_regex_make(&s->kept, kept.data, kept.size));
    TARE_TRY(tare_kernel_output(kernel, 3, TARE_DT_INT64, &splits));
    TARE_DATA(int64_t, &kernel->outputs[3])[0] = 0;
    for (int64_t i = 0; i < in->elements; i++) {
        TARE_TRY(split_text(s, tare_text_at(in, i)));
        TARE_DATA(int64_t, &kernel->outputs[3])[i + 1] = (int64_t)s->tokens.count;
    }
    return tare_tokens_write(kernel, &s->tokens, 0, 1, 2);
}

static tare_status run_split(struct tare_kernel *kernel) {
    struct splitter splitter = { 0 };
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    const tare_status status = run(kernel, &splitter);
    tare_regex_free(&splitter.delimiter);
    tare_regex_free(&splitter.kept);
    tare_tokens_free(&splitter.tokens);
    return status;
}

const struct tare_op tare_ops_regex_split[] = {
    { .name = "RegexSplitWithOffsets",
      .inputs = "input: string, delim_regex_pattern: string, keep_delim_regex_pattern: string",
      .outputs = "tokens: string, begin_offsets: int64, end_offsets: int64, row_splits: int64",
      .infer = infer_split,
      .run = run_split },
    { 0 },
};
